// Runs that lack something, each explained by its words; and what else looks at runs, from here and
// from a head.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include <sys/mount.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace watch_command_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Asks until `enough` says so; the test's own timeout is the only one.
json until(const std::vector<std::string>& command, const std::function<bool(const json&)>& enough,
           const running_program& while_running) {
  for (;;) {
    bool running = while_running.running();
    auto asked = kernelmill(command);
    auto x = asked.document();
    if (asked.code == 0 && x.is_object() && enough(x)) return x;
    if (running) continue;
    ADD_FAILURE() << "the run ended before: " << asked.out << asked.err;
    return json::object();
  }
}

json explained(const std::string& what, const std::string& resource,
               const running_program& while_running, std::vector<std::string> more = {}) {
  std::vector<std::string> command{"explain", what, "--json"};
  command.insert(command.end(), more.begin(), more.end());
  return until(
      command, [&](const json& x) { return x["resource"] == resource && x["starved"] == true; },
      while_running);
}

std::string first_text(const json& x) {
  return x.contains("findings") ? x["findings"][0]["text"].get<std::string>() : std::string{};
}

/// Answers without a kernel, so that nothing is built and turns follow each other quickly.
std::string talk_script(const std::string& name, const std::string& more = "") {
  return write_file(
      name, R"({"model": "m", "replies": [{"text": "no kernel at all"}], "latency_ms": 300)" +
                more + "}");
}

/// Gives no answer: a run stays as it is for as long as a test looks at it.
constexpr const char* silent = R"(, "faults": [{"kind": "stall", "seconds": 3600}])";

std::vector<std::string> run_of(const std::string& name, std::vector<std::string> more) {
  std::vector<std::string> result{"run",
                                  source_file("configs/quickstart.json"),
                                  "tasks.ids=[\"native/row_sum\"]",
                                  "tasks.group_size=4",
                                  "tasks.max_turns=64",
                                  "retrieval.enabled=false",
                                  "policy.model=m",
                                  "run.dir=runs/" + name,
                                  "run.name=" + name};
  result.insert(result.end(), more.begin(), more.end());
  return result;
}

bool has_turns(const json& ps) {
  return !ps["runs"].empty() && ps["runs"][0]["turns"] >= 1;
}

TEST(explain_command, a_policy_server_that_went_away_is_named) {
  running_program server{{"policy", "scripted", "--script", talk_script("down.json")}};
  running_program run{
      run_of("down", {"policy.kind=openai", "policy.base_url=" + server.first_line()})};
  until({"ps", "down", "--json"}, has_turns, run);
  server.stop(SIGKILL);
  auto x = explained("down", "policy server", run);
  EXPECT_THAT(first_text(x), HasSubstr("The policy server is down or does not answer."));
  EXPECT_THAT(first_text(x), HasSubstr("live episodes ask it again"));
  auto one = explained("down/g0.e0", "policy server", run);
  EXPECT_THAT(first_text(one), AllOf(HasSubstr("is down"), HasSubstr("Attempt ")));
  EXPECT_EQ(one["held_by"], "policy client");
  EXPECT_GE(one["attempt"], 1);
  EXPECT_GT(one["episode_deadline_seconds"], 0);
  auto text = kernelmill({"explain", "down/g0.e0"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("lacks: policy server"), HasSubstr("next: ")));
  run.stop(SIGTERM);
}

TEST(explain_command, a_policy_server_that_answers_nonsense_is_named) {
  running_program server{{"policy", "scripted", "--script",
                          talk_script("garbage.json", R"(, "faults": [{"kind": "garbage"}])")}};
  running_program run{
      run_of("garbage", {"policy.kind=openai", "policy.base_url=" + server.first_line()})};
  auto x = explained("garbage", "policy server", run);
  EXPECT_THAT(first_text(x), HasSubstr("The policy server answers nonsense."));
  run.stop(SIGTERM);
}

TEST(explain_command, a_compiler_that_cannot_be_run_is_named_while_and_after) {
  auto kernel = write_file(
      "kernel.json",
      R"({"model": "m", "latency_ms": 200, "replies": [{"text": "<think>\nx\n</think>\n<KERNEL>\nextern \"C\" void solve(const float*, float*, int, int) {}\n</KERNEL>"}]})");
  // One episode at a time, and many of them: it goes on losing them while it is asked.
  running_program run{
      run_of("uncompiled", {"policy.kind=scripted", "policy.script=" + kernel,
                            "compile.compiler=" + scratch() + "/no-compiler",
                            "compile.cache_dir=" + scratch() + "/no-cache", "tasks.groups=64",
                            "episode.max_live=1", "run.max_infrastructure=1"})};
  auto x = explained("uncompiled", "compiler", run);
  ASSERT_TRUE(x.contains("findings")) << run.stop(SIGTERM).err;
  EXPECT_EQ(x["state"], "running");
  EXPECT_THAT(
      first_text(x),
      AllOf(HasSubstr("lost to a fault of the compiler (toolchain_missing): failed to run "),
            HasSubstr("no-compiler")));
  auto text = kernelmill({"explain", "uncompiled"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("lacks: compiler"), HasSubstr("next: ")));
  run.stop(SIGTERM);
  auto over = kernelmill({"explain", "uncompiled", "--json"});
  ASSERT_EQ(over.code, 0) << over.err;
  bool named = false;
  auto told = over.document();
  for (const auto& one : told["findings"])
    named |=
        one["resource"] == "compiler" &&
        one["text"].get<std::string>().find("compiler (toolchain_missing)") != std::string::npos;
  EXPECT_TRUE(named) << over.out;
}

TEST(explain_command, a_full_disk_is_named) {
  auto at = scratch() + "/disk";
  std::filesystem::create_directory(at);
  if (::mount("none", at.c_str(), "tmpfs", 0, "size=24m") != 0)
    GTEST_SKIP() << "mounting a tmpfs takes root";
  {
    running_program server{{"policy", "scripted", "--script", talk_script("disk.json")}};
    auto words = run_of("full", {"policy.kind=openai", "policy.base_url=" + server.first_line()});
    words[7] = "run.dir=disk/full";
    running_program run{words};
    until({"ps", "disk/full", "--json"}, has_turns, run);
    {
      std::ofstream fill{at + "/fill", std::ios::binary};
      std::string block(1 << 16, 'x');
      while (fill.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
      }
    }
    auto x = explained("disk/full", "disk", run);
    if (!x.contains("findings")) // it has ended meanwhile: the disk is as full as before
      x = kernelmill({"explain", "disk/full", "--json"}).document();
    ASSERT_TRUE(x.contains("findings"));
    EXPECT_THAT(first_text(x), HasSubstr("is full"));
    run.stop(SIGKILL);
    auto over = kernelmill({"explain", "disk/full", "--json"}).document();
    EXPECT_EQ(over["resource"], "disk") << over;
  }
  ::umount2(at.c_str(), MNT_DETACH);
}

TEST(explain_command, a_node_that_was_lost_is_named_from_afar) {
  running_program head{{"head", "--listen", "127.0.0.1:0", "--insecure-loopback", "--root",
                        scratch() + "/head_runs"}};
  std::vector<std::string> there{"--head", head.first_line(), "--insecure-loopback"};
  auto at_head = [&](std::vector<std::string> words) {
    words.insert(words.end(), there.begin(), there.end());
    return words;
  };
  running_program node{at_head({"node", "--name", "n1", "--compilers", "1"})};
  until(
      at_head({"status", "--json"}), [](const json& x) { return x["nodes"].size() == 1; }, head);
  // Slow enough that jobs are there when the node is lost.
  auto words = run_of("orphan", {"tasks.max_turns=4", "tasks.ids=[\"native/*\"]"});
  words[0] = "submit";
  words.erase(words.begin() + 7); // a head chooses the directory
  words.erase(std::find(words.begin(), words.end(), "policy.model=m"));
  auto submitted = kernelmill(at_head(words));
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  until(
      at_head({"ps", "orphan", "--json"}), [](const json& x) { return !x["episodes"].empty(); },
      head);
  auto nodes = kernelmill(at_head({"node", "ls", "--json"})).document()["nodes"];
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0]["node"], "n1");
  EXPECT_GE(nodes[0]["slots"], 1);
  auto slots = kernelmill(at_head({"gpu", "ls", "--json"})).document()["gpus"];
  ASSERT_GE(slots.size(), 1u);
  EXPECT_EQ(slots[0]["node"], "n1") << "the head asks its nodes' monitors";
  node.stop(SIGKILL);
  auto x = explained("orphan", "node", head, there);
  EXPECT_THAT(first_text(x), AllOf(HasSubstr("No node offers a "),
                                   HasSubstr("The node n1 was lost"), HasSubstr(" ago.")));
  EXPECT_THAT(x["findings"][0]["next"].get<std::string>(), HasSubstr("kernelmill node --head"));
  auto lost = kernelmill(at_head({"node", "ls", "--where", "state=lost", "--json"})).document();
  EXPECT_EQ(lost["nodes"].size(), 1u);
  auto frame = kernelmill(at_head({"top", "--once"}));
  EXPECT_THAT(frame.out, AllOf(HasSubstr("STARVED"), HasSubstr("n1"), HasSubstr("lost")));
  auto runs = kernelmill(at_head({"runs", "--json"})).document()["runs"];
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["state"], "running");
  EXPECT_EQ(kernelmill(at_head({"stats", "orphan"})).code, 0)
      << "of a store that the head has open";
  head.stop(SIGKILL);
}

// A run begins where some node can do it; here that one leaves in good order, and one without slots
// stays.
TEST(explain_command, what_no_node_offers_is_named_from_afar) {
  running_program head{{"head", "--listen", "127.0.0.1:0", "--insecure-loopback", "--root",
                        scratch() + "/left_runs"}};
  std::vector<std::string> there{"--head", head.first_line(), "--insecure-loopback"};
  auto at_head = [&](std::vector<std::string> words) {
    words.insert(words.end(), there.begin(), there.end());
    return words;
  };
  auto nodes = [](size_t count) {
    return [count](const json& x) { return x["nodes"].size() == count; };
  };
  bool has_nvcc = ::access("/usr/local/cuda/bin/nvcc", X_OK) == 0;
  std::unique_ptr<running_program> compiles;
  if (has_nvcc) {
    compiles = std::make_unique<running_program>(
        at_head({"node", "--name", "c1", "--compilers", "1", "--arch", "sm_90"}));
    until(at_head({"status", "--json"}), nodes(1), head);
    // A GPU that no machine has: the run does not begin, and its user reads why.
    auto words = run_of("gpuless", {"evaluation.backend=cuda"});
    words[0] = "submit";
    words.erase(words.begin() + 7); // a head chooses the directory
    words.erase(std::find(words.begin(), words.end(), "policy.model=m"));
    running_program waits{at_head(words)};
    waits.wait_for_error("waiting for a node that can do this run");
    EXPECT_THAT(waits.stop(SIGTERM).err,
                AllOf(HasSubstr("no node offers "), HasSubstr("waiting for a node that can do")));
  }
  running_program node{at_head({"node", "--name", "n1", "--compilers", "1"})};
  until(at_head({"status", "--json"}), nodes(has_nvcc ? 2 : 1), head);
  auto words = run_of("left", {"tasks.max_turns=4", "tasks.ids=[\"native/*\"]"});
  words[0] = "submit";
  words.erase(words.begin() + 7);
  words.erase(std::find(words.begin(), words.end(), "policy.model=m"));
  auto submitted = kernelmill(at_head(words));
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  until(
      at_head({"ps", "left", "--json"}), [](const json& x) { return !x["episodes"].empty(); },
      head);
  node.stop(SIGTERM); // it finishes what it does, and leaves
  until(at_head({"status", "--json"}), nodes(has_nvcc ? 1 : 0), head);
  auto x = explained("left", "node", head, there);
  EXPECT_THAT(first_text(x), AllOf(HasSubstr("No node offers a "), HasSubstr("the oldest for ")));
  EXPECT_THAT(x["findings"][0]["next"].get<std::string>(), HasSubstr("kernelmill node --head"));
  auto text = kernelmill(at_head({"explain", "left"}));
  EXPECT_THAT(text.out, AllOf(HasSubstr("lacks: node"), HasSubstr("next: ")));
  head.stop(SIGKILL);
}

TEST(watch_command, shows_each_turn_once_and_ends_with_the_episode) {
  running_program server{{"policy", "scripted", "--script", talk_script("watched.json")}};
  auto url = server.first_line();
  // It answers once the episodes were seen, or the run may be over before anybody looks.
  ::kill(server.number(), SIGSTOP);
  running_program run{
      run_of("watched", {"policy.kind=openai", "tasks.max_turns=5", "policy.base_url=" + url})};
  until(
      {"ps", "watched", "--json"}, [](const json& x) { return !x["episodes"].empty(); }, run);
  ::kill(server.number(), SIGCONT);
  auto x = kernelmill({"watch", "watched/g0.e1", "--json"});
  EXPECT_EQ(x.code, 0) << x.err;
  std::istringstream lines{x.out};
  std::vector<json> seen;
  for (std::string line; std::getline(lines, line);) seen.push_back(json::parse(line));
  ASSERT_EQ(seen.size(), 6u) << x.out;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(seen[i]["kind"], "turn");
    EXPECT_EQ(seen[i]["turn"], i);
    EXPECT_EQ(seen[i]["category"], "format_error");
  }
  EXPECT_EQ(seen[5]["kind"], "end");
  run.stop(SIGTERM);
  // The same of the finished run's directory.
  EXPECT_THAT(kernelmill({"watch", "runs/watched/g0.e1"}).out, HasSubstr("g0.e1 has ended"));
  auto stats = kernelmill({"stats", "watched", "--json"}).document();
  EXPECT_EQ(stats["funnel"][0]["step"], "format");
  EXPECT_EQ(stats["funnel"][0]["turns"], 0);
  EXPECT_GE(stats["turns"], 5);
  EXPECT_EQ(kernelmill({"lineage", "watched/g0.e1", "--json"}).document()["turns"].size(), 5u);
  EXPECT_THAT(kernelmill({"lineage", "watched/g0.e1"}).out, HasSubstr("└─ t4 format_error"));
  EXPECT_THAT(kernelmill({"lineage", "watched/g0.e1", "--dot"}).out, HasSubstr(" -> "));
  EXPECT_THAT(kernelmill({"logs", "watched", "--lines", "50"}).out,
              HasSubstr("opened: 4 episodes"));
  EXPECT_THAT(kernelmill({"logs", "watched", "--level", "error"}).out, Not(HasSubstr("opened")));
  EXPECT_EQ(kernelmill({"logs", "watched", "--episode", "g99.e1"}).code, 3);
  EXPECT_EQ(kernelmill({"logs", "watched/g99.e1"}).code, 3) << "the same, in one word";
  EXPECT_EQ(kernelmill({"logs", "watched/g0.e1"}).code, 0);
  auto followed = kernelmill({"logs", "watched", "-f"}); // of a run that has ended
  EXPECT_EQ(followed.code, 0);
  EXPECT_THAT(followed.err, HasSubstr("nothing more will come"));
}

TEST(ps_command, filters_sorts_and_says_what_it_cannot_read) {
  running_program server{{"policy", "scripted", "--script", talk_script("listed.json", silent)}};
  running_program run{
      run_of("listed", {"policy.kind=openai", "policy.base_url=" + server.first_line()})};
  until(
      {"ps", "listed", "--json"}, [](const json& x) { return x["live"] == 4; }, run);
  auto x = kernelmill({"ps", "listed", "--where", "id~e1 or id=g0.e3", "--sort=-id", "--json"})
               .document();
  ASSERT_EQ(x["episodes"].size(), 2u) << x;
  EXPECT_EQ(x["episodes"][0]["id"], "g0.e3");
  EXPECT_EQ(x["matching"], 2);
  EXPECT_EQ(x["live"], 4);
  EXPECT_EQ(x["runs"][0]["episodes"], 4);
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"ps", "--where", "stat=queued"},
        {"ps", "--sort", "colour"},
        {"runs", "--where", "("},
        {"actor", "ls", "--where", "x"},
        {"ps", "--limit", "0"},
        {"logs", "listed", "--lines", "-1"},
        {"lineage", "listed/g0.e0", "--dot", "--tree"}}) {
    auto refused = kernelmill(bad);
    EXPECT_EQ(refused.code, 2) << bad[0] << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("next: "));
  }
  for (const std::vector<std::string>& absent : {std::vector<std::string>{"explain", "absent"},
                                                 {"explain", "listed/g7.e0"},
                                                 {"watch", "absent/g0.e0"},
                                                 {"stats", "absent"},
                                                 {"lineage", "listed/g9.e9"},
                                                 {"logs", "absent"},
                                                 {"actor", "show", "absent"}}) {
    auto refused = kernelmill(absent);
    EXPECT_EQ(refused.code, 3) << absent[0] << refused.err;
  }
  auto actors = kernelmill({"actor", "ls", "listed", "--json"}).document()["actors"];
  bool monitor = false, lineage = false;
  for (const auto& a : actors) {
    monitor = monitor || a["actor"] == "monitor";
    lineage = lineage || (a["actor"] == "lineage" && a["mailbox"].is_number());
  }
  EXPECT_TRUE(lineage) << actors;
  EXPECT_FALSE(monitor) << "hidden unless asked for";
  EXPECT_THAT(kernelmill({"actor", "ls", "--all"}).out, HasSubstr("monitor"));
  EXPECT_THAT(kernelmill({"actor", "show", "lineage"}).out, HasSubstr("records_committed"));
  auto table = kernelmill({"runs"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("listed"), HasSubstr("running"))) << table.err;
  auto no_terminal = kernelmill({"top"});
  EXPECT_EQ(no_terminal.code, 2);
  EXPECT_THAT(no_terminal.err, HasSubstr("top --once"));
  EXPECT_THAT(kernelmill({"top", "--once"}).out, HasSubstr("4 live episodes"));
  run.stop(SIGTERM);
}

} // namespace watch_command_test
} // namespace kernelmill::test
