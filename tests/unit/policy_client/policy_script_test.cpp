#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "launch/server/scripted/policy_script.hpp"

namespace kernelmill {
namespace policy_script_test {

std::string fault_of(const std::string& text) {
  auto x = parse_policy_script(text, "s.json", "/nowhere");
  return x ? "" : render(x.error());
}

struct folder {
  folder() {
    path = std::filesystem::temp_directory_path() / ("km-script-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path / "kernels");
  }
  ~folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

TEST(policy_script, loads_kernels_beside_it_and_composes_the_completion) {
  folder dir;
  std::ofstream{dir.path / "kernels/a.cpp"} << "int x;";
  std::ofstream{dir.path / "script.json"} << R"({
    // a comment
    "model": "m", "latency_ms": 20,
    "replies": [{"task": "t", "member": 1, "turn": 2, "thought": "hm", "diagnosis": "race",
                 "kernel": "kernels/a.cpp"}],
    "faults": [{"status": 503, "every": 7, "retry_after": 1}, {"kind": "stall", "times": 2}]})";
  auto x = load_policy_script(dir.path / "script.json");
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->latency.ms, 20);
  ASSERT_EQ(x->replies.size(), 1u);
  EXPECT_EQ(x->replies[0].text, "<think>\nhm\n</think>\n<DIAGNOSIS>race</DIAGNOSIS>\n"
                                "<KERNEL>\n```cpp\nint x;\n```\n</KERNEL>");
  EXPECT_EQ(x->replies[0].match.turn, 2u);
  ASSERT_EQ(x->faults.size(), 2u);
  EXPECT_EQ(x->faults[0].retry_after, "1");
  EXPECT_EQ(x->faults[1].kind, fault_kind::stall);
}

TEST(policy_script, errors_name_line_and_column_or_the_key) {
  EXPECT_NE(fault_of("{\n  \"model\": 1,\n  oops\n}").find("s.json: line 3, column 3"),
            std::string::npos)
      << fault_of("{\n  \"model\": 1,\n  oops\n}");
  EXPECT_NE(fault_of("").find("line 1, column 1"), std::string::npos);
  EXPECT_NE(fault_of("[]").find("is not an object"), std::string::npos);
  EXPECT_NE(fault_of(R"({"replys": []})").find("replys is not a key"), std::string::npos);
  EXPECT_NE(fault_of(R"({"replies": [{"text": "a"}, {"text": 1}]})").find("replies[1].text"),
            std::string::npos);
  EXPECT_NE(fault_of(R"({"replies": [{"text": "a", "turn": -1}]})").find("replies[0].turn"),
            std::string::npos);
  EXPECT_NE(fault_of(R"({"replies": [{"thought": "a"}]})").find("replies[0] needs either"),
            std::string::npos);
  EXPECT_NE(fault_of(R"({"replies": [{"kernel": "no.cpp"}]})").find("/nowhere/no.cpp"),
            std::string::npos);
  EXPECT_NE(fault_of(R"({"replies": []})").find("at least one reply"), std::string::npos);
  EXPECT_NE(fault_of(R"({"replies": 3})").find("replies is not a list"), std::string::npos);
  EXPECT_NE(fault_of(R"({"replies":[{"text":"a"}],"faults":[{"kind":"fire"}]})").find("fire"),
            std::string::npos);
  EXPECT_NE(fault_of(R"({"replies":[{"text":"a"}],"faults":[{}]})").find("faults[0] needs"),
            std::string::npos);
  EXPECT_NE(fault_of(R"({"replies":[{"text":"a"}],"faults":[{"status":200}]})").find("status"),
            std::string::npos);
}

TEST(policy_script, a_missing_file_is_a_configuration_error) {
  auto x = load_policy_script("/nowhere/script.json");
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().cls, fault_class::configuration);
  EXPECT_NE(x.error().message.find("/nowhere/script.json"), std::string::npos);
}

} // namespace policy_script_test
} // namespace kernelmill
