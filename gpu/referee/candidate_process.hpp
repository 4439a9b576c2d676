#pragma once

// The referee's end of one sandboxed candidate process: start it ahead of need, hand it buffers
// and a library, run commands against the clock out here, and say how it ended when it did.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sched.h>

#include "gpu/candidate/protocol.hpp"
#include "gpu/process/awake_time.hpp"
#include "gpu/process/standstill.hpp"
#include "gpu/referee/buffers.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

struct candidate_options {
  std::string program;   ///< path of kernelmill-candidate
  std::vector<int> cpus; ///< affinity; empty: all
  unsigned threads = 1;  ///< OpenMP threads
  std::string gpu_node;  ///< "/dev/nvidia0", "/dev/dri/renderD128"; empty: a CPU slot
  std::string driver;    ///< path of the driver's library
};

/// The driver's device nodes that a process on one GPU needs, of those that are there.
std::vector<std::string> gpu_device_nodes(const std::string& gpu_node);

/// The environment that keeps a GPU's contexts small: one with its usual eight queues takes twice
/// as long to make and to tear down, and nothing limits a GPU slot more (H200, four at once: 375 a
/// minute, and 650 with these).
std::vector<std::string> small_context_environment();

/// What a candidate gets for one parameter.
struct shared_memory {
  int descriptor = -1; ///< below 0: a scalar
  size_t capacity = 0; ///< bytes of one place
  bool writable = false;
  uint32_t places = 1;
};

/// How a process ended that should not have. The class is candidate, or infrastructure when it
/// never came as far as a candidate's own code.
struct candidate_ending {
  error fault;
  bool wrote_input = false;
};

/// Thread safety: none.
class candidate_process {
public:
  /// Starts the process; settle() waits for it.
  static expected<candidate_process> start(sandbox& walls, const candidate_options& options);

  candidate_process(candidate_process&&) noexcept = default;
  candidate_process& operator=(candidate_process&&) noexcept = default;

  /// Waits until the process is up. Costs nothing a second time.
  expected<void> settle(int deadline_ms);

  /// Hands over the library and the buffers.
  /// REQUIRES: at most max_arguments parameters.
  expected<void> attach(int library, const std::string& function,
                        const std::vector<shared_memory>& parameters);

  /// Runs one command and returns its seconds by the outside clock, or nothing when the process
  /// ended or overran `deadline_ms`: then ending() says how, and the process is dead. One that is
  /// stopped finds the command when it goes on, which is when the clock starts.
  std::optional<double> run(candidate_command command, const std::vector<int64_t>& values,
                            int deadline_ms);

  /// From now on both sides look for each other's words for a while before they sleep.
  void spin(bool on) noexcept {
    spinning_ = on;
    control().spin = on ? timed_spin : 0;
  }

  /// Whether the latest batch had to be let go before all of it was queued.
  bool gate_was_forced() const noexcept { return gate_forced_; }

  /// The number of a batch to come: a process may serve several evaluations.
  uint32_t next_batch() noexcept { return ++batch_; }

  /// Begins a batch, whose launches wait on the GPU for batch_words::open to be `number`; 0: they
  /// do not wait. A command before end_batch() that takes longer than `patience` seconds waits for
  /// work of the batch: then it is let go, as gate_was_forced() tells.
  bool begin_batch(uint32_t number, double patience, int deadline_ms);
  bool end_batch(uint32_t number, int deadline_ms);

  /// Whether the GPU has said that batch `number` is over. Its process can say that at any time.
  bool completed(uint32_t number) const noexcept {
    return control().batch.completed.load(std::memory_order_acquire) == number;
  }

  /// Seconds of the latest batch by the process's own events, once it has finished.
  double seconds_inside() const noexcept { return control().batch.inside; }

  /// The page that is shared with it.
  void* shared() const noexcept { return page_.data(); }

  /// Stops it until the next command. What standstill says of it holds here.
  void halt() noexcept { rest_.halt(); }
  standing stop() {
    rest_.hold_waiter();
    return rest_.stop();
  }
  void go_on() noexcept {
    rest_.go_on();
    rest_.release_waiter();
  }
  bool stopped() const noexcept { return rest_.stopped(); }
  double worked_while_stopped() const noexcept { return rest_.worked(); }

  const std::optional<candidate_ending>& ending() const noexcept { return ending_; }

  /// Whether it is still there. One that somebody else has ended while nobody asked it has no
  /// ending() yet.
  bool alive() const { return !ending_ && child_.running() && (pid_ == 0 || !rest_.gone()); }

  /// After a `load` command: nothing when the library is in, else the candidate's fault.
  std::optional<error> load_fault() const;

  /// Ends it, without waiting.
  void kill() noexcept { child_.kill(); }

  /// Names for the texts of ending(), one a parameter.
  void name_parameters(std::vector<std::string> names) { names_ = std::move(names); }

  int pid() const noexcept { return pid_; } ///< out here; 0 before settle()
  double cpu_seconds() const noexcept;      ///< of all its threads so far, by the scheduler's clock

  /// Seconds of its commands in which it was stopped from outside, or this process was: no
  /// deadline counts them.
  double lost_seconds() const noexcept { return lost_seconds_; }

  /// How much it has printed so far.
  uint64_t printed_bytes() const;

  /// What it printed: at most 4 KiB, control bytes removed.
  std::string output() const;

private:
  candidate_process(sandboxed_child child, descriptor socket, descriptor printed, shared_page page,
                    uint64_t address_limit);

  expected<void> await_byte(char wanted, int deadline_ms);
  void force_gate() noexcept;
  bool is_held() const;
  core_seconds cores_so_far() const;
  std::optional<double> give_up(uint32_t sequence, double started, int deadline_ms);
  void note_memory() noexcept;
  void conclude();
  bool exhausted() const;
  bool on_gpu() const noexcept { return address_limit_ == no_limit; } // as its driver needs it
  error memory_fault() const;
  error describe(const exit_status& status) const;
  error describe_signal(int signal) const;
  error describe_device_error() const;
  std::string remark_text() const;
  std::string fault_place() const;
  control_page& control() const noexcept { return *static_cast<control_page*>(page_.data()); }

  sandboxed_child child_;
  descriptor socket_;
  descriptor printed_;
  shared_page page_;
  uint64_t address_limit_ = 0;
  uint64_t largest_size_ = 0;
  uint64_t largest_resident_ = 0;
  uint32_t sequence_ = 0;
  bool spinning_ = false;
  uint32_t gate_ = 0;        // of the batch that is being queued
  uint32_t batch_ = 0;       // the latest
  double gate_patience_ = 0; // seconds; 0: none is closed
  bool gate_forced_ = false;
  int pid_ = 0;
  standstill rest_;
  int cores_ = CPU_SETSIZE; // that it may have; until that is known, more
  bool loading_ = false;    // its own code has been near
  double lost_seconds_ = 0;
  std::vector<std::string> names_;
  std::vector<uint64_t> capacities_;
  std::optional<candidate_ending> ending_;
};

} // namespace kernelmill
