#include "storage/lineage/candidate_choices.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace kernelmill {
namespace candidate_choices_test {

class candidate_choices : public testing::Test {
protected:
  candidate_choices() {
    run.path = testing::TempDir() + "/choices-" +
               testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(run.path);
    std::filesystem::create_directories(run.path);
  }

  void choose(const std::string& episode, const std::string& candidate, const std::string& status) {
    ASSERT_TRUE(add_choice(run, {episode, candidate, status, "why", 7}));
  }

  std::string status_of(const std::string& episode, const std::string& candidate) {
    auto all = choices_of(run, episode);
    EXPECT_TRUE(all);
    auto i = all->find(candidate);
    return i == all->end() ? "" : i->second.status;
  }

  run_directory run;
};

TEST_F(candidate_choices, none_are_there_at_first) {
  EXPECT_EQ(status_of("g0.e0", "c0"), "");
}

TEST_F(candidate_choices, the_last_one_holds_and_one_candidate_is_promoted) {
  choose("g0.e0", "c0", "promoted");
  choose("g0.e0", "c1", "reverted");
  choose("g0.e1", "c0", "reverted");
  EXPECT_EQ(status_of("g0.e0", "c0"), "promoted");
  choose("g0.e0", "c2", "promoted");
  EXPECT_EQ(status_of("g0.e0", "c0"), "");
  EXPECT_EQ(status_of("g0.e0", "c1"), "reverted");
  EXPECT_EQ(status_of("g0.e0", "c2"), "promoted");
  EXPECT_EQ(status_of("g0.e1", "c0"), "reverted");
  choose("g0.e0", "c2", "reverted");
  EXPECT_EQ(status_of("g0.e0", "c2"), "reverted");
}

// A process that was killed may have left half a line.
TEST_F(candidate_choices, half_a_line_spoils_no_other) {
  choose("g0.e0", "c0", "promoted");
  std::ofstream{run.path + "/choices.jsonl", std::ios::app} << R"({"episode": "g0.e0", "cand)";
  choose("g0.e0", "c1", "reverted");
  EXPECT_EQ(status_of("g0.e0", "c0"), "promoted");
  EXPECT_EQ(status_of("g0.e0", "c1"), "reverted");
}

} // namespace candidate_choices_test
} // namespace kernelmill
