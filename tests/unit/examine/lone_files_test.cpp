#include "gpu/examine/lone_files.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/candidate/lone_calls.hpp"
#include "gpu/task/device_artifact.hpp"
#include "tests/unit/examine/row_sum.hpp"

namespace kernelmill {
namespace lone_files_test {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* two_launches =
    "// scratch: part[4 * rows * 8]\n"
    "// launch: sums<<<dim3(8, rows), 256>>>(x, part, rows, cols)\n"
    "// launch: total<<<ceil_div(rows, 128), 128>>>(part, y, rows)\n";

const lone_file& head_of(const lone_files& x) {
  return *static_cast<const lone_file*>(x.calls.data());
}

TEST(lone_files, give_each_tensor_its_own_bytes_and_scratch_the_place_of_a_tensor) {
  auto what = row_sum();
  task_case which{"mine", {{"rows", 6}, {"cols", 10}}, {}, false};
  auto files = lay_out(*what, pack_device_artifact({two_launches, "cubin"}), {which}, 3, {});
  ASSERT_TRUE(files) << render(files.error());
  EXPECT_EQ(files->launches, 2u);
  const auto& head = head_of(*files);
  ASSERT_EQ(head.cases, 1u);
  const auto& x = head.list[0];
  EXPECT_EQ(x.calls, 3u);
  EXPECT_EQ(x.buffers[0].bytes, 6u * 10 * 4); // x
  EXPECT_NE(x.buffers[0].contents, 0u);
  EXPECT_EQ(x.buffers[1].bytes, 6u * 4); // y
  EXPECT_EQ(x.buffers[1].contents, 0u) << "what was not written must be known as such";
  EXPECT_EQ(x.buffers[2].bytes, 0u);         // rows
  EXPECT_EQ(x.buffers[4].bytes, 4u * 6 * 8); // part
  EXPECT_EQ(x.plan[0].grid[1], 6u);
  EXPECT_EQ(x.plan[0].list[1].kind, program_argument_kind::tensor);
  EXPECT_EQ(x.plan[0].list[1].index, 4u);
  EXPECT_EQ(static_cast<const device_program*>(files->program.data())->scratch_buffers, 0u);
}

TEST(lone_files, hold_contents_of_their_seed) {
  auto what = row_sum();
  task_case which{"mine", {{"rows", 64}, {"cols", 64}}, {}, false};
  auto contents = [&](unsigned char first) {
    secret_seed seed{};
    seed[0] = first;
    auto files = lay_out(*what, pack_device_artifact({two_launches, "cubin"}), {which}, 1, seed);
    auto at = head_of(*files).list[0].buffers[0].contents;
    auto* from = reinterpret_cast<const float*>(static_cast<char*>(files->calls.data()) + at);
    return std::vector<float>(from, from + 64 * 64);
  };
  auto one = contents(1);
  EXPECT_EQ(one, contents(1));
  EXPECT_NE(one, contents(2));
  EXPECT_GT(std::set<float>(one.begin(), one.end()).size(), 1000u);
}

TEST(lone_files, of_what_cannot_be_launched_are_none) {
  auto what = row_sum();
  task_case which{"mine", {{"rows", 6}, {"cols", 10}}, {}, false};
  auto result = [&](const std::string& source) {
    return lay_out(*what, pack_device_artifact({source, "cubin"}), {which}, 1, {});
  };
  EXPECT_EQ(result("// launch: f<<<rows - 6, 1>>>(x, y)\n").error().category, "bad_launch");
  EXPECT_EQ(result("// launch: f<<<1, 1>>>(unknown)\n").error().category, "bad_launch");
  EXPECT_EQ(lay_out(*what, "no artifact", {which}, 1, {}).error().category, "load_failed");
}

TEST(lone_files, of_a_library_name_its_function_and_the_values_of_its_scalars) {
  auto what = row_sum(contract_kind::native);
  task_case which{"mine", {{"rows", 6}, {"cols", 10}}, {}, false};
  auto files = lay_out_library(*what, "a library", {which}, 1, {});
  ASSERT_TRUE(files) << render(files.error());
  EXPECT_STREQ(static_cast<const char*>(files->program.data()), "a library");
  const auto& head = head_of(*files);
  EXPECT_STREQ(head.function, "solve");
  const auto& x = head.list[0];
  EXPECT_EQ(x.launches, 0u);
  EXPECT_EQ(x.calls, 1u);
  EXPECT_EQ(head.marked, 0u);
  EXPECT_EQ(x.buffers[0].bytes, 6u * 10 * 4); // x
  EXPECT_NE(x.buffers[0].contents, 0u);
  EXPECT_EQ(x.buffers[1].contents, 0u); // y
  EXPECT_EQ(x.values[2], 6);            // rows
  EXPECT_EQ(x.values[3], 10);           // cols
  EXPECT_EQ(lay_out_library(*what, "", {which}, 1, {}).error().category, "load_failed");
}

TEST(lone_files, of_a_library_that_is_called_more_than_once_mark_the_last_call) {
  auto what = row_sum(contract_kind::native);
  task_case which{"mine", {{"rows", 6}, {"cols", 10}}, {}, false};
  auto files = lay_out_library(*what, "a library", {which}, 4, {});
  ASSERT_TRUE(files) << render(files.error());
  EXPECT_TRUE(files->marks_last);
  EXPECT_EQ(head_of(*files).list[0].calls, 4u);
  EXPECT_NE(head_of(*files).marked, 0u);
}

TEST(shown_cases, have_none_that_is_hidden) {
  auto what = row_sum();
  std::vector<std::string> names;
  for (const auto& x : shown_cases(*what)) {
    names.push_back(x.name);
    EXPECT_FALSE(x.hidden) << x.name;
  }
  EXPECT_EQ(names.size(), 5u); // four, and the shape that is timed on a CPU
  EXPECT_THAT(names, Not(Contains("primes")));
}

} // namespace lone_files_test
} // namespace kernelmill
