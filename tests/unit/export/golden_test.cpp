// Rows byte for byte. KERNELMILL_WRITE_GOLDEN=1 writes the files anew; look at the difference.

#include <gtest/gtest.h>

#include "material.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::exports {
namespace {

using namespace testing;

void expect_golden(const std::string& name, const std::string& text) {
  auto path = source_file("tests/unit/export/golden/" + name);
  if (std::getenv("KERNELMILL_WRITE_GOLDEN")) {
    ASSERT_TRUE(write_file(path, text));
    return;
  }
  EXPECT_EQ(text_of_file(path), text) << path;
}

class golden : public ::testing::TestWithParam<form> {};

TEST_P(golden, rows_are_these_bytes) {
  filter wanted;
  if (GetParam() == form::sft)
    wanted.governance = {"usable_positive_sft", "usable_negative_debug"}; // the rejected too
  std::string text;
  for (const auto& x : rows_of(GetParam(), make_group(), wanted).rows) text += json_line(x) + "\n";
  expect_golden(std::string{to_string(GetParam())} + ".jsonl", text);
}

INSTANTIATE_TEST_SUITE_P(each_form, golden, ::testing::ValuesIn(all_forms), [](const auto& x) {
  auto name = std::string{to_string(x.param)};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

} // namespace
} // namespace kernelmill::exports
