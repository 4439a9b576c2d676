#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace index_command_test {

TEST(index_command, what_is_built_can_be_asked) {
  auto built = kernelmill({"index", "build", "index", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_GE(built.document()["cards"], 30);
  auto answer =
      kernelmill({"index", "query", "--json", "--count", "3", "index", "sum", "of", "each", "row"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.document()["results"].size(), 3u);
}

TEST(index_command, an_index_that_is_not_there_is_3) {
  EXPECT_EQ(kernelmill({"index", "query", "nowhere", "text"}).code, 3);
}

} // namespace index_command_test

} // namespace kernelmill::test
