// What a head and those who ask it say when something is wrong, and one run from submit to its end.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/cluster/link.hpp"
#include "messages/base/json_value.hpp"
#include "tests/integration/cli/program.hpp"
#include "tests/integration/cli/small_cluster.hpp"

namespace kernelmill::test {

namespace head_command_test {

using testing::HasSubstr;

constexpr const char* no_head = "127.0.0.1:1"; // tcpmux, which no program serves

TEST(head_command, a_head_that_does_not_answer_is_69_and_says_where) {
  for (std::vector<std::string> words : {std::vector<std::string>{"status"},
                                         {"drain", "n1"},
                                         {"cancel", "first"},
                                         {"pause", "first"},
                                         {"resume", "first"}}) {
    words.insert(words.end(), {"--head", no_head, "--insecure-loopback"});
    auto x = kernelmill(words);
    EXPECT_EQ(x.code, 69) << words[0] << x.err;
    EXPECT_THAT(x.err, HasSubstr("failed to reach the head at 127.0.0.1:1")) << words[0];
  }
}

TEST(head_command, a_head_that_accepts_and_says_nothing_is_69) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(::listen(fd, 8), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
  auto head = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  auto credentials = scratch() + "/silent_credentials";
  ASSERT_EQ(kernelmill({"cluster", "init", "--dir", credentials}).code, 0);
  for (const std::vector<std::string>& link :
       {std::vector<std::string>{"--insecure-loopback"}, {"--credentials", credentials}}) {
    std::vector<std::string> words{"status", "--head", head};
    words.insert(words.end(), link.begin(), link.end());
    auto x = kernelmill(words);
    EXPECT_EQ(x.code, 69) << x.err;
    EXPECT_THAT(x.err, HasSubstr("failed to reach the head at " + head));
  }
  ::close(fd);
}

// It holds the cluster's key. The limit is that of the kernel's list, soft and hard.
TEST(head_command, leaves_no_image_of_its_memory) {
  running_program head{{"head", "--listen", "127.0.0.1:0", "--insecure-loopback", "--root",
                        scratch() + "/private_runs"}};
  (void)head.first_line();
  std::ifstream limits{"/proc/" + std::to_string(head.number()) + "/limits"};
  std::string line;
  while (std::getline(limits, line) && !line.starts_with("Max core file size")) {
  }
  std::istringstream words{line.substr(std::min<size_t>(line.size(), 18))};
  std::string soft, hard;
  words >> soft >> hard;
  EXPECT_EQ(soft, "0") << line;
  EXPECT_EQ(hard, "0") << line;
  EXPECT_EQ(head.stop(SIGTERM).code, 0);
}

TEST(head_command, without_tls_stays_on_the_loopback) {
  auto x = kernelmill({"head", "--listen", "0.0.0.0:0", "--insecure-loopback"});
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, HasSubstr("cluster init"));
}

TEST(head_command, without_credentials_does_not_listen) {
  auto x = kernelmill({"head", "--listen", "127.0.0.1:0", "--credentials", scratch() + "/none"});
  EXPECT_EQ(x.code, 3) << x.err;
  EXPECT_THAT(x.err, HasSubstr("kernelmill cluster init"));
}

TEST(head_command, an_address_of_another_machine_is_2_and_says_so) {
  auto credentials = scratch() + "/far_credentials";
  ASSERT_EQ(kernelmill({"cluster", "init", "--dir", credentials}).code, 0);
  // An address for documentation: no machine has it.
  auto x = kernelmill({"head", "--listen", "192.0.2.1:7612", "--credentials", credentials, "--root",
                       scratch() + "/far_runs"});
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, HasSubstr("192.0.2.1:7612: Cannot assign requested address"));
}

TEST(head_command, a_folder_of_runs_that_cannot_be_locked_is_refused_at_once) {
  auto x = kernelmill({"head", "--listen", "127.0.0.1:0", "--insecure-loopback", "--root", "/sys"});
  EXPECT_NE(x.code, 0);
  EXPECT_THAT(x.err, HasSubstr("failed to lock /sys/.head.lock"));
}

TEST(head_command, an_address_that_is_none_is_2) {
  EXPECT_EQ(kernelmill({"status", "--head", "::1:7"}).code, 2);
  EXPECT_EQ(kernelmill({"head", "--listen", "127.0.0.1:none"}).code, 2);
}

TEST(head_command, a_node_without_the_gpus_that_it_should_offer_does_not_join) {
  for (const std::string list : {"x", "0,999"}) {
    auto x = kernelmill({"node", "--head", no_head, "--insecure-loopback", "--gpus", list});
    EXPECT_EQ(x.code, 2) << list << x.err;
    EXPECT_THAT(x.err, HasSubstr(list));
  }
}

TEST(head_command, a_node_whose_name_is_none_is_refused_and_the_head_goes_on) {
  small_cluster cluster{scratch() + "/names"};
  for (const std::string name : {"K\xf6ln", "../x", ".x", "a/b"}) {
    auto x = kernelmill({"node", "--head", cluster.address(), "--insecure-loopback", "--name", name,
                         "--compilers", "1", "evaluation.python=/bin/false"});
    EXPECT_EQ(x.code, 2) << name << x.err;
    EXPECT_THAT(x.err, HasSubstr("without blanks")) << name;
  }
  EXPECT_EQ(cluster.ask({"status"}).code, 0);
  EXPECT_EQ(cluster.stop().code, 0);
}

TEST(head_command, a_command_of_another_protocol_is_refused) {
  small_cluster cluster{scratch() + "/protocols"};
  cluster_config config;
  caf::actor_system system{config};
  auto gate = reach_head(system, *parse_head_address(cluster.address()), nullptr);
  ASSERT_TRUE(gate) << gate.error().message;
  auto request = build<wire::ControlRequest>([](wire::ControlRequest::Builder x) {
    x.setVerb("status");
    x.setProtocol(protocol_version + 1);
  });
  caf::scoped_actor self{system};
  self->request(*gate, std::chrono::seconds{60}, atom::control_v, request)
      .receive(
          [](const Message<wire::ControlReply>& x) {
            auto fault = x.open()->getFault();
            EXPECT_STREQ(fault.getCategory().cStr(), "protocol_differs");
            EXPECT_THAT(fault.getMessage().cStr(), HasSubstr("the command speaks protocol"));
          },
          [&](caf::error& why) { FAIL() << system.render(why); });
  EXPECT_EQ(cluster.stop().code, 0);
}

TEST(head_command, a_run_goes_from_submit_to_its_end_and_the_node_drains) {
  auto root = scratch() + "/head_runs";
  small_cluster cluster{root};
  auto second =
      kernelmill({"head", "--listen", "127.0.0.1:0", "--insecure-loopback", "--root", root});
  EXPECT_EQ(second.code, 4) << second.err;
  EXPECT_THAT(second.err, HasSubstr("another head serves it"));
  EXPECT_EQ(cluster.ask({"drain", "absent"}).code, 3);
  EXPECT_EQ(cluster.ask({"cancel", "nothing"}).code, 3);
  cluster.start_node();
  auto run = cluster.submit({"run.name=told", "tasks.group_size=2", "--wait"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.document()["state"], "finished");
  EXPECT_EQ(run.document()["ended"], 2);
  EXPECT_TRUE(std::filesystem::exists(root + "/told/traces.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(root + "/told/head.json")) << "it is over";
  auto status = cluster.ask({"status", "--json"}).document();
  ASSERT_EQ(status["nodes"].size(), 1u);
  EXPECT_EQ(status["nodes"][0]["node"], "worker");
  EXPECT_EQ(cluster.ask({"submit", "quickstart", "run.name=told"}).code, 4) << "the name is taken";
  EXPECT_EQ(cluster.ask({"drain", "worker"}).code, 0);
  EXPECT_EQ(cluster.stop().code, 0);
}

TEST(head_command, a_run_whose_nodes_are_gone_can_be_cancelled) {
  auto root = scratch() + "/no_nodes";
  small_cluster cluster{root};
  cluster.start_node();
  auto x = cluster.begin_long_run("left", 1);
  ASSERT_EQ(x["state"], "running") << x;
  auto beside = kernelmill({"resume", root + "/left"});
  EXPECT_EQ(beside.code, 4) << beside.err;
  EXPECT_THAT(beside.err, HasSubstr("a head works on it"));
  cluster.kill_node();
  nlohmann::json lost;
  do lost = cluster.ask({"status", "--json"}).document()["lost"];
  while (lost.empty());
  EXPECT_EQ(lost[0]["node"], "worker");
  EXPECT_THAT(cluster.ask({"status"}).out, HasSubstr("lost"));
  ASSERT_EQ(cluster.ask({"cancel", "left"}).code, 0);
  do x = cluster.state_of("left");
  while (x["state"] == "stopping");
  EXPECT_EQ(x["state"], "cancelled") << x;
  EXPECT_EQ(x["infrastructure"], 0) << "nothing that waited was called broken";
  auto again = cluster.ask({"pause", "left"});
  EXPECT_EQ(again.code, 2) << again.err;
  EXPECT_THAT(again.err, HasSubstr("it is cancelled"));
  auto changed = cluster.ask({"resume", "left", "tasks.max_turns=5"});
  EXPECT_EQ(changed.code, 2) << changed.err;
  EXPECT_THAT(changed.err, HasSubstr("the configuration that was submitted"));
  auto head = cluster.stop();
  EXPECT_EQ(head.code, 0);
  EXPECT_THAT(head.err, AllOf(HasSubstr("info  actor=head | the node worker joined: cpu/"),
                              HasSubstr("warn  actor=head | lost the node worker (cpu/"),
                              HasSubstr("warn  actor=cluster | a job to "),
                              HasSubstr("actor=head run=left | the run is over: cancelled")));
  EXPECT_TRUE(std::filesystem::exists(root + "/left/logs/run.log"));
}

TEST(head_command, a_drain_outlasts_the_head_that_asked_for_it) {
  small_cluster cluster{scratch() + "/drained"};
  cluster.start_node();
  auto x = cluster.begin_long_run("long", 4);
  ASSERT_EQ(x["state"], "running") << x;
  ASSERT_EQ(cluster.ask({"drain", "worker"}).code, 0);
  cluster.kill_and_restart_head();
  while (cluster.node_runs()) cluster.ask({"status"});
  EXPECT_EQ(cluster.stop_node(), 0);
  EXPECT_EQ(cluster.state_of("long")["state"], "running") << "it waits for another node";
  EXPECT_EQ(cluster.stop().code, 0);
}

TEST(head_command, a_run_that_failed_ends_a_waiting_command_with_the_exit_code_of_its_cause) {
  small_cluster cluster{scratch() + "/failing"};
  auto server = write_file("other_script.json", R"({"replies": [{"task": "x", "text": "hello"}]})");
  running_program odd{{"policy", "scripted", "--script", server}};
  auto url = odd.first_line();
  auto attached = cluster.ask({"policy", "attach", url.substr(0, url.find('\n'))});
  EXPECT_NE(attached.code, 0);
  EXPECT_THAT(attached.err, HasSubstr("without asking it what it is"));
  cluster.start_node();
  auto x = cluster.submit({"run.name=unanswered", "policy.kind=openai", "policy.model=m",
                           "policy.base_url=http://127.0.0.1:1/v1", "policy.first_contact_ms=500",
                           "--wait"});
  EXPECT_EQ(x.code, 69) << x.err;
  EXPECT_EQ(x.document()["category"], "policy_unreachable") << x.out;
  EXPECT_EQ(cluster.stop().code, 0);
}

TEST(head_command, a_short_run_has_its_turns_and_one_of_low_priority_waits) {
  small_cluster cluster{scratch() + "/priorities"};
  cluster.start_node();
  auto state_of = [&](const std::string& name) { return cluster.state_of(name); };
  auto wait_while = [&](const std::string& name, auto holds) {
    auto x = state_of(name);
    while (x["state"] == "running" && holds(x)) x = state_of(name);
    return x;
  };
  auto begun = cluster.begin_long_run("long", 1);
  ASSERT_EQ(begun["state"], "running") << begun;
  ASSERT_EQ(cluster.submit({"run.name=low", "run.priority=-5", "tasks.group_size=2"}).code, 0);
  ASSERT_EQ(cluster.submit({"run.name=brief", "tasks.group_size=2"}).code, 0);
  auto now = cluster.states_of({"brief", "long", "low"});
  while (now[0]["state"] == "running") now = cluster.states_of({"brief", "long", "low"});
  EXPECT_EQ(now[0]["state"], "finished");
  EXPECT_EQ(now[0]["ended"], 2);
  EXPECT_LT(now[1]["ended"], 16) << "runs of one priority take turns";
  EXPECT_EQ(now[2]["ended"], 0);
  wait_while("low", [](const nlohmann::json& x) { return x["ended"] == 0; });
  EXPECT_GE(state_of("long")["ended"], 15) << "but for what a slot still works on";
  auto low = wait_while("low", [](const nlohmann::json&) { return true; });
  EXPECT_EQ(low["ended"], 2) << low;
  EXPECT_EQ(cluster.stop().code, 0);
}

} // namespace head_command_test
} // namespace kernelmill::test
