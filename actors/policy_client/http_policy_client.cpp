#include "actors/policy_client/http_policy_client.hpp"

#include <algorithm>

#include <caf/stateful_actor.hpp>
#include <fmt/format.h>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/http/http_client.hpp"
#include "actors/policy_client/http/open_files.hpp"
#include "actors/policy_client/protocol/chat_calls.hpp"
#include "actors/snapshots.hpp"
#include "messages/base/hash.hpp"

namespace kernelmill {

using std::chrono::milliseconds;

namespace {

// How long all requests get a configuration's fault before the server is asked once more.
constexpr milliseconds hold_time{10000};

// The transport's own limit is a net below the actor's deadline.
constexpr uint32_t transport_grace_ms = 2000;

// A streamed token comes in a frame of a few hundred bytes.
constexpr size_t stream_overhead = 64;

// A token with its log-probability takes many times the bytes of its text.
constexpr size_t token_overhead = 16;

int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

} // namespace

http_policy_client_state::http_policy_client_state(policy_client_actor::pointer self)
    : self_(self) {
  // nop
}

http_policy_client_state::~http_policy_client_state() {
  abort({fault_class::infrastructure, "cancelled", "the policy client has ended", {}});
  tell_held();
}

http_policy_client_state::time_point http_policy_client_state::now() const {
  return self_->clock().now();
}

void http_policy_client_state::start(policy_config config) {
  config_ = std::move(config);
  breaker_ = circuit_breaker{config_.breaker_threshold};
  window_ = adaptive_window{config_.max_in_flight, config_.first_window};
  auto refuse = [this](const error& why) {
    held_ = last_error_ = why;
    held_until_ = time_point::max();
  };
  if (auto checked = validate(config_); !checked) return refuse(checked.error());
  auto key = load_secret(config_.api_key_env, config_.api_key_file);
  if (!key) return refuse(key.error());
  key_ = *key;
  if (key_) {
    hides_key_ = std::make_shared<const log_redaction>(
        [key = key_](std::string text) { return key->redact(std::move(text)); });
    config_.log.hide(hides_key_);
  }
  transport_ = config_.transport;
  if (transport_) return;
  allow_open_files(open_files_for(config_.max_in_flight));
  auto client = http_client::start({config_.keep_alive_s, config_.max_in_flight, config_.ca_file});
  if (!client) return refuse(client.error());
  transport_ = std::move(*client);
}

// -- admission --------------------------------------------------------------------------------

http_policy_client_state::promise
http_policy_client_state::accept(const envelope& env,
                                 const Message<wire::CompletionRequest>& request) {
  job x;
  auto admitted =
      x.admit(self_, next_job_++, env, request, milliseconds{config_.request_timeout_ms});
  auto result = x.answer;
  if (!admitted || now() < held_until_) {
    ++failed_;
    x.answer.deliver(failed_result(admitted ? held_ : admitted.error(), {}, 0, 0));
    return result;
  }
  x.session = admitted->session;
  x.turn = admitted->turn;
  if (config_.exact_tokens || (admitted->exact_tokens && takes_token_ids(config_.kind)))
    x.tokens = std::make_shared<token_exchange>(
        request, chat_options{config_.model, config_.kind, false, config_.max_tokens_field, true},
        model_known_);
  askers_.watch(self_, x.asker);
  // The latest as a rule, so the hint spares a walk through a large tree.
  x.at_deadline = timers_.emplace_hint(timers_.end(), x.deadline, x.id);
  x.at_due = timers_.end();
  queue_.push(env, x.id);
  jobs_.emplace(x.id, std::move(x));
  probe();
  pump();
  deliver();
  schedule();
  return result;
}

void http_policy_client_state::pump() {
  while (in_flight_ < window_.size() && !queue_.empty() && breaker_.allows(now())) {
    auto id = queue_.pop();
    if (auto i = jobs_.find(*id); i != jobs_.end()) dispatch(i->second);
  }
}

void http_policy_client_state::dispatch(job& x) {
  ++x.attempts;
  ++attempts_;
  if (x.attempts > 1) ++retries_;
  x.history.model_known = model_known_;
  if (!first_attempt_) first_attempt_ = now();
  send(x);
}

// An attempt in token ids consists of several requests, one after the other.
void http_policy_client_state::send(job& x) {
  ++in_flight_;
  x.sent = now();
  x.trial = breaker_.begin();
  auto stream = config_.stream ? std::make_shared<chat_stream>(config_.max_response_bytes)
                               : std::shared_ptr<chat_stream>{};
  x.stream = stream;
  attempt_answered event{x.id, x.attempts, nullptr, stream};
  caf::weak_actor_ptr self{self_->ctrl()};
  x.transfer = transport_->submit(
      make_request(x, stream), [self, inbox = inbox_, event](http_response response) mutable {
        event.response = std::make_shared<http_response>(std::move(response));
        tell_policy_client(self, *inbox, std::move(event));
      });
}

http_request http_policy_client_state::make_request(job& x,
                                                    const std::shared_ptr<chat_stream>& stream) {
  http_request result;
  result.bearer = key_;
  result.connect_timeout_ms = config_.connect_timeout_ms;
  result.body_limit = config_.max_response_bytes * (stream     ? stream_overhead
                                                    : x.tokens ? token_overhead
                                                               : 1);
  auto left = std::chrono::duration_cast<milliseconds>(x.deadline - now()).count();
  result.timeout_ms = static_cast<uint32_t>(std::max<int64_t>(left, 0)) + transport_grace_ms;
  x.request_id = attempt_id(x.session, x.turn, x.attempts, config_.request_salt);
  if (x.tokens) {
    auto wanted = x.tokens->next(x.request_id, x.max_tokens);
    result.url =
        wanted.from_root ? root_endpoint(config_, wanted.path) : endpoint(config_, wanted.path);
    result.body = std::move(wanted.body);
  } else {
    auto view = x.request.open();
    result.url = endpoint(config_, "chat/completions");
    result.body = chat_body(*view, {config_.model, config_.kind, config_.stream,
                                    config_.max_tokens_field, false, x.max_tokens});
  }
  result.headers = attempt_headers(x.session, x.request_id, x.env);
  if (stream) {
    result.stall_ms = config_.stall_ms;
    result.headers.emplace_back("Accept", "text/event-stream");
    result.on_data = [stream](std::string_view bytes) { return stream->feed(bytes); };
  }
  return result;
}

// -- what comes back --------------------------------------------------------------------------

void http_policy_client_state::handle(const policy_event& event) {
  if (auto over = std::get_if<timer_over>(&event)) take(*over);
  for (auto& x : inbox_->take()) {
    std::visit([this](auto& what) { take(what); }, x);
    pump(); // at once, so that the window sees itself used
  }
  pump();
  deliver();
  schedule();
}

void http_policy_client_state::take(inbox_filled) {
  // nop: the inbox is looked at whatever the event is
}

void http_policy_client_state::take(attempt_answered& answer) {
  auto i = jobs_.find(answer.job);
  // An attempt that was given up may still answer.
  if (i != jobs_.end() && i->second.transfer != 0 && i->second.attempts == answer.attempt)
    on_response(i->second, answer);
}

void http_policy_client_state::on_response(job& x, attempt_answered& event) {
  auto trial = x.trial;
  auto reading = x.tokens ? x.tokens->read(*event.response)
                          : read_attempt(*event.response, event.stream.get());
  auto& [signal, answer, understood] = reading;
  reached_ = reached_ || signal.status != 0;
  if (x.overdue && signal.transport == transport_fault::cancelled) {
    leave_flight(x, true);
    x.partial = std::move(answer);
    return judge_overdue(x);
  }
  auto asked = x.request.open();
  signal.asked_tokens = x.max_tokens > 0 ? x.max_tokens : asked->getSampling().getMaxTokens();
  signal.tools = asked->getTools().size() > 0;
  if (understood && !(x.tokens && x.tokens->more())) settle_calls(answer, *asked);
  signal.surplus_calls = answer.surplus_calls;
  auto decision = classify(signal, x.history, unix_now());
  if (x.tokens && !x.tokens->lacks().empty() && decision.action != attempt_action::retry)
    decision = without_token_ids(config_.base_url, x.tokens->lacks());
  if (decision.action == attempt_action::answer) last_sign_ = now();
  adapt(x, reading, decision.action == attempt_action::answer);
  leave_flight(x, true);
  if (key_) decision.fault.message = key_->redact(std::move(decision.fault.message));
  if (decision.sick)
    breaker_.fail(now(), trial, mix(hash_of(x.session), x.turn, x.attempts));
  else if (signal.status != 0)
    breaker_.succeed(); // whatever it says, it is there and answers
  else
    breaker_.release(trial);
  switch (decision.action) {
    case attempt_action::answer:
      if (x.tokens && x.tokens->more()) return send(x);
      return succeed(x, std::move(answer));
    case attempt_action::retry:
      if (!decision.max_tokens) return retry_or_give_up(x, decision);
      x.max_tokens = *decision.max_tokens;
      return dispatch(x);
    case attempt_action::stop:
      if (decision.fault.category == "policy_not_found" && !models_.empty())
        decision.fault.hint = fmt::format("the server serves {}", fmt::join(models_, ", "));
      if (decision.stops_admission) return hold(decision.fault); // it is among those that wait
      return fail(x, decision.fault, std::move(answer));
  }
}

void http_policy_client_state::retry_or_give_up(job& x, const attempt_decision& decision) {
  last_error_ = x.last = decision.fault;
  x.history.doubtful += decision.doubtful ? 1 : 0;
  if (first_contact_failed()) return;
  auto left = std::chrono::duration_cast<milliseconds>(x.deadline - now());
  auto wait = next_wait(decision, x.attempts, left, mix(hash_of(x.session), x.turn, x.attempts));
  if (!wait) return expire(x);
  tell_retry(x, *wait);
  ++waiting_;
  x.at_due = timers_.emplace(now() + *wait, x.id).first;
}

// A server that was never there is a wrong address or was never started: the user should not wait
// for an episode's deadline to hear that. Ends all jobs, the current one too.
bool http_policy_client_state::first_contact_failed(bool at_deadline) {
  if (reached_ || config_.first_contact_ms == 0 || !first_attempt_) return false;
  // A server that works on a request is there, however long it takes.
  if (!at_deadline && last_error_.category != "policy_unreachable") return false;
  auto away = now() - *first_attempt_;
  if (!at_deadline && away < milliseconds{config_.first_contact_ms}) return false;
  first_attempt_.reset();
  std::string_view cause = last_error_.message, said = "failed to reach the policy server: ";
  if (cause.starts_with(said)) cause.remove_prefix(said.size());
  error why{fault_class::configuration, "policy_unreachable",
            fmt::format("failed to reach the policy server at {} for {:.1f} s: {}",
                        config_.base_url, std::chrono::duration<double>(away).count(), cause),
            "start the server, correct policy.base_url, or raise policy.first_contact_ms"};
  hold(why);
  abort(why);
  return true;
}

void http_policy_client_state::hold(const error& why) {
  if (!is_held(why)) {
    tell_held();
    told_held_ = false;
  }
  held_ = last_error_ = why;
  held_until_ = now() + hold_time;
  // Waiting requests would get the same answer. Requests in flight may still succeed.
  std::vector<uint64_t> idle;
  for (const auto& [id, x] : jobs_)
    if (x.transfer == 0) idle.push_back(id);
  for (auto id : idle) fail(jobs_.at(id), why);
}

void http_policy_client_state::take(timer_over which) {
  if (which.number == timer_number_) timer_at_ = time_point::max();
  auto t = now();
  while (!timers_.empty() && timers_.begin()->first <= t) {
    auto& x = jobs_.at(timers_.begin()->second);
    if (timers_.begin() == x.at_deadline) {
      expire(x);
    } else {
      stop_waiting(x);
      queue_.push(x.env, x.id);
    }
  }
  poll_metrics();
  // A connection attempt that hangs brings no response that would lead here.
  if (!jobs_.empty()) first_contact_failed();
}

void http_policy_client_state::expire(job& x) {
  if (x.overdue) return judge_overdue(x);
  if (stop_at_deadline(x)) return;
  give_up(x);
}

void http_policy_client_state::give_up(job& x) {
  if (x.last.category == "policy_unreachable" && first_contact_failed(true)) return;
  auto seconds = std::chrono::duration<double>(x.deadline - x.started).count();
  error why{fault_class::infrastructure, "policy_timeout",
            fmt::format("failed to complete {}: no answer within {:.1f} s and {} attempts",
                        describe(x), seconds, x.attempts),
            "raise the deadline, or look at the policy server's load"};
  if (!x.last.message.empty()) {
    // The cause that lasted until the deadline says more than the deadline.
    why.category = x.last.category;
    why.message += "; the last one: " + x.last.message;
    if (!x.last.hint.empty()) why.hint = x.last.hint;
  }
  fail(x, std::move(why));
}

// -- the actor --------------------------------------------------------------------------------

policy_client_actor::behavior_type
http_policy_client(policy_client_actor::stateful_pointer<http_policy_client_state> self,
                   policy_config config) {
  self->state.start(std::move(config));
  self->set_down_handler([self](caf::down_msg& x) { self->state.drop_asker(x.source); });
  self->set_exit_handler([self](caf::exit_msg& x) {
    if (x.reason == caf::exit_reason::normal) return;
    self->state.abort(
        {fault_class::infrastructure, "cancelled", "the policy client has ended", {}});
    self->quit(x.reason);
  });
  // The interface lists what other actors may send. The actor's own events come in beside it.
  self->set_default_handler(
      [self](caf::scheduled_actor* ptr, caf::message_view& x) -> caf::result<caf::message> {
        if (!x.content().match_elements<policy_event>()) return caf::print_and_drop(ptr, x);
        auto event = x.content().get_as<policy_event>(0);
        self->state.handle(event);
        return caf::message{};
      });
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot()); },
      [self](atom::complete, const envelope& env, const Message<wire::CompletionRequest>& request) {
        return self->state.accept(env, request);
      },
  };
}

} // namespace kernelmill
