#include "messages/base/json_depth.hpp"

#include <string>

#include <gtest/gtest.h>

namespace kernelmill {
namespace json_depth_test {

TEST(nests_deeper, counts_lists_and_objects_that_are_open_at_once) {
  EXPECT_FALSE(nests_deeper("", 0));
  EXPECT_FALSE(nests_deeper("7", 0));
  EXPECT_FALSE(nests_deeper(R"([{"a": [1]}, [2], [3]])", 3));
  EXPECT_TRUE(nests_deeper(R"([{"a": [1]}])", 2));
  EXPECT_FALSE(nests_deeper("]]]][", 1));
  EXPECT_TRUE(nests_deeper(std::string(size_t{1} << 20, '[')));
}

TEST(nests_deeper, passes_over_what_stands_in_quotes) {
  EXPECT_FALSE(nests_deeper(R"(["[[[[ \" [[[[", "{{{{ \\"])", 1));
  EXPECT_TRUE(nests_deeper(R"(["\\", [1]])", 1));
  EXPECT_FALSE(nests_deeper("\"[[[[", 0));
}

TEST(nests_deeper, passes_over_comments_and_sees_what_a_quote_in_one_would_hide) {
  EXPECT_FALSE(nests_deeper("[ // [[[[\n /* [[ */ 1]", 1));
  EXPECT_TRUE(nests_deeper("// it's \"\n[[", 1));
  EXPECT_TRUE(nests_deeper("/* \" */ [[", 1));
  EXPECT_TRUE(nests_deeper(R"(["//", [1]])", 1));
  EXPECT_FALSE(nests_deeper("[ /* never ends [[[[", 1));
}

} // namespace json_depth_test
} // namespace kernelmill
