// Rows byte for byte. KERNELMILL_WRITE_GOLDEN=1 writes the files anew; look at the difference.

#include <gtest/gtest.h>

#include "golden.hpp"
#include "material.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::exports {
namespace golden_test {

using namespace row_fixtures;

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

} // namespace golden_test
} // namespace kernelmill::exports
