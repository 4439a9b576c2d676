#pragma once

// What the referee and a candidate process share: one message over the socket with descriptors,
// then a control page. The referee trusts nothing in that page: it reads from it that a command
// is done, and remarks about a failure that only pick words for the verdict, never the verdict.
//
// Commands go through futexes on the page. Measured here over 5,000 round trips between two
// processes: futex 4.9 us (p99 11), eventfd 4.5 us (p99 10); a futex needs no descriptor inside
// the walls and waits with a time limit. Nobody spins on a CPU slot: on two cores a spinning
// referee would take one from the candidate's OpenMP threads. On a GPU slot both sides do while
// calls are timed, because a launch takes less time than waking somebody up.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace kernelmill {

inline constexpr int candidate_socket = 3; ///< descriptor in the candidate process
inline constexpr size_t max_arguments = 16;
inline constexpr size_t buffer_alignment = 64;
inline constexpr size_t page_bytes = 4096;

/// How often a process that is timed on a GPU looks before it sleeps: 0.2 to 1 ms.
inline constexpr uint32_t timed_spin = 20'000;
inline constexpr uint64_t attach_magic = 0x31434d4b48435441; // "ATCHKMC1"

// Exit codes of kernelmill-candidate that are ours. Once a candidate is loaded they pick words
// only.
inline constexpr int exit_setup_failed = 120;
inline constexpr int exit_device_lost = 121;    ///< an error of the GPU lost the context
inline constexpr int exit_launch_refused = 122; ///< the driver would not launch device code

enum class candidate_command : uint32_t {
  none,
  nothing,
  load,
  call,   ///< and wait until all of its work is done
  launch, ///< on a GPU: without waiting for its work
  finish, ///< on a GPU: waits for the work of all launches
  begin,  ///< on a GPU: what is launched from now on is a batch; values[0]: it waits until
          ///< batch_words::open is as much; 0: it does not wait
  end,    ///< on a GPU: the batch is over; when its work is, `completed` becomes values[0]
  apart,  ///< as launch; then what the GPU is given later begins when the call's work is over
};

enum class parameter_kind : uint32_t { scalar, readable, writable };

struct parameter_spec {
  parameter_kind kind;
  uint32_t places;   ///< of a memfd: where the tensor can lie, a page without access between two
  uint64_t capacity; ///< bytes of one of them: of a memfd whole pages, of a GPU's memory whole
                     ///< units of its allocation
};

/// The one message from the referee. Descriptors ride on it: control page, library, then one
/// a tensor in the order of the parameters: memfds, or memory of the GPU.
struct attach_message {
  uint64_t magic;
  uint32_t parameters;
  uint32_t unused;
  parameter_spec specs[max_arguments];
  char function[72]; ///< empty: the library is a file of device_program.hpp
};

enum class candidate_remark : uint32_t {
  none,
  loaded,
  load_failed, ///< text holds dlerror()
  missing_symbol,
  memory_exhausted,
  fault,          ///< a SIGSEGV or SIGBUS; the fields below say where
  device_error,   ///< the GPU's context is lost; fault_signal holds the driver's error
  launch_refused, ///< the driver would not launch; text says why
};

/// What the GPUs of referee and process write of a batch of launches. Nothing of it is trusted.
struct batch_words {
  alignas(64) std::atomic<uint32_t> open;      ///< the referee's GPU writes it
  alignas(64) std::atomic<uint32_t> completed; ///< the process's GPU writes it: a hint
  double inside; ///< seconds of the latest batch, by the process's events; the process writes it
};

struct control_page {
  alignas(64) std::atomic<uint32_t> sequence; ///< of the latest command; the referee writes it
  candidate_command command;
  uint32_t spin; ///< look this often for a command before sleeping; the referee writes it
  int64_t values[max_arguments];          ///< a scalar's value, or a tensor's offset
  alignas(64) std::atomic<uint32_t> done; ///< sequence of the command that has ended
  batch_words batch;                      ///< of the latest
  alignas(64) candidate_remark remark;
  uint32_t fault_parameter; ///< index, or max_arguments: in none of them
  uint32_t fault_writes;
  uint32_t fault_signal;
  int64_t fault_offset; ///< relative to the start of the place that the call was given
  char text[512];
};
static_assert(sizeof(control_page) <= page_bytes);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

/// Waits while *word is `value`, at most `timeout_us` (0: for ever). May wake early.
inline void futex_wait(std::atomic<uint32_t>* word, uint32_t value, int64_t timeout_us) {
  timespec limit{timeout_us / 1'000'000, (timeout_us % 1'000'000) * 1000};
  ::syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_us > 0 ? &limit : nullptr, nullptr, 0);
}

/// Looks `spin` times whether *word has left `value`; true when it has.
inline bool spin_until_changed(const std::atomic<uint32_t>* word, uint32_t value,
                               uint32_t spin) noexcept {
  for (uint32_t i = 0; i < spin; ++i) {
    if (word->load(std::memory_order_acquire) != value) return true;
    __builtin_ia32_pause();
  }
  return false;
}

inline void futex_wake(std::atomic<uint32_t>* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

} // namespace kernelmill
