// The HEAD with runs that are not real: what it answers while a worker thread is busy, and how it
// ends.

#include "actors/head/head.hpp"
#include "actors/head/head_documents.hpp"
#include "messages/base/json_value.hpp"

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <unistd.h>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cluster/node_gate.hpp"
#include "actors/policy_pool/policy_pool.hpp"
#include "messages/fault.hpp"

namespace kernelmill {
namespace head_test {

using namespace std::chrono_literals;
using json = nlohmann::ordered_json;
using testing::HasSubstr;

/// What threads of a test wait for.
class gate {
public:
  void open() {
    std::lock_guard guard{mutex_};
    open_ = true;
    wake_.notify_all();
  }
  void pass() {
    std::unique_lock lock{mutex_};
    wake_.wait(lock, [&] { return open_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool open_ = false;
};

/// What the runs of a test have seen.
struct run_log {
  std::mutex mutex;
  std::vector<std::string> lines;

  void put(const std::string& line) {
    std::lock_guard guard{mutex};
    lines.push_back(line);
  }
  std::vector<std::string> all() {
    std::lock_guard guard{mutex};
    return lines;
  }
};

struct idle_run_state {
  caf::typed_response_promise<Message<wire::RunSummary>> answer;
  static inline const char* name = "idle-run";
};

/// A run that goes on until it is cancelled, or fails at once.
run_actor::behavior_type idle_run(run_actor::stateful_pointer<idle_run_state> self,
                                  std::string name, std::shared_ptr<run_log> log) {
  auto end = [self](const char* outcome) {
    self->state.answer.deliver(build<wire::RunSummary>([&](wire::RunSummary::Builder x) {
      x.setOutcome(outcome);
      x.initTotals().setEpisodes(3);
    }));
  };
  auto says = [name] {
    return build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
      x.setActor("run");
      x.setId(name);
      auto numbers = x.initNumbers(2);
      numbers[0].setName("planned");
      numbers[0].setValue(7);
      numbers[1].setName("turns");
      numbers[1].setValue(5);
    });
  };
  return {[says](atom::status) { return says(); },
          [self](atom::start) {
            self->state.answer = self->make_response_promise<Message<wire::RunSummary>>();
            return self->state.answer;
          },
          [](atom::commit, uint32_t, bool) {},
          [](atom::finished, const Message<wire::EpisodeOutcome>&) {},
          [says](atom::observe) { return says(); },
          [name, log, end](atom::pause, bool on) {
            log->put(name + (on ? " pauses" : " goes on"));
            if (name == "brief") end("finished");
          },
          [end](atom::cancel) { end("cancelled"); },
          [](atom::tick) {},
          [self](atom::proceed) { self->quit(caf::exit_reason::unhandled_exception); }};
}

class fake_run final : public head_run {
public:
  fake_run(head_run_facts facts, std::shared_ptr<run_log> log, std::shared_ptr<gate> door)
      : facts_(std::move(facts)), log_(std::move(log)), door_(std::move(door)) {
    // nop
  }
  const head_run_facts& facts() const override { return facts_; }
  expected<void> open(const lane_facts& where) override {
    log_->put(facts_.name + " opens in " + where.lane);
    if (facts_.name == "slow") door_->pass();
    if (facts_.name == "odd") throw std::runtime_error{"no such thing"};
    return {};
  }
  run_actor start(caf::actor_system& system, const cluster_actor&, const policy_client_actor&,
                  const status_actor& head) override {
    log_->put(facts_.name + (head ? " starts" : " starts without a head"));
    actor_ = system.spawn(idle_run, facts_.name, log_);
    if (facts_.name == "mortal") caf::anon_send(actor_, atom::proceed_v);
    return actor_;
  }
  void close(bool over) override {
    log_->put(facts_.name + (over ? " is over" : " is left"));
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
  }

private:
  head_run_facts facts_;
  std::shared_ptr<run_log> log_;
  std::shared_ptr<gate> door_;
  run_actor actor_;
};

/// A submitted document is the run's name.
class fake_host final : public run_host {
public:
  std::shared_ptr<run_log> log = std::make_shared<run_log>();
  std::shared_ptr<gate> door = std::make_shared<gate>();
  std::vector<std::string> left;

  expected<head_run_ptr> read(const std::string& name) override { return make(name, ""); }
  expected<head_run_ptr> find(const std::string& name) override {
    if (name == "broken") return infrastructure_error("io_error", "failed to read broken");
    return make(name, "cpu/old");
  }
  std::vector<std::string> left_over() override { return left; }

private:
  head_run_ptr make(const std::string& name, const std::string& lane) {
    head_run_facts facts{name, "/runs/" + name, "auto", lane, 2};
    if (name == "strict") facts.required_layers = {"seccomp", "landlock"};
    return std::make_shared<fake_run>(std::move(facts), log, door);
  }
};

class head : public testing::Test {
protected:
  struct configuration : caf::actor_system_config {
    configuration() {
      add_message_types<caf::id_block::kernelmill>();
      add_message_types<caf::id_block::kernelmill_handles>();
    }
  };

  head() {
    folder_ = testing::TempDir() + "/head-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }

  ~head() override {
    host_->door->open();
    end();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void start() {
    slots_ = system_.spawn(leasing_cluster, lease_policy{});
    node_ = spawn_node_gate(system_, "worker", slots_, std::make_shared<parcel_shelf>(folder_));
    head_settings settings;
    settings.build = "a build";
    settings.epoch = 17;
    settings.shelf = std::make_shared<parcel_shelf>(folder_);
    settings.servers_file = folder_ + "/policies.json";
    settings.pool =
        system_.spawn(policy_pool, policy_member_factory{[this](policy_config) {
                        return policy_client_actor{system_.spawn(
                            [](policy_client_actor::pointer) -> policy_client_actor::behavior_type {
                              return {[](atom::status) { return Message<wire::Snapshot>{}; },
                                      [](atom::complete, const envelope&,
                                         const Message<wire::CompletionRequest>&) {
                                        return Message<wire::CompletionResult>{};
                                      }};
                            })};
                      }});
    settings.runs = host_;
    head_ = spawn_head(system_, std::move(settings));
    self_->request(head_, 60s, atom::start_v)
        .receive([](atom::start) {}, [&](caf::error& why) { FAIL() << system_.render(why); });
  }

  void end() {
    if (!head_) return;
    self_->monitor(head_);
    self_->send_exit(head_, caf::exit_reason::user_shutdown);
    self_->receive([](const caf::down_msg&) {});
    caf::anon_send_exit(node_, caf::exit_reason::kill);
    caf::anon_send_exit(slots_, caf::exit_reason::kill);
    head_ = nullptr;
    node_ = nullptr;
  }

  Message<wire::Welcome> join(const std::string& build_id = "a build",
                              const std::string& name = "worker",
                              const std::vector<std::string>& layers = {}) {
    auto offer = build<wire::NodeOffer>([&](wire::NodeOffer::Builder x) {
      x.setName(name);
      x.setBuild(build_id);
      x.setEpoch(name.size());
      auto stand = x.initLayers(static_cast<unsigned>(layers.size()));
      for (unsigned i = 0; i < stand.size(); ++i) stand.set(i, layers[i]);
      x.setBackend("cpu");
      x.setArchitecture("x");
      x.setCompilers(1);
      x.initSlots(1).set(0, "0");
    });
    Message<wire::Welcome> result;
    self_->request(head_, 60s, atom::join_v, offer, node_)
        .receive([&](const Message<wire::Welcome>& x) { result = x; },
                 [&](caf::error& why) { FAIL() << system_.render(why); });
    return result;
  }

  static Message<wire::ControlRequest> command(const std::string& verb, const std::string& subject,
                                               const std::string& document) {
    return build<wire::ControlRequest>([&](wire::ControlRequest::Builder x) {
      x.setVerb(verb);
      x.setSubject(subject);
      x.setDocument(document);
      x.setProtocol(protocol_version);
    });
  }

  static expected<json> read(const Message<wire::ControlReply>& reply) {
    auto x = reply.open();
    if (auto why = fault_of(x->getFault()); why.cls != fault_class::none)
      return tl::unexpected<error>{why};
    return json::parse(x->getDocument().cStr());
  }

  expected<json> ask(const std::string& verb, const std::string& subject = {},
                     const std::string& document = {}) {
    expected<json> result;
    self_->request(head_, 60s, atom::control_v, command(verb, subject, document))
        .receive([&](const Message<wire::ControlReply>& x) { result = read(x); },
                 [&](caf::error& why) { FAIL() << system_.render(why); });
    return result;
  }

  std::string category(const expected<json>& x) { return x ? "" : x.error().category; }

  /// The row of a run once its state is not `while_it_is`.
  json row_after(const std::string& run, const std::string& while_it_is) {
    for (;;) {
      auto all = ask("status");
      for (const auto& x : (*all)["runs"])
        if (x["run"] == run && x["state"] != while_it_is) return x;
    }
  }

  configuration config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  std::string folder_;
  std::shared_ptr<fake_host> host_ = std::make_shared<fake_host>();
  cluster_actor slots_;
  node_gate_actor node_;
  head_actor head_;
};

TEST_F(head, is_an_actor_whose_snapshot_shows_nodes_runs_and_servers) {
  start();
  EXPECT_EQ(category(ask("submit", {}, "first")), "no_nodes");
  EXPECT_STREQ(join("another").open()->getFault().getCategory().cStr(), "build_differs");
  EXPECT_EQ(join().open()->getEpoch(), 17u);
  ASSERT_TRUE(ask("submit", {}, "first"));
  auto server = json{{"url", "http://127.0.0.1:1/v1"}, {"kind", "openai"}, {"model", "m"}}.dump();
  ASSERT_TRUE(ask("policy_attach", {}, server));
  self_->request(head_, 60s, atom::status_v)
      .receive(
          [](const Message<wire::Snapshot>& says) {
            auto x = says.open();
            EXPECT_STREQ(x->getActor().cStr(), "head");
            std::vector<std::string> children;
            for (auto child : x->getChildren())
              children.push_back(std::string{child.getActor()} + " " + child.getId().cStr() + " " +
                                 child.getState().cStr());
            EXPECT_THAT(children,
                        testing::ElementsAre("node worker serving", "head_run first running",
                                             "policy_server 127.0.0.1:1 attached"));
          },
          [&](caf::error& why) { FAIL() << system_.render(why); });
  auto status = *ask("status");
  EXPECT_EQ(status["lanes"][0]["lane"], "cpu/x");
  EXPECT_EQ(status["lanes"][0]["runners"], 1);
  EXPECT_EQ(status["runs"][0]["episodes"], 7);
  EXPECT_EQ(status["runs"][0]["turns"], 5);
  EXPECT_EQ(status["runs"][0]["priority"], 2);
}

TEST_F(head, a_run_that_requires_layers_goes_to_no_node_that_lacks_one) {
  start();
  join("a build", "weak", {"seccomp"});
  auto refused = ask("submit", {}, "strict");
  ASSERT_EQ(category(refused), "sandbox_layer_missing");
  EXPECT_THAT(refused.error().message, HasSubstr("node weak lacks landlock"));
  EXPECT_TRUE(ask("submit", {}, "other")) << "which requires none";
  join("a build", "strong", {"landlock", "seccomp"});
  ASSERT_TRUE(ask("submit", {}, "strict"));
  join("a build", "late", {});
  auto row = row_after("strict", "");
  EXPECT_EQ(row["slots"], 1) << row;
  EXPECT_EQ(row["unfit_nodes"],
            (json{"node late lacks seccomp, landlock", "node weak lacks landlock"}));
  EXPECT_TRUE(row_after("other", "")["unfit_nodes"].empty());
}

TEST_F(head, answers_others_while_a_run_is_being_opened) {
  start();
  join();
  self_->send(head_, atom::control_v, command("submit", "", "slow"));
  EXPECT_EQ((*ask("status"))["runs"].size(), 0u) << "the worker thread waits at the door";
  self_->send(head_, atom::control_v, command("submit", "", "slow"));
  host_->door->open();
  std::vector<std::string> answers;
  for (int i = 0; i < 2; ++i)
    self_->receive(
        [&](const Message<wire::ControlReply>& x) { answers.push_back(category(read(x))); });
  EXPECT_THAT(answers, testing::UnorderedElementsAre("", "run_exists"));
}

TEST_F(head, a_run_that_throws_or_dies_costs_itself_alone) {
  start();
  join();
  auto odd = ask("submit", {}, "odd");
  EXPECT_EQ(category(odd), "internal");
  EXPECT_THAT(odd.error().message, HasSubstr("no such thing"));
  ASSERT_TRUE(ask("submit", {}, "mortal"));
  auto x = row_after("mortal", "running");
  EXPECT_EQ(x["state"], "failed");
  EXPECT_EQ(x["category"], "actor_lost");
  EXPECT_TRUE(ask("submit", {}, "mortal")) << "its name is free again";
}

TEST_F(head, says_that_a_run_is_over_once_its_files_are_given_back) {
  start();
  join();
  ASSERT_TRUE(ask("submit", {}, "brief"));
  EXPECT_EQ(category(ask("submit", {}, "brief")), "run_exists");
  ASSERT_TRUE(ask("pause", "brief"));
  auto x = row_after("brief", "paused");
  EXPECT_EQ(x["state"], "finished");
  EXPECT_EQ(x["ended"], 3);
  EXPECT_EQ(x["episodes"], 7);
  EXPECT_GT(x["seconds"], 0) << "what it took";
  EXPECT_THAT(host_->log->all(), testing::Contains("brief is over"));
  EXPECT_THAT(ask("cancel", "brief").error().hint, HasSubstr("kernelmill show brief"));
  EXPECT_TRUE(ask("resume", "brief")) << "goes on with what is there";
}

TEST_F(head, takes_up_what_was_left_and_leaves_what_is_at_work) {
  host_->left = {"broken", "long"};
  start();
  auto x = row_after("long", "");
  EXPECT_EQ(x["lane"], "cpu/old") << "no node has joined yet";
  ASSERT_TRUE(ask("resume", "other"));
  ASSERT_TRUE(ask("cancel", "other"));
  EXPECT_EQ(row_after("other", "stopping")["state"], "cancelled");
  end();
  auto log = host_->log->all();
  EXPECT_THAT(log, testing::Contains("other is over"));
  EXPECT_THAT(log, testing::Contains("long is left"));
}

TEST_F(head, keeps_its_servers_in_a_file_that_the_next_head_reads) {
  start();
  auto at = [](const std::string& name) {
    return json{
        {"url", "http://" + name + "/v1"}, {"name", name}, {"kind", "openai"}, {"model", "m"}}
        .dump();
  };
  ASSERT_TRUE(ask("policy_attach", {}, at("a:1")));
  ASSERT_TRUE(ask("policy_attach", {}, at("b:2")));
  EXPECT_FALSE(ask("policy_attach", {}, at("a:1"))) << "it is attached";
  ASSERT_TRUE(ask("policy_weights", {}, R"({"version": "step-3"})"));
  ASSERT_TRUE(ask("policy_detach", "http://a:1/v1"));
  EXPECT_EQ(category(ask("policy_detach", "c:3")), "not_found");
  EXPECT_EQ(category(ask("policy_attach", {}, "[1")), "usage");
  end();
  start();
  auto list = *ask("policy_list");
  ASSERT_EQ(list["servers"].size(), 1u) << list;
  EXPECT_EQ(list["servers"][0]["name"], "b:2");
  EXPECT_EQ(list["servers"][0]["weights"], "step-3");
}

TEST_F(head, a_file_that_cannot_be_written_leaves_nothing_attached) {
  std::filesystem::create_directories(folder_ + "/policies.json.d");
  start();
  std::filesystem::create_directories(folder_ + "/policies.json"); // where the file should be
  auto x = ask("policy_attach", {},
               R"({"url": "http://a:1/v1", "name": "a", "kind": "openai", "model": "m"})");
  EXPECT_FALSE(x);
  json list;
  do list = *ask("policy_list");
  while (!list["servers"].empty() && list["servers"][0]["state"] != "unattached");
  EXPECT_TRUE(list["servers"].empty()) << list;
}

TEST(roster, chooses_the_lane_with_the_most_slots_and_a_gpu_before_a_cpu) {
  roster x;
  EXPECT_EQ(x.choose_lane("auto").error().category, "no_nodes");
  auto put = [&](const std::string& name, const std::string& backend, size_t slots) {
    member_facts facts;
    facts.name = name;
    facts.backend = backend;
    facts.architecture = backend == "cpu" ? "x" : name;
    facts.hardware = "the " + name;
    facts.slots = std::vector<std::string>(slots, "0");
    x.put(facts);
  };
  put("a", "cpu", 8);
  EXPECT_EQ(x.choose_lane("auto").value(), "cpu/x");
  EXPECT_THAT(x.choose_lane("cuda").error().message, HasSubstr("backend cuda"));
  put("sm_80", "cuda", 1);
  put("sm_90", "cuda", 2);
  put("sm_91", "cuda", 0);
  EXPECT_EQ(x.choose_lane("auto").value(), "cuda/sm_90");
  EXPECT_EQ(x.choose_lane("cpu").value(), "cpu/x");
  put("b", "cpu", 1);
  auto facts = x.facts_of("cpu/x");
  EXPECT_EQ(facts.slots.size(), 9u);
  EXPECT_EQ(facts.hardware, "the b");
  EXPECT_EQ(facts.slots.back(), "b 0");
}

TEST(roster, counts_no_slots_of_nodes_without_the_layers_that_a_run_requires) {
  roster x;
  auto put = [&](const std::string& name, size_t slots, std::vector<std::string> layers) {
    member_facts facts;
    facts.name = facts.architecture = name;
    facts.backend = "cpu";
    facts.slots = std::vector<std::string>(slots, "0");
    facts.layers = std::move(layers);
    x.put(facts);
  };
  put("wide", 8, {"seccomp"});
  put("strong", 1, {"seccomp", "landlock"});
  EXPECT_EQ(x.choose_lane("cpu").value(), "cpu/wide");
  EXPECT_EQ(x.choose_lane("cpu", {"seccomp"}).value(), "cpu/wide");
  EXPECT_EQ(x.choose_lane("cpu", {"landlock"}).value(), "cpu/strong");
  EXPECT_EQ(x.choose_lane("cuda", {"landlock"}).error().category, "no_nodes");
  auto none = x.choose_lane("cpu", {"landlock", "cgroup_pids"}).error();
  EXPECT_EQ(none.category, "sandbox_layer_missing");
  EXPECT_THAT(none.message, HasSubstr("node strong lacks cgroup_pids; node wide lacks landlock, "
                                      "cgroup_pids"));
  EXPECT_TRUE(x.facts_of("cpu/wide", {"landlock"}).slots.empty());
  EXPECT_EQ(x.unfit_nodes("cpu/wide", {"landlock"}).size(), 1u);
  EXPECT_TRUE(x.unfit_nodes("cpu/strong", {"landlock"}).empty());
}

TEST(roster, remembers_a_lost_node_until_it_is_back) {
  roster x;
  member_facts facts;
  for (int i = 0; i < 150; ++i) {
    facts.name = "n" + std::to_string(i);
    x.put(facts);
    x.remove(facts.name, i);
  }
  EXPECT_EQ(x.lost(), 150u);
  ASSERT_EQ(x.lost_members().size(), 100u);
  EXPECT_EQ(x.lost_members().back().since, 149);
  x.put(facts);
  EXPECT_EQ(x.lost_members().back().name, "n148");
  facts.draining = true;
  x.put(facts);
  x.remove(facts.name, 0);
  EXPECT_EQ(x.lost(), 150u) << "it had said so";
}

TEST(status_document, says_of_a_run_in_progress_that_no_node_does_its_work) {
  head_view view;
  view.runs.push_back({"first", "running", "cpu/x", "runs/first", 0, {}, 0, {}, {}});
  member_facts node;
  node.name = "n0";
  node.backend = "cpu";
  node.architecture = "x";
  node.slots = {"cpu0"};
  view.nodes.put(node);
  EXPECT_EQ(status_document(view)["runs"][0]["category"], "");
  view.nodes.remove("n0", 1);
  auto row = status_document(view)["runs"][0];
  EXPECT_EQ(row["category"], "no_nodes");
  EXPECT_EQ(row["message"], "the run first waits: no node offers slots of cpu/x; lost: n0");
  view.runs[0].state = "finished";
  EXPECT_EQ(status_document(view)["runs"][0]["category"], "") << "it needs none";
}

} // namespace head_test
} // namespace kernelmill
