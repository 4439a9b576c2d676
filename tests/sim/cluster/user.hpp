#pragma once

// The user of a simulated cluster: submits runs, resumes what has stopped and attaches policy
// servers, by the commands that people have. Ends with the head, and meets the next one.

#include <nlohmann/json_fwd.hpp>

#include "actors/head/head.hpp"
#include "tests/sim/cluster/runs.hpp"

namespace kernelmill::sim {

inline constexpr uint32_t server_count = 3;
inline constexpr const char* run_names[] = {"first", "second"};

std::string server_name(uint32_t i);

class sim_user {
public:
  sim_user(machine& on, std::shared_ptr<sim_runs> runs) : on_(on), runs_(std::move(runs)) {
    // nop
  }

  /// Speaks to this head from now on, for as long as `alive` holds.
  void meet(head_actor head, std::shared_ptr<bool> alive);
  void kill();

  /// Calls `f(self, head)`, where `self` is an actor that may ask the head; never, if it dies
  /// first.
  template <class F>
  void asks(F f) {
    if (!*alive_) return;
    machine::lend(actor_, [this, alive = alive_, f] {
      if (*alive) f(self_, head_);
    });
  }

  /// `then` hears the answer of a command that the head has carried out.
  void command(const std::string& verb, const std::string& subject);
  void command(const std::string& verb, const std::string& subject,
               const nlohmann::ordered_json& document,
               std::function<void(const nlohmann::ordered_json&)> then);

  /// Goes on with runs that have stopped, and attaches servers that are not there.
  void look();

  bool has_all() const { return finished_.size() == std::size(run_names); }
  /// Runs that have finished, and how many turns the head told of.
  const std::map<std::string, uint64_t>& finished() const { return finished_; }

private:
  void care_for_runs(const nlohmann::ordered_json& rows);
  void care_for_servers(const nlohmann::ordered_json& rows);

  machine& on_;
  std::shared_ptr<sim_runs> runs_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(false);
  head_actor head_;
  worker_thread_actor actor_;
  worker_thread_actor::pointer self_ = nullptr;
  std::map<std::string, uint64_t> finished_;
};

} // namespace kernelmill::sim
