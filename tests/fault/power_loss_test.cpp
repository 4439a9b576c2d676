// The power goes after each of the calls by which a store and its artifacts reach the disk. What
// was synced is there; of the rest nothing, all, or some sectors of 512 bytes. Each time the store
// opens, holds whole commits alone, all that was acknowledged among them, once, with their
// artifacts, and goes on. KERNELMILL_COMMITS says how many commits are recorded (30 without it).
// Two disks with the same store are opened once; what is asked of them is asked of both.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

#include "messages/base/digest.hpp"
#include "storage/artifacts.hpp"
#include "storage/files.hpp"
#include "storage/lineage/store.hpp"
#include "tests/fault/cut_disk.hpp"
#include "tests/fault/disk_calls.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill {
namespace power_loss_test {

using namespace fixtures;
using disk_calls::call;
using disk_calls::kind;
using power_cut::disk;
using power_cut::fate;
namespace fs = std::filesystem;

constexpr uint32_t turns_each = 4;

uint32_t commits_wanted() {
  auto* value = std::getenv("KERNELMILL_COMMITS");
  return value != nullptr ? static_cast<uint32_t>(std::max(1, std::atoi(value))) : 30;
}

// -- what was recorded --------------------------------------------------------------------------

std::string long_text(uint32_t number) {
  return std::string(5000, static_cast<char>('a' + number % 26)) + std::to_string(number);
}

bool has_artifact(uint32_t number) {
  return number % 5 == 0;
}

Message<wire::Record> turn_of(uint32_t number) {
  turn_options with;
  with.run = "cut";
  with.reward = number;
  with.text = std::string(number * 37 % 3000, 'x'); // some need pages of their own
  return make_turn(number / turns_each, 0, number % turns_each, with);
}

struct recording {
  std::vector<call> calls;
  std::vector<uint32_t> boundaries; ///< turns in the store after each commit
};

recording record_commits(const std::string& folder, uint32_t commits) {
  recording result;
  disk_calls::record(folder);
  {
    auto lineage = store::open({.directory = folder + "/lineage", .map_bytes = 64 << 10});
    EXPECT_TRUE(lineage) << render(lineage.error());
    artifact_store artifacts{folder + "/artifacts"};
    std::mt19937 random{20261123};
    uint32_t next = 0;
    for (uint32_t i = 0; i < commits; ++i) {
      std::vector<Message<wire::Record>> batch;
      for (auto left = 1 + random() % 6; left > 0; --left, ++next) {
        if (has_artifact(next)) {
          auto text = long_text(next);
          EXPECT_TRUE(artifacts.put(sha256_hex(text), text));
        }
        batch.push_back(turn_of(next));
      }
      EXPECT_TRUE(lineage->commit(batch));
      result.boundaries.push_back(next);
      disk_calls::say(next);
    }
  }
  result.calls = disk_calls::stop();
  return result;
}

// -- what must be true of it --------------------------------------------------------------------

struct tally {
  uint64_t images = 0, opened = 0, corrupt = 0, lost = 0, doubled = 0;
};

class power_loss : public ::testing::Test {
protected:
  // Memory is as good as a disk here, and a thousand times as fast.
  static std::string folder_for_images() {
    std::string pattern = fs::exists("/dev/shm")
                              ? "/dev/shm/kernelmill-power-XXXXXX"
                              : fs::temp_directory_path() / "kernelmill-power-XXXXXX";
    return ::mkdtemp(pattern.data());
  }

  void SetUp() override {
    images_ = folder_for_images();
    recorded_ = images_ + "/recorded";
    store_folder_ = images_ + "/lineage";
    fs::create_directories(recorded_);
    fs::create_directories(store_folder_);
    data_ = std::make_unique<power_cut::image_file>(store_folder_ + "/data.mdb");
  }
  void TearDown() override {
    data_.reset();
    fs::remove_all(images_);
  }

  // The numbers of the turns that are there, in order; each is read and checked.
  std::vector<uint32_t> turns_of(const store& from) {
    std::vector<uint32_t> result;
    auto ok = from.scan_run("cut", [&](wire::Record::Reader record) {
      result.push_back(static_cast<uint32_t>(record.getTurn().getVerdict().getReward()));
      return true;
    });
    EXPECT_TRUE(ok) << render(ok.error());
    if (!ok) ++counts_.corrupt;
    return result;
  }

  // How many turns the store holds that the data file of an image makes.
  std::optional<uint32_t> open_and_count(const power_cut::content* data) {
    EXPECT_TRUE(data_->hold(data)) << "the image is not what it should be";
    for (auto* name : {"/lock.mdb", "/writer.lock"}) fs::remove(store_folder_ + name);
    bool goes_on = ++counts_.opened % 16 == 0;
    disk_calls::record(store_folder_);
    std::optional<uint32_t> count;
    {
      auto lineage =
          store::open({.directory = store_folder_, .map_bytes = 64 << 10, .durable = false});
      EXPECT_TRUE(lineage) << render(lineage.error());
      if (lineage) {
        count = look_through(*lineage);
        if (goes_on) check_going_on(*lineage, *count);
      } else {
        ++counts_.corrupt;
      }
    }
    data_->note(disk_calls::stop());
    return count;
  }

  uint32_t look_through(const store& lineage) {
    auto there = turns_of(lineage);
    auto count = static_cast<uint32_t>(there.size());
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; ++i) {
      counts_.doubled += there[i] < i;
      wrong += there[i] != i;
    }
    EXPECT_EQ(wrong, 0u) << "turns are not where they were written";
    EXPECT_TRUE(count == 0 || std::binary_search(boundaries_.begin(), boundaries_.end(), count))
        << "half a commit of " << count;
    EXPECT_EQ(lineage.record_count(), count);
    return count;
  }

  void check_store(const disk& image, uint32_t acknowledged) {
    auto* data = image.find("/lineage/data.mdb");
    auto [known, fresh] = turns_in_.try_emplace(data != nullptr ? data->print() : UINT64_MAX);
    if (fresh) known->second = open_and_count(data);
    auto count = known->second;
    if (!count) return;
    counts_.lost += acknowledged - std::min(*count, acknowledged);
    EXPECT_GE(*count, acknowledged) << "acknowledged turns are lost";
  }

  void check_going_on(store& lineage, uint32_t count) {
    std::vector<Message<wire::Record>> batch{turn_of(count), turn_of(count + 1)};
    if (count > 0) batch.push_back(turn_of(count - 1));
    auto answer = lineage.commit(batch);
    ASSERT_TRUE(answer) << render(answer.error());
    EXPECT_TRUE((*answer)[0] && (*answer)[1]);
    if (count > 0) {
      EXPECT_FALSE((*answer)[2]) << "counted twice";
    }
    EXPECT_EQ(turns_of(lineage).size(), count + 2);
  }

  struct artifact_file {
    std::string name, bytes;
  };

  // As it was written; the same for every image.
  const artifact_file& artifact_of(uint32_t turn) {
    auto& x = artifacts_[turn];
    if (x.name.empty()) {
      auto sha256 = sha256_hex(long_text(turn));
      x.name = "/artifacts/" + sha256.substr(0, 2) + "/" + sha256.substr(2) + ".zst";
      x.bytes = read_file(recorded_ + x.name).value_or("");
      EXPECT_FALSE(x.bytes.empty()) << x.name << " was never written";
    }
    return x;
  }

  void check_artifacts(const disk& image, uint32_t acknowledged) {
    for (uint32_t i = acknowledged; i-- > 0 && acknowledged - i < 64;) {
      if (!has_artifact(i)) continue;
      const auto& written = artifact_of(i);
      auto* content = image.find(written.name);
      bool whole = content != nullptr && content->text() == written.bytes;
      EXPECT_TRUE(whole) << "the artifact of turn " << i << " is lost";
      counts_.lost += !whole;
    }
  }

  void check(const disk& image, uint32_t acknowledged) {
    ++counts_.images;
    check_store(image, acknowledged);
    check_artifacts(image, acknowledged);
  }

  std::string images_, recorded_, store_folder_;
  std::vector<uint32_t> boundaries_;
  std::unique_ptr<power_cut::image_file> data_;
  std::unordered_map<uint64_t, std::optional<uint32_t>> turns_in_; // by the data file's print
  std::unordered_map<uint32_t, artifact_file> artifacts_;          // by turn
  tally counts_;
};

TEST_F(power_loss, after_any_call_loses_and_doubles_nothing_that_was_acknowledged) {
  auto commits = commits_wanted();
  auto said = record_commits(recorded_, commits);
  boundaries_ = said.boundaries;
  std::mt19937 random{17};
  disk now;
  uint32_t acknowledged = 0;
  bool fresh = true; // since the last image of what was synced alone
  for (size_t i = 0; i <= said.calls.size(); ++i) {
    SCOPED_TRACE("after call " + std::to_string(i) + " of " + std::to_string(said.calls.size()));
    if (fresh) check(now.after(fate::dropped, random), acknowledged);
    fresh = false;
    if (!now.changes_nothing()) {
      check(now.after(fate::kept, random), acknowledged);
      for (int again = 0; again < 2; ++again) check(now.after(fate::torn, random), acknowledged);
    }
    if (HasFailure()) break;
    if (i == said.calls.size()) break;
    const auto& next = said.calls[i];
    now.take(next);
    if (next.what == kind::mark) acknowledged = static_cast<uint32_t>(next.mark);
    fresh = next.what == kind::mark || next.what == kind::sync || next.what == kind::sync_directory;
  }
  EXPECT_GE(said.calls.size(), 4 * commits);
  std::printf("  %u commits of %u turns, %zu calls, %llu images, %llu stores opened\n", commits,
              acknowledged, said.calls.size(), static_cast<unsigned long long>(counts_.images),
              static_cast<unsigned long long>(counts_.opened));
  RecordProperty("commits", std::to_string(commits));
  RecordProperty("calls", std::to_string(said.calls.size()));
  RecordProperty("images", std::to_string(counts_.images));
  RecordProperty("opened", std::to_string(counts_.opened));
  RecordProperty("corrupt", std::to_string(counts_.corrupt));
  RecordProperty("lost", std::to_string(counts_.lost));
  RecordProperty("doubled", std::to_string(counts_.doubled));
}

} // namespace power_loss_test
} // namespace kernelmill
