#pragma once

// What `kernelmill train` is told: one JSON file, on top of a preset. docs/reference/training.md
// has every key.

#include <cstdint>
#include <string>
#include <vector>

#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::training {

/// What holds from a step on: other tasks, other weights of the reward.
struct stage {
  uint64_t from = 0;     ///< the latest step that it begins with
  double at_correct = 0; ///< it begins once so many answers of the stage before were right; 0: not
  std::vector<std::string> tasks;                ///< of tasks.train, as ids and globs; empty: all
  std::vector<std::string> difficulties;         ///< empty: all
  std::vector<std::string> levels;               ///< of a suite, "1"; empty: all
  nlohmann::json run = nlohmann::json::object(); ///< on top of the configuration's `run`
};

struct train_config {
  std::string file;      ///< that said it, absolute
  std::string dir;       ///< everything of this training, absolute
  std::string directory; ///< of the file: commands start there
  std::string backend = "auto";
  uint64_t seed = 1, steps = 0;

  std::string tasks_root; ///< absolute; empty: the installation's and the user's
  std::vector<std::string> train, held_out;
  std::vector<std::string> texts; ///< files that the policy was pretrained on

  uint64_t groups = 4, group_size = 8; ///< of a batch
  uint64_t rounds = 0;                 ///< most times that groups without variance are replaced
  double least_deviation = 0.0;        ///< of the returns of a group that teaches
  double thinking = 0;                 ///< added to the return of a turn that thought
  bool ahead = false;                  ///< the next batch is made while one is learned from

  uint64_t evaluate_every = 0; ///< steps; 0: never
  uint64_t samples = 8;        ///< of each held-out task
  std::vector<double> fast = {1, 1.5, 2, 4};
  std::vector<uint64_t> pass = {1};

  std::string initial, initial_version = "initial"; ///< weights before the first step
  std::vector<std::string> policy_command;          ///< kept running; empty: the server is not ours
  std::vector<std::string> trainer_command; ///< kept running with a URL, else run for each step
  std::string trainer_url;
  uint64_t trainer_timeout_s = 3600, keep = 3;
  nlohmann::json settings = nlohmann::json::object(); ///< handed to the trainer as they are

  std::vector<stage> stages;
  nlohmann::json run = nlohmann::json::object(); ///< sections of a run's configuration

  uint64_t max_turns() const;
};

/// Reads and checks the file; names in it are relative to its folder. `seed_and_dir`: "seed=3",
/// "dir=x", "steps=9" of the command line. Errors name file, line and key: those of files,
/// "config_unknown_key", "config_wrong_type", "config_invalid_value", "config_inconsistent".
expected<train_config> read_train_config(const std::string& path,
                                         const std::vector<std::string>& overrides = {});

/// "kevin", "raicl", ...
std::vector<std::string> training_presets();

} // namespace kernelmill::training
