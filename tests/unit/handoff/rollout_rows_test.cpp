// What a trainer gets of a group: rows, or a flaw that says why there are none.

#include "launch/server/rollouts/group_rows.hpp"
#include "messages/base/json_value.hpp"

#include <gtest/gtest.h>

#include "actors/handoff/lease_table.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::rollouts {
namespace rollout_rows_test {

using namespace kernelmill::fixtures;

class rollout_rows : public ::testing::Test {
protected:
  rollout_rows()
      : lineage_(*store::open({.directory = folder_ / "lineage", .durable = false})),
        artifacts_(folder_ / "artifacts") {
    exports::permit open;
    open.allowed = true;
    may_.tasks["native/row_sum"] = may_.cards = may_.kernels = open;
    turn_options with;
    with.examples = {"card:sums", "kernel:k1"};
    EXPECT_TRUE(
        lineage_.commit({make_turn(0, 0, 0, with), make_episode(0, 0, {0.3}, with),
                         make_turn(0, 1, 0), make_episode(0, 1, {0.3}), make_group(0, {-1, 1})}));
  }

  handoff::group_rows read() {
    auto rows = read_rows(lineage_, artifacts_, may_, "demo", 0, {exports::form::rl, 1});
    if (!rows) throw std::runtime_error(render(rows.error()));
    return *rows;
  }

  void expect_nothing(const char* why) {
    auto x = read();
    EXPECT_EQ(x.flaw, handoff::licence_forbids) << why;
    EXPECT_EQ(x.rows, "[]") << why;
    EXPECT_EQ(x.delivered, 0u) << why;
  }

  temporary_folder folder_;
  store lineage_;
  artifact_store artifacts_;
  exports::permits may_;
};

TEST_F(rollout_rows, are_those_of_the_form) {
  auto rows = nlohmann::json::parse(read().rows);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["task"], "native/row_sum");
}

TEST_F(rollout_rows, are_none_where_a_licence_forbids_the_task_an_example_or_the_model) {
  const auto open = may_;
  may_.tasks.clear();
  expect_nothing("there is no decision about the task");
  may_ = open;
  may_.examples["kernel:k1"] = {};
  expect_nothing("a kernel");
  may_ = open;
  may_.cards = {};
  expect_nothing("a card");
  may_ = open;
  may_.models = {{"scripted", {}}};
  expect_nothing("the model");
  may_ = open;
  EXPECT_NE(read().flaw, handoff::licence_forbids);
}

} // namespace rollout_rows_test
} // namespace kernelmill::rollouts
