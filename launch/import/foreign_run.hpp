#pragma once

// What other systems recorded, as a run of ours that says so. Its rewards and speedups are what its
// origin said of itself: nothing here measured them, so no turn has a timing, every verdict has the
// finding "imported", and every episode is `unusable` until a user decides otherwise.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

struct foreign_gate {
  std::string name;   ///< ours: "build", "correctness", ...
  std::string status; ///< "pass", "fail", "not_run" or "blocked"
};

struct foreign_turn {
  uint32_t number = 0;
  std::string task, verb, operator_family, backend, contract, model;
  std::vector<std::pair<std::string, std::string>> prompt; ///< role and content
  std::string answer, code, feedback;
  bool format_ok = true, compiled = false, correct = false, cheated = false;
  uint32_t cases_passed = 0, cases_total = 0;
  std::string error_text;
  std::optional<double> reward, speedup;
  std::vector<std::pair<std::string, double>> components;
  std::vector<foreign_gate> gates;
  std::string toolchain;                ///< "triton 3.0.0"; empty: it does not say
  uint32_t max_turns = 0, examples = 0; ///< of the episode, and that its prompt showed
  std::optional<double> runtime_ms, baseline_ms, eval_seconds;
  std::string stop; ///< why the episode ended here; empty: it does not say
  double at = 0;    ///< seconds since 1970; 0: it does not say
};

struct foreign_episode {
  std::vector<foreign_turn> turns;
};

struct foreign_group {
  std::string task;
  std::vector<foreign_episode> episodes;
};

struct foreign_origin {
  std::string system; ///< "kernel_rl" or "gpu_rl"
  std::string file;   ///< its name, without the folders above it
  std::string sha256; ///< of what was read
  std::string source; ///< of configs/licences: the source of all of it, as the importing user says
  nlohmann::ordered_json settings; ///< what it says of itself as a whole, for the manifest
};

struct foreign_counts {
  uint64_t groups = 0, episodes = 0, turns = 0, accepted = 0;
};

/// Lays the run out in `directory` and commits all of it. Errors: those of create_run, of the store
/// and of the disk.
expected<foreign_counts> write_foreign_run(const std::string& directory,
                                           const foreign_origin& origin,
                                           const std::vector<foreign_group>& groups);

} // namespace kernelmill
