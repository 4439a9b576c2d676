// Deliveries of turns come twice: in one batch, in a later one, from two threads at the same time,
// and again after the store was closed. Each turn is new once, stored once, and has one line in the
// journal. KERNELMILL_TURNS says how many turns (20,000 without it).

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>
#include <thread>
#include <unordered_map>

#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "storage/journal/run_journal.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill {
namespace exactly_once_test {

using namespace fixtures;

constexpr uint32_t members = 8, turns_each = 4, senders = 4;
constexpr unsigned doubled_percent = 10;

uint32_t turns_wanted() {
  auto* value = std::getenv("KERNELMILL_TURNS");
  return value != nullptr ? static_cast<uint32_t>(std::strtoul(value, nullptr, 10)) : 20'000;
}

Message<wire::Record> turn_of(uint32_t number) {
  auto group = number / (members * turns_each);
  auto member = number / turns_each % members;
  return make_turn(group, member, number % turns_each, {.run = "once", .reward = double(number)});
}

struct tally {
  std::atomic<uint64_t> sent{0}, fresh{0}, doubled{0};
};

/// One thread's deliveries: its share of the turns, some of them twice, and some of other shares.
class sender {
public:
  sender(store& to, uint32_t seed, uint32_t turns, tally& counts)
      : to_(to), random_(seed), seed_(seed), turns_(turns), counts_(counts) {
    // nop
  }

  void deliver_all() {
    for (uint32_t next = seed_; next < turns_; next += senders) {
      add(next);
      if (random_() % 100 < doubled_percent) {
        ++counts_.doubled;
        // Itself again, one of long ago, or one that another thread delivers at about this time.
        uint32_t ways[] = {next, static_cast<uint32_t>(random_() % (next + 1)),
                           std::min(turns_ - 1, next + 1)};
        add(ways[random_() % 3]);
      }
      if (batch_.size() >= 1 + random_() % 64) flush();
    }
    flush();
  }

private:
  void add(uint32_t number) { batch_.push_back(turn_of(number)); }

  void flush() {
    if (batch_.empty()) return;
    auto answer = to_.commit(batch_);
    ASSERT_TRUE(answer) << render(answer.error());
    counts_.sent += batch_.size();
    counts_.fresh += static_cast<uint64_t>(std::count(answer->begin(), answer->end(), true));
    batch_.clear();
  }

  store& to_;
  std::mt19937 random_;
  uint32_t seed_, turns_;
  tally& counts_;
  std::vector<Message<wire::Record>> batch_;
};

// The process that commits writes the journal; one that was killed wrote half of it.
void keep_journal(const run_directory& run, const store& from, uint32_t turns) {
  artifact_store artifacts{run.artifacts};
  auto journal = run_journal::open(run);
  ASSERT_TRUE(journal);
  for (uint32_t i = 0; i < turns; i += 2) {
    auto record = turn_of(i);
    ASSERT_TRUE(journal->follow(from, artifacts, *record.open()));
  }
  ASSERT_TRUE(journal->catch_up(from, artifacts, "once"));
  ASSERT_TRUE(journal->catch_up(from, artifacts, "once"));
}

uint64_t distinct_lines(const std::string& path, uint64_t& lines) {
  std::unordered_map<std::string, int> seen;
  std::ifstream in{path};
  for (std::string line; std::getline(in, line); ++lines)
    ++seen[nlohmann::json::parse(line)["turn_id"].get<std::string>()];
  return seen.size();
}

TEST(exactly_once, each_turn_is_new_once_stored_once_and_told_once) {
  auto turns = turns_wanted();
  temporary_folder folder;
  auto run = create_run({folder / "once", "once", ""}, nlohmann::ordered_json::object(), {});
  ASSERT_TRUE(run);
  tally counts;
  std::optional<store> lineage;
  auto open = [&] {
    lineage.reset();
    auto made = store::open({.directory = run->store, .map_bytes = 1 << 20, .durable = false});
    ASSERT_TRUE(made) << render(made.error());
    lineage.emplace(std::move(*made));
  };
  open();
  {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < senders; ++i)
      threads.emplace_back([&, i] { sender{*lineage, i, turns, counts}.deliver_all(); });
    for (auto& x : threads) x.join();
  }
  // A process that resumes offers its last turns again.
  open();
  sender{*lineage, 0, turns, counts}.deliver_all();

  std::vector<uint8_t> seen(turns, 0);
  uint64_t stored = 0, wrong = 0;
  auto ok = lineage->scan_run("once", [&](wire::Record::Reader record) {
    auto turn = record.getTurn();
    auto number = static_cast<size_t>(turn.getVerdict().getReward());
    auto at = static_cast<uint32_t>(number);
    episode_id episode{"once", "native/row_sum", at / (members * turns_each),
                       at / turns_each % members};
    if (number >= turns || turn.getTurnId() != turn_id(episode, at % turns_each))
      ++wrong;
    else
      ++seen[number];
    ++stored;
    return true;
  });
  ASSERT_TRUE(ok) << render(ok.error());
  auto missing = std::count(seen.begin(), seen.end(), 0);
  auto doubles = turns - static_cast<uint64_t>(missing) -
                 static_cast<uint64_t>(std::count(seen.begin(), seen.end(), 1));
  EXPECT_EQ(counts.fresh, turns);
  EXPECT_EQ(stored, turns);
  EXPECT_EQ(lineage->record_count(), turns);
  EXPECT_EQ(missing, 0);
  EXPECT_EQ(doubles, 0u);
  EXPECT_EQ(wrong, 0u);

  keep_journal(*run, *lineage, turns);
  for (const auto& path : {run->traces_file(), run->metrics_file()}) {
    uint64_t lines = 0;
    EXPECT_EQ(distinct_lines(path, lines), turns) << path;
    EXPECT_EQ(lines, turns) << path;
  }
  RecordProperty("turns", std::to_string(turns));
  RecordProperty("delivered", std::to_string(counts.sent));
  RecordProperty("injected", std::to_string(counts.doubled));
  RecordProperty("missing", std::to_string(missing));
  RecordProperty("doubles", std::to_string(doubles));
}

} // namespace exactly_once_test
} // namespace kernelmill
