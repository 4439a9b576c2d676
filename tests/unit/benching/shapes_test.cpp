#include "launch/judging/benching/shapes.hpp"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/machine/scratch_folder.hpp"

namespace kernelmill::benching {
namespace shapes_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

task_ptr row_sum(const std::string& backend = "cpu") {
  const char* source_tree = std::getenv("KERNELMILL_SOURCE_DIR");
  auto loaded = load_task(
      std::string{source_tree != nullptr ? source_tree : "."} + "/configs/tasks", "native/row_sum");
  judging_terms terms;
  terms.backend = backend;
  return *on_terms(**loaded, terms);
}

std::vector<std::string> read(const std::string& text) {
  auto what = row_sum();
  auto shapes = read_shapes(*what, text);
  if (!shapes) return {shapes.error().category, shapes.error().message, shapes.error().hint};
  std::vector<std::string> result;
  for (const auto& x : *shapes) result.push_back(x.name + ":" + shape_text(*what, x.scalars));
  return result;
}

TEST(Shapes, AreTheTasksOwnByName) {
  EXPECT_THAT(read("timed"), testing::ElementsAre("timed:rows=128 cols=1024"));
  EXPECT_THAT(read("one_row;timed"),
              testing::ElementsAre("one_row:rows=1 cols=37", "timed:rows=128 cols=1024"));
  auto all = read("cases");
  EXPECT_EQ(all.size(), 4u) << "hidden ones cannot be named";
}

TEST(Shapes, ListsAreCombinedAndTheRestIsOfTheTimedShape) {
  EXPECT_THAT(read("rows=1:2,cols=8:16"),
              testing::ElementsAre(":rows=1 cols=8", ":rows=1 cols=16", ":rows=2 cols=8",
                                   ":rows=2 cols=16"));
  EXPECT_THAT(read("rows=7"), testing::ElementsAre(":rows=7 cols=1024"));
}

TEST(Shapes, ComeOnce) {
  EXPECT_THAT(read("timed rows=128 rows=128:9"),
              testing::ElementsAre("timed:rows=128 cols=1024", ":rows=9 cols=1024"));
}

TEST(Shapes, ThatCannotBeReadAreRefusedWithWhatThereIs) {
  auto x = read("smal");
  EXPECT_EQ(x[0], "usage");
  EXPECT_THAT(x[1], HasSubstr("did you mean 'small'?"));
  EXPECT_THAT(x[2], AllOf(HasSubstr("timed, cases, small"), Not(HasSubstr("primes"))));
  EXPECT_THAT(read("row=4")[1], HasSubstr("names no scalar of native/row_sum"));
  EXPECT_THAT(read("rows=4x")[1], HasSubstr("integers"));
  EXPECT_THAT(read("rows=4:")[1], HasSubstr("integers"));
  EXPECT_THAT(read("rows=99999999999")[1], HasSubstr("integers"));
  EXPECT_THAT(read("primes")[1], HasSubstr("there is no shape")) << "it is hidden";
  EXPECT_THAT(read(" ; ")[1], HasSubstr("names none"));
  std::string many = "rows=1";
  for (int i = 2; i < 40; ++i) many += ":" + std::to_string(i);
  EXPECT_THAT(read(many + ",cols=1:2")[1], HasSubstr("more than 64"));
}

TEST(AtShape, IsTheSameTaskTimedElsewhere) {
  scratch_folder folder{"benching-test"};
  auto what = row_sum();
  auto there = at_shape(what, {{"rows", 3}, {"cols", 5}}, folder.path() + "/0");
  ASSERT_TRUE(there) << render(there.error());
  EXPECT_EQ((*there)->id, what->id);
  EXPECT_NE((*there)->digest, what->digest);
  EXPECT_NE((*there)->directory, what->directory);
  EXPECT_EQ(shape_text(**there, (*there)->timed.scalars), "rows=3 cols=5");
  EXPECT_EQ((*there)->cases.size(), what->cases.size());
  EXPECT_EQ((*there)->timed_gpu.scalars, what->timed_gpu.scalars);
  EXPECT_TRUE(std::filesystem::exists((*there)->directory + "/reference.cpp"));
  EXPECT_EQ(*at_shape(what, what->timed.scalars, folder.path() + "/1"), what);
}

TEST(AtShape, OnAGpuIsItsTimedShape) {
  scratch_folder folder{"benching-test"};
  auto what = row_sum("cuda");
  auto there = at_shape(what, {{"rows", 3}, {"cols", 5}}, folder.path());
  ASSERT_TRUE(there) << render(there.error());
  EXPECT_EQ(shape_text(**there, (*there)->timed.scalars), "rows=3 cols=5");
  EXPECT_EQ((*there)->timed_cpu.scalars, what->timed_cpu.scalars);
  EXPECT_EQ((*there)->terms.backend, "cuda");
}

TEST(AtShape, ThatTheTaskCannotHaveSaysWhyOfTheTaskItself) {
  scratch_folder folder{"benching-test"};
  auto what = row_sum();
  auto there = at_shape(what, {{"rows", 1 << 20}, {"cols", 1 << 20}}, folder.path() + "/0");
  ASSERT_FALSE(there);
  EXPECT_THAT(there.error().message,
              AllOf(HasSubstr("--shapes"), HasSubstr("256 MiB"), Not(HasSubstr(folder.path()))));
  EXPECT_EQ(there.error().category, "usage");
  there = at_shape(what, {{"rows", 0}, {"cols", 4}}, folder.path() + "/1");
  ASSERT_FALSE(there);
  EXPECT_THAT(there.error().message, HasSubstr("\"rows\" is 0"));
}

} // namespace shapes_test
} // namespace kernelmill::benching
