// How jobs of the policy client end, what it looks at the clock for, and what it says of itself.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/http_policy_client.hpp"
#include "actors/snapshots.hpp"

namespace kernelmill {

using std::chrono::milliseconds;

namespace {

// On virtual time, which passes with work alone, the timer must not keep the actor alive for long.
constexpr milliseconds longest_timer{250};

} // namespace

// -- ends -------------------------------------------------------------------------------------

void http_policy_client_state::settle(completion_answer& answer) {
  settle_version(answer, config_.kind);
  if (key_) hide(*key_, answer);
  note_swallowed(answer);
}

void http_policy_client_state::succeed(job& x, completion_answer answer) {
  settle(answer);
  tell_held(); // of an earlier one, which is over
  model_known_ = true;
  overdue_in_a_row_ = 0;
  ++completed_;
  logprobs_dropped_ += answer.logprobs_dropped ? 1 : 0;
  prompt_tokens_ += answer.prompt_tokens;
  completion_tokens_ += answer.completion_tokens;
  auto seconds = std::chrono::duration<double>(now() - x.started).count();
  seconds_ += seconds;
  if (x.attempts > 1 && config_.log.takes(log_level::info))
    tell(log_level::info, x,
         fmt::format("{} answered at attempt {}, after {:.1f} s", config_.base_url, x.attempts,
                     seconds));
  finish(x, completed_result(answer, x.request_id, x.attempts, seconds));
}

void http_policy_client_state::fail(job& x, error why, completion_answer partial) {
  if (why.cls == fault_class::policy) settle(partial);
  ++failed_;
  last_error_ = why;
  auto level = why.category == "cancelled"      ? log_level::debug
               : why.cls == fault_class::policy ? log_level::info // a turn as any other
                                                : log_level::warn;
  if (is_held(why))
    ++ended_by_hold_;
  else if (config_.log.takes(level))
    tell(level, x, config_.base_url + ": " + render(why));
  auto seconds = std::chrono::duration<double>(now() - x.started).count();
  finish(x, failed_result(why, x.request_id, x.attempts, seconds, partial));
}

void http_policy_client_state::finish(job& x, result_message result) {
  leave_flight(x);
  stop_waiting(x);
  queue_.erase(x.env, x.id);
  timers_.erase(x.at_deadline);
  askers_.unwatch(self_, x.asker);
  answers_.emplace_back(std::move(x.answer), std::move(result));
  jobs_.erase(x.id);
}

// All answers together, after all events were handled: askers that share a worker wake once.
void http_policy_client_state::deliver() {
  if (!told_held_) tell_held();
  for (auto& [to, result] : std::exchange(answers_, {})) to.deliver(std::move(result));
}

void http_policy_client_state::stop_waiting(job& x) {
  if (x.at_due == timers_.end()) return;
  timers_.erase(x.at_due);
  x.at_due = timers_.end();
  --waiting_;
}

// `ended`: the transport has said so, and needs no word.
void http_policy_client_state::leave_flight(job& x, bool ended) {
  if (x.transfer == 0) return;
  if (!ended) transport_->cancel(x.transfer);
  x.transfer = 0;
  x.stream.reset();
  --in_flight_;
  breaker_.release(x.trial);
  x.trial = false;
}

void http_policy_client_state::abort(const error& why) {
  while (!jobs_.empty()) fail(jobs_.begin()->second, why);
  deliver();
}

bool http_policy_client_state::is_held(const error& why) const {
  return now() < held_until_ && why.category == held_.category;
}

// One line for all requests that ended by it together, and one at the end for those that came
// later.
void http_policy_client_state::tell_held() {
  auto count = std::exchange(ended_by_hold_, 0);
  if (count == 0) return;
  auto text = config_.base_url + ": " + render(held_);
  if (told_held_)
    text += fmt::format("; {} more request{} ended so", count, count == 1 ? "" : "s");
  else if (count > 1)
    text += fmt::format("; {} requests ended so", count);
  told_held_ = true;
  config_.log.error({name, {}, {}, {}}, text);
}

void http_policy_client_state::drop_asker(const caf::actor_addr& asker) {
  error why{fault_class::infrastructure, "cancelled", "the asker has ended", {}};
  for (auto id : askers_.drop(asker, jobs_)) fail(jobs_.at(id), why);
  pump();
  deliver();
  schedule();
}

// One timer, for what is due first. An earlier one replaces it, and the late one finds nothing.
void http_policy_client_state::schedule() {
  if (jobs_.empty()) return;
  auto t = now();
  auto at =
      std::min(t + longest_timer, timers_.empty() ? time_point::max() : timers_.begin()->first);
  if (breaker_.current() == circuit_breaker::state::open && breaker_.open_until() > t)
    at = std::min(at, breaker_.open_until());
  if (timer_at_ <= at) return;
  timer_at_ = at;
  auto wait = std::max(std::chrono::ceil<milliseconds>(at - t), milliseconds{0});
  self_->delayed_anon_send(caf::actor_cast<policy_event_sink>(self_), wait,
                           policy_event{timer_over{++timer_number_}});
}

std::string http_policy_client_state::describe(const job& x) const {
  return fmt::format("turn t{} of {}", x.turn, x.session.empty() ? "a conversation" : x.session);
}

// Sessions are called "RUN/g0.e1".
void http_policy_client_state::tell(log_level level, const job& x, const std::string& what) const {
  auto slash = x.session.rfind('/');
  auto named = slash != std::string::npos;
  auto run = std::string_view{x.session}.substr(0, named ? slash : 0);
  auto episode = std::string_view{x.session}.substr(named ? slash + 1 : 0);
  config_.log.write(level, {name, run, episode, x.turn}, what);
}

void http_policy_client_state::tell_retry(const job& x, milliseconds wait) const {
  if (!config_.log.takes(log_level::warn)) return;
  tell(log_level::warn, x,
       fmt::format("{}: attempt {} failed, the next in {:.1f} s: {}", config_.base_url, x.attempts,
                   std::chrono::duration<double>(wait).count(), x.last.message));
}

// -- introspection ----------------------------------------------------------------------------

std::vector<tried_request> http_policy_client_state::tried_requests() const {
  constexpr size_t enough_to_show = 1000;
  auto wall = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
  std::vector<tried_request> result;
  for (const auto& [id, x] : jobs_) {
    if (x.last.message.empty()) continue;
    auto age = std::chrono::duration<double>(now() - x.started);
    auto state = x.transfer != 0             ? "in_flight"
                 : x.at_due != timers_.end() ? "backing_off"
                                             : "queued";
    std::chrono::duration<double> due{0};
    if (x.at_due != timers_.end()) due = x.at_due->first - now();
    result.push_back({x.session, state, (wall - age).count(), x.attempts, x.last.message,
                      due.count(), x.last.category, x.last.hint});
    if (result.size() == enough_to_show) break;
  }
  return result;
}

std::vector<streaming_request> http_policy_client_state::streaming_requests() const {
  constexpr size_t enough_to_show = 256;
  std::vector<streaming_request> result;
  for (const auto& [id, x] : jobs_) {
    if (!x.stream || x.session.empty()) continue;
    auto seen = x.stream->glimpse();
    if (seen.bytes == 0) continue;
    // A server may repeat the key that it was given, and a part of it cannot be told from a word.
    if (key_) seen.tail.clear();
    result.push_back({x.session, seen.bytes, std::move(seen.tail)});
    if (result.size() == enough_to_show) break;
  }
  return result;
}

Message<wire::Snapshot> http_policy_client_state::snapshot() {
  std::string waiting;
  uint64_t run = 0;
  queue_.for_each_in_turn([&](uint64_t id) { append_waiting(waiting, run, jobs_.at(id).env); });
  auto tried_again = std::count_if(jobs_.begin(), jobs_.end(),
                                   [](const auto& x) { return !x.second.last.message.empty(); });
  std::vector<std::pair<const char*, double>> numbers{
      {"in_flight", in_flight_},
      {"window", window_.size()},
      {"window_limit", window_.limit()},
      {"queued", static_cast<double>(queue_.size())},
      {"backing_off", waiting_},
      {"tried_again", static_cast<double>(tried_again)},
      {"completed", static_cast<double>(completed_)},
      {"failed", static_cast<double>(failed_)},
      {"attempts", static_cast<double>(attempts_)},
      {"retries", static_cast<double>(retries_)},
      {"prompt_tokens", static_cast<double>(prompt_tokens_)},
      {"completion_tokens", static_cast<double>(completion_tokens_)},
      {"logprobs_dropped", static_cast<double>(logprobs_dropped_)},
      {"mean_seconds", completed_ > 0 ? seconds_ / static_cast<double>(completed_) : 0.0},
  };
  auto detail = fmt::format("{} at {}; window of {} ({})", config_.model, config_.base_url,
                            window_.size(), window_.why(now()));
  if (!last_error_.message.empty()) detail += "; last error: " + last_error_.message;
  if (!swallows_.empty()) detail += "; " + swallows_;
  auto state = now() < held_until_ ? std::string{"stopped"} : std::string{breaker_.name()};
  return make_snapshot(config_.model, state, detail, numbers, tried_requests(), waiting,
                       streaming_requests());
}

} // namespace kernelmill
