#pragma once

// What the HANDOFF owns. Everything here happens on its thread.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "actors/handoff/handoff.hpp"
#include "actors/worker_thread.hpp"

namespace kernelmill::handoff {

/// Whether an error is permanent: a record is damaged or gone, as opposed to a busy machine.
bool is_lost(const error& x);

class handoff_state {
public:
  explicit handoff_state(handoff_actor::pointer self);

  void take(handoff_settings settings);
  void start();
  void obey(const request_ptr& x);
  void leave(uint64_t waiter);
  void on_group(const std::string& run, uint32_t group);
  void on_end(const std::string& run);
  void tick();
  Message<wire::Snapshot> snapshot() const;

private:
  /// How the run of an order goes.
  struct course {
    bool begun = false;
    bool busy = false;  ///< a worker thread begins it, or looks at it
    bool again = false; ///< to be looked at once more when that is done
    bool held = false;
    std::string trouble;  ///< why it does not go on
    int64_t again_at = 0; ///< when it is looked at next; 0: never
    uint32_t tries = 0;   ///< since a group of it was settled
    bool rested = false;  ///< since its run ended
    bool away = false;    ///< its policy server was, since a group of it was settled
  };

  struct waiting_batch {
    batch_request what;
    request_ptr who;
    int64_t until_ms = 0;
  };

  /// What a worker thread found out about a run.
  struct stock {
    run_standing standing;
    std::vector<settle_command> settled;
    std::optional<error> unread; ///< why a group could not be read
  };

  int64_t now() const { return settings_.now(); }
  void tell(log_level level, const std::string& what, const std::string& run) const;
  expected<void> keep(const expected<events>& caused);
  void serve();
  void arm();

  // -- orders
  void do_it(const order_request& x, const request_ptr& who);
  void begin(const std::string& run, const request_ptr& who);
  void on_begun(const std::string& run, const expected<void>& ok, const request_ptr& who);
  void take_stock(const std::string& run);
  void on_stock(const std::string& run, expected<stock> found);
  void try_later(const std::string& run, const std::string& why);
  void settle(const settle_command& x);
  void close(const std::string& run, const char* reason);
  void look_at_deadlines();
  void look_at_fill(const std::string& run, const order_entry& of);
  nlohmann::ordered_json document_of(const std::string& order) const;

  // -- what else clients ask for
  /// The client that owns the order of a request; empty: the order has no owner, or the request has
  /// no order.
  std::string owner_of(const request& x) const;
  static bool may_see(const std::string& owner, const std::string& client) {
    return owner.empty() || client.empty() || owner == client;
  }
  void do_it(const look_request& x, const request_ptr& who);
  void do_it(const cancel_request& x, const request_ptr& who);
  void do_it(const batch_request& x, const request_ptr& who);
  void do_it(const ack_request& x, const request_ptr& who);
  void do_it(const commit_command& x, const request_ptr& who);
  void do_it(const rollback_command& x, const request_ptr& who);
  void do_it(const weights_request& x, const request_ptr& who);
  bool try_batch(const batch_request& x, const request_ptr& who);
  void deliver(uint64_t lease, const request_ptr& who);
  void give_up(uint64_t lease, const std::string& order, uint32_t group, error& why);
  std::vector<std::string> servers_under_way(const std::string& client) const;
  void answer_empty(const batch_request& x, const request_ptr& who);

  handoff_actor::pointer self_;
  handoff_settings settings_;
  lease_table table_;
  worker_thread_actor opener_; ///< begins runs, which may take minutes
  worker_thread_actor reader_; ///< reads groups
  worker_thread_actor loader_; ///< has policy servers load weights
  std::map<std::string, course> courses_;
  std::vector<waiting_batch> waiting_;
  bool changed_ = false; ///< the table, since serve()
  int64_t armed_ms_ = 0; ///< when a tick is due; 0: none
};

} // namespace kernelmill::handoff
