#pragma once

// What everything in a simulated cluster shares: one actor system on virtual time, the faults that
// are on now, a clock that calls back, and marks on paths that are rarely taken.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include "actors/worker_thread.hpp"
#include "messages/actors.hpp"
#include "tests/sim/cluster/disk.hpp"
#include "tests/sim/cluster/faults.hpp"

namespace kernelmill::sim {

using std::chrono::milliseconds;

class machine {
public:
  machine(uint64_t seed, defect broken);
  ~machine();

  caf::actor_system& system() { return system_; }
  std::mt19937_64& random() { return random_; }
  uint32_t upto(uint32_t most) { return static_cast<uint32_t>(random_() % most); }
  bool is(defect x) const { return broken_ == x; }

  /// Seconds of virtual time since the beginning.
  double now() const;

  /// Calls `f` when so much virtual time has passed.
  void after(std::chrono::microseconds delay, std::function<void()> f);

  /// Runs one actor, chosen by the seed among those that have work; lets time pass when none has.
  /// False: nothing is left to happen.
  bool step();
  uint64_t steps() const { return steps_; }
  uint64_t trace_hash() const { return trace_hash_; }
  void jump(milliseconds x) { scheduler_.clock().current_time += x; }

  /// A fault of this kind is on at `where`; begin() and end() count.
  bool on(fault_kind kind, uint32_t where) const;
  /// `amount` of the latest such fault.
  uint32_t amount(fault_kind kind, uint32_t where) const;
  void begin(const fault& x);
  void end(const fault& x);

  /// Notes that a rare path was taken.
  void mark(const char* what) { ++marks_[what]; }
  const std::map<std::string, uint64_t>& marks() const { return marks_; }

  /// SHA-256 of candidates that a policy server gave to who had not asked for them.
  std::set<std::string> lies;
  /// The conversation that asked before this one, of those that have asked.
  const std::string& other_session(const std::string& mine);

  /// Ends with the machine.
  template <class Handle>
  Handle keep(Handle x) {
    all_.push_back(caf::actor_cast<caf::actor_addr>(x));
    return x;
  }

  /// An actor that does what it is given: others' requests are asked for by one of these.
  worker_thread_actor spawn_porter();
  static void lend(const worker_thread_actor& to, std::function<void()> f);

private:
  std::mt19937_64 random_;
  defect broken_;
  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  caf::actor_clock::time_point epoch_;
  worker_thread_actor timer_;
  std::vector<caf::actor_addr> all_;
  std::map<std::pair<fault_kind, uint32_t>, std::vector<uint32_t>> on_;
  std::map<std::string, uint64_t> marks_;
  std::string session_before_, session_now_;
  uint64_t steps_ = 0, trace_hash_ = 0;
};

} // namespace kernelmill::sim
