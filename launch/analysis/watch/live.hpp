#pragma once

// What a run's monitor says, read into rows: episodes with what they wait for, queues in order,
// workers, and the policy's troubles.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "launch/analysis/watch/world.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

/// What an episode waits for beyond its own state.
struct queue_place {
  std::string queue;     ///< "policy", "build", "evaluate", "profile", "slot": at a worker
  uint64_t position = 0; ///< 1 is next
};

/// One job at work, or one that failed and waits again.
struct job_row {
  std::string queue;
  uint64_t worker = 0; ///< number of the actor; 0: it waits
  uint32_t attempt = 0, attempts_allowed = 0;
  double since = 0; ///< seconds since 1970
  std::string last_error;
};

/// A request to the policy that has failed and is tried again.
struct tried_row {
  std::string state; ///< "in_flight", "backing_off", "queued"
  uint32_t attempts = 0;
  double due_seconds = 0; ///< until the next attempt; 0: it does not back off
  std::string last_error;
  std::string category, hint; ///< of that error
};

/// An answer of the policy that streams in.
struct stream_row {
  uint64_t bytes = 0; ///< that have come
  std::string tail;   ///< their end; empty where it is not shown
};

struct episode_row {
  std::string id; ///< "g3.e1"
  std::string task;
  std::string phase; ///< what its actor says: "thinking", "evaluating", "stuck", ...
  std::string state; ///< the same, or "queued" when it waits for its turn in a queue
  double since = 0;  ///< seconds since 1970 at which its worker began, else its phase
  uint64_t ordinal = 0;
  uint32_t turn = 0; ///< from 0
  uint32_t max_turns = 0;
  double deadline_seconds =
      0;                   ///< until its answer is not waited for any longer; 0: it waits for none
  double left_seconds = 0; ///< until the episode's own deadline
  double best_reward = 0;  ///< NaN: no turn is rewarded
  double best_speedup_lower = 0; ///< 0: none
  uint64_t mailbox = 0;
  std::string detail;
  std::optional<queue_place> queued;
  std::optional<job_row> job;
  std::optional<tried_row> tried;
};

struct queue_row {
  std::string name;
  std::string state; ///< "idle", "working", "starved"
  uint64_t workers = 0, credits = 0, leased = 0, waiting = 0, done = 0;
  double mean_seconds = 0; ///< from giving a job out to its answer, of those that came lately
  double oldest_wait_seconds = 0;
  std::vector<double> given_seconds; ///< how long ago each job was given out that is not done

  /// Seconds until the job at `position` is given to a worker; 0: not known, as after fewer than
  /// `least_done` jobs. A job in progress counts with the time that it has taken so far, and at
  /// least the mean. Where every one takes longer than the mean, the first of them is expected to
  /// take as long again as it has taken.
  double wait(uint64_t position) const;
  static constexpr uint64_t least_done = 5;
};

/// An actor that is not an episode.
struct actor_row {
  std::string role, id, state, detail;
  double since = 0;
  uint64_t number = 0, mailbox = 0;
  double oldest_seconds = 0;    ///< how long the oldest message has waited, as far as was seen
  double progress_seconds = -1; ///< since its numbers last changed; below 0: not sampled
  json numbers;
};

struct live_view {
  std::string run, directory;
  std::string state; ///< "running", "paused", "ending", "stuck"
  uint64_t planned = 0, live = 0, ended = 0, turns = 0;
  uint64_t accepted = 0, rejected = 0, infrastructure = 0, left_open = 0;
  uint64_t lost_open = 0; ///< of these, by a fault of a machine or of a server
  std::vector<episode_row> episodes;
  std::vector<queue_row> queues;
  std::vector<actor_row> actors; ///< the monitor's own stand last, below the role "monitor"
  std::map<uint64_t, std::string> workers;   ///< by the number of the actor: "cpu0 (cores 0,1)"
  std::map<std::string, stream_row> streams; ///< by episode: "g3.e1"
  std::map<std::string, tried_row> tried;    ///< by episode, also of requests that are not listed
  std::string policy_state, policy_detail;   ///< of the client or pool that the run asks
  double policy_mean_seconds = 0;
  uint64_t policy_in_flight = 0, policy_window = 0, policy_queued = 0, policy_backing_off = 0;

  const queue_row* queue(std::string_view name) const;
  const episode_row* episode(std::string_view id) const;
};

/// `more_workers` names workers that stand on other nodes.
live_view read_live(const live_run& x, const std::map<uint64_t, std::string>& more_workers = {});

/// The workers that a head's gate shows: number of the actor, name of the node.
std::map<uint64_t, std::string> workers_of_nodes(const world& in);

/// One row of `ps --json`.
json to_json(const live_view& of, const episode_row& x);

/// What a person reads of it: "native/row_sum, turn 2 of 4; queued for a slot, 12th of 49".
std::string detail_text(const live_view& of, const episode_row& x);

/// "12th".
std::string ordinal_text(uint64_t x);

/// What a queue's jobs wait for: "a slot".
std::string resource_of(std::string_view queue);

} // namespace kernelmill::watch
