#include "storage/lineage/store.hpp"

#include <atomic>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures.hpp"
#include "storage/disk.hpp"
#include "storage/lineage/keys.hpp"

namespace kernelmill {
namespace store_test {

using namespace fixtures;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

store open_store(const std::string& directory, uint64_t map_bytes = 64 << 20) {
  auto result = store::open({.directory = directory, .map_bytes = map_bytes, .durable = false});
  EXPECT_TRUE(result) << (result ? "" : render(result.error()));
  return std::move(*result);
}

std::vector<std::string> names(const store& from, const std::string& run) {
  std::vector<std::string> result;
  auto ok = from.scan_run(run, [&](wire::Record::Reader record) {
    result.push_back(name_of(record));
    return true;
  });
  EXPECT_TRUE(ok) << (ok ? "" : render(ok.error()));
  return result;
}

double reward_of(const store& from, const std::string& id) {
  auto found = from.find_turn(id);
  if (!found || !found->has_value()) return -1;
  return found->value().open()->getTurn().getVerdict().getReward();
}

TEST(store, gives_back_what_was_committed) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  ASSERT_TRUE(lineage.commit({make_turn(3, 1, 2, {.text = "hello", .reward = 0.75})}));
  EXPECT_EQ(reward_of(lineage, turn_id({"demo", "native/row_sum", 3, 1}, 2)), 0.75);
  ASSERT_TRUE(lineage.scan_run("demo", [](wire::Record::Reader x) {
    EXPECT_STREQ(x.getTurn().getCompletion().getText().getInline().cStr(), "hello");
    return true;
  }));
  EXPECT_EQ(lineage.record_count(), 1u);
}

TEST(store, keeps_its_records_when_it_is_opened_again) {
  temporary_folder folder;
  {
    auto lineage = open_store(folder / "lineage");
    ASSERT_TRUE(lineage.commit({make_turn(0, 0, 0), make_run("demo", "running")}));
  }
  auto lineage = open_store(folder / "lineage");
  EXPECT_THAT(names(lineage, "demo"), ElementsAre("running", "g0.e0.t0"));
  EXPECT_THAT(*lineage.runs(), ElementsAre("demo"));
}

TEST(store, scans_a_run_in_the_order_of_its_story) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  ASSERT_TRUE(lineage.commit({make_run("demo", "finished", 1), make_group(0, {0.1}),
                              make_turn(0, 10, 0), make_episode(0, 2, {0.3}), make_turn(0, 2, 1),
                              make_turn(0, 2, 0), make_turn(256, 0, 0), make_turn(1, 0, 300),
                              make_turn(1, 0, 2), make_run("demo", "running"),
                              make_run("demo", "cancelled"), make_run("demo", "running", 1)}));
  ASSERT_TRUE(lineage.commit({make_turn(0, 0, 0, {.run = "other"})}));
  EXPECT_THAT(names(lineage, "demo"),
              ElementsAre("running", "running", "g0.e2.t0", "g0.e2.t1", "g0.e2", "g0.e10.t0", "g0",
                          "g1.e0.t2", "g1.e0.t300", "g256.e0.t0", "cancelled", "finished"));
  EXPECT_THAT(names(lineage, "other"), ElementsAre("g0.e0.t0"));
  EXPECT_TRUE(names(lineage, "unknown").empty());
  std::vector<std::string> openings;
  ASSERT_TRUE(lineage.scan_openings("demo", [&](wire::Record::Reader x) {
    openings.push_back(std::to_string(x.getRun().getOpening()) + " " + name_of(x));
    return true;
  }));
  EXPECT_THAT(openings, ElementsAre("0 running", "1 running", "0 cancelled", "1 finished"));
  EXPECT_THAT(*lineage.groups("demo"), ElementsAre(0u, 1u, 256u));
  EXPECT_THAT(*lineage.runs(), ElementsAre("demo", "other"));
}

TEST(store, scans_an_episode_and_a_group_without_their_neighbours) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  ASSERT_TRUE(lineage.commit({make_turn(0, 0, 0), make_turn(0, 1, 0), make_turn(0, 1, 1),
                              make_episode(0, 1, {0}), make_turn(0, 2, 0), make_group(0, {}),
                              make_turn(1, 1, 0)}));
  std::vector<std::string> episode, group;
  ASSERT_TRUE(lineage.scan_episode("demo", 0, 1, [&](wire::Record::Reader x) {
    episode.push_back(name_of(x));
    return true;
  }));
  ASSERT_TRUE(lineage.scan_group("demo", 0, [&](wire::Record::Reader x) {
    group.push_back(name_of(x));
    return true;
  }));
  EXPECT_THAT(episode, ElementsAre("g0.e1.t0", "g0.e1.t1", "g0.e1"));
  EXPECT_THAT(group, ElementsAre("g0.e0.t0", "g0.e1.t0", "g0.e1.t1", "g0.e1", "g0.e2.t0", "g0"));
}

TEST(store, stops_a_scan_when_the_visitor_says_so) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  ASSERT_TRUE(lineage.commit({make_turn(0, 0, 0), make_turn(0, 0, 1)}));
  int seen = 0;
  ASSERT_TRUE(lineage.scan_run("demo", [&](wire::Record::Reader) { return ++seen < 1; }));
  EXPECT_EQ(seen, 1);
}

TEST(store, answers_false_to_a_second_commit_and_keeps_the_first) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  EXPECT_THAT(*lineage.commit({make_turn(0, 0, 0, {.reward = 1})}), ElementsAre(true));
  EXPECT_THAT(*lineage.commit({make_turn(0, 0, 1), make_turn(0, 0, 0, {.reward = 2})}),
              ElementsAre(true, false));
  EXPECT_EQ(lineage.record_count(), 2u);
  ASSERT_TRUE(lineage.scan_episode("demo", 0, 0, [](wire::Record::Reader x) {
    EXPECT_EQ(x.getTurn().getVerdict().getReward(), x.getTurn().getTurn() == 0 ? 1 : 0.3);
    return true;
  }));
}

TEST(store, counts_the_first_of_two_equal_records_in_a_batch) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  EXPECT_THAT(*lineage.commit({make_turn(5, 0, 0, {.reward = 1}), make_turn(1, 0, 0),
                               make_turn(5, 0, 0, {.reward = 2})}),
              ElementsAre(true, true, false));
  EXPECT_EQ(reward_of(lineage, turn_id({"demo", "native/row_sum", 5, 0}, 0)), 1);
}

TEST(store, writes_nothing_of_a_batch_with_an_invalid_record) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  auto answer = lineage.commit({make_turn(0, 0, 0), Message<wire::Record>{}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().category, "invalid_record");
  auto state = lineage.commit({make_turn(0, 0, 0), make_run("demo", "dreaming")});
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().message, HasSubstr("dreaming"));
  EXPECT_EQ(lineage.record_count(), 0u);
}

TEST(store, commits_an_empty_batch) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  EXPECT_TRUE(lineage.commit({})->empty());
}

TEST(store, finds_no_unknown_turn_and_refuses_what_is_no_id) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  EXPECT_FALSE(lineage.find_turn(std::string(64, 'a'))->has_value());
  EXPECT_EQ(lineage.find_turn("g0.e0.t0").error().category, "invalid_turn_id");
}

TEST(store, grows_a_tiny_map_and_loses_nothing) {
  temporary_folder folder;
  constexpr uint32_t batches = 40, size = 16;
  {
    auto lineage = open_store(folder / "lineage", 64 << 10);
    for (uint32_t i = 0; i < batches; ++i) {
      std::vector<Message<wire::Record>> batch;
      for (uint32_t j = 0; j < size; ++j)
        batch.push_back(make_turn(i, j, 0, {.text = std::string(100 + 300 * j, 'x')}));
      auto answer = lineage.commit(batch);
      ASSERT_TRUE(answer) << render(answer.error());
      EXPECT_THAT(*answer, ::testing::Each(true));
    }
  }
  // The map of this open is smaller than the data; LMDB takes the larger of both.
  auto lineage = open_store(folder / "lineage", 64 << 10);
  EXPECT_EQ(lineage.record_count(), batches * size);
  EXPECT_EQ(names(lineage, "demo").size(), batches * size);
  EXPECT_TRUE(lineage.commit({make_turn(9999, 0, 0, {.text = std::string(1 << 20, 'y')})}));
}

TEST(store, lets_many_threads_read_while_one_commits_and_the_map_grows) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage", 64 << 10);
  ASSERT_TRUE(lineage.commit({make_turn(0, 0, 0)}));
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      size_t last = 0;
      while (!done) {
        size_t count = 0;
        auto ok = lineage.scan_run("demo", [&](wire::Record::Reader x) {
          // A read inside of a read must not wait for growth, or both would wait for ever.
          if (count++ == 0) {
            EXPECT_TRUE(*lineage.find_turn(x.getTurn().getTurnId().cStr()));
          }
          return true;
        });
        EXPECT_TRUE(ok) << (ok ? "" : render(ok.error()));
        EXPECT_GE(count, last);
        last = count;
      }
    });
  for (uint32_t i = 1; i < 200; ++i)
    EXPECT_TRUE(lineage.commit({make_turn(i, 0, 0, {.text = std::string(5000, 'z')})}));
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(names(lineage, "demo").size(), 200u);
}

TEST(store, refuses_to_be_opened_twice_in_one_process) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  auto second = store::open({.directory = folder / "lineage"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().category, "store_locked");
}

TEST(store, opens_read_only_and_never_creates) {
  temporary_folder folder;
  auto absent = store::open({.directory = folder / "none", .read_only = true});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().category, "not_found");
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
  std::filesystem::create_directories(folder / "empty");
  std::ofstream{folder / "empty/data.mdb"};
  auto empty = store::open({.directory = folder / "empty", .read_only = true});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().category, "not_found");
  EXPECT_EQ(empty.error().message,
            "failed to open the store " + (folder / "empty") + ": its data.mdb has 0 bytes");
  { ASSERT_TRUE(open_store(folder / "lineage").commit({make_turn(0, 0, 0)})); }
  auto lineage = store::open({.directory = folder / "lineage", .read_only = true});
  ASSERT_TRUE(lineage) << render(lineage.error());
  EXPECT_EQ(names(*lineage, "demo").size(), 1u);
  auto answer = lineage->commit({make_turn(0, 0, 1)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().category, "store_read_only");
}

TEST(store, is_closed_on_exec) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  int seen = 0;
  for (int fd = 0; fd < 256; ++fd) {
    char target[4096];
    auto size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
    if (size < 0) continue;
    std::string_view name{target, static_cast<size_t>(size)};
    if (name.find(folder.path()) == name.npos) continue;
    ++seen;
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC) << name;
  }
  EXPECT_GE(seen, 3);
}

TEST(store, keeps_every_value_where_it_can_be_read_in_place) {
  temporary_folder folder;
  auto lineage = open_store(folder / "lineage");
  std::vector<Message<wire::Record>> batch;
  for (uint32_t i = 0; i < 64; ++i)
    batch.push_back(make_turn(i, 0, 0, {.text = std::string(i * 97, 'a')}));
  batch.push_back(make_group(0, {1, 2, 3}));
  batch.push_back(make_run("demo", "running"));
  ASSERT_TRUE(lineage.commit(batch));
  // Text lies where LMDB keeps it: a reader that had to copy would be elsewhere on the heap.
  ASSERT_TRUE(lineage.scan_run("demo", [](wire::Record::Reader x) {
    if (!x.isTurn()) return true;
    auto text = x.getTurn().getCompletion().getText().getInline();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(text.begin()) % 8, 0u);
    return true;
  }));
}

/// Pages of files that are resident, in bytes.
uint64_t resident_file_pages() {
  std::ifstream in{"/proc/self/status"};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("RssFile:")) return std::stoull(line.substr(8)) << 10;
  return 0;
}

TEST(store, a_scan_leaves_no_pages_resident_and_reads_the_same_again) {
  constexpr uint32_t groups = 64, turns = 8;
  temporary_folder folder;
  {
    auto lineage = open_store(folder / "lineage", 256 << 20);
    for (uint32_t g = 0; g < groups; ++g) {
      std::vector<Message<wire::Record>> batch;
      for (uint32_t t = 0; t < turns; ++t)
        batch.push_back(make_turn(g, 0, t, {.text = std::string(100'000, 'a' + (g + t) % 26)}));
      ASSERT_TRUE(lineage.commit(batch));
    }
  }
  auto lineage = store::open({.directory = folder / "lineage", .read_only = true});
  ASSERT_TRUE(lineage);
  auto read = [&] {
    uint64_t sum = 0;
    auto count = [&](wire::Record::Reader x) {
      for (auto c : x.getTurn().getCompletion().getText().getInline()) sum += c;
      return true;
    };
    auto before = resident_file_pages();
    for (uint32_t g = 0; g < groups; ++g) EXPECT_TRUE(lineage->scan_group("demo", g, count));
    EXPECT_LT(resident_file_pages(), before + (32 << 20)) << "of 51 MB that were read";
    EXPECT_TRUE(lineage->scan_run("demo", count));
    EXPECT_LT(resident_file_pages(), before + (32 << 20));
    return sum;
  };
  auto first = read();
  EXPECT_GT(first, 0u);
  EXPECT_EQ(read(), first);
}

TEST(filesystem_check, knows_remote_ones_by_their_magic) {
  EXPECT_TRUE(is_remote_filesystem(0x6969));
  EXPECT_TRUE(is_remote_filesystem(0x0bd00bd0));
  EXPECT_TRUE(is_remote_filesystem(0x65735546));
  EXPECT_TRUE(is_remote_filesystem(0xffffffffff534d42)); // f_type is signed on some machines
  EXPECT_FALSE(is_remote_filesystem(0xef53));            // ext4
  EXPECT_FALSE(is_remote_filesystem(0x01021994));        // tmpfs
  EXPECT_FALSE(is_remote_filesystem(0x794c7630));        // overlayfs
}

} // namespace store_test
} // namespace kernelmill
