#include "launch/learning/training/selection.hpp"

#include <set>

#include <gtest/gtest.h>

#include "launch/learning/training/held_out.hpp"

namespace kernelmill::training {
namespace selection_test {

stage starting(uint64_t from, double at_correct = 0) {
  stage x;
  x.from = from;
  x.at_correct = at_correct;
  return x;
}

TEST(stage_of, a_stage_begins_at_its_step_at_the_latest) {
  std::vector<stage> stages{starting(0), starting(3), starting(3)};
  EXPECT_EQ(stage_of({}, 7, {}), 0u);
  EXPECT_EQ(stage_of(stages, 2, {0, 0}), 0u);
  EXPECT_EQ(stage_of(stages, 3, {0, 0, 0}), 2u);
}

TEST(stage_of, right_answers_begin_one_stage_a_step) {
  std::vector<stage> stages{starting(0), starting(90, 0.5), starting(100, 0.5)};
  EXPECT_EQ(stage_of(stages, 1, {0.4}), 0u);
  EXPECT_EQ(stage_of(stages, 1, {0.6}), 1u);
  EXPECT_EQ(stage_of(stages, 2, {0.6, 0.1}), 1u);
  EXPECT_EQ(stage_of(stages, 2, {0.6, 0.6}), 2u);
  EXPECT_EQ(stage_of(stages, 1, {}), 0u); // not known yet
}

TEST(draw_tasks, is_the_same_for_the_same_step_and_takes_each_task_once) {
  std::vector<std::string> all{"a", "b", "c", "d", "e", "f"};
  auto some = draw_tasks(all, 4, 1, 2, 0);
  EXPECT_EQ(some, draw_tasks(all, 4, 1, 2, 0));
  EXPECT_EQ(std::set<std::string>(some.begin(), some.end()).size(), 4u);
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
  std::set<std::vector<std::string>> drawn;
  for (uint64_t step = 0; step < 20; ++step) drawn.insert(draw_tasks(all, 2, 1, step, 0));
  EXPECT_GT(drawn.size(), 5u);
}

TEST(marks_of, what_trained_tasks_say_too_marks_nothing) {
  auto held_out = std::make_shared<task>(), trained = std::make_shared<task>();
  held_out->id = "held_out/x";
  held_out->prompt = "Sum the rows of a matrix.\nfloat f(float v) { return 2 * v; }\nshort\n";
  held_out->timed_cpu.scalars = {{"rows", 64}, {"cols", 96}};
  trained->prompt = "Sum the rows of a matrix.\nfloat f(float v) { return v; }\n";
  auto marks = marks_of(*held_out, {trained});
  EXPECT_EQ(
      std::set<std::string>(marks.begin(), marks.end()),
      (std::set<std::string>{"held_out/x", "float f(float v) { return 2 * v; }", "cols=96 rows=64",
                             shape_text(*held_out, held_out->timed_cpu.scalars)}));
}

} // namespace selection_test
} // namespace kernelmill::training
