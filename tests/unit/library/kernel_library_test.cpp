// Which kernel is the best of its key, and whether its verdict is of today.

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/analysis/library/best_over_runs.hpp"
#include "launch/analysis/library/kernel_library.hpp"
#include "launch/analysis/library/staleness.hpp"
#include "messages/base/json_value.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::library {

namespace {

using fixtures::temporary_folder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct measured {
  double low = 1.25;
  std::string task = "native/row_sum";
  std::string device = "NVIDIA H200";
  std::string shape = "rows=8";
  std::string baseline = {};
  double candidate_ms = 2, reference_ms = 4;
  wire::Outcome outcome = wire::Outcome::ACCEPTED;
  double committed = 100;
};

Message<wire::Record> turn_of(const std::string& run, uint32_t number, const measured& x) {
  fixtures::turn_options with;
  with.run = run;
  with.task = x.task;
  with.outcome = x.outcome;
  auto plain = fixtures::make_turn(0, 0, number, with);
  return build<wire::Record>([&](wire::Record::Builder record) {
    record.setTurn(plain.open()->getTurn());
    auto turn = record.getTurn();
    turn.setCommittedAt(x.committed);
    auto facts = turn.getFacts();
    facts.setBackend("cuda");
    facts.setContract("native");
    facts.setOperatorFamily("reduction");
    auto evaluation = facts.getEvaluation();
    evaluation.setDevice(x.device);
    auto timing = evaluation.getTiming();
    timing.setShape(x.shape);
    timing.setBaseline(x.baseline);
    timing.setSamples(64);
    timing.setCandidateMs(x.candidate_ms);
    timing.setReferenceMs(x.reference_ms);
    auto speedup = timing.initSpeedup();
    speedup.setLow(x.low);
    speedup.setEstimate(x.low + 0.1);
    speedup.setHigh(x.low + 0.2);
  });
}

/// A run with these turns. `manifest` may add to it.
void make_run(const temporary_folder& root, const std::string& name,
              const std::vector<measured>& turns,
              nlohmann::ordered_json manifest = nlohmann::ordered_json::object()) {
  auto run = create_run({root / name, name, {}}, nlohmann::ordered_json::object(), manifest);
  ASSERT_TRUE(run) << run.error().message;
  auto to = store::open({run->store, false, uint64_t{1} << 22, false});
  ASSERT_TRUE(to) << to.error().message;
  std::vector<Message<wire::Record>> records;
  for (const auto& x : turns)
    records.push_back(turn_of(name, static_cast<uint32_t>(records.size()), x));
  ASSERT_TRUE(to->commit(records));
}

expected<std::shared_ptr<const store>> opened(const run_directory& run) {
  auto from = store::open({run.store, true});
  KM_TRY(from);
  return std::make_shared<const store>(std::move(*from));
}

library_view read(const temporary_folder& root, choice which = {}) {
  return read_library(root.path(), opened, std::move(which));
}

TEST(kernel_library, has_the_highest_lower_bound_of_each_task_device_shape_and_baseline) {
  temporary_folder root;
  make_run(root, "first", {{.low = 1.5}, {.low = 1.2}, {.low = 1.1, .shape = "rows=9"}});
  make_run(root, "second",
           {{.low = 1.7}, {.low = 9, .outcome = wire::Outcome::REJECTED}, {.device = "NVIDIA L4"}});
  auto found = read(root);
  EXPECT_THAT(found.unreadable, IsEmpty());
  ASSERT_EQ(found.all.size(), 3u);
  const auto& best = found.all[0];
  EXPECT_EQ(best.run, "second");
  EXPECT_EQ(best.turn, "g0.e0.t0");
  EXPECT_EQ(best.place(), root.path() + "/second/g0.e0.t0");
  EXPECT_DOUBLE_EQ(best.speedup.low, 1.7);
  EXPECT_EQ(best.samples, 64u);
  EXPECT_EQ(best.among, 3u);
  EXPECT_EQ(best.language, "cuda");
  EXPECT_EQ(best.baseline, "eager");
  EXPECT_EQ(found.all[1].shape, "rows=9");
  EXPECT_EQ(found.all[2].device, "NVIDIA L4");
}

TEST(kernel_library, narrows_by_task_operator_and_a_part_of_the_devices_name) {
  temporary_folder root;
  make_run(root, "first", {{}, {.task = "native/softmax"}, {.device = "NVIDIA L4"}});
  EXPECT_EQ(read(root, {"native/softmax", {}, {}, {}}).all.size(), 1u);
  EXPECT_EQ(read(root, {{}, {}, "h200", {}}).all.size(), 2u);
  EXPECT_EQ(read(root, {{}, "reduction", "l4", {}}).all.size(), 1u);
  EXPECT_THAT(read(root, {{}, "scan", {}, {}}).all, IsEmpty());
}

TEST(kernel_library, passes_over_what_is_not_accepted_by_the_asker) {
  temporary_folder root;
  make_run(root, "first", {{.low = 3}, {.low = 2}});
  auto second = [](wire::TurnRecord::Reader turn) { return turn.getTurn() == 1; };
  auto found = read(root, {{}, {}, {}, second});
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_EQ(found.all[0].turn, "g0.e0.t1");
}

TEST(kernel_library, fastest_compares_between_baselines_by_the_time_at_the_lower_bound) {
  temporary_folder root;
  // Twice as fast as a quick baseline is faster than four times as fast as a slow one.
  make_run(root, "first",
           {{.low = 4, .reference_ms = 8}, {.low = 2, .baseline = "best", .reference_ms = 3}});
  auto run = find_run(root / "first", root.path());
  ASSERT_TRUE(run);
  auto from = opened(*run);
  ASSERT_TRUE(from);
  kernels found;
  ASSERT_TRUE(found.add(*run, **from));
  const auto* best = found.fastest("native/row_sum", "NVIDIA");
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->baseline, "best");
  EXPECT_EQ(found.fastest("native/row_sum", "AMD"), nullptr);
}

TEST(kernel_library, says_which_runs_it_could_not_read_and_leaves_imported_ones_out) {
  temporary_folder root;
  make_run(root, "good", {{}});
  make_run(root, "foreign", {{.low = 50}}, {{"imported", {{"system", "gpu_rl"}}}});
  make_run(root, "torn", {{}});
  std::ofstream{root / "torn/manifest.json"} << "{";
  auto found = read(root);
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_EQ(found.all[0].run, "good");
  ASSERT_EQ(found.unreadable.size(), 1u);
  EXPECT_EQ(found.unreadable[0].run, "torn");
}

TEST(kernel_library, from_what_is_known_of_each_run_is_the_same) {
  temporary_folder root;
  make_run(root, "first", {{.low = 1.5}, {.low = 1.2}, {.low = 1.1, .shape = "rows=9"}});
  make_run(root, "second", {{.low = 1.7}, {.low = 1.1, .shape = "rows=9"}});
  make_run(root, "third", {{.low = 1.6}, {.low = 2, .device = "NVIDIA L4"}});
  std::vector<std::vector<kernel>> each;
  for (const auto& name : list_runs(root.path())) {
    auto run = find_run(root / name, root.path());
    ASSERT_TRUE(run) << run.error().message;
    auto from = opened(*run);
    ASSERT_TRUE(from) << from.error().message;
    kernels found;
    ASSERT_TRUE(found.add(*run, **from));
    each.push_back(found.best());
  }
  auto whole = read(root).all, joined = best_over_runs(each);
  ASSERT_EQ(joined.size(), 3u);
  for (size_t i = 0; i < joined.size(); ++i) EXPECT_EQ(to_json(joined[i]), to_json(whole[i]));
  EXPECT_EQ(joined[0].run, "second");
  EXPECT_EQ(joined[0].among, 4u);
  EXPECT_EQ(joined[1].run, "first") << "of equal ones the first";
}

nlohmann::ordered_json session(double at, const char* driver) {
  return {{"at", at},
          {"judged_here", true},
          {"driver_version", driver},
          {"tool_versions", {{"kernelmill", "0.2.0 (a)"}, {"nvcc", "13.0"}}}};
}

TEST(staleness, compares_with_the_session_in_which_the_turn_was_committed) {
  temporary_folder root;
  make_run(root, "first", {{.committed = 150}},
           {{"fingerprints", {session(100, "570"), session(200, "580")}},
            {"tasks", {{{"id", "native/row_sum"}, {"digest", "d1"}, {"licence", "MIT"}}}}});
  auto found = read(root);
  ASSERT_EQ(found.all.size(), 1u);
  const auto& x = found.all[0];
  EXPECT_EQ(x.driver, "570");
  EXPECT_EQ(x.licence, "MIT");
  conditions_today today{
      "0.2.0 (a)", "NVIDIA H200", "570", {{"nvcc", "13.0"}}, {{"native/row_sum", "d1"}}};
  auto same = staleness_of(x, today);
  EXPECT_FALSE(same.is_stale());
  EXPECT_THAT(same.not_compared, IsEmpty());
  EXPECT_EQ(same.next, "");

  today.driver = "580";
  today.versions["nvcc"] = "13.1";
  today.tasks["native/row_sum"] = "d2";
  today.program = "0.3.0 (b)";
  auto other = staleness_of(x, today);
  EXPECT_THAT(other.reasons,
              ElementsAre("task: its files have changed", HasSubstr("kernelmill: 0.2.0 (a) then"),
                          "driver: 570 then, 580 now", "nvcc: 13.0 then, 13.1 now"));
  EXPECT_EQ(other.next, "kernelmill replay " + x.place());
}

TEST(staleness, another_machine_cannot_say_that_driver_and_compiler_are_the_same) {
  kernel x;
  x.task = "t";
  x.device = "NVIDIA H200";
  x.backend = "cuda";
  x.program = "1";
  auto said = staleness_of(x, {"1", "AMD EPYC", "", {}, {{"t", ""}}});
  EXPECT_FALSE(said.is_stale());
  EXPECT_THAT(said.not_compared, ElementsAre(HasSubstr("this machine has no NVIDIA H200")));
}

} // namespace

} // namespace kernelmill::library
