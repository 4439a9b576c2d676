#pragma once

// Asks every observed actor for its snapshot when a viewer asks, and keeps the answers: viewers
// that come together share one round. For a minute after the last view it samples the actors'
// numbers once a second, so that it can say when each last got on. After that it does nothing until
// the next view.

#include <chrono>
#include <deque>
#include <map>
#include <vector>

#include "messages/actors.hpp"

namespace kernelmill {

struct gathering_monitor_state {
  using clock = std::chrono::steady_clock;
  using promise = caf::typed_response_promise<Message<wire::Snapshot>>;

  explicit gathering_monitor_state(monitor_actor::pointer owner) : self(owner) {
    // nop
  }

  struct watched {
    status_actor who;
    Message<wire::Snapshot> last; ///< empty: it has not answered yet
    bool asked = false;           ///< and has not answered
    clock::time_point asked_at;
    double asked_at_wall = 0;
    double waited = 0;             ///< seconds that the latest STATUS stood in its mailbox
    uint64_t mark = 0;             ///< of its numbers
    clock::time_point progress_at; ///< when they last changed
  };

  caf::result<Message<wire::Snapshot>> look();
  void ask(uint64_t key, bool for_viewer);
  void hear(uint64_t key, const Message<wire::Snapshot>& x, bool for_viewer);
  void close_one();
  void tick();
  void sample();
  void on_down(const caf::down_msg& down);
  void add(const status_actor& who);
  Message<wire::Snapshot> show(const watched& x) const;
  Message<wire::Snapshot> own() const;
  clock::time_point now() const;
  void tick_later();

  monitor_actor::pointer self;
  std::map<uint64_t, watched> observed; ///< in the order in which they came
  uint64_t next_key = 0;
  std::deque<Message<wire::Snapshot>> gone; ///< workers that have ended, the latest last
  std::vector<promise> viewers;             ///< they wait for this round
  bool rounding = false;
  size_t open = 0; ///< answers that this round waits for
  clock::time_point round_began;
  Message<wire::Snapshot> latest;
  clock::time_point latest_at;
  clock::duration keeps{0}; ///< how long `latest` is shown
  bool ticking = false;
  clock::time_point last_viewer;
  uint64_t views = 0, rounds = 0, samples = 0;

  static inline const char* name = "gathering-monitor";
};

/// Answers STATUS with the snapshots of all that it observes. One that is silent for two seconds is
/// in the state "stuck", with the time since when; viewers after that do not wait for it again.
monitor_actor::behavior_type
gathering_monitor(monitor_actor::stateful_pointer<gathering_monitor_state> self);

} // namespace kernelmill
