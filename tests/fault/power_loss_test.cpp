// The power goes after each of the calls by which a store and its artifacts reach the disk. What was
// synced is there; of the rest nothing, all, or some sectors of 512 bytes. Each time the store opens, holds
// whole commits alone, all that was acknowledged among them, once, with their artifacts, and goes on.
// KERNELMILL_COMMITS says how many commits are recorded (30 without it).

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "messages/base/digest.hpp"
#include "storage/artifacts.hpp"
#include "storage/files.hpp"
#include "storage/store.hpp"
#include "tests/fault/disk_calls.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill {
namespace {

using namespace testing;
using disk_calls::call;
using disk_calls::kind;
namespace fs = std::filesystem;

constexpr size_t sector = 512;
constexpr uint32_t turns_each = 4;

uint32_t commits_wanted() {
  auto* value = std::getenv("KERNELMILL_COMMITS");
  return value != nullptr ? static_cast<uint32_t>(std::max(1, std::atoi(value))) : 30;
}

// -- what was recorded --------------------------------------------------------------------------

std::string long_text(uint32_t number) {
  return std::string(5000, static_cast<char>('a' + number % 26)) + std::to_string(number);
}

bool has_artifact(uint32_t number) { return number % 5 == 0; }

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

// -- what a disk holds --------------------------------------------------------------------------

enum class fate { dropped, kept, torn };

class disk {
public:
  /// `unsynced` calls happen to this copy of a disk as the power goes.
  void take(const call& x) {
    switch (x.what) {
      case kind::write:
      case kind::cut: pending_[x.file].push_back(&x); break;
      case kind::sync:
        for (auto* earlier : pending_[x.file]) apply(*earlier, 0, earlier->bytes.size());
        pending_.erase(x.file);
        break;
      case kind::link:
      case kind::unlink: names_pending_.push_back(&x); break;
      case kind::sync_directory:
        std::erase_if(names_pending_, [&](auto* name) {
          bool of_it = fs::path{name->path}.parent_path() == fs::path{x.path.empty() ? "/" : x.path};
          if (of_it) rename(*name);
          return of_it;
        });
        break;
      case kind::mark: break;
    }
  }

  /// What is there once the power is back.
  disk after(fate how, std::mt19937& random) const {
    disk result = *this;
    if (how != fate::dropped) {
      auto luck = [&] { return how == fate::kept || random() % 2 == 0; };
      for (auto& [file, calls] : pending_)
        for (auto* x : calls) {
          if (x->what == kind::cut && luck()) result.apply(*x, 0, 0);
          for (size_t at = 0; at < x->bytes.size(); at += sector - (x->offset + at) % sector)
            if (luck()) result.apply(*x, at, sector - (x->offset + at) % sector);
        }
      for (auto* x : names_pending_)
        if (luck()) result.rename(*x);
    }
    return result;
  }

  bool changes_nothing() const { return pending_.empty() && names_pending_.empty(); }

  /// Nothing when there is no such name, or a folder above it has none.
  const std::string* find(const std::string& path) const {
    for (auto folder = fs::path{path}.parent_path(); folder != "/"; folder = folder.parent_path())
      if (!names_.contains(folder.string())) return nullptr;
    auto name = names_.find(path);
    if (name == names_.end()) return nullptr;
    auto content = contents_.find(name->second);
    static const std::string empty;
    return content == contents_.end() ? &empty : &content->second;
  }

private:
  void apply(const call& x, size_t from, size_t size) {
    auto& content = contents_[x.file];
    if (x.what == kind::cut) {
      content.resize(x.offset);
      return;
    }
    auto part = std::string_view{x.bytes}.substr(from, size);
    if (content.size() < x.offset + from + part.size()) content.resize(x.offset + from + part.size());
    content.replace(x.offset + from, part.size(), part);
  }

  void rename(const call& x) {
    if (x.what == kind::link)
      names_[x.path] = x.file;
    else
      names_.erase(x.path);
  }

  std::map<uint64_t, std::string> contents_; // by inode
  std::map<std::string, uint64_t> names_;
  std::map<uint64_t, std::vector<const call*>> pending_;
  std::vector<const call*> names_pending_;
};

// -- what must be true of it --------------------------------------------------------------------

struct tally {
  uint64_t images = 0, corrupt = 0, lost = 0, doubled = 0;
};

class power_loss : public ::testing::Test {
protected:
  // Memory is as good as a disk here, and a thousand times as fast.
  static std::string folder_for_images() {
    std::string pattern = fs::exists("/dev/shm") ? "/dev/shm/kernelmill-power-XXXXXX"
                                                 : fs::temp_directory_path() / "kernelmill-power-XXXXXX";
    return ::mkdtemp(pattern.data());
  }
  void SetUp() override { images_ = folder_for_images(); }
  void TearDown() override { fs::remove_all(images_); }

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

  void check_store(const disk& image, uint32_t acknowledged, bool goes_on) {
    auto folder = images_ + "/lineage";
    fs::remove_all(folder);
    fs::create_directories(folder);
    if (auto* data = image.find("/lineage/data.mdb")) std::ofstream{folder + "/data.mdb"} << *data;
    auto lineage = store::open({.directory = folder, .map_bytes = 64 << 10, .durable = false});
    EXPECT_TRUE(lineage) << render(lineage.error());
    if (!lineage) {
      ++counts_.corrupt;
      return;
    }
    auto there = turns_of(*lineage);
    auto count = static_cast<uint32_t>(there.size());
    for (uint32_t i = 0; i < count; ++i) counts_.doubled += there[i] < i;
    counts_.lost += acknowledged - std::min(count, acknowledged);
    EXPECT_GE(count, acknowledged) << "acknowledged turns are lost";
    for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(there[i], i);
    EXPECT_TRUE(count == 0 || std::binary_search(boundaries_.begin(), boundaries_.end(), count))
        << "half a commit of " << count;
    EXPECT_EQ(lineage->record_count(), count);
    if (goes_on) check_going_on(*lineage, count);
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

  void check_artifacts(const disk& image, uint32_t acknowledged) {
    for (uint32_t i = acknowledged; i-- > 0 && acknowledged - i < 64;) {
      if (!has_artifact(i)) continue;
      auto sha256 = sha256_hex(long_text(i));
      auto name = "/artifacts/" + sha256.substr(0, 2) + "/" + sha256.substr(2) + ".zst";
      auto* content = image.find(name);
      bool whole = content != nullptr && *content == *read_file(recorded_ + name);
      EXPECT_TRUE(whole) << "the artifact of turn " << i << " is lost";
      counts_.lost += !whole;
    }
  }

  void check(const disk& image, uint32_t acknowledged) {
    check_store(image, acknowledged, ++counts_.images % 16 == 0);
    check_artifacts(image, acknowledged);
  }

  std::string images_, recorded_;
  std::vector<uint32_t> boundaries_;
  tally counts_;
};

TEST_F(power_loss, after_any_call_loses_and_doubles_nothing_that_was_acknowledged) {
  auto commits = commits_wanted();
  recorded_ = images_ + "/recorded";
  fs::create_directories(recorded_);
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
  RecordProperty("commits", std::to_string(commits));
  RecordProperty("calls", std::to_string(said.calls.size()));
  RecordProperty("images", std::to_string(counts_.images));
  RecordProperty("corrupt", std::to_string(counts_.corrupt));
  RecordProperty("lost", std::to_string(counts_.lost));
  RecordProperty("doubled", std::to_string(counts_.doubled));
}

} // namespace
} // namespace kernelmill
