#include "actors/cluster/parcels.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "gpu/task/task.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {
namespace parcels_test {

namespace fs = std::filesystem;

class parcels : public testing::Test {
protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/parcels-" + std::to_string(::getpid());
    fs::create_directories(folder_);
    std::ofstream{folder_ + "/library.so"} << library_;
    task_ = std::string{KERNELMILL_TREE} + "/configs/tasks/native/row_sum";
    auto loaded = load_task_folder(task_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    digest_ = (*loaded)->digest;
  }
  void TearDown() override { fs::remove_all(folder_); }

  parcel_packer::needs needs() const {
    return {"native/row_sum", digest_, task_, sha256_hex(library_), folder_ + "/library.so"};
  }

  parcel_shelf shelf() const { return parcel_shelf{folder_ + "/shelf"}; }

  const std::string library_ = "not really a library";
  std::string folder_, task_, digest_;
};

TEST_F(parcels, bring_a_task_and_a_library_once) {
  parcel_packer packer;
  auto first = packer.pack(needs());
  ASSERT_TRUE(first) << first.error().message;
  auto here = shelf();
  auto task = here.task(*first->open());
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_TRUE(task->ends_with("/native/row_sum"));
  EXPECT_EQ(load_task_folder(*task).value()->digest, digest_);
  auto library = here.library(*first->open());
  ASSERT_TRUE(library) << library.error().message;
  auto second = packer.pack(needs());
  EXPECT_EQ(second->open()->getTaskFiles().size(), 0u);
  EXPECT_EQ(second->open()->getLibrary().size(), 0u);
  EXPECT_EQ(*here.task(*second->open()), *task);
  EXPECT_EQ(*here.library(*second->open()), *library);
}

TEST_F(parcels, of_what_a_node_has_lost_are_sent_again) {
  parcel_packer packer;
  (void)packer.pack(needs());
  auto bare = packer.pack(needs());
  auto here = shelf();
  EXPECT_EQ(here.task(*bare->open()).error().category, "parcel_missing");
  EXPECT_EQ(here.library(*bare->open()).error().category, "parcel_missing");
  packer.forget(needs());
  auto whole = packer.pack(needs());
  EXPECT_TRUE(here.task(*whole->open()));
  EXPECT_TRUE(here.library(*whole->open()));
}

// Nothing on a shelf is synced: after a power cut a name may be there with half of its content.
TEST_F(parcels, that_a_power_cut_has_torn_are_sent_again) {
  parcel_packer packer;
  auto whole = packer.pack(needs());
  std::string task, library;
  {
    auto before = shelf();
    task = before.task(*whole->open()).value();
    library = before.library(*whole->open()).value();
  }
  fs::permissions(library, fs::perms{0644});
  fs::resize_file(library, library_.size() / 2);
  fs::resize_file(task + "/task.json", 7);
  auto after = shelf(); // of the process that is started next
  auto bare = packer.pack(needs());
  auto torn_task = after.task(*bare->open());
  auto torn_library = after.library(*bare->open());
  ASSERT_FALSE(torn_task);
  ASSERT_FALSE(torn_library);
  EXPECT_EQ(torn_task.error().category, "parcel_missing");
  EXPECT_EQ(torn_library.error().category, "parcel_missing");
  packer.forget(needs());
  auto again = packer.pack(needs());
  ASSERT_TRUE(after.task(*again->open()));
  ASSERT_TRUE(after.library(*again->open()));
  EXPECT_EQ(load_task_folder(task).value()->digest, digest_);
  EXPECT_EQ(fs::file_size(library), library_.size());
  EXPECT_TRUE(after.task(*bare->open()));
  EXPECT_TRUE(after.library(*bare->open()));
}

TEST_F(parcels, whose_content_is_not_their_name_are_refused) {
  auto forged = build<wire::Parcel>([&](wire::Parcel::Builder x) {
    x.setTaskId("native/row_sum");
    x.setTaskDigest(digest_);
    auto files = x.initTaskFiles(1);
    files[0].setPath("task.json");
    files[0].setBytes(kj::arrayPtr(reinterpret_cast<const kj::byte*>("{}"), 2));
    x.setLibrarySha256(sha256_hex("something else"));
    x.setLibrary(kj::arrayPtr(reinterpret_cast<const kj::byte*>(library_.data()), library_.size()));
  });
  auto here = shelf();
  EXPECT_EQ(here.task(*forged.open()).error().category, "parcel_damaged");
  EXPECT_EQ(here.library(*forged.open()).error().category, "parcel_damaged");
}

TEST_F(parcels, of_long_ago_make_room) {
  parcel_shelf small{folder_ + "/small", 1000};
  std::string first, last;
  for (int i = 0; i < 300; ++i) { // it looks at the first and at the 257th
    auto bytes = "library " + std::to_string(1000 + i);
    auto path = small.keep_library(sha256_hex(bytes), bytes.data(), bytes.size());
    ASSERT_TRUE(path) << path.error().message;
    if (i == 0) {
      first = *path;
      fs::last_write_time(first, fs::file_time_type::clock::now() - std::chrono::hours{1});
    }
    last = *path;
  }
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(last));
  auto names = fs::directory_iterator{folder_ + "/small/libraries"};
  EXPECT_LT(std::distance(begin(names), end(names)), 120);
}

TEST_F(parcels, sent_long_ago_are_sent_again) {
  parcel_packer packer{3};
  auto travels = [&](int i) {
    auto bytes = "library " + std::to_string(i);
    auto path = folder_ + "/" + std::to_string(i) + ".so";
    std::ofstream{path} << bytes;
    auto parcel = packer.pack({{}, {}, {}, sha256_hex(bytes), path});
    return parcel && parcel->open()->getLibrary().size() > 0;
  };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(travels(i)) << i;
  EXPECT_FALSE(travels(1));
  EXPECT_FALSE(travels(3));
  EXPECT_TRUE(travels(0)) << "the oldest is remembered";
  EXPECT_TRUE(travels(1)) << "now it was the oldest";
}

TEST_F(parcels, of_a_task_that_cannot_be_read_are_errors) {
  auto x = needs();
  x.task_directory = folder_ + "/native/row_sum";
  parcel_packer packer;
  auto none = packer.pack(x);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().category, "io_error");
  fs::create_directories(x.task_directory);
  fs::copy(task_, x.task_directory, fs::copy_options::recursive);
  fs::create_symlink("nothing", x.task_directory + "/to_nothing"); // as editors leave them
  EXPECT_TRUE(parcel_packer{}.pack(x));
  fs::create_symlink("endless", x.task_directory + "/endless"); // even root cannot follow it
  auto endless = packer.pack(x);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().category, "io_error");
  EXPECT_NE(endless.error().message.find("/endless"), std::string::npos);
}

TEST_F(parcels, of_a_task_that_has_changed_are_refused) {
  auto x = needs();
  x.task_directory = folder_ + "/native/row_sum";
  fs::create_directories(x.task_directory);
  fs::copy(task_, x.task_directory, fs::copy_options::recursive);
  EXPECT_TRUE(parcel_packer{}.pack(x));
  std::ofstream{x.task_directory + "/prompt.md", std::ios::app} << "One more thing.";
  parcel_packer packer;
  auto changed = packer.pack(x);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().category, "task_changed");
  EXPECT_EQ(changed.error().cls, fault_class::configuration);
}

TEST_F(parcels, do_not_leave_the_shelf) {
  for (std::string path : {"../x", "/etc/x", "a/../../x", "./x", ""}) {
    auto escaping = build<wire::Parcel>([&](wire::Parcel::Builder x) {
      x.setTaskId("native/row_sum");
      x.setTaskDigest(std::string(64, 'a'));
      x.initTaskFiles(1)[0].setPath(path);
    });
    EXPECT_EQ(shelf().task(*escaping.open()).error().category, "parcel_damaged") << path;
  }
  for (std::string id : {"../../x", "/x", ""}) {
    auto escaping = build<wire::Parcel>([&](wire::Parcel::Builder x) {
      x.setTaskId(id);
      x.setTaskDigest(std::string(64, 'a'));
    });
    EXPECT_EQ(shelf().task(*escaping.open()).error().category, "parcel_damaged") << id;
  }
  EXPECT_FALSE(fs::exists(folder_ + "/x"));
}

} // namespace parcels_test
} // namespace kernelmill
