#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/digest.hpp"
#include "tests/integration/cli/program.hpp"
#include "tests/integration/cli/sources.hpp"

namespace kernelmill::test {

namespace judge_command_test {

using nlohmann::json;
using testing::HasSubstr;

const std::string transpose =
    R"(extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) y[(long)j * rows + i] = x[(long)i * cols + j];
}
)";

program_result judge(const std::string& batch, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"judge", "--backend", "cpu", "--no-timing"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back(write_file("batch/candidates.ndjson", batch));
  return kernelmill(arguments);
}

std::map<std::string, json> verdicts(const std::string& out) {
  std::map<std::string, json> result;
  std::istringstream in{out};
  for (std::string line; std::getline(in, line);) {
    auto x = json::parse(line, nullptr, false);
    if (!x.is_object())
      ADD_FAILURE() << "not a document: " << line;
    else
      result.emplace(x.value("name", ""), x);
  }
  return result;
}

// Two that are right, of two tasks, and one that no compiler takes.
std::string three() {
  write_file("batch/sum.cpp", row_sum);
  write_file("batch/kernels/transpose.cpp", transpose);
  write_file("batch/broken.cpp", "extern \"C\" void solve( {\n");
  return R"({"task": "native/row_sum", "file": "sum.cpp"})"
         "\n\n"
         R"({"task": "native/row_sum", "file": "broken.cpp", "name": "broken one"})"
         "\n"
         R"({"task": "native/transpose", "file": "kernels/transpose.cpp"})"
         "\n";
}

TEST(judge, prints_a_verdict_a_line) {
  auto x = judge(three());
  ASSERT_EQ(x.code, 0) << x.err;
  auto all = verdicts(x.out);
  ASSERT_EQ(all.size(), 3u) << x.out;
  for (auto* name : {"sum.cpp", "kernels/transpose.cpp"}) {
    auto& d = all[name];
    EXPECT_EQ(d["outcome"], "accepted") << d.dump();
    EXPECT_EQ(d["compiled"], true) << name;
    EXPECT_EQ(d["correct"], true) << name;
    EXPECT_EQ(d["error"]["class"], "none") << name;
    EXPECT_NE(d["device"], "") << name;
  }
  EXPECT_EQ(all["sum.cpp"]["task"], "native/row_sum");
  EXPECT_EQ(all["sum.cpp"]["candidate_sha256"], sha256_hex(row_sum));
  EXPECT_EQ(all["kernels/transpose.cpp"]["task"], "native/transpose");
  auto& broken = all["broken one"];
  EXPECT_EQ(broken["outcome"], "rejected") << broken.dump();
  EXPECT_EQ(broken["compiled"], false);
  EXPECT_EQ(broken["error"]["class"], "candidate");
  EXPECT_EQ(broken["error"]["category"], "compile_error");
}

TEST(judge, has_every_key_of_eval_and_what_it_cost) {
  auto x = judge(three());
  ASSERT_EQ(x.code, 0) << x.err;
  for (auto& [name, d] : verdicts(x.out))
    for (const auto* key : {"name", "cached", "build_s", "slot_s", "device", "device_uuid", "task",
                            "candidate_sha256", "backend", "contract", "format_ok", "compiled",
                            "correct", "cases", "integrity", "reward", "outcome", "error"})
      EXPECT_TRUE(d.contains(key)) << name << " lacks " << key;
}

TEST(judge, begins_each_line_with_the_version_of_its_schema_as_eval_does) {
  auto x = judge(three());
  ASSERT_EQ(x.code, 0) << x.err;
  auto file = write_file("batch/sum.cpp", row_sum);
  auto one = kernelmill(
      {"eval", "--task", "native/row_sum", "--backend", "cpu", "--no-timing", "--json", file});
  auto version = one.document()["schema_version"];
  for (auto& [name, d] : verdicts(x.out)) EXPECT_EQ(d["schema_version"], version) << name;
  std::istringstream in{x.out};
  for (std::string line; std::getline(in, line);)
    EXPECT_EQ(line.rfind("{\"schema_version\":", 0), 0u) << line;
}

TEST(judge, an_empty_source_fails_the_format_gate_and_an_empty_batch_is_none) {
  write_file("batch/empty.cpp", " \n");
  auto x = judge(R"({"task": "native/row_sum", "file": "empty.cpp"})");
  ASSERT_EQ(x.code, 0) << x.err;
  auto all = verdicts(x.out);
  EXPECT_EQ(all["empty.cpp"]["format_ok"], false) << x.out;
  EXPECT_EQ(all["empty.cpp"]["outcome"], "rejected");
  auto none = judge("\n \n");
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(none.out, "");
}

TEST(judge, a_bad_line_is_2_and_named_before_anything_is_built) {
  const std::vector<std::pair<std::string, std::string>> lines{
      {"{\"task\": ", "task and file"},
      {"3", "task and file"},
      {R"({"task": "native/row_sum"})", "task and file"},
      {R"({"file": "sum.cpp"})", "task and file"},
      {R"({"task": 1, "file": "sum.cpp"})", "task and file"},
      {R"({"task": "native/nothing", "file": "sum.cpp"})", "native/nothing"},
      {R"({"task": "../../etc", "file": "sum.cpp"})", "etc"},
      {R"({"task": "native/row_sum", "file": "nothing.cpp"})", "nothing.cpp"},
      {R"({"task": "native/row_sum", "file": "sum.cpp", "name": 7})", "name is not a string"},
      {R"({"task": "native/row_sum", "file": "sum.cpp", "contract": 1})",
       "contract is not a string"},
      {R"({"task": "native/row_sum", "file": "sum.cpp", "contract": null})",
       "contract is not a string"},
      {R"({"task": "native/row_sum", "file": "sum.cpp", "contract": ["device"]})",
       "contract is not a string"},
      {R"({"task": "native/row_sum", "file": "sum.cpp", "contract": ""})", "contract \"\""},
      {R"({"task": "native/row_sum", "file": "sum.cpp", "contract": "triton"})",
       "contract \"triton\""},
      {R"({"task": "native/row_sum", "file": "sum.cpp", "contract": "device"})",
       "device code needs a GPU"},
      {R"({"task": "native/row_sum", "file": "sum.cpp", "seed": "1"})", "unknown key \"seed\""}};
  for (const auto& [line, cause] : lines) {
    auto x = judge(three() + line + "\n", {"--json"});
    EXPECT_EQ(x.code, 2) << line;
    EXPECT_EQ(x.out, "") << line;
    auto fault = x.fault();
    ASSERT_TRUE(fault.is_object()) << line << ": " << x.err;
    EXPECT_EQ(fault["class"], "configuration") << line;
    EXPECT_EQ(fault["category"], "bad_batch") << line;
    auto message = fault["message"].get<std::string>();
    EXPECT_THAT(message, HasSubstr("batch/candidates.ndjson, line 5")) << line;
    EXPECT_THAT(message, HasSubstr(cause)) << line;
    EXPECT_NE(fault["hint"], "") << line;
  }
}

TEST(judge, a_line_may_name_its_contract) {
  (void)three();
  auto x = judge(R"({"task": "native/row_sum", "file": "sum.cpp", "contract": "native"})"
                 "\n"
                 R"({"task": "native/row_sum", "file": "sum.cpp", "contract": "auto", "name": "b"})"
                 "\n");
  ASSERT_EQ(x.code, 0) << x.err;
  auto all = verdicts(x.out);
  ASSERT_EQ(all.size(), 2u) << x.out;
  for (const auto& [name, d] : all) {
    EXPECT_EQ(d["contract"], "native") << name;
    EXPECT_EQ(d["outcome"], "accepted") << name;
  }
}

TEST(judge, a_bad_line_is_told_to_people_too) {
  auto x = judge("{}\n");
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("candidates.ndjson, line 1"));
}

TEST(judge, a_batch_that_is_not_there_is_3) {
  EXPECT_EQ(kernelmill({"judge", "nothing.ndjson"}).code, 3);
  EXPECT_EQ(kernelmill({"judge"}).code, 2);
}

} // namespace judge_command_test

} // namespace kernelmill::test
