#include "actors/policy_pool/policy_pool.hpp"

#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/caf_error.hpp"
#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/http_policy_client.hpp"
#include "actors/snapshots.hpp"
#include "messages/base/hash.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

using std::chrono::milliseconds;

namespace {

// How often the pool looks at the clock and at its members while there is work.
constexpr milliseconds look_interval{250};

// Of a request that names no deadline.
constexpr milliseconds default_deadline{600'000};

// A member answers at the deadline by itself; the pool's own limits are nets below that.
constexpr milliseconds grace{2000};
constexpr milliseconds relay_grace{4000};

// Asks on behalf of one attempt. Its end is what makes the member give the request up.
policy_client_actor::behavior_type relay(policy_client_actor::pointer self,
                                         const policy_client_actor& member, milliseconds limit) {
  return {
      [](atom::status) { return Message<wire::Snapshot>{}; },
      [=](atom::complete, const envelope& env, const Message<wire::CompletionRequest>& request) {
        auto answer = self->make_response_promise<Message<wire::CompletionResult>>();
        self->request(member, limit, atom::complete_v, env, request)
            .then(
                [=](const Message<wire::CompletionResult>& x) mutable {
                  answer.deliver(x);
                  self->quit();
                },
                [=](caf::error& why) mutable {
                  answer.deliver(std::move(why));
                  self->quit();
                });
        return answer;
      },
  };
}

// Engines name their versions themselves; where they do not, the client puts the system's
// fingerprint in their place, and what a user has declared says more than that.
bool tells_versions(const policy_config& x) {
  return x.kind == server_kind::vllm || x.kind == server_kind::sglang;
}

} // namespace

policy_pool_state::policy_pool_state(policy_pool_actor::pointer self) : self_(self) {
  // nop
}

policy_pool_state::~policy_pool_state() {
  abort({fault_class::infrastructure, "cancelled", "the policy pool has ended", {}});
}

policy_pool_state::time_point policy_pool_state::now() const {
  return self_->clock().now();
}

// -- requests ---------------------------------------------------------------------------------

policy_pool_state::promise
policy_pool_state::accept(const envelope& env, const Message<wire::CompletionRequest>& request) {
  job x;
  auto admitted = x.admit(self_, next_job_++, env, request, default_deadline);
  auto result = x.answer;
  if (!admitted) {
    ++failed_;
    x.answer.deliver(failed_result(admitted.error(), {}, 0, 0));
    return result;
  }
  x.session = admitted->session.empty() ? mix(x.id, 0) : hash_of(admitted->session);
  x.exact = admitted->exact_tokens;
  x.timer = x.deadline;
  timers_.emplace(x.timer, x.id);
  askers_.watch(self_, x.asker);
  auto& kept = jobs_.emplace(x.id, std::move(x)).first->second;
  place(kept);
  look_later();
  return result;
}

uint64_t policy_pool_state::rank(const job& x, const server& at) const {
  return mix(x.session, hash_of(at.name));
}

// The first in the session's order: of those that are well, else of those that serve.
policy_pool_state::server_ptr policy_pool_state::choose(const job& x, bool healthy_only) const {
  server_ptr best;
  bool best_well = false;
  for (const auto& [key, at] : servers_) {
    if (at->state != server_state::serving || x.tried.contains(at->number) || !fits(x, *at))
      continue;
    auto well = at->health.allows(now());
    if (!well && (healthy_only || best_well)) continue;
    if (!best || well != best_well || rank(x, *at) > rank(x, *best)) {
      best = at;
      best_well = well;
    }
  }
  return best;
}

// REQUIRES: it is at no server.
void policy_pool_state::place(job& x) {
  auto to = choose(x);
  // The job has tried every server and must leave the last one: an earlier one may be well again.
  if (!to && any_serving(x)) {
    x.tried.clear();
    to = choose(x);
  }
  if (to)
    send(x, to);
  else
    waiting_.insert(x.id);
}

void policy_pool_state::place_waiting() {
  auto ids = std::move(waiting_);
  waiting_.clear();
  for (auto id : ids) place(jobs_.at(id));
}

Message<wire::CompletionRequest> policy_pool_state::request_with_deadline(const job& x) const {
  auto view = x.request.open();
  auto left = std::chrono::duration_cast<milliseconds>(x.deadline - now()).count();
  auto deadline = static_cast<uint32_t>(std::max<int64_t>(left, 1));
  if (view->getDeadlineMs() == deadline) return x.request;
  scratch_builder builder;
  builder->setRoot(*view);
  builder->getRoot<wire::CompletionRequest>().setDeadlineMs(deadline);
  return Message<wire::CompletionRequest>{*builder};
}

void policy_pool_state::send(job& x, const server_ptr& to) {
  x.attempt = next_attempt_++;
  x.sent = now();
  x.at = to;
  x.trial = to->health.begin();
  x.weights = to->weights;
  x.weight_changes = to->weight_changes;
  ++to->in_flight;
  auto left = std::chrono::duration_cast<milliseconds>(x.deadline - now());
  auto limit = std::max(left, milliseconds{0}) + relay_grace;
  x.relay = self_->spawn(relay, to->client, limit);
  auto heard = [this, id = x.id, attempt = x.attempt](const result_message& result) {
    on_result(id, attempt, result);
  };
  self_->request(x.relay, limit + relay_grace, atom::complete_v, x.env, request_with_deadline(x))
      .then(heard, [heard](caf::error& why) {
        error said{fault_class::infrastructure,
                   "policy_client_lost",
                   "failed to get an answer of the server's client: " + from_caf(why).message,
                   {}};
        heard(failed_result(said, {}, 0, 0));
      });
}

// The member gives the request up, if it has it still.
void policy_pool_state::leave(job& x) {
  if (x.attempt == 0) return;
  caf::anon_send_exit(x.relay, caf::exit_reason::user_shutdown);
  x.relay = nullptr;
  x.attempt = 0;
  auto from = std::move(x.at);
  x.at = nullptr;
  --from->in_flight;
  from->health.release(x.trial);
  x.trial = false;
  end_if_drained(from);
}

void policy_pool_state::move(job& x) {
  ++x.moves;
  ++failed_over_;
  ++x.at->failed_over;
  x.tried.insert(x.at->number);
  leave(x);
  place(x);
}

void policy_pool_state::on_result(uint64_t id, uint64_t attempt, const result_message& result) {
  auto i = jobs_.find(id);
  // An attempt that was given up may still answer.
  if (i == jobs_.end() || i->second.attempt != attempt) return;
  auto& x = i->second;
  auto why = fault_of(result.open()->getFault());
  // The client of the last server knows only of the time that the others have left it.
  if (why.category == "answer_overdue" && !x.mostly_since(x.sent)) return fail(x, came_late(x));
  if (why.cls == fault_class::infrastructure || why.cls == fault_class::configuration)
    on_fault(x, why, result);
  else
    on_answer(x, result);
}

void policy_pool_state::on_answer(job& x, const result_message& result) {
  auto& at = *x.at;
  at.health.succeed();
  ++at.done;
  ++completed_;
  auto view = result.open();
  auto tokens = std::max<uint32_t>(view->getTokenIds().size(), view->getCompletionTokens());
  auto told = view->getWeightVersions().size() > 0 && tells_versions(at.config);
  auto span = told
                  ? std::nullopt
                  : span_of({x.weights, at.weights, x.weight_changes != at.weight_changes}, tokens);
  if (!span && x.moves == 0) return finish(x, result);
  scratch_builder builder;
  builder->setRoot(*view);
  auto copy = builder->getRoot<wire::CompletionResult>();
  copy.setAttempts(view->getAttempts() + x.moves);
  if (span) {
    auto one = copy.initWeightVersions(1)[0];
    one.setVersion(span->version);
    one.setStart(span->start);
    one.setEnd(span->end);
  }
  finish(x, result_message{*builder});
}

// A fault of the configuration is this server's too: its key, its model. The asker hears of it
// when every server has said so.
void policy_pool_state::on_fault(job& x, const error& why, const result_message& result) {
  auto at = x.at;
  at->last_error = why.message;
  ++at->failed;
  at->health.fail(now(), x.trial, mix(x.session, x.attempt));
  x.tried.insert(at->number);
  auto has_left = x.deadline > now();
  // The deadline cut the last attempt short, so its error says nothing.
  if (why.category != "policy_timeout" || x.last.message.empty()) x.last = why;
  if (has_left && (choose(x) || at->state != server_state::serving)) return move(x);
  // Only causes of the same class: a fault of the configuration ends a run.
  if (x.last.cls == why.cls && x.last.category != why.category) return fail(x, all_failed(x));
  ++failed_;
  finish(x, result);
}

// An answer that is late because its request waited elsewhere before.
error policy_pool_state::came_late(const job& x) const {
  if (!x.last.message.empty()) return all_failed(x);
  using seconds = std::chrono::duration<double>;
  return {fault_class::infrastructure, "policy_timeout",
          fmt::format("failed to complete a request: {} had it for {:.1f} of {:.1f} s", x.at->name,
                      seconds(x.deadline - x.sent).count(),
                      seconds(x.deadline - x.started).count()),
          "raise policy.timeout_ms, or attach policy servers before the run"};
}

error policy_pool_state::all_failed(const job& x) const {
  auto result = x.last;
  result.message = fmt::format(
      "failed to complete a request within {:.1f} s and {} attempts at the "
      "attached servers; the last that said why: {}",
      std::chrono::duration<double>(now() - x.started).count(), x.moves + 1, x.last.message);
  result.hint = "`kernelmill policy list` shows how they are";
  return result;
}

void policy_pool_state::finish(job& x, result_message result) {
  leave(x);
  waiting_.erase(x.id);
  timers_.erase({x.timer, x.id});
  askers_.unwatch(self_, x.asker);
  x.answer.deliver(std::move(result));
  jobs_.erase(x.id);
}

void policy_pool_state::fail(job& x, error why) {
  ++failed_;
  auto seconds = std::chrono::duration<double>(now() - x.started).count();
  finish(x, failed_result(why, {}, x.moves, seconds));
}

error policy_pool_state::expired(const job& x) const {
  auto seconds = std::chrono::duration<double>(x.deadline - x.started).count();
  if (x.attempt == 0 && x.exact && any_serving())
    return {fault_class::infrastructure, "policy_unavailable",
            fmt::format("failed to complete a request within {:.1f} s: policy.tokens is exact, and "
                        "no attached policy server takes token ids",
                        seconds),
            "attach one of kind vllm, sglang or llamacpp, or use policy.tokens=chat"};
  if (x.attempt == 0)
    return {fault_class::infrastructure, "policy_unavailable",
            fmt::format("failed to complete a request within {:.1f} s: no policy server was "
                        "attached",
                        seconds),
            "attach one with `kernelmill policy attach URL`"};
  return {fault_class::infrastructure, "policy_timeout",
          fmt::format("failed to complete a request: the client of {} has not answered within "
                      "{:.1f} s",
                      x.at->name, seconds),
          "look at the policy server's load"};
}

void policy_pool_state::expire() {
  auto t = now();
  while (!timers_.empty() && timers_.begin()->first <= t) {
    auto& x = jobs_.at(timers_.begin()->second);
    if (x.attempt == 0 || t >= x.deadline + grace) {
      fail(x, expired(x));
    } else {
      timers_.erase(timers_.begin());
      x.timer = x.deadline + grace;
      timers_.emplace(x.timer, x.id);
    }
  }
}

void policy_pool_state::drop_asker(const caf::actor_addr& asker) {
  error why{fault_class::infrastructure, "cancelled", "the asker has ended", {}};
  for (auto id : askers_.drop(asker, jobs_)) fail(jobs_.at(id), why);
}

void policy_pool_state::abort(const error& why) {
  while (!jobs_.empty()) fail(jobs_.begin()->second, why);
  for (auto& [key, x] : servers_)
    if (x->client) caf::anon_send_exit(x->client, caf::exit_reason::user_shutdown);
  servers_.clear();
}

// -- time -------------------------------------------------------------------------------------

void policy_pool_state::look() {
  looking_ = false;
  expire();
  auto servers = servers_; // ends of drains change it
  for (auto& [key, x] : servers) {
    if (x->state == server_state::draining && now() >= x->drain_until) evict(x);
    if (servers.size() > 1) examine(x);
  }
  look_later();
}

// Ticks only while there is work: virtual time stands still otherwise.
void policy_pool_state::look_later() {
  if (looking_ || jobs_.empty()) return;
  looking_ = true;
  self_->delayed_send(self_, look_interval, atom::tick_v);
}

// -- the actor --------------------------------------------------------------------------------

namespace {

caf::result<void> as_result(const expected<void>& x) {
  if (!x) return to_caf(x.error());
  return caf::unit;
}

} // namespace

policy_pool_actor::behavior_type
policy_pool(policy_pool_actor::stateful_pointer<policy_pool_state> self,
            policy_member_factory factory) {
  self->state.start(std::move(factory));
  self->set_down_handler([self](caf::down_msg& x) { self->state.on_down(x.source); });
  self->set_exit_handler([self](caf::exit_msg& x) {
    if (x.reason == caf::exit_reason::normal) return;
    self->state.abort({fault_class::infrastructure, "cancelled", "the policy pool has ended", {}});
    self->quit(x.reason);
  });
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot()); },
      [self](atom::complete, const envelope& env, const Message<wire::CompletionRequest>& request) {
        return self->state.accept(env, request);
      },
      [self](atom::attach, const Message<wire::PolicyServer>& x) {
        return as_result(self->state.attach(*x.open()));
      },
      [self](atom::detach, const std::string& name, uint32_t patience_ms) {
        return as_result(self->state.detach(name, milliseconds{patience_ms}));
      },
      [self](atom::weights, const std::string& name, const std::string& version) {
        return as_result(self->state.declare(name, version));
      },
      [self](atom::tick) { self->state.look(); },
  };
}

policy_pool_actor spawn_policy_pool(caf::actor_system& system, logger log) {
  return system.spawn(policy_pool, [&system, log = std::move(log)](policy_config config) {
    config.log = log;
    return system.spawn(http_policy_client, std::move(config));
  });
}

} // namespace kernelmill
