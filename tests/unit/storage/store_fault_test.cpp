// What the store says when the machine beneath it fails.

#include <csignal>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fixtures.hpp"
#include "messages/base/digest.hpp"
#include "storage/artifacts.hpp"
#include "storage/files.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {
namespace store_fault_test {

using namespace fixtures;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string category(const expected<store>& x) {
  return x ? "opened" : x.error().category;
}

store_options options_of(const std::string& directory) {
  return {.directory = directory, .map_bytes = 16 << 20, .durable = true};
}

std::vector<Message<wire::Record>> big_batch(uint32_t group) {
  std::vector<Message<wire::Record>> batch;
  for (uint32_t i = 0; i < 8; ++i)
    batch.push_back(make_turn(group, i, 0, {.text = std::string(8000, 'x')}));
  return batch;
}

uint64_t scan_count(const store& x) {
  uint64_t count = 0;
  auto ok = x.scan_run("demo", [&](wire::Record::Reader) { return ++count > 0; });
  EXPECT_TRUE(ok) << (ok ? "" : render(ok.error()));
  return count;
}

/// A small tmpfs, which only root can mount.
class small_disk {
public:
  explicit small_disk(const std::string& at, const char* size) : at_(at) {
    fs::create_directories(at);
    mounted_ = ::mount("none", at.c_str(), "tmpfs", 0, size) == 0;
  }
  ~small_disk() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;
  bool mounted() const { return mounted_; }
  bool make_read_only() {
    return ::mount("none", at_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "");
  }

private:
  std::string at_;
  bool mounted_ = false;
};

/// Runs `body` in a child, which a limit or a lock of its own cannot outlive; true when all its
/// expectations held. _exit, so that nothing of the parent's is destroyed twice.
bool holds_in_child(const std::function<bool()>& body) {
  auto pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(store_that_was_removed, takes_nothing_more) {
  temporary_folder folder;
  auto lineage = store::open(options_of(folder / "lineage"));
  ASSERT_TRUE(lineage) << render(lineage.error());
  ASSERT_TRUE(lineage->commit(big_batch(0)));
  fs::remove_all(folder / "lineage");
  auto answer = lineage->commit(big_batch(1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().category, "store_removed");
  EXPECT_EQ(answer.error().cls, fault_class::infrastructure);
}

TEST(store_on_a_full_disk, keeps_what_it_has_and_goes_on_when_space_returns) {
  temporary_folder folder;
  small_disk disk{folder / "disk", "size=2m"};
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs takes root";
  auto lineage = store::open(options_of(folder / "disk/lineage"));
  ASSERT_TRUE(lineage) << render(lineage.error());
  uint64_t kept = 0;
  uint32_t group = 0;
  error why;
  for (; group < 200; ++group) {
    auto answer = lineage->commit(big_batch(group));
    if (!answer) {
      why = answer.error();
      break;
    }
    kept += 8;
  }
  ASSERT_LT(group, 200u);
  EXPECT_EQ(why.category, "disk_full") << why.message;
  EXPECT_EQ(why.cls, fault_class::infrastructure);
  EXPECT_EQ(lineage->record_count(), kept);
  EXPECT_EQ(scan_count(*lineage), kept);
  EXPECT_FALSE(lineage->commit(big_batch(group)));
  ASSERT_EQ(::mount("none", (folder / "disk").c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
  auto again = lineage->commit(big_batch(group));
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(scan_count(*lineage), kept + 8);
}

// Reading a page beyond the end of the file is a SIGBUS.
TEST(a_store_that_was_cut_off, is_refused_wherever_the_cut_is) {
  temporary_folder folder;
  {
    auto lineage = store::open(options_of(folder / "lineage"));
    for (uint32_t group = 0; group < 8; ++group) ASSERT_TRUE(lineage->commit(big_batch(group)));
  }
  auto file = folder / "lineage/data.mdb";
  auto whole = *read_file(file);
  ASSERT_GT(whole.size(), 200'000u);
  bool refused = true;
  for (size_t size = 3 * 4096; size < whole.size(); size += 4096 * 7) {
    std::ofstream{file, std::ios::trunc} << whole.substr(0, size);
    for (bool reads : {true, false}) {
      auto options = options_of(folder / "lineage");
      options.read_only = reads;
      bool ok = holds_in_child([&] {
        auto x = store::open(options);
        return x ? scan_count(*x) == 64 : category(x) == "store_damaged";
      });
      EXPECT_TRUE(ok) << size << " of " << whole.size() << " bytes";
      refused = refused && ok;
    }
  }
  EXPECT_TRUE(refused);
  std::ofstream{file, std::ios::trunc} << whole;
  EXPECT_EQ(scan_count(*store::open(options_of(folder / "lineage"))), 64u);
}

TEST(a_record_with_a_right_checksum, is_refused_when_it_points_at_a_turn_that_is_not_there) {
  temporary_folder folder;
  auto lineage = store::open(options_of(folder / "lineage"));
  auto record = make_episode(0, 0, {0.5});
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*record.open());
  builder.getRoot<wire::Record>().getEpisode().setBestTurn(7);
  ASSERT_TRUE(lineage->commit({make_turn(0, 0, 0), Message<wire::Record>{builder}}));
  auto ok = lineage->scan_run("demo", [](wire::Record::Reader) { return true; });
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().category, "store_damaged");
  EXPECT_THAT(ok.error().message, HasSubstr("the end of g0.e0"));
}

TEST(store_on_a_full_disk, opens_with_a_clear_error_or_at_all) {
  temporary_folder folder;
  small_disk disk{folder / "disk", "size=1m"};
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs takes root";
  { ASSERT_TRUE(store::open(options_of(folder / "disk/old"))->commit({make_turn(0, 0, 0)})); }
  std::ofstream{folder / "disk/filler"} << std::string(2 << 20, 'x');
  EXPECT_EQ(category(store::open(options_of(folder / "disk/new"))), "disk_full");
  auto old = store::open(options_of(folder / "disk/old"));
  ASSERT_TRUE(old) << render(old.error());
  EXPECT_EQ(scan_count(*old), 1u);
  artifact_store artifacts{folder / "disk/artifacts"};
  EXPECT_EQ(artifacts.put(sha256_hex("x"), "x").error().category, "disk_full");
}

TEST(store_beyond_its_file_limit, answers_disk_full_and_stays_whole) {
  temporary_folder folder;
  auto directory = folder / "lineage";
  EXPECT_TRUE(holds_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto lineage = store::open(options_of(directory));
    if (!lineage) return false;
    for (uint32_t group = 0; group < 100; ++group) {
      auto before = lineage->record_count();
      auto answer = lineage->commit(big_batch(group));
      if (!answer)
        return answer.error().category == "disk_full" && lineage->record_count() == before;
    }
    return false;
  }));
  auto lineage = store::open(options_of(directory));
  ASSERT_TRUE(lineage) << render(lineage.error());
  EXPECT_GT(scan_count(*lineage), 0u);
  EXPECT_TRUE(lineage->commit(big_batch(1000)));
}

TEST(store_with_a_full_map, answers_out_of_memory_and_goes_on_when_there_is_some) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory would meet the limit first";
#endif
  temporary_folder folder;
  EXPECT_TRUE(holds_in_child([&] {
    auto lineage = store::open({.directory = folder / "lineage", .map_bytes = 1 << 20});
    if (!lineage || !lineage->commit(big_batch(0))) return false;
    std::ifstream sizes{"/proc/self/statm"};
    rlim_t pages = 0;
    sizes >> pages;
    auto room = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (8 << 20);
    rlimit before{};
    ::getrlimit(RLIMIT_AS, &before);
    rlimit limit{room, before.rlim_max};
    ::setrlimit(RLIMIT_AS, &limit);
    uint32_t group = 1;
    for (; group < 1000; ++group) {
      auto count = lineage->record_count();
      auto answer = lineage->commit(big_batch(group));
      if (answer) continue;
      if (answer.error().category != "out_of_memory" || lineage->record_count() != count)
        return false;
      break;
    }
    ::setrlimit(RLIMIT_AS, &before);
    return group < 1000 && lineage->commit(big_batch(group)) &&
           scan_count(*lineage) == (group + 1) * 8;
  }));
}

TEST(store_on_a_read_only_disk, is_refused_to_writers_and_open_to_readers) {
  temporary_folder folder;
  small_disk disk{folder / "disk", "size=4m"};
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs takes root";
  { ASSERT_TRUE(store::open(options_of(folder / "disk/lineage"))->commit({make_turn(0, 0, 0)})); }
  ASSERT_EQ(disk.make_read_only(), 0);
  auto writer = store::open(options_of(folder / "disk/lineage"));
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().category, "store_read_only");
  EXPECT_FALSE(writer.error().hint.empty());
  EXPECT_EQ(category(store::open(options_of(folder / "disk/new"))), "store_read_only");
  auto reader = store::open({.directory = folder / "disk/lineage", .read_only = true});
  ASSERT_TRUE(reader) << render(reader.error());
  EXPECT_EQ(scan_count(*reader), 1u);
}

TEST(store_of_another_process, is_locked_and_names_its_writer) {
  temporary_folder folder;
  auto directory = folder / "lineage";
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  auto writer = ::fork();
  if (writer == 0) {
    auto lineage = store::open(options_of(directory));
    char byte = lineage && lineage->commit({make_turn(0, 0, 0)}) ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1 || ::read(done[0], &byte, 1) != 1) ::_exit(1);
    // A reader of another process has its map; growing must not disturb either.
    for (uint32_t group = 1; group < 300; ++group)
      if (!lineage->commit(big_batch(group))) ::_exit(1);
    if (::write(ready[1], "y", 1) != 1 || ::read(done[0], &byte, 1) != 1) ::_exit(1);
    ::_exit(0);
  }
  char byte = 'n';
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  auto second = store::open(options_of(directory));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().category, "store_locked");
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(writer)));
  auto reader = store::open({.directory = directory, .read_only = true});
  ASSERT_TRUE(reader) << render(reader.error());
  EXPECT_EQ(scan_count(*reader), 1u);
  ASSERT_EQ(::write(done[1], "x", 1), 1);
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(scan_count(*reader), 1u + 299 * 8);
  ASSERT_EQ(::write(done[1], "x", 1), 1);
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_EQ(status, 0);
  for (int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
  reader = tl::unexpected<error>{error{}};
  EXPECT_EQ(category(store::open(options_of(directory))), "opened");
}

// Changes the store beneath us as only another program could.
void with_lmdb(const std::string& directory, const char* database,
               const std::function<void(MDB_txn*, MDB_dbi)>& change) {
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  ASSERT_EQ(mdb_env_create(&env), 0);
  mdb_env_set_maxdbs(env, 4);
  ASSERT_EQ(mdb_env_open(env, directory.c_str(), 0, 0666), 0);
  ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
  ASSERT_EQ(mdb_dbi_open(txn, database, 0, &dbi), 0);
  change(txn, dbi);
  ASSERT_EQ(mdb_txn_commit(txn), 0);
  mdb_env_close(env);
}

TEST(store_of_a_newer_schema, is_refused_with_both_versions) {
  temporary_folder folder;
  auto directory = folder / "lineage";
  { ASSERT_TRUE(store::open(options_of(directory))); }
  with_lmdb(directory, "meta", [](MDB_txn* txn, MDB_dbi dbi) {
    char name[] = "schema_version";
    uint32_t version = store_schema_version + 1;
    MDB_val key{sizeof name - 1, name}, value{sizeof version, &version};
    ASSERT_EQ(mdb_put(txn, dbi, &key, &value, 0), 0);
  });
  for (bool read_only : {false, true}) {
    auto options = options_of(directory);
    options.read_only = read_only;
    auto lineage = store::open(options);
    ASSERT_FALSE(lineage);
    EXPECT_EQ(lineage.error().category, "store_newer");
    EXPECT_THAT(lineage.error().message, HasSubstr("version 4"));
  }
}

TEST(store_with_a_flipped_bit, says_which_record_and_still_reads_the_others) {
  temporary_folder folder;
  auto directory = folder / "lineage";
  {
    auto lineage = store::open(options_of(directory));
    ASSERT_TRUE(lineage->commit({make_turn(0, 0, 0), make_turn(0, 1, 0), make_turn(0, 2, 0)}));
  }
  for (size_t offset : {0u, 4u, 6u, 9u, 16u, 200u}) {
    auto flip = [&](MDB_txn* txn, MDB_dbi dbi) {
      MDB_cursor* at = nullptr;
      MDB_val key{}, value{};
      ASSERT_EQ(mdb_cursor_open(txn, dbi, &at), 0);
      ASSERT_EQ(mdb_cursor_get(at, &key, &value, MDB_FIRST), 0);
      ASSERT_EQ(mdb_cursor_get(at, &key, &value, MDB_NEXT), 0);
      std::string bytes{static_cast<char*>(value.mv_data), value.mv_size};
      bytes[offset] = static_cast<char>(bytes[offset] ^ 0x10);
      value.mv_data = bytes.data();
      ASSERT_EQ(mdb_cursor_put(at, &key, &value, MDB_CURRENT), 0);
      mdb_cursor_close(at);
    };
    with_lmdb(directory, "records", flip);
    auto lineage = store::open(options_of(directory));
    ASSERT_TRUE(lineage);
    auto id = turn_id({"demo", "native/row_sum", 0, 1}, 0);
    auto found = lineage->find_turn(id);
    ASSERT_FALSE(found) << offset;
    EXPECT_EQ(found.error().category, "store_damaged");
    int seen = 0;
    auto scan = lineage->scan_run("demo", [&](wire::Record::Reader) { return ++seen > 0; });
    ASSERT_FALSE(scan);
    EXPECT_EQ(scan.error().category, "store_damaged");
    EXPECT_EQ(seen, 1);
    EXPECT_TRUE(*lineage->find_turn(turn_id({"demo", "native/row_sum", 0, 2}, 0)));
    lineage = tl::unexpected<error>{error{}};
    with_lmdb(directory, "records", flip);
  }
}

TEST(store_with_a_moved_record, sees_that_it_lies_under_another_key) {
  temporary_folder folder;
  auto directory = folder / "lineage";
  { ASSERT_TRUE(store::open(options_of(directory))->commit({make_turn(0, 0, 0)})); }
  with_lmdb(directory, "records", [](MDB_txn* txn, MDB_dbi dbi) {
    MDB_cursor* at = nullptr;
    MDB_val key{}, value{};
    ASSERT_EQ(mdb_cursor_open(txn, dbi, &at), 0);
    ASSERT_EQ(mdb_cursor_get(at, &key, &value, MDB_FIRST), 0);
    std::string copy{static_cast<char*>(value.mv_data), value.mv_size};
    std::string other{static_cast<char*>(key.mv_data), key.mv_size};
    mdb_cursor_close(at);
    other.back() = 7;
    MDB_val new_key{other.size(), other.data()}, new_value{copy.size(), copy.data()};
    ASSERT_EQ(mdb_put(txn, dbi, &new_key, &new_value, 0), 0);
  });
  auto lineage = store::open(options_of(directory));
  auto scan = lineage->scan_run("demo", [](wire::Record::Reader) { return true; });
  ASSERT_FALSE(scan);
  EXPECT_EQ(scan.error().category, "store_damaged");
}

TEST(store_that_is_no_store, is_refused) {
  temporary_folder folder;
  fs::create_directories(folder / "lineage");
  std::ofstream{folder / "lineage/data.mdb"} << std::string(8192, 'x');
  EXPECT_EQ(category(store::open(options_of(folder / "lineage"))), "store_damaged");
  std::ofstream{folder / "file"} << "x";
  EXPECT_EQ(category(store::open(options_of(folder / "file"))), "not_found");
}

TEST(store_that_was_cut_off, reports_damage_and_does_not_crash) {
  temporary_folder folder;
  auto directory = folder / "lineage";
  {
    auto lineage = store::open(options_of(directory));
    for (uint32_t group = 0; group < 8; ++group) ASSERT_TRUE(lineage->commit(big_batch(group)));
  }
  fs::resize_file(directory + "/data.mdb", fs::file_size(directory + "/data.mdb") / 2);
  auto lineage = store::open(options_of(directory));
  if (!lineage) {
    EXPECT_EQ(lineage.error().category, "store_damaged");
    return;
  }
  auto scan = lineage->scan_run("demo", [](wire::Record::Reader) { return true; });
  ASSERT_FALSE(scan);
  EXPECT_EQ(scan.error().category, "store_damaged");
}

} // namespace store_fault_test
} // namespace kernelmill
