// The forms that are folders, byte for byte: `sol` and `harbor-tasks`. KERNELMILL_WRITE_GOLDEN=1
// writes the golden files anew.

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden.hpp"
#include "material.hpp"
#include "storage/export/harbor_files.hpp"
#include "storage/export/sol_files.hpp"
#include "storage/run_directory.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::exports {
namespace folder_forms_test {

using namespace row_fixtures;
using kernelmill::fixtures::temporary_folder;
using kernelmill::fixtures::turn_options;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What the line stores of a turn whose kernel was built and run, or was not.
Message<wire::Record> measured_turn(uint32_t member, uint32_t number, turn_options with) {
  auto plain = kernelmill::fixtures::make_turn(3, member, number, with);
  return build<wire::Record>([&](wire::Record::Builder x) {
    auto view = plain.open();
    x.setTurn(view->getTurn());
    auto turn = x.getTurn();
    turn.setCandidateSha256(sha256_hex("int x;"));
    auto facts = turn.getFacts();
    facts.setContract("native");
    facts.getBuild().setToolchain("g++ 12.2");
    auto evaluation = facts.getEvaluation();
    evaluation.setDevice("Test CPU");
    auto cases = evaluation.initCases(with.compiled ? 2 : 0);
    for (uint32_t i = 0; i < cases.size(); ++i) {
      cases[i].setShape("rows=64 cols=" + std::to_string(128 << i));
      cases[i].setPass(with.correct || i == 0);
      cases[i].setMaxError(0.25 * (i + 1));
      cases[i].setBound(1);
    }
    if (!with.correct) evaluation.initTiming();
    if (!with.correct) return;
    auto timing = evaluation.getTiming();
    timing.setShape("rows=4096 cols=1024");
    timing.setReferenceMs(2);
    timing.getSpeedup().setEstimate(with.speedup);
  });
}

stored_group measured_group() {
  turn_options right, wrong, broken, gone;
  wrong.outcome = broken.outcome = wire::Outcome::REJECTED;
  wrong.correct = broken.correct = broken.compiled = false;
  gone.outcome = wire::Outcome::INFRASTRUCTURE;
  stored_group result;
  result.group = 3;
  result.episodes.push_back({0, {measured_turn(0, 0, wrong), measured_turn(0, 1, right)}, {}});
  result.episodes.push_back({1, {measured_turn(1, 0, broken), measured_turn(1, 1, gone)}, {}});
  return result;
}

class folder_forms : public ::testing::Test {
protected:
  folder_forms() : artifacts_(folder_ / "artifacts") {
    permit open;
    open.allowed = true;
    may_.tasks["native/row_sum"] = may_.cards = may_.kernels = open;
  }

  /// The gate's answer, which is never a refusal here.
  admitted_group admitted(const stored_group& x) {
    auto result = licence_gate{{&may_}}.admit(may_, x);
    if (!result) throw std::runtime_error(result.error().what);
    return *result;
  }

  temporary_folder folder_;
  artifact_store artifacts_;
  permits may_;
};

TEST_F(folder_forms, solutions_and_traces_are_these_bytes) {
  auto group = measured_group();
  std::string solutions, traces;
  std::vector<std::string> names, states;
  left_out without;
  ASSERT_TRUE(sol_turns(admitted(group), artifacts_, "0.1 (test)", without,
                        [&](const sol_turn& x) -> expected<void> {
                          names.push_back(x.definition + "/" + x.name);
                          states.push_back(x.trace["evaluation"]["status"].get<std::string>());
                          solutions += json_line(x.solution) + "\n";
                          traces += json_line(x.trace) + "\n";
                          return {};
                        }));
  EXPECT_THAT(names, ElementsAre("native_row_sum/demo_g3_e0_t0", "native_row_sum/demo_g3_e0_t1",
                                 "native_row_sum/demo_g3_e1_t0"));
  EXPECT_THAT(states, ElementsAre("INCORRECT_NUMERICAL", "PASSED", "COMPILE_ERROR"));
  EXPECT_EQ(without, (left_out{{"infrastructure_turns", 1}}));
  expect_golden("sol-solutions.jsonl", solutions);
  expect_golden("sol-traces.jsonl", traces);
  expect_valid("sol-solution", solutions);
  expect_valid("sol-trace", traces);
}

TEST_F(folder_forms, a_harbor_task_is_these_bytes) {
  auto group = measured_group();
  auto task = harbor_task_of(admitted(group), artifacts_);
  ASSERT_TRUE(task && *task);
  (*task)->digest = std::string(64, 'd');
  std::string text;
  for (const auto& file : harbor_files(**task, "demo", "0.1 (test)"))
    text += "== " + file.path + (file.program ? " (a program)\n" : "\n") + file.text;
  expect_golden("harbor-tasks.txt", text);
}

TEST_F(folder_forms, of_a_group_without_a_first_turn_there_is_no_harbor_task) {
  stored_group group;
  group.episodes.push_back({0, {measured_turn(0, 1, {})}, {}});
  auto task = harbor_task_of(admitted(group), artifacts_);
  ASSERT_TRUE(task);
  EXPECT_FALSE(*task);
}

// -- the gate -----------------------------------------------------------------------------------

permit refused(const std::string& source) {
  permit x;
  x.source = source;
  x.reason = "it is of " + source;
  return x;
}

TEST_F(folder_forms, a_gate_admits_no_group_with_a_refused_task_example_or_model) {
  auto group = measured_group();
  turn_options showing;
  showing.examples = {"card:sums", "kernel:bad"};
  group.episodes[1].turns[1] = measured_turn(1, 1, showing); // the last of four turns
  const permits open = may_;
  struct {
    const char* of;
    std::function<void(permits&)> refuse;
    const char *what, *counted;
  } cases[] = {{"task", [](permits& x) { x.tasks["native/row_sum"] = refused("a"); },
                "the task native/row_sum", "groups_forbidden_by_licence"},
               {"unknown task", [](permits& x) { x.tasks.clear(); }, "the task native/row_sum",
                "groups_forbidden_by_licence"},
               {"example", [](permits& x) { x.examples["kernel:bad"] = refused("b"); },
                "the example kernel:bad", "groups_with_forbidden_examples"},
               {"all kernels", [](permits& x) { x.kernels = refused("b"); },
                "the example kernel:bad", "groups_with_forbidden_examples"},
               {"cards", [](permits& x) { x.cards = refused("c"); }, "the example card:sums",
                "groups_with_forbidden_examples"},
               {"model",
                [](permits& x) {
                  x.models = {{"scr*", refused("d")}};
                },
                "answers of the model scripted", "groups_of_forbidden_models"},
               {"own model", [](permits& x) { x.answers = refused("d"); },
                "answers of the model scripted", "groups_of_forbidden_models"}};
  EXPECT_TRUE(licence_gate{{&open}}.admit(open, group));
  for (const auto& one : cases) {
    auto may = open;
    one.refuse(may);
    auto said = licence_gate{{&may}}.admit(may, group);
    ASSERT_FALSE(said) << one.of;
    EXPECT_EQ(said.error().what, one.what) << one.of;
    EXPECT_STREQ(said.error().counted, one.counted) << one.of;
    auto fault = to_error(said.error(), "failed to export");
    EXPECT_EQ(fault.category, "licence_forbids");
    EXPECT_THAT(fault.message, HasSubstr("failed to export: ")) << one.of;
  }
}

} // namespace folder_forms_test
} // namespace kernelmill::exports
