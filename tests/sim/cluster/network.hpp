#pragma once

// One connection between the head and a node, as TCP and CAF make it: messages arrive late but in
// order, or not at all once it breaks; a side that hears nothing for a while gives it up. The head
// sees a gate that is not the node's own, as with CAF's proxies.

#include <any>
#include <deque>

#include "tests/sim/cluster/machine.hpp"

namespace kernelmill::sim {

enum class way : unsigned char { to_node, to_head };

class connection : public std::enable_shared_from_this<connection> {
public:
  /// `lost` hears once, on the node's side, that the connection is gone.
  connection(machine& on, uint32_t node, node_gate_actor gate, std::function<void()> lost);

  /// What the head is given for the node.
  const node_gate_actor& proxy() const { return proxy_; }

  /// Lets something arrive at the other side, if the connection lasts that long.
  void post(way where, std::function<void()> what);

  /// One side, or both, no longer have it.
  void break_at_head();
  void break_at_node();
  void break_both();

  /// Nothing comes through one way: a side that hears nothing breaks it after a while.
  void look_whether_silent();
  /// What was held back arrives now.
  void heal();

  bool is_open() const { return head_has_it_ || node_has_it_; }
  const worker_thread_actor& far() const { return far_; }

  /// For fairness: a job of this envelope was given out.
  std::function<void(const envelope&, char kind)> on_job;
  std::function<void(const std::string& category)> on_fault;

private:
  template <class Result, class Atom, class Request, class... Extra>
  void carry(caf::typed_response_promise<Message<Result>, Extra...> answer, Atom what, char kind,
             const envelope& where, const Message<Request>& request,
             const Message<wire::Parcel>& parcel);
  node_gate_actor::behavior_type gate_proxy(node_gate_actor::pointer self);

  bool is_blocked(way x) const;
  void arrive(way where, const std::function<void()>& what);

  machine& on_;
  uint32_t node_;
  node_gate_actor gate_, proxy_;
  worker_thread_actor far_; ///< on the node, where the head's requests come out
  worker_thread_actor::pointer far_self_ = nullptr;
  std::function<void()> lost_;
  bool head_has_it_ = true, node_has_it_ = true;
  double last_[2] = {0, 0}; ///< seconds, when the latest message arrives
  std::deque<std::function<void()>> held_[2];
  std::map<char, std::any> earlier_; ///< answers by kind, for defect::crossed_answers
};

/// How long a side waits for a word before it gives a connection up.
inline constexpr milliseconds silence_ends{1500};

} // namespace kernelmill::sim
