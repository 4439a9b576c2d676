// What was read of a run serves until the run, or what is told of it, changes; in bounded memory.

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "launch/server/page/kept_facts.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill::page {
namespace kept_facts_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class facts_of_runs : public testing::Test {
protected:
  void write(const std::string& name, const std::string& file, const std::string& text) {
    auto folder = root_.path() + "/" + name;
    fs::create_directories(folder);
    std::ofstream{folder + "/" + file} << text;
    auto then = fs::file_time_type::clock::now() - 60s;
    for (const auto& x : fs::directory_iterator{folder}) fs::last_write_time(x, then);
    fs::last_write_time(folder, then);
  }

  /// How often runs were read, this one too if it had to be.
  int reads_after(kept_facts& kept, const std::string& name) {
    run_directory run;
    run.path = root_.path() + "/" + name;
    auto found = kept.of(run, [&]() -> expected<run_facts> {
      ++reads_;
      run_facts result;
      result.run = name;
      result.rewards[0].resize(10'000); // 80,000 bytes
      return result;
    });
    EXPECT_TRUE(found) << found.error().message;
    EXPECT_TRUE(!found || (*found)->run == name);
    return reads_;
  }

  temporary_directory root_;
  uint64_t version_ = 0;
  int reads_ = 0;
};

TEST_F(facts_of_runs, a_run_that_is_over_is_read_again_once_a_file_of_it_changes) {
  write("first", "manifest.json", "{}");
  kept_facts kept{[this] { return version_; }};
  EXPECT_EQ(reads_after(kept, "first"), 1);
  ++version_; // of another run
  EXPECT_EQ(reads_after(kept, "first"), 1);
  write("first", "traces.jsonl", "1\n");
  EXPECT_EQ(reads_after(kept, "first"), 2);
}

TEST_F(facts_of_runs, a_run_in_progress_is_read_again_after_each_change_that_was_told) {
  write("first", "manifest.json", "{}");
  write("first", "control.sock", "");
  kept_facts kept{[this] { return version_; }};
  EXPECT_EQ(reads_after(kept, "first"), 1);
  ++version_;
  EXPECT_EQ(reads_after(kept, "first"), 2);
  fs::remove(root_.path() + "/first/control.sock"); // what was read while it was there is too old
  write("first", "traces.jsonl", "1\n");
  EXPECT_EQ(reads_after(kept, "first"), 3);
  ++version_;
  EXPECT_EQ(reads_after(kept, "first"), 3);
}

TEST_F(facts_of_runs, those_that_were_asked_for_last_stay_within_the_bound) {
  for (const char* name : {"a", "b", "c"}) write(name, "manifest.json", "{}");
  kept_facts kept{[this] { return version_; }, 200'000};
  reads_after(kept, "a");
  reads_after(kept, "b");
  reads_after(kept, "a");
  EXPECT_EQ(reads_after(kept, "c"), 3);
  EXPECT_LE(kept.bytes(), 200'000U);
  EXPECT_EQ(reads_after(kept, "a"), 3);
  EXPECT_EQ(reads_after(kept, "b"), 4) << "it was given up";
}

TEST_F(facts_of_runs, a_run_above_the_bound_is_given_but_not_kept) {
  write("a", "manifest.json", "{}");
  kept_facts kept{[this] { return version_; }, 50'000};
  EXPECT_EQ(reads_after(kept, "a"), 1);
  EXPECT_EQ(kept.bytes(), 0U);
  EXPECT_EQ(reads_after(kept, "a"), 2);
}

} // namespace kept_facts_test
} // namespace kernelmill::page
