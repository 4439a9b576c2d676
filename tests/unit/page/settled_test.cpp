// Runs that no process writes to, by their files alone.

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "launch/server/page/settled.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace settled_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class settled : public testing::Test {
protected:
  void SetUp() override {
    fs::create_directories(run_ + "/lineage");
    write("manifest.json", "{}");
    write("traces.jsonl", "1\n");
    make_old();
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream{run_ + "/" + name} << text;
  }
  void make_old(std::chrono::seconds by = 60s) {
    auto then = fs::file_time_type::clock::now() - by;
    for (const auto& x : fs::recursive_directory_iterator{run_}) fs::last_write_time(x, then);
    fs::last_write_time(run_, then);
  }
  std::string stamp() { return page::stamp_of_settled(root_.path(), "first"); }

  temporary_directory root_;
  std::string run_ = root_.path() + "/first";
};

TEST_F(settled, a_run_has_one_stamp_until_a_file_changes) {
  auto before = stamp();
  EXPECT_NE(before, "");
  EXPECT_EQ(stamp(), before);
  write("traces.jsonl", "1\n2\n");
  EXPECT_EQ(stamp(), "") << "it was written to a moment ago";
  make_old();
  auto after = stamp();
  EXPECT_NE(after, "");
  EXPECT_NE(after, before);
  make_old(120s);
  EXPECT_NE(stamp(), after) << "of the same size, at another time";
}

TEST_F(settled, a_run_whose_process_may_be_there_has_none) {
  write("control.sock", "");
  make_old();
  EXPECT_EQ(stamp(), "");
}

TEST_F(settled, what_is_no_run_has_none) {
  EXPECT_EQ(page::stamp_of_settled(root_.path(), "second"), "");
  EXPECT_EQ(page::stamp_of_settled(root_.path(), "../first"), "");
  EXPECT_EQ(page::stamp_of_settled(root_.path(), ""), "");
}

} // namespace settled_test
} // namespace kernelmill
