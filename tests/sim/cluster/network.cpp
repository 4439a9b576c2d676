#include "tests/sim/cluster/network.hpp"

namespace kernelmill::sim {

namespace {

constexpr uint32_t usual_delay_ms = 5;

// Below the deadlines of those who ask: CAF has none of its own.
constexpr std::chrono::minutes long_enough{24 * 60};

} // namespace

connection::connection(machine& on, uint32_t node, node_gate_actor gate, std::function<void()> lost)
    : on_(on), node_(node), gate_(std::move(gate)), lost_(std::move(lost)) {
  proxy_ = on_.keep(node_gate_actor{
      on_.system().spawn([this](node_gate_actor::pointer self) { return gate_proxy(self); })});
  // The gate's end is the end of its connections.
  far_ = on_.keep(worker_thread_actor{on_.system().spawn([this](worker_thread_actor::pointer self) {
    far_self_ = self;
    self->set_down_handler([this](caf::down_msg&) {
      if (!on_.on(fault_kind::node_power_off, node_)) break_both();
    });
    self->monitor(gate_);
    return blocking_worker(self);
  })});
}

// -- the way of a message
// ------------------------------------------------------------------------

bool connection::is_blocked(way x) const {
  if (on_.on(fault_kind::cut, node_) || on_.on(fault_kind::node_power_off, node_)) return true;
  if (!on_.on(fault_kind::half_open, node_)) return false;
  return (on_.amount(fault_kind::half_open, node_) % 2 == 0) == (x == way::to_node);
}

void connection::post(way where, std::function<void()> what) {
  auto most = usual_delay_ms;
  if (on_.on(fault_kind::slow_link, node_)) most += on_.amount(fault_kind::slow_link, node_);
  auto& last = last_[static_cast<int>(where)];
  last = std::max(last + 1e-6, on_.now() + (1 + on_.upto(most * 1000)) * 1e-6);
  auto delay = std::chrono::microseconds{static_cast<int64_t>((last - on_.now()) * 1e6) + 1};
  on_.after(delay, [self = shared_from_this(), where, what] { self->arrive(where, what); });
}

void connection::arrive(way where, const std::function<void()>& what) {
  auto& held = held_[static_cast<int>(where)];
  if (!(where == way::to_node ? node_has_it_ : head_has_it_)) return;
  if (is_blocked(where) || !held.empty()) {
    on_.mark("a message waits for a cut to end");
    return held.push_back(what);
  }
  what();
}

void connection::heal() {
  for (auto where : {way::to_node, way::to_head}) {
    auto& held = held_[static_cast<int>(where)];
    while (!held.empty() && !is_blocked(where)) {
      auto what = std::move(held.front());
      held.pop_front();
      what();
    }
  }
}

void connection::break_at_head() {
  if (!head_has_it_) return;
  head_has_it_ = false;
  held_[static_cast<int>(way::to_head)].clear();
  caf::anon_send_exit(proxy_, caf::exit_reason::remote_link_unreachable);
}

void connection::break_at_node() {
  if (!node_has_it_) return;
  node_has_it_ = false;
  held_[static_cast<int>(way::to_node)].clear();
  caf::anon_send_exit(far_, caf::exit_reason::kill);
  lost_();
}

void connection::break_both() {
  break_at_head();
  break_at_node();
}

// The side that hears nothing breaks it; the other side hears of that, if it can, else a while
// later.
void connection::look_whether_silent() {
  on_.after(silence_ends + milliseconds{on_.upto(250)}, [self = shared_from_this()] {
    bool deaf_head = self->is_blocked(way::to_head), deaf_node = self->is_blocked(way::to_node);
    if (deaf_head == deaf_node) {
      if (deaf_head) {
        self->break_at_head();
        self->on_.after(milliseconds{1 + self->on_.upto(500)}, [self] { self->break_at_node(); });
      }
      return;
    }
    self->on_.mark("a half-open connection is given up by the side that is deaf");
    deaf_head ? self->break_at_head() : self->break_at_node();
    self->on_.after(milliseconds{1 + self->on_.upto(20)}, [self] { self->break_both(); });
  });
}

// -- what goes over it
// ---------------------------------------------------------------------------

template <class Result, class Atom, class Request, class... Extra>
void connection::carry(caf::typed_response_promise<Message<Result>, Extra...> answer, Atom what,
                       char kind, const envelope& where, const Message<Request>& request,
                       const Message<wire::Parcel>& parcel) {
  if (on_job) on_job(where, kind);
  auto self = shared_from_this();
  auto back = [self, answer, kind](Message<Result> result, const Extra&... extra) mutable {
    if (self->on_.is(defect::crossed_answers)) {
      auto& earlier = self->earlier_[kind];
      auto mine = result;
      if (auto* other = std::any_cast<Message<Result>>(&earlier)) result = *other;
      earlier = mine;
    }
    std::string category = result.open()->getFault().getCategory().cStr();
    auto deliver = [self, answer, result, category, extra...]() mutable {
      if (self->on_fault) self->on_fault(category);
      answer.deliver(result, extra...);
    };
    self->post(way::to_head, std::move(deliver));
  };
  post(way::to_node, [self, back, what, where, request, parcel] {
    machine::lend(self->far_, [self, back, what, where, request, parcel] {
      self->far_self_->request(self->gate_, long_enough, what, where, request, parcel)
          .then([back](const Message<Result>& x,
                       const Extra&... extra) mutable { back(x, extra...); },
                [](caf::error&) {}); // the gate has ended: the asker hears nothing, as with CAF
    });
  });
}

node_gate_actor::behavior_type connection::gate_proxy(node_gate_actor::pointer self) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [this, self](atom::build, const envelope& where, const Message<wire::BuildRequest>& request,
                   const Message<wire::Parcel>& parcel) {
        auto answer =
            self->make_response_promise<Message<wire::BuildResult>, Message<wire::Parcel>>();
        carry(answer, atom::build_v, 'b', where, request, parcel);
        return answer;
      },
      [this, self](atom::evaluate, const envelope& where,
                   const Message<wire::EvaluateRequest>& request,
                   const Message<wire::Parcel>& parcel) {
        auto answer = self->make_response_promise<Message<wire::EvaluateResult>>();
        carry(answer, atom::evaluate_v, 'e', where, request, parcel);
        return answer;
      },
      [this, self](atom::profile, const envelope& where,
                   const Message<wire::ProfileRequest>& request,
                   const Message<wire::Parcel>& parcel) {
        auto answer = self->make_response_promise<Message<wire::ProfileResult>>();
        carry(answer, atom::profile_v, 'p', where, request, parcel);
        return answer;
      },
      [this](atom::cancel, const envelope& where) {
        post(way::to_node, [gate = gate_, where] { caf::anon_send(gate, atom::cancel_v, where); });
      },
      [this](atom::join, uint64_t epoch) {
        post(way::to_node, [gate = gate_, epoch] { caf::anon_send(gate, atom::join_v, epoch); });
      },
      [this](atom::drain) {
        post(way::to_node, [gate = gate_] { caf::anon_send(gate, atom::drain_v); });
      },
  };
}

} // namespace kernelmill::sim
