// Documents over all runs are made again of those runs alone that have changed.

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "launch/server/page/kept_runs.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace kept_runs_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class kept_runs : public testing::Test {
protected:
  void make_run(const std::string& name) {
    fs::create_directories(root_.path() + "/" + name);
    write(name, "manifest.json", "{}");
  }
  void write(const std::string& name, const std::string& file, const std::string& text) {
    auto folder = root_.path() + "/" + name;
    std::ofstream{folder + "/" + file} << text;
    auto then = fs::file_time_type::clock::now() - 60s;
    for (const auto& x : fs::directory_iterator{folder}) fs::last_write_time(x, then);
    fs::last_write_time(folder, then);
  }
  /// What is given of all runs.
  std::vector<std::string> given() {
    return kept_.of_all(root_.path(), [this](const std::string& name) {
      made_.push_back(name);
      return name + " " + std::to_string(made_.size());
    });
  }

  temporary_directory root_;
  page::kept_by_run<std::string> kept_;
  std::vector<std::string> made_;
};

using words = std::vector<std::string>;

TEST_F(kept_runs, a_change_to_one_run_makes_that_one_again) {
  make_run("first");
  make_run("second");
  EXPECT_EQ(given(), (words{"first 1", "second 2"}));
  EXPECT_EQ(given(), (words{"first 1", "second 2"}));
  write("second", "traces.jsonl", "1\n");
  EXPECT_EQ(given(), (words{"first 1", "second 3"}));
  EXPECT_EQ(made_, (words{"first", "second", "second"}));
}

TEST_F(kept_runs, a_run_that_a_process_may_write_to_is_made_each_time) {
  make_run("first");
  write("first", "control.sock", "");
  EXPECT_EQ(given(), words{"first 1"});
  EXPECT_EQ(given(), words{"first 2"});
  fs::remove(root_.path() + "/first/control.sock");
  write("first", "traces.jsonl", "1\n");
  EXPECT_EQ(given(), words{"first 3"});
  EXPECT_EQ(given(), words{"first 3"});
}

TEST_F(kept_runs, a_run_that_is_gone_is_left_out) {
  make_run("first");
  make_run("second");
  given();
  fs::remove_all(root_.path() + "/first");
  EXPECT_EQ(given(), words{"second 2"});
}

} // namespace kept_runs_test
} // namespace kernelmill
