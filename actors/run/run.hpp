#pragma once

// One configured batch of groups: admits episodes in group order, hears how they end, compares
// the members of each group, and ends with a summary. The requested number of episodes always
// equals the ended ones plus the ones that were left for resume.
//
// An episode that a fault of a server has ended in spite of all retries leaves without a record of
// its own. Where the server is away, all leave, the run ends, and `resume` goes on with them. Where
// others still end, the member is dropped as soon as the rest of its group has ended: it is closed
// with the turns that it has, as lost to the infrastructure, and the group is compared without it.
// What it would have earned has no part in that, so the others' mean stays what it is; and it is
// not asked a second time, which would be a second draw.
//
// Of a search each group is a generation: it begins when the one before has ended as a whole, and
// the search says that its budget allows it.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/episode/episode.hpp"
#include "actors/episode/returns.hpp"
#include "actors/governance/bias.hpp"
#include "actors/governance/judge.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct run_plan {
  std::string name;
  std::string directory;
  std::string config_digest;
  uint32_t opening = 0;                            ///< how often the run was opened before
  std::vector<std::shared_ptr<const task>> groups; ///< the task of each group, in order
  uint32_t group_size = defaults::group_size;
  uint32_t quorum = 0; ///< usable episodes after which the rest of a group is dropped; 0: all
  uint32_t max_live = defaults::max_live;                   ///< episodes at once
  double max_infrastructure = defaults::max_infrastructure; ///< share of turns that may be lost
  advantage_kind advantages = advantage_kind::mean_centered;
  bool sandbox_complete = true; ///< for the run's readiness
};

struct run_counters {
  uint32_t planned = 0, live = 0, ended = 0, left_open = 0;
  uint64_t turns = 0;       ///< committed, of all episodes that this process has taken up
  uint64_t fresh_turns = 0; ///< of them those that this process has committed
  uint64_t ended_turns = 0; ///< of them those of episodes that have ended
  uint32_t accepted = 0, rejected = 0, dropped = 0;
  uint32_t closed_as_lost = 0; ///< episodes that have ended with the outcome `infrastructure`
  uint32_t lost_open = 0;      ///< of `left_open`, those that is_lost() counts
  uint32_t not_timed = 0;      ///< turns that are right and have no time
  uint32_t unpaid = 0;         ///< episodes with such a turn that the machine could not time

  /// Episodes that a fault of a machine or of a server has ended, with a record of their own or
  /// left for resume.
  uint32_t infrastructure() const { return closed_as_lost + lost_open; }
};

/// Hears of a run's progress on the run actor's thread; keep it short.
class run_listener {
public:
  virtual ~run_listener() = default;
  virtual void on_progress(const run_counters& counters) = 0;
  /// Whether the run may begin another group; PROCEED lets it ask again. One that it has begun goes
  /// on: its members are compared with each other.
  virtual bool lets_groups_begin() const { return true; }
};

struct batch_run_state {
  struct group_progress {
    std::vector<std::optional<double>> returns;
    uint32_t ended = 0;
    std::map<uint32_t, uint32_t> departed; ///< members that left, and their committed turns
    uint32_t usable = 0;
  };

  struct live_episode {
    episode_actor handle;
    episode_assignment where;
    uint32_t turns = 0; ///< committed
  };

  explicit batch_run_state(run_actor::pointer owner) : self(owner) {
    // nop
  }

  ~batch_run_state(); // episodes do not outlive their run

  bool may_admit() const;
  bool may_begin_group() const;
  bool waits_for_generation() const;
  void ask_search();
  void end_broken_generation();
  void admit();
  void watch(); // lets episodes look at the clock now and then
  void on_turns(const caf::actor_addr& who, uint32_t committed, bool fresh);
  void on_finished(wire::EpisodeOutcome::Reader outcome);
  void on_lost(const caf::actor_addr& who, const std::string& why);
  void note_departure(wire::EpisodeOutcome::Reader outcome, uint32_t committed);
  void drop_departed(bool at_end = false);
  void drop(uint32_t group, uint32_t member, uint32_t turns);
  void start_episode(uint64_t ordinal, std::shared_ptr<const episode_settings> how, uint32_t turns);
  void look_at_lost_turns(wire::EpisodeOutcome::Reader outcome);
  void look_at_share_of_lost();
  bool has_quorum(uint32_t group) const;
  void drop_rest(uint32_t group);
  void commit_group(uint32_t group);
  void stop(const char* why, std::optional<error> fault);
  void finish_if_done();
  std::string outcome() const;
  void commit(const Message<wire::Record>& record);
  void commit_opening();
  void commit_ending();
  void deliver_summary();
  Message<wire::Snapshot> head() const;
  status_actor gatherer() const; ///< of the live episodes' snapshots
  void tell(log_level level, const std::string& what) const;
  void tell_ending(wire::EpisodeOutcome::Reader outcome) const;
  void tell_outcome(const std::string& state, double seconds) const;

  run_actor::pointer self;
  run_plan plan;
  std::shared_ptr<const episode_settings> settings;
  std::shared_ptr<const episode_services> services;
  std::shared_ptr<run_listener> listener;
  std::shared_ptr<const std::string> name_text;
  std::unordered_map<uint64_t, live_episode> live;        // by ordinal
  std::unordered_map<caf::actor_addr, uint64_t> ordinals; // of live episodes; each ends with a DOWN
  std::vector<group_progress> groups;
  std::set<uint32_t> broken_groups; // with members that left
  run_counters counters;
  run_counts kinds;
  loss_ledger losses;
  std::map<std::string, double> stage_seconds;
  uint64_t next = 0; // ordinal of the next episode to admit
  uint32_t pending_commits = 0;
  uint64_t turns_seen = 0, turns_lost = 0; ///< since this opening
  uint32_t departures_in_a_row = 0;
  uint32_t generations = 0;   ///< of a search: those that its budget allows so far
  bool asking_search = false; // whether it allows one more
  bool paused = false;
  bool admitting = false;             // more are to be admitted at the next message
  bool watching = false;              // a tick is due
  bool ending = false;                // the last commits are on their way
  std::optional<std::string> stopped; // "cancelled" or "failed"
  std::optional<error> fault;
  std::chrono::steady_clock::time_point started;
  caf::typed_response_promise<Message<wire::RunSummary>> answer;

  static inline const char* name = "batch-run";
};

run_actor::behavior_type batch_run(run_actor::stateful_pointer<batch_run_state> self, run_plan plan,
                                   std::shared_ptr<const episode_settings> settings,
                                   std::shared_ptr<const episode_services> services,
                                   std::shared_ptr<run_listener> listener);

} // namespace kernelmill
