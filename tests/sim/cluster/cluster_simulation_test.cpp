// A head, nodes, policy servers, runs and their user under drawn faults, seed by seed. A failing
// seed is printed with the fewest faults that still break a promise; replay it with
// KERNELMILL_SIM_SEED=N build/tests/cluster_simulation_test. KERNELMILL_SIM_SEEDS=10000 is a
// night's.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/sim/cluster/oracles.hpp"

namespace kernelmill::sim {
namespace cluster_simulation_test {

constexpr uint64_t seeds_in_ci = 1000;
// The rarest, forgotten_record, shows in one life in about 170 (9 of seeds 0 to 1499): two records
// have to reach the writer at one virtual moment. A timer's interval moves all of them, and of 300
// seeds one time in six none would show it; of these, one time in 400.
constexpr uint64_t seeds_for_a_defect = 1000;
constexpr size_t few_faults = 4;

uint64_t number_of(const char* variable, uint64_t otherwise) {
  auto* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// A folder for parcels, empty for each life.
class cluster_simulation : public testing::Test {
protected:
  void SetUp() override {
    // The head syncs its list of servers; a disk would cost more than all the rest.
    std::filesystem::path memory = "/dev/shm";
    auto top =
        ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    auto pattern = (top / "km_sim_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    auto* source = std::getenv("KERNELMILL_SOURCE_DIR");
    task_ = std::string{source != nullptr ? source : "."} + "/configs/tasks/native/row_sum";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  life lived(uint64_t seed, const std::vector<fault>& faults, defect broken = defect::none) {
    auto place = folder_ + "/" + std::to_string(lives_++);
    auto result = live(seed, faults, broken, place, task_, calm_bound);
    std::filesystem::remove_all(place);
    return result;
  }

  const truth& calm() {
    if (calm_.turns.empty()) calm_ = truth_of(lived(0, {}));
    return calm_;
  }

  std::vector<fault> smallest(uint64_t seed, defect broken) {
    return shrunk(draw_faults(seed), [&](const std::vector<fault>& fewer) {
      return !broken_promises(lived(seed, fewer, broken), calm()).empty();
    });
  }

  static void print(const std::vector<fault>& faults) {
    if (faults.empty()) std::printf("    without any fault\n");
    for (size_t i = 0; i < faults.size(); ++i)
      std::printf("    %s\n", text_of(i, faults[i]).c_str());
  }

private:
  std::string folder_, task_;
  uint64_t lives_ = 0;
  truth calm_;
};

// Paths that are rarely taken, and that these seeds must reach.
constexpr const char* rare_paths[] = {
    "a half-open connection is given up by the side that is deaf",
    "a head takes up the runs of the one before",
    "a job is given out again",
    "a message waits for a cut to end",
    "a node ends while it is connected",
    "a node's files are torn by a power cut",
    "a node's name is still taken",
    "a paused run goes on",
    "a policy server answers what was not asked",
    "a policy server is attached",
    "a policy server takes a request and never answers",
    "a record was there already",
    "a run that failed is resumed",
    "a worker dies with its job",
    "a worker takes a job and never answers",
    "parcel_missing",
    "the head dies after a write",
    "the head dies before a write",
    "the head dies with a commit on its way",
    "the head is started again",
    "the head's files are torn by a power cut",
    "worker_lost",
};

TEST_F(cluster_simulation, EverySeedKeepsEveryPromise) {
  auto one = number_of("KERNELMILL_SIM_SEED", UINT64_MAX);
  auto first = one == UINT64_MAX ? 0 : one;
  auto count = one == UINT64_MAX ? number_of("KERNELMILL_SIM_SEEDS", seeds_in_ci) : 1;
  std::map<std::string, uint64_t> marks;
  uint64_t steps = 0, faults = 0;
  uint32_t overtaken = 0;
  double hours = 0, latest = 0;
  for (auto seed = first; seed < first + count; ++seed) {
    auto drawn = draw_faults(seed);
    auto x = lived(seed, drawn);
    for (auto& [what, times] : x.marks) marks[what] += times;
    steps += x.steps;
    faults += drawn.size();
    hours += x.seconds / 3600;
    latest = std::max(latest, x.seconds - x.faults_end);
    overtaken = std::max(overtaken, x.overtaken);
    auto broken = broken_promises(x, calm());
    if (broken.empty()) continue;
    std::printf("  seed %llu breaks promises with these faults:\n",
                static_cast<unsigned long long>(seed));
    print(smallest(seed, defect::none));
    for (auto& what : broken) ADD_FAILURE() << "seed " << seed << ": " << what;
    FAIL() << "replay with KERNELMILL_SIM_SEED=" << seed;
  }
  std::printf("  %llu seeds, %llu faults, %llu steps, %.0f virtual hours; at most %.0f s from the "
              "last fault to the end, and %u jobs that overtook one\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(faults),
              static_cast<unsigned long long>(steps), hours, latest, overtaken);
  for (auto& [what, times] : marks)
    std::printf("  %8llu  %s\n", static_cast<unsigned long long>(times), what.c_str());
  if (count < seeds_in_ci) return;
  for (auto what : rare_paths) EXPECT_GT(marks[what], 0u) << "no seed has reached: " << what;
  for (unsigned i = 0; i < fault_kinds; ++i)
    EXPECT_GT(marks[to_string(static_cast<fault_kind>(i))], 0u);
}

TEST_F(cluster_simulation, TheSameSeedTakesTheSameStepsAtTheSameTimes) {
  for (uint64_t seed : {3u, 17u, 255u}) {
    auto one = lived(seed, draw_faults(seed)), two = lived(seed, draw_faults(seed));
    EXPECT_EQ(one.steps, two.steps);
    EXPECT_EQ(one.trace_hash, two.trace_hash);
    EXPECT_NE(one.trace_hash, lived(seed + 1, draw_faults(seed + 1)).trace_hash);
  }
}

// How we know that the promises above are looked at: each defect is found, and is shown with few
// faults.
TEST_F(cluster_simulation, EveryBuiltInDefectIsFound) {
  for (unsigned i = 1; i < defects; ++i) {
    auto broken = static_cast<defect>(i);
    std::vector<std::string> found;
    std::vector<fault> fewest;
    uint64_t by = 0;
    // A defect that needs two records at one moment may need many faults in one seed, and few in
    // the next that shows it.
    for (uint64_t seed = 0; seed < seeds_for_a_defect; ++seed) {
      auto seen = broken_promises(lived(seed, draw_faults(seed), broken), calm());
      if (seen.empty()) continue;
      auto shown_by = smallest(seed, broken);
      if (found.empty() || shown_by.size() < fewest.size()) {
        found = std::move(seen);
        fewest = std::move(shown_by);
        by = seed;
      }
      if (fewest.size() <= few_faults) break;
    }
    ASSERT_FALSE(found.empty()) << to_string(broken) << " is not found";
    std::printf("  %s is found by seed %llu: %s\n", to_string(broken),
                static_cast<unsigned long long>(by), found.front().c_str());
    print(fewest);
    EXPECT_LE(fewest.size(), few_faults) << to_string(broken);
  }
}

TEST(Shrunk, KeepsOnlyWhatIsNeeded) {
  auto all = draw_faults(2);
  while (all.size() < 12) all.push_back(fault{fault_kind::cut, 1000, 9000, 1, 0});
  all[3].kind = fault_kind::disk_full;
  all[9].kind = fault_kind::head_killed;
  auto needs = [](const std::vector<fault>& x) {
    bool full = false, killed = false;
    for (auto& one : x) {
      full = full || one.kind == fault_kind::disk_full;
      killed = killed || one.kind == fault_kind::head_killed;
    }
    return full && killed;
  };
  auto few = shrunk(all, needs);
  ASSERT_EQ(few.size(), 2u);
  EXPECT_LE(few[0].for_ms, 200u);
}

} // namespace cluster_simulation_test
} // namespace kernelmill::sim
