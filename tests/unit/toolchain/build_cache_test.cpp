#include "gpu/toolchain/build_cache.hpp"

#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace build_cache_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class a_build_cache : public testing::Test {
protected:
  a_build_cache() : cache_(scratch_.path() + "/build") { EXPECT_TRUE(cache_.prepare()); }

  std::string store(const std::string& name, const std::string& bytes) {
    auto key = sha256_hex(name);
    auto digest = cache_.store_library(key, memory_file(bytes)->get());
    EXPECT_TRUE(digest);
    cache_.store_result(key, build<wire::BuildResult>([&](wire::BuildResult::Builder x) {
                          x.setCompiled(true);
                          x.setLibraryPath(cache_.library_path(key));
                          x.setLibrarySha256(*digest);
                          x.setLog(name);
                        }));
    return key;
  }

  void damage(const std::string& path) {
    ::chmod(path.c_str(), 0600);
    std::ofstream{path, std::ios::app} << "x";
  }

  std::string words_path(const std::string& key) {
    auto path = cache_.library_path(key);
    return path.substr(0, path.size() - 3) + ".words";
  }

  temporary_directory scratch_;
  build_cache cache_;
};

TEST_F(a_build_cache, returns_what_was_stored_and_says_so) {
  auto key = store("one", "library");
  auto found = cache_.find(key);
  ASSERT_TRUE(found);
  auto view = found->open();
  EXPECT_TRUE(view->getCached());
  EXPECT_TRUE(view->getCompiled());
  EXPECT_STREQ(view->getLog().cStr(), "one");
  EXPECT_EQ(read_whole(std::string{view->getLibraryPath()}), "library");
  struct stat x {};
  ASSERT_EQ(::stat(view->getLibraryPath().cStr(), &x), 0);
  EXPECT_EQ(x.st_mode & 0777, 0444u);
}

TEST_F(a_build_cache, has_nothing_for_a_key_that_was_never_stored) {
  EXPECT_FALSE(cache_.find(sha256_hex("never")));
}

TEST_F(a_build_cache, ignores_damaged_entries_and_takes_new_ones_in_their_place) {
  auto key = store("one", "library");
  damage(cache_.library_path(key));
  EXPECT_FALSE(cache_.find(key));
  store("one", "library");
  EXPECT_TRUE(cache_.find(key));
  damage(words_path(key));
  EXPECT_FALSE(cache_.find(key));
  store("one", "library");
  EXPECT_TRUE(cache_.find(key));
  fs::remove(cache_.library_path(key));
  EXPECT_FALSE(cache_.find(key));
  std::ofstream{words_path(key), std::ios::trunc};
  EXPECT_FALSE(cache_.find(key));
}

TEST_F(a_build_cache, may_be_moved) {
  auto key = store("one", "library");
  fs::rename(scratch_.path() + "/build", scratch_.path() + "/moved");
  build_cache moved{scratch_.path() + "/moved"};
  auto found = moved.find(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(std::string{found->open()->getLibraryPath()}, moved.library_path(key));
}

TEST_F(a_build_cache, evicts_what_was_used_longest_ago) {
  std::vector<std::string> keys;
  for (int i = 0; i < 10; ++i) keys.push_back(store(std::to_string(i), std::string(10'000, 'x')));
  auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 10; ++i)
    for (auto& path : {cache_.library_path(keys[i]), words_path(keys[i])})
      fs::last_write_time(path, now - std::chrono::hours{100 - i});
  EXPECT_TRUE(cache_.find(keys[0])); // used just now
  build_cache small{cache_.directory(), 50'000};
  small.evict();
  EXPECT_TRUE(small.find(keys[0]));
  EXPECT_FALSE(small.find(keys[1]));
  EXPECT_TRUE(small.find(keys[9]));
}

TEST_F(a_build_cache, keeps_what_is_in_use_even_when_it_is_too_large) {
  auto key = store("one", std::string(10'000, 'x'));
  build_cache small{cache_.directory(), 100};
  small.evict();
  EXPECT_TRUE(small.find(key));
}

TEST_F(a_build_cache, refuses_a_directory_that_others_can_write) {
  auto place = scratch_.path() + "/open";
  fs::create_directory(place);
  ::chmod(place.c_str(), 0777);
  build_cache open{place};
  auto prepared = open.prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().category, "cache_unwritable");
  EXPECT_EQ(prepared.error().cls, fault_class::infrastructure);
  EXPECT_THAT(prepared.error().message, HasSubstr(place));
  build_cache inside{place + "/inside"};
  EXPECT_FALSE(inside.prepare()) << "its owner could exchange it";
}

TEST_F(a_build_cache, refuses_a_directory_that_cannot_be_made) {
  std::ofstream{scratch_.path() + "/file"} << "x";
  build_cache wrong{scratch_.path() + "/file/build"};
  EXPECT_EQ(wrong.prepare().error().category, "cache_unwritable");
}

TEST_F(a_build_cache, leaves_no_half_file_when_it_cannot_write) {
  auto key = store("one", "library");
  auto folder = fs::path{cache_.library_path(key)}.parent_path();
  auto files = [&] { return std::distance(fs::directory_iterator{folder}, {}); };
  EXPECT_EQ(files(), 2);
  EXPECT_FALSE(write_atomically(folder / "missing/x", "bytes", 0444));
  EXPECT_EQ(files(), 2);
}

} // namespace build_cache_test
} // namespace kernelmill
