// A run as its store knows it.

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "launch/analysis/watch/stored.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::watch {
namespace stored_test {

using kernelmill::fixtures::temporary_folder;

Message<wire::Record> opened(uint32_t opening, const char* state, double at) {
  return build<wire::Record>([&](wire::Record::Builder b) {
    auto x = b.initRun();
    x.setRun("paused");
    x.setOpening(opening);
    x.setState(state);
    x.setAt(at);
  });
}

Message<wire::Record> turn_at(uint32_t member, double at) {
  return build<wire::Record>([&](wire::Record::Builder b) {
    auto x = b.initTurn();
    auto e = x.initEpisode();
    e.setRun("paused");
    e.setTask("native/x");
    e.setMember(member);
    x.setTurnId(turn_id({"paused", "native/x", 0, member}, 0));
    x.setCommittedAt(at);
  });
}

class stored_run : public ::testing::Test {
protected:
  void SetUp() override {
    auto made =
        create_run({folder_ / "runs/paused", "paused", ""}, nlohmann::ordered_json::object(), {});
    ASSERT_TRUE(made) << made.error().message;
    run_ = *made;
  }

  void commit(const std::vector<Message<wire::Record>>& records) {
    auto to = store::open({.directory = run_.store, .durable = false});
    ASSERT_TRUE(to) << to.error().message;
    ASSERT_TRUE(to->commit(records));
  }

  stored_summary summary() const {
    auto x = summarize(local_world(folder_ / "runs"), run_);
    EXPECT_TRUE(x) << (x ? "" : x.error().message);
    return x ? *x : stored_summary{};
  }

  temporary_folder folder_;
  run_directory run_;
};

TEST_F(stored_run, has_the_wall_time_of_its_openings_without_the_pauses_between_them) {
  // The second one was cut off; the turn at 900 is one that a fork shares.
  commit({opened(0, "running", 1000), turn_at(0, 1010), turn_at(1, 900),
          opened(0, "finished", 1012), opened(1, "running", 5000), turn_at(2, 5004),
          opened(2, "running", 9000), opened(2, "finished", 9001)});
  auto x = summary();
  EXPECT_EQ(x.worked.began_at(), 1000);
  EXPECT_EQ(x.worked.seconds(), 12 + 4 + 1);
  EXPECT_EQ(x.worked.seconds(9010), 12 + 4 + 10) << "in progress";
  auto stats = stats_view(local_world(folder_ / "runs"), {{"run", "paused"}});
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ((*stats)["wall_seconds"], 17);
  auto runs = runs_view(local_world(folder_ / "runs"), nlohmann::ordered_json::object());
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_EQ((*runs)["runs"][0]["seconds"], 17);
}

TEST_F(stored_run, that_had_finished_takes_no_time_to_be_opened_again) {
  commit({opened(0, "running", 1000), turn_at(0, 1010), opened(0, "finished", 1012),
          opened(1, "running", 5000), opened(1, "finished", 5003)});
  EXPECT_EQ(summary().worked.seconds(), 12);
  EXPECT_EQ(summary().worked.seconds(5100), 12) << "in progress";
  // A search that has more to spend goes on behind its end.
  commit({opened(2, "running", 9000), turn_at(1, 9005), opened(2, "finished", 9006)});
  EXPECT_EQ(summary().worked.seconds(), 12 + 6);
}

/// An end that left three episodes open by a server's fault.
Message<wire::Record> failed_end(uint32_t opening, double at) {
  auto made = opened(opening, "failed", at);
  auto from = made.open();
  return build<wire::Record>([&](wire::Record::Builder x) {
    x.setRun(from->getRun());
    auto end = x.getRun();
    end.setReadiness(R"({"lost_open": 3})");
    auto fault = end.initFault();
    fault.setClass(wire::FaultClass::INFRASTRUCTURE);
    fault.setCategory("policy_unreachable");
    fault.setMessage("failed to ask the policy");
    fault.setHint("start the server");
  });
}

TEST_F(stored_run, counts_what_a_fault_left_open_as_its_end_did_and_names_resume) {
  commit({opened(0, "running", 100), turn_at(0, 101), failed_end(0, 110)});
  auto here = local_world(folder_ / "runs");
  auto runs = runs_view(here, nlohmann::ordered_json::object());
  ASSERT_TRUE(runs) << runs.error().message;
  const auto& row = (*runs)["runs"][0];
  EXPECT_EQ(row["infrastructure"], 3);
  EXPECT_EQ(row["ended"], 0);
  EXPECT_EQ(row["failure_hint"], "start the server");
  EXPECT_EQ(row["next"], "`kernelmill resume " + run_.path + "` continues it");
  auto stats = stats_view(here, {{"run", "paused"}});
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ((*stats)["episodes"]["infrastructure"], 3);
  EXPECT_EQ((*stats)["state"], "failed");
  auto why = explain_view(here, {{"what", "paused"}});
  ASSERT_TRUE(why) << why.error().message;
  EXPECT_EQ((*why)["findings"][0]["next"],
            "start the server; then `kernelmill resume " + run_.path + "` continues it");

  // The session that goes on has them again, until it says otherwise.
  commit({opened(1, "running", 200)});
  EXPECT_EQ(summary().lost_open, 0u);
  auto cut_off = stats_view(here, {{"run", "paused"}});
  ASSERT_TRUE(cut_off) << cut_off.error().message;
  EXPECT_EQ((*cut_off)["state"], "interrupted");
  EXPECT_EQ((*cut_off)["episodes"]["infrastructure"], 0);
  commit({opened(1, "finished", 210)});
  auto after = runs_view(here, nlohmann::ordered_json::object());
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ((*after)["runs"][0]["next"], "");
}

TEST_F(stored_run, counts_turns_that_asked_for_no_verdict_apart) {
  using namespace kernelmill::fixtures;
  turn_options with{.run = "paused", .terminal = true};
  auto end = build<wire::Record>([&](wire::Record::Builder x) {
    auto made = make_episode(0, 0, {0, 0.3}, with);
    x.setEpisode(made.open()->getEpisode());
    x.getEpisode().setTerminalState("success");
    x.getEpisode().setSteps(3);
    x.getEpisode().setGpuSeconds(0.5);
  });
  commit({opened(0, "running", 100), make_tool_turn(0, 0, 0, "c0", "", "int x;", {.run = "paused"}),
          make_turn(0, 0, 1, with), end});
  auto here = local_world(folder_ / "runs");
  auto stats = stats_view(here, {{"run", "paused"}});
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ((*stats)["turns"], 2);
  EXPECT_EQ((*stats)["open_turns"], 1);
  EXPECT_EQ((*stats)["categories"]["open"], 1);
  auto x = summary();
  EXPECT_EQ(x.asked_turns(), 1u);
  EXPECT_EQ(x.evidence.near_misses(), 0u);
  EXPECT_EQ(x.accepted + x.rejected, 1u) << "episodes";

  auto lineage = lineage_view(here, {{"what", "paused/g0.e0"}});
  ASSERT_TRUE(lineage) << lineage.error().message;
  ASSERT_EQ((*lineage)["candidates"].size(), 1u);
  EXPECT_EQ((*lineage)["candidates"][0]["status"], "build_passed");
  EXPECT_EQ((*lineage)["candidates"][0]["tool"], "patch_candidate");
  EXPECT_EQ((*lineage)["candidates"][0]["active"], true);
  EXPECT_EQ((*lineage)["turns"][0]["outcome"], "open");

  auto why = explain_view(here, {{"what", "paused/g0.e0"}});
  ASSERT_TRUE(why) << why.error().message;
  EXPECT_EQ((*why)["terminal_state"], "success");
  EXPECT_EQ((*why)["steps"], 3);
}

/// A turn whose stages took long, mostly for others: seconds of work are 2, 0.1 and 1.
Message<wire::Record> waiting_turn(uint32_t member, bool cached) {
  auto made = kernelmill::fixtures::make_turn(0, member, 0, {.run = "paused"});
  auto opened = made.open();
  return build<wire::Record>([&](wire::Record::Builder x) {
    x.setTurn(opened->getTurn());
    auto turn = x.getTurn();
    auto seconds = turn.initSeconds();
    seconds.setPolicy(5);
    seconds.setBuild(10);
    seconds.setEvaluate(30);
    seconds.setProfile(20);
    auto build = turn.getFacts().getBuild();
    build.setSeconds(2);
    build.setCached(cached);
    turn.getFacts().initProfile().setSeconds(1);
  });
}

TEST_F(stored_run, has_the_work_of_a_stage_apart_from_the_wait_for_it) {
  commit({opened(0, "running", 100), waiting_turn(0, false), waiting_turn(1, true)});
  auto stats = stats_view(local_world(folder_ / "runs"), {{"run", "paused"}});
  ASSERT_TRUE(stats) << stats.error().message;
  std::map<std::string, std::pair<double, double>> said;
  for (const auto& x : (*stats)["time"])
    said[x["stage"].get<std::string>()] = {x["work_seconds"].get<double>(),
                                           x["wait_seconds"].get<double>()};
  EXPECT_EQ(said["policy"], (std::pair{10.0, 0.0}));
  EXPECT_EQ(said["build"], (std::pair{2.0, 18.0})) << "one came from the cache";
  EXPECT_NEAR(said["evaluate"].first, 0.2, 1e-9);
  EXPECT_NEAR(said["evaluate"].second, 59.8, 1e-9);
  EXPECT_EQ(said["profile"], (std::pair{2.0, 38.0}));
}

/// A turn that was measured. `gate` is that of correctness.
Message<wire::Record> measured_turn(uint32_t member, wire::GateStatus gate, double low) {
  auto made = kernelmill::fixtures::make_turn(0, member, 0, {.run = "paused"});
  auto opened = made.open();
  return build<wire::Record>([&](wire::Record::Builder x) {
    x.setTurn(opened->getTurn());
    auto turn = x.getTurn();
    bool right = gate == wire::GateStatus::PASS;
    turn.getVerdict().setOutcome(right ? wire::Outcome::ACCEPTED : wire::Outcome::REJECTED);
    auto gates = turn.getVerdict().initGates(1);
    gates[0].setName("correctness");
    gates[0].setStatus(gate);
    auto timing = turn.getFacts().getEvaluation().initTiming();
    timing.setMeasured(true);
    auto speedup = timing.initSpeedup();
    speedup.setEstimate(low * 1.1);
    speedup.setLow(low);
    speedup.setHigh(low * 1.2);
  });
}

// A right kernel with a wrong diagnosis is measured and rejected.
TEST_F(stored_run, counts_a_turn_as_timed_where_it_is_correct) {
  commit({opened(0, "running", 100), measured_turn(0, wire::GateStatus::PASS, 2),
          measured_turn(1, wire::GateStatus::PASS, 0.5),
          measured_turn(2, wire::GateStatus::NOT_RUN, 3)});
  auto x = summary();
  EXPECT_EQ(x.correct, 2u);
  EXPECT_EQ(x.timed, 2u);
  EXPECT_EQ(x.faster, 1u);
  auto right = measured_turn(0, wire::GateStatus::PASS, 2);
  auto wrong = measured_turn(2, wire::GateStatus::NOT_RUN, 3);
  EXPECT_TRUE(reporting::is_timed(right.open()->getTurn()));
  EXPECT_FALSE(reporting::is_timed(wrong.open()->getTurn()));
}

} // namespace stored_test
} // namespace kernelmill::watch
