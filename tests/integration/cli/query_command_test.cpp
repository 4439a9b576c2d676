#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"
#include "tests/integration/cli/program.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::test {

namespace query_command_test {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t groups = 100, members = 4;

// A hundred groups of four members with two turns each: the second turn is right, and its speedup
// is 1 + group / 10.
class query_command : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    for (const std::string name : {"asked", "other"}) {
      auto run = create_run({scratch() + "/queried/" + name, name, ""}, json::object(), {});
      ASSERT_TRUE(run) << run.error().message;
      auto s = store::open({run->store, false, uint64_t{1} << 26, false});
      ASSERT_TRUE(s) << s.error().message;
      for (uint32_t g = 0; g < (name == "asked" ? groups : 1); ++g) {
        auto committed = s->commit(group_of(name, g));
        ASSERT_TRUE(committed) << committed.error().message;
      }
    }
  }

  static std::vector<Message<wire::Record>> group_of(const std::string& run, uint32_t g) {
    std::vector<Message<wire::Record>> records;
    fixtures::turn_options with;
    with.run = run;
    with.task = "level" + std::to_string(g % 3) + "/task_" + std::to_string(g);
    for (uint32_t m = 0; m < members; ++m) {
      with.speedup = 1 + g / 10.0;
      with.outcome = wire::Outcome::REJECTED;
      with.reward = 0;
      records.push_back(fixtures::make_turn(g, m, 0, with));
      with.outcome = wire::Outcome::ACCEPTED;
      with.reward = 0.3 + with.speedup;
      records.push_back(fixtures::make_turn(g, m, 1, with));
      if (g > 0) records.push_back(fixtures::make_episode(g, m, {0, with.reward}, with));
    }
    if (g > 0) records.push_back(fixtures::make_group(g, {-1, 0, 0, 1}, with));
    return records;
  }

  static std::vector<json> rows(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "query");
    arguments.push_back("--json");
    auto x = kernelmill(arguments);
    EXPECT_EQ(x.code, 0) << x.err;
    std::vector<json> result;
    std::istringstream lines{x.out};
    for (std::string line; std::getline(lines, line);) result.push_back(json::parse(line));
    return result;
  }

  static size_t count(const std::string& condition) {
    return rows({condition, "queried/asked", "--fields", "name"}).size();
  }
};

TEST_F(query_command, finds_the_turns_that_a_condition_holds_for) {
  EXPECT_EQ(count(""), groups * members * 2);
  EXPECT_EQ(count("accepted"), groups * members);
  EXPECT_EQ(count("accepted and speedup.low > 2 and task ~ \"level1/*\""), 29u * members)
      << "groups above 10 whose number is 1 modulo 3";
  EXPECT_EQ(count("not accepted and group < 10 or accepted and group >= 99"), 11u * members);
  EXPECT_EQ(count("code ~ \"int x\" and turn = 0"), groups * members);
}

TEST_F(query_command, ends_of_episodes_and_groups_are_known_to_their_turns) {
  EXPECT_EQ(count("best and paid"), (groups - 1) * members);
  EXPECT_EQ(count("not ended"), members * 2) << "group 0 is open";
  EXPECT_EQ(count("advantage > 0"), (groups - 1) * 2);
  auto found = rows({"group=7 and member=3 and turn=1", "queried/asked"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["name"], "asked/g7.e3.t1");
  EXPECT_EQ(found[0]["governance"], "usable_positive_sft");
  EXPECT_EQ(found[0]["advantage"], 1.0);
  EXPECT_FALSE(found[0].contains("code")) << "long texts come when they are asked for";
}

TEST_F(query_command, sorts_and_limits) {
  auto best = rows({"accepted", "queried/asked", "--sort=-reward", "--limit", "5", "--fields",
                    "group,member,reward"});
  ASSERT_EQ(best.size(), 5u);
  std::vector<int> order;
  for (const auto& x : best) order.push_back(x["group"].get<int>() * 10 + x["member"].get<int>());
  EXPECT_THAT(order, ElementsAre(990, 991, 992, 993, 980)) << "equals stay in the store's order";
  EXPECT_EQ(rows({"", "queried/asked", "--limit", "3"}).size(), 3u);
}

TEST_F(query_command, takes_runs_and_folders_of_runs) {
  EXPECT_EQ(rows({"turn=0 and group=0", "queried"}).size(), 2u * members);
  EXPECT_EQ(rows({"turn=0 and group=0", "--root", "queried"}).size(), 2u * members);
  EXPECT_EQ(rows({"turn=0 and group=0", "other", "queried/other", "--root", "queried"}).size(),
            members)
      << "a run that is named twice counts once";
}

TEST_F(query_command, names_the_nearest_field_and_the_next_step) {
  for (const auto& bad :
       std::vector<std::vector<std::string>>{{"query", "speedup.lo > 2"},
                                             {"query", "", "--sort", "speedup.lo"},
                                             {"query", "", "--fields", "speedup.lo"}}) {
    auto x = kernelmill(bad);
    EXPECT_EQ(x.code, 2) << x.err;
    EXPECT_THAT(x.err, HasSubstr("did you mean 'speedup.low'?"));
    EXPECT_THAT(x.err, HasSubstr("query --help"));
  }
  auto missing = kernelmill({"query", "accepted", "queried/absent"});
  EXPECT_EQ(missing.code, 3) << missing.err;
  EXPECT_THAT(kernelmill({"query", "--help"}).out, HasSubstr("lower end of its 95 % interval"));
  auto none = kernelmill({"query", "reward > 1000", "queried/asked"});
  EXPECT_EQ(none.code, 0);
  EXPECT_THAT(none.err, HasSubstr("none of 800 turns of 1 run matches"));
}

} // namespace query_command_test

} // namespace kernelmill::test
