#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <unistd.h>

#include "launch/import/kernel_rl.hpp"
#include "messages/base/digest.hpp"

using namespace kernelmill;

namespace kernel_rl_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class kernel_rl_traces : public testing::Test {
protected:
  void SetUp() override {
    path = testing::TempDir() + "traces-" + std::to_string(::getpid()) + ".jsonl";
  }
  void TearDown() override { fs::remove(path); }
  void write(const std::string& text) { std::ofstream{path, std::ios::binary} << text; }

  std::string path;
};

const std::string turn = R"({"problem_id": 3, "level": 1, "response": {"raw": "x"}, "turn": 0})";

TEST_F(kernel_rl_traces, a_file_of_many_parts_is_read_line_by_line) {
  auto longer = turn;
  longer.insert(longer.find("x\"}"), std::string(300'000, 'y'));
  std::string text;
  for (int i = 0; i < 8; ++i) text += longer + "\r\n\n";
  text += turn; // the last line has no end
  write(text);
  auto read = read_kernel_rl_traces(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->sha256, sha256_hex(text));
  EXPECT_EQ(read->groups.size(), 1u);
}

TEST_F(kernel_rl_traces, a_line_that_is_too_long_is_named) {
  write(turn + "\n{\"x\": \"" + std::string(65 << 20, 'x') + "\"}\n");
  auto read = read_kernel_rl_traces(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().category, "bad_import");
  EXPECT_THAT(read.error().message, HasSubstr("line 2 has more than 64 MiB"));
}

TEST_F(kernel_rl_traces, what_is_no_file_is_said) {
  EXPECT_FALSE(read_kernel_rl_traces(path));
  EXPECT_FALSE(read_kernel_rl_traces(testing::TempDir()));
}

} // namespace kernel_rl_test
