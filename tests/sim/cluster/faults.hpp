#pragma once

// What may go wrong in a simulated cluster, drawn from a seed before anything runs: so a failing
// seed can be repeated with some of its faults left out.

#include <cstdint>
#include <string>
#include <vector>

namespace kernelmill::sim {

enum class fault_kind : unsigned char {
  slow_link,      ///< messages of a node take up to `amount` ms more
  cut,            ///< nothing passes between the head and a node
  half_open,      ///< one direction is cut: to the node when `amount` is even, else from it
  reset,          ///< a node's connection breaks at once, with what is in flight
  node_killed,    ///< the head hears of it at once; the node comes back as another process
  node_power_off, ///< the head hears nothing; un-synced files may be torn
  node_drained,   ///< by a user's command; the node comes back later
  shelf_lost,     ///< a node's folder of parcels is emptied
  worker_silent,  ///< a node's workers take jobs and never answer
  worker_dies,    ///< each job ends its worker
  worker_faulty,  ///< each job ends in a fault of the machine
  head_killed,    ///< and started again afterwards; `amount` even: un-synced files may be torn
  killed_writing, ///< the head dies in its next commit; `amount` even: the commit is on disk
  disk_error,     ///< commits fail with EIO
  disk_full,      ///< commits fail, nothing is written
  disk_unsure,    ///< commits are on disk and are said to have failed
  server_down,    ///< a policy server refuses connections
  server_faulty,  ///< it answers with errors
  server_silent,  ///< it never answers
  server_lying,   ///< it answers what another conversation asked for
  server_left,    ///< a user detaches it, and attaches it again afterwards
  clock_jump,     ///< the machine stands still for `amount` ms, and all its timers are due
  run_paused,     ///< by a user
};
inline constexpr unsigned fault_kinds = 23;

struct fault {
  fault_kind kind;
  uint32_t at_ms;  ///< of virtual time
  uint32_t for_ms; ///< how long
  uint32_t where;  ///< which node, server or run
  uint32_t amount;
};

const char* to_string(fault_kind x) noexcept;

/// Returns "3: cut of 1 at 2.300 s for 4.100 s".
std::string text_of(size_t number, const fault& x);

/// The faults of a seed: up to twelve within the first two minutes.
std::vector<fault> draw_faults(uint64_t seed);

/// A defect that is built into the simulated world, for the oracles to find.
enum class defect : unsigned char {
  none,
  early_acknowledgement, ///< the store acknowledges what the next commit makes durable
  forgotten_record,      ///< the store drops the last record of a batch, and acknowledges it
  turn_counted_twice, ///< the store forgets a turn when it is read, and then takes it as a new one
  fault_is_paid,      ///< a fault of the machine becomes a rejected turn with reward 0
  crossed_answers,    ///< a connection gives a job the answer of another
  lost_answer,        ///< a conversation of the second run never hears of its third turn
  unfair_queue,       ///< a run's jobs wait while another run has any
};
inline constexpr unsigned defects = 8;
const char* to_string(defect x) noexcept;

} // namespace kernelmill::sim
