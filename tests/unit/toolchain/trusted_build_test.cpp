#include "gpu/toolchain/trusted_build.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "messages/base/files.hpp"
#include "tests/unit/sandbox/spawner_program.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace trusted_build_test {

class a_trusted_build : public testing::Test {
protected:
  a_trusted_build() : processes_(*spawner::launch(spawner_program())) {
    std::ofstream{source()} << "extern \"C\" int solve() { return 1; }\n";
  }
  std::string source() const { return place_.path() + "/reference.cpp"; }
  std::string cache() const { return place_.path() + "/cache"; }

  temporary_directory place_;
  spawner processes_;
};

TEST_F(a_trusted_build, that_was_damaged_is_made_again) {
  trusted_builder builder{processes_, cache()};
  auto made = builder.build(source());
  ASSERT_TRUE(made) << render(made.error());
  auto bytes = read_whole(*made);
  ASSERT_TRUE(bytes);
  std::filesystem::permissions(*made, std::filesystem::perms::owner_all);
  auto damaged = *bytes;
  for (size_t i = damaged.size() / 4; i < damaged.size() / 2; ++i)
    damaged[i] = static_cast<char>(~damaged[i]);
  std::ofstream{*made, std::ios::binary} << damaged;
  auto again = builder.build(source());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *made);
  EXPECT_TRUE(read_whole(*again) == bytes);
}

TEST_F(a_trusted_build, of_a_wrong_source_is_the_tasks_fault_and_leaves_nothing) {
  std::ofstream{source()} << "extern \"C\" int solve() { return missing(); }\n";
  trusted_builder builder{processes_, cache()};
  auto made = builder.build(source());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().cls, fault_class::configuration);
  EXPECT_EQ(made.error().category, "bad_reference");
  EXPECT_TRUE(std::filesystem::is_empty(cache()));
}

} // namespace trusted_build_test
} // namespace kernelmill
