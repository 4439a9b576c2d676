#include <gtest/gtest.h>

#include "gpu/referee/workload.hpp"

using namespace kernelmill;

namespace workload_test {

argument tensor(const char* name, argument_role role, const char* size, const char* fill = "") {
  argument x;
  x.name = name;
  x.role = role;
  x.shape = {expression::parse(size).value()};
  x.fill = fill;
  return x;
}

// y = 2 x, z += x
extern "C" void double_and_add(const double* x, double* y, double* y_scale, double* z,
                               double* z_scale, int n) {
  for (int i = 0; i < n; ++i) {
    y[i] = 2 * x[i];
    y_scale[i] = 1;
    z[i] += x[i];
    z_scale[i] = 1;
  }
}

task doubling() {
  task x;
  x.arguments = {tensor("x", argument_role::input, "n", "normal"),
                 tensor("y", argument_role::output, "n"),
                 tensor("z", argument_role::inout, "n", "uniform"), argument{}};
  x.arguments[3].name = "n";
  x.arguments[3].role = argument_role::scalar;
  x.arguments[3].type = dtype::i32;
  x.timed.scalars["n"] = 100;
  task_case c;
  c.name = "small";
  c.scalars["n"] = 5;
  x.cases = {c};
  return x;
}

TEST(workload, the_reference_gets_its_arguments_in_order) {
  auto x = doubling();
  workload w{x, reinterpret_cast<void*>(&double_and_add)};
  w.select(x.cases[0]);
  w.fill(secret_seed{1}, 0);
  w.find_truth();
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(w.tensor(1).wide[i], 2.0 * w.tensor(0).f32[i]);
    EXPECT_EQ(w.tensor(2).wide[i], double{w.tensor(2).f32[i]} + w.tensor(0).f32[i]);
  }
}

TEST(workload, the_truth_rounded_to_fp32_passes_and_anything_else_fails) {
  auto x = doubling();
  workload w{x, reinterpret_cast<void*>(&double_and_add)};
  w.select(x.cases[0]);
  w.fill(secret_seed{1}, 0);
  w.find_truth();
  std::vector<taken_output> outputs(4);
  outputs[1].f32.assign(w.tensor(1).wide.begin(), w.tensor(1).wide.end());
  outputs[2].f32.assign(w.tensor(2).wide.begin(), w.tensor(2).wide.end());
  EXPECT_TRUE(w.check(outputs).pass());
  outputs[2].f32[4] += 0.5f;
  auto result = w.check(outputs);
  EXPECT_EQ(result.bad, 1u);
  EXPECT_EQ(result.first_bad.substr(0, 5), "z[4]:");
}

TEST(workload, a_seed_and_a_call_decide_the_contents) {
  auto x = doubling();
  workload a{x, nullptr};
  workload b{x, nullptr};
  a.select(x.timed);
  b.select(x.timed);
  a.fill(secret_seed{9}, 3);
  b.fill(secret_seed{9}, 3);
  EXPECT_EQ(a.tensor(0).f32, b.tensor(0).f32);
  b.fill(secret_seed{9}, 4);
  EXPECT_NE(a.tensor(0).f32, b.tensor(0).f32);
  a.fill(secret_seed{8}, 3);
  b.fill(secret_seed{9}, 3);
  EXPECT_NE(a.tensor(0).f32, b.tensor(0).f32);
}

TEST(workload, distributions_are_named_once_when_they_are_one) {
  auto x = doubling();
  workload w{x, nullptr};
  w.select(x.cases[0]);
  EXPECT_EQ(w.distribution_text(), "x=normal z=uniform");
  x.cases[0].fills["z"] = "normal";
  EXPECT_EQ(w.distribution_text(), "normal");
}

TEST(workload, capacity_is_that_of_the_largest_case) {
  auto x = doubling();
  EXPECT_EQ(capacity_of(x, 0), 400u);
  EXPECT_EQ(working_set(x, x.timed), 1200);
}

} // namespace workload_test
