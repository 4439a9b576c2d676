#pragma once

// What the HEAD owns, and what it does with it. Everything here happens on the HEAD's thread. What
// blocks runs on its worker threads, and goes on here when their answer comes in.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/head/head.hpp"
#include "actors/head/head_documents.hpp"
#include "actors/worker_thread.hpp"

namespace kernelmill {

class head_state {
public:
  /// Hears how a command ended; called once, on the HEAD's thread.
  using answer = std::function<void(expected<json>)>;
  using outcome = std::function<void(expected<void>)>;

  explicit head_state(head_actor::pointer self);
  ~head_state(); ///< ends the queues, the pool and the workers

  void take(head_settings settings);

  /// Attaches the servers of an earlier head, then takes up its runs; what could not be is logged.
  void recover(std::function<void()> done);
  void listens_at(const std::string& address) { address_ = address; }

  Message<wire::Welcome> admit(const Message<wire::NodeOffer>& offered, const node_gate_actor& who);
  void drain(const std::string& node);
  void on_down(const caf::down_msg& down);

  void obey(const Message<wire::ControlRequest>& request, const answer& to);
  Message<wire::Snapshot> snapshot() const;

  /// Lets the runs end resumably; then quits.
  void close(const caf::error& why);

private:
  struct node {
    uint64_t epoch = 0;
    node_gate_actor gate;
    std::vector<caf::actor> workers;
  };

  /// A run that this head has started.
  struct run_entry {
    head_run_facts facts;
    std::string state = "running"; ///< paused, stopping, finished, failed, cancelled, left
    bool cancelled = false;        ///< by a user, not by the end of the head
    bool ending = false;           ///< its summary is there, and its files are being given back
    error fault;
    run_numbers last;
    double seconds = 0;
    head_run_ptr hold; ///< while it lives
    run_actor actor;
    std::chrono::steady_clock::time_point started;

    bool live() const { return hold != nullptr; }
  };
  using run_entry_ptr = std::shared_ptr<run_entry>;

  // -- helpers
  void tell(log_level level, const std::string& what, const std::string& run = {}) const;
  template <class F>
  auto guarded(answer to, F f) const;
  void dispatch(const Message<wire::ControlRequest>& request, const answer& to);
  void status(const answer& to);
  void look(const std::string& view, const std::string& query, const answer& to);
  void ask_nodes(std::function<void(Message<wire::Snapshot>)> done);

  // -- nodes (head_nodes.cpp)
  cluster_actor queues(const std::string& lane);
  void add_workers(node& x, const member_facts& facts);
  Message<wire::Welcome> refuse(const std::string& who, const error& why) const;
  std::string free_name(const std::string& wanted, uint64_t epoch) const;
  void forget(const std::string& node);
  bool on_node_down(const caf::down_msg& down);

  // -- runs (head_runs.cpp)
  void submit(const std::string& document, const answer& to);
  void resume(const std::string& run, const answer& to);
  void take_up(const std::string& run, const answer& to);
  void take_on(const head_run_ptr& run, const answer& to);
  void tell_unfit(const run_entry& run, const std::string& name,
                  const std::vector<std::string>& layers) const;
  void launch(const head_run_ptr& run, const std::string& lane, const run_actor& actor);
  void end(const run_entry_ptr& x, expected<Message<wire::RunSummary>> summary);
  void settle(const run_entry_ptr& x, const std::string& state);
  expected<run_entry_ptr> live_run(const std::string& run) const;
  expected<json> cancel(const std::string& run);
  expected<json> pause(const std::string& run);
  void recover_runs(std::shared_ptr<std::vector<std::string>> left, size_t next,
                    std::function<void()> done);
  double seconds_of(const run_entry& x) const;
  void quit_if_over();

  // -- servers (head_servers.cpp)
  template <class... Ts>
  void ask_pool(outcome done, Ts... words);
  void give_back(const std::string& server);
  void attach(const std::string& document, const answer& to);
  void attach_complete(json facts, const answer& to);
  void detach(const std::string& server, const std::string& document, const answer& to);
  void weights(const std::string& server, const std::string& document, const answer& to);
  void list(const answer& to);
  json list_document(wire::Snapshot::Reader pool) const;
  void give(const json& facts, outcome done);
  void save(outcome done);
  void recover_servers(std::function<void()> done);
  void attach_again(std::shared_ptr<json> kept, size_t next, std::function<void()> done);

  head_actor::pointer self_;
  head_settings settings_;
  worker_thread_actor opener_; ///< reads and opens runs, which may take minutes
  worker_thread_actor looker_; ///< reads stores and asks runs' monitors for views
  worker_thread_actor clerk_;  ///< files, probes of servers, closing of runs
  std::string address_;

  roster roster_;
  std::map<std::string, node> nodes_;

  std::map<std::string, run_entry_ptr> runs_; ///< the latest of each name
  std::set<std::string> opening_;             ///< names of those that a worker thread opens
  bool closing_ = false;
  caf::error why_closed_;

  std::string weights_; ///< last declared for all servers
  /// By name: url, kind, model, max_in_flight, names of keys, weights; those that drain too.
  std::map<std::string, json> servers_;
};

/// The error of a command that failed by an exception.
error defect(const std::exception& why);

/// Wraps the rest of a command: what throws there ends the command, and not the HEAD.
template <class F>
auto head_state::guarded(answer to, F f) const {
  return [to = std::move(to), f = std::move(f)](auto&&... xs) mutable {
    try {
      f(std::forward<decltype(xs)>(xs)...);
    } catch (const std::exception& why) {
      to(tl::unexpected<error>{defect(why)});
    }
  };
}

} // namespace kernelmill
