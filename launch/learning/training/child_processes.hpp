#pragma once

// Child processes of a training: the policy's server and the trainer. Each is restarted when it
// ends, and ends with this process, however this process ends.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gpu/process/process.hpp"
#include "messages/error.hpp"

namespace kernelmill::training {

/// A command with {weights}, {version} and {dir} in its words.
struct child_command {
  std::string name; ///< "policy"; its log is NAME.log of the folder
  std::vector<std::string> command;
};

/// A command that can be started: its first word as a path, the environment of this process.
/// Errors: "not_found".
expected<process_spec> spec_of(const std::vector<std::string>& command,
                               const std::map<std::string, std::string>& words,
                               const std::string& directory);

/// Thread safety: any thread.
class child_processes {
public:
  /// `log_folder` is there; commands start in `directory`.
  child_processes(std::shared_ptr<spawner> processes, std::string directory,
                  std::string log_folder);
  ~child_processes();

  /// What {weights} and others stand for from the next start on.
  void set(const std::string& word, const std::string& value);

  expected<void> add(child_command x);

  /// Ends a process; it is started again at once.
  void restart(const std::string& name);

  /// Why a process does not stay up. Errors: "part_ended" (configuration).
  expected<void> check() const;

  /// Runs a command once and waits for its end. `go_on` is asked again and again; its error ends
  /// the command. Errors: "part_ended" (with another code than 0), "part_killed" (by a signal).
  template <class GoOn>
  expected<void> run_once(const child_command& x, const std::string& last_word, GoOn go_on);

private:
  struct running {
    child_command what;
    child process;
    uint32_t quick_ends = 0;
    std::chrono::steady_clock::time_point started;
  };
  expected<child> start(const child_command& x, const std::string& last_word);
  void watch(const std::stop_token& stop);

  std::shared_ptr<spawner> processes_;
  std::string directory_, log_folder_;
  mutable std::mutex mutex_; ///< of what follows
  std::map<std::string, std::string> words_;
  std::vector<running> running_;
  std::optional<error> trouble_;
  std::jthread watcher_;
};

error ended_child(const std::string& name, const exit_status& how, const std::string& log);

template <class GoOn>
expected<void> child_processes::run_once(const child_command& x, const std::string& last_word,
                                         GoOn go_on) {
  constexpr int look_ms = 200;
  auto process = start(x, last_word);
  KM_TRY(process);
  while (true) {
    auto ended = process->wait(look_ms);
    if (ended && ended->code == 0) return {};
    if (ended) return tl::unexpected<error>{ended_child(x.name, *ended, log_folder_)};
    if (ended.error().category != "timeout") return tl::unexpected<error>{ended.error()};
    KM_TRY(go_on());
  }
}

} // namespace kernelmill::training
