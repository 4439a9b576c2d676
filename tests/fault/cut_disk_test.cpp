// What the power loss test believes of a disk.

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "storage/files.hpp"
#include "tests/fault/cut_disk.hpp"

namespace kernelmill::power_cut {
namespace cut_disk_test {

using disk_calls::call;
using disk_calls::kind;

call write_of(uint64_t offset, std::string bytes) {
  return {kind::write, 1, {}, offset, std::move(bytes), 0};
}

TEST(cut_disk, loses_what_was_not_synced_and_keeps_what_was) {
  std::vector<call> calls{{kind::link, 1, "/file", 0, {}, 0},
                          {kind::sync_directory, 0, "", 0, {}, 0},
                          write_of(0, std::string(3000, 'a')),
                          {kind::sync, 1, {}, 0, {}, 0},
                          write_of(1000, std::string(1000, 'b'))};
  std::mt19937 random{1};
  disk now;
  for (auto& x : calls) now.take(x);
  EXPECT_FALSE(now.changes_nothing());
  auto old = std::string(3000, 'a'), whole = old;
  whole.replace(1000, 1000, 1000, 'b');
  EXPECT_EQ(now.after(fate::dropped, random).find("/file")->text(), old);
  EXPECT_EQ(now.after(fate::kept, random).find("/file")->text(), whole);
  bool mixed = false;
  for (int i = 0; i < 20; ++i) {
    auto torn = now.after(fate::torn, random).find("/file")->text();
    ASSERT_EQ(torn.size(), old.size());
    for (size_t at = 0; at < torn.size(); at += sector) { // each sector is the old or the new one
      auto part = torn.substr(at, sector);
      EXPECT_TRUE(part == old.substr(at, sector) || part == whole.substr(at, sector)) << at;
    }
    mixed = mixed || (torn != old && torn != whole);
  }
  EXPECT_TRUE(mixed);
}

TEST(cut_disk, has_no_file_whose_name_or_folder_was_not_synced) {
  std::vector<call> calls{{kind::link, 2, "/a", 0, {}, 0},
                          {kind::link, 1, "/a/file", 0, {}, 0},
                          {kind::sync_directory, 0, "/a", 0, {}, 0}};
  std::mt19937 random{1};
  disk now;
  for (auto& x : calls) now.take(x);
  EXPECT_EQ(now.after(fate::dropped, random).find("/a/file"), nullptr) << "its folder has no name";
  EXPECT_NE(now.after(fate::kept, random).find("/a/file"), nullptr);
}

TEST(cut_disk, contents_change_alone_and_end_in_zeros) {
  content one;
  one.write(10, std::string(5000, 'x'));
  auto two = one;
  two.write(0, "y");
  two.resize(4000);
  two.resize(6000);
  EXPECT_EQ(one.text(), std::string(10, '\0') + std::string(5000, 'x'));
  EXPECT_EQ(two.text(),
            "y" + std::string(9, '\0') + std::string(3990, 'x') + std::string(2000, '\0'));
  EXPECT_NE(one.print(), two.print());
  content three;
  three.write(0, two.text());
  EXPECT_EQ(three.print(), two.print());
}

TEST(cut_disk, an_image_holds_one_content_after_another_with_other_writers_between) {
  std::string folder = testing::TempDir() + "/cut-disk-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  auto path = folder + "/data";
  {
    image_file image{path};
    content one, two;
    one.write(0, std::string(10'000, 'a'));
    two = one;
    two.write(4096, "b");
    two.resize(7000);
    for (auto* x : {&one, &two, &one}) {
      EXPECT_TRUE(image.hold(x));
      EXPECT_EQ(*read_file(path), x->text());
    }
    disk_calls::record(folder);
    EXPECT_TRUE(write_file(path, "what a store wrote"));
    image.note(disk_calls::stop());
    EXPECT_TRUE(image.hold(&two));
    EXPECT_EQ(*read_file(path), two.text());
    EXPECT_TRUE(image.hold(nullptr));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  std::filesystem::remove_all(folder);
}

} // namespace cut_disk_test
} // namespace kernelmill::power_cut
