// What comes back is put where the near end said, and only when all of it is what its hash says.

#include "launch/remote/fetching.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "launch/remote/order.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::remote {

namespace {

namespace fs = std::filesystem;

class fetched_files : public ::testing::Test {
protected:
  fetched_files() : folder_(fs::temp_directory_path() / ("fetched_files_" + new_session_id())) {
    fs::create_directories(folder_);
  }
  ~fetched_files() override { fs::remove_all(folder_); }

  fetching of(const std::string& far = "runs/x") const {
    return {{{far, (folder_ / "here").string()}}, "0123456789abcdef"};
  }
  static file_entry entry(const std::string& path, const std::string& text) {
    return {path, text.size(), sha256_hex(text), false};
  }
  size_t things() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator{folder_}, {}));
  }

  fs::path folder_;
};

} // namespace

TEST_F(fetched_files, stand_under_their_names_when_all_are_there) {
  auto all = of();
  auto wanted = all.plan({entry("runs/x/a", "one"), entry("runs/x/sub/b", "two")});
  ASSERT_TRUE(wanted);
  ASSERT_EQ(wanted->size(), 2u);
  EXPECT_TRUE(all.add((*wanted)[0], "one", true));
  EXPECT_FALSE(fs::exists(folder_ / "here")) << "not before all are there";
  EXPECT_TRUE(all.add((*wanted)[1], "t", false));
  auto later = of(); // another connection
  auto left = later.plan({entry("runs/x/a", "one"), entry("runs/x/sub/b", "two")});
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 1u) << "what is there is not asked for again";
  EXPECT_EQ((*left)[0].have, 1u);
  EXPECT_TRUE(later.add((*left)[0], "wo", true));
  EXPECT_TRUE(later.commit());
  EXPECT_TRUE(fs::exists(folder_ / "here" / "a"));
  EXPECT_EQ(fs::file_size(folder_ / "here" / "sub" / "b"), 3u);
  EXPECT_EQ(things(), 1u);
}

TEST_F(fetched_files, that_are_wrong_are_refused) {
  auto all = of();
  EXPECT_FALSE(all.plan({entry("runs/y/a", "one")})) << "of no place";
  EXPECT_FALSE(all.plan({entry("runs/xy", "one")}));
  auto wanted = all.plan({entry("runs/x/a", "one")});
  ASSERT_TRUE(wanted);
  auto x = (*wanted)[0];
  auto wrong = all.add(x, "two", true);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().category, "remote_protocol");
  x = (*wanted)[0];
  EXPECT_FALSE(all.add(x, "one and more", false));
  x = (*wanted)[0];
  EXPECT_FALSE(all.add(x, "on", true)) << "cut off";
  EXPECT_FALSE(fs::exists(folder_ / "here"));
  auto huge = entry("runs/x/a", "one");
  huge.size = uint64_t{1} << 60;
  auto none = all.plan({huge});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().category, "disk_full");
}

TEST_F(fetched_files, replace_an_empty_folder_and_nothing_else) {
  fs::create_directories(folder_ / "here");
  auto all = of();
  auto wanted = all.plan({entry("runs/x/a", "one")});
  ASSERT_TRUE(wanted && all.add((*wanted)[0], "one", true));
  std::ofstream{folder_ / "here" / "mine"} << "mine";
  auto refused = all.commit();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().category, "directory_not_empty");
  fs::remove(folder_ / "here" / "mine");
  EXPECT_TRUE(all.commit());
  EXPECT_TRUE(fs::exists(folder_ / "here" / "a"));
}

} // namespace kernelmill::remote
