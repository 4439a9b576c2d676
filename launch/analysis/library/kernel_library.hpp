#pragma once

// The library of kernels: the best verified kernel of each task, device, shape and baseline over
// runs. The page, `kernelmill kernels`, `GET /v1/kernels` and evaluation.baseline=best choose it
// here alone.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/analysis/report/speedups.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::library {

/// One verified kernel: accepted, timed, of a run that this program judged.
struct kernel {
  std::string task, operator_family, backend, contract;
  std::string language; ///< "cpp", "cuda", "hip" or "python"
  std::string device;   ///< as the referee named it: "NVIDIA H200", "AMD EPYC, 2 cores"
  std::string shape;    ///< that was timed: "rows=128 cols=1024"; types stand in it where they vary
  std::string baseline; ///< what the speedup is over: "eager" is the task's own
  std::string clock;    ///< "device" or "outside"
  reporting::measured_speedup speedup; ///< 95 % interval
  uint32_t samples = 0;                ///< timed and checked calls behind it
  double candidate_ms = 0, reference_ms = 0;

  std::string run, path;     ///< the run's name, and its folder
  std::string turn, turn_id; ///< "g3.e1.t2"
  std::string model, candidate_sha256;
  double committed_at = 0; ///< seconds since 1970

  std::string toolchain; ///< that built it
  std::string program;   ///< Kernelmill's version that judged it; may be empty
  std::string driver;    ///< of the GPU; empty: a CPU, or not known
  std::map<std::string, std::string>
      versions;                ///< "compiler", "nvcc", "torch": those that are known
  std::string task_digest;     ///< of the task's files, then
  std::string source, licence; ///< of the task; empty: not known

  uint64_t among = 1; ///< how many kernels of the same key were accepted and timed

  /// The time of a call at the lower bound of the speedup, in ms: comparable between baselines.
  double assured_ms() const { return reference_ms / speedup.low; }

  /// "runs/first/g0.e0.t3": what commands take.
  std::string place() const { return path + "/" + turn; }
};

/// Which turns count. What is empty accepts all.
struct choice {
  std::string task;
  std::string operator_family; ///< "reduction"
  std::string device;          ///< a part of the device's name, in any case: "h200"
  /// Asked last, of a turn that would be the best: false passes it over.
  std::function<bool(wire::TurnRecord::Reader)> accept;
};

/// Thread safety: none.
class kernels {
public:
  explicit kernels(choice which = {}) : which_(std::move(which)) {}

  /// Reads all turns of a run. Of imported runs nothing counts: another system judged them. The
  /// first turns of a fork count in the run that they are of. Errors: those of the store and of
  /// the manifest.
  expected<void> add(const run_directory& run, const store& from);

  /// By task, device, shape and baseline: of each the highest lower bound of the speedup, of equal
  /// ones the first.
  std::vector<kernel> best() const;

  /// The one with the least assured time of a task, on devices whose name begins with `device`;
  /// null: there is none.
  const kernel* fastest(const std::string& task, const std::string& device) const;

private:
  using key = std::tuple<std::string, std::string, std::string, std::string>;

  choice which_;
  std::map<key, kernel> best_;
};

struct unread_run {
  std::string run, why;
};

struct library_view {
  std::vector<kernel> all;
  std::vector<unread_run> unreadable;
};

using store_opener =
    std::function<expected<std::shared_ptr<const store>>(const run_directory& run)>;

/// All runs below a folder; those that cannot be read are named.
library_view read_library(const std::string& root, const store_opener& open, choice which = {});

/// What a turn's record and its run's manifest say of its kernel, verified or not; `among` is 1.
kernel describe(wire::TurnRecord::Reader turn, const run_directory& run,
                const nlohmann::ordered_json& manifest);

/// As documents have it. `stale` is added by those that know this machine.
nlohmann::ordered_json to_json(const kernel& x);

} // namespace kernelmill::library
