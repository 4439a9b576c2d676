// The policy client's questions to a server about itself, and its reaction to the server's load and
// to its silence.

#include <utility>

#include <caf/send.hpp>
#include <fmt/format.h>

#include "actors/policy_client/completion_result.hpp"
#include "actors/policy_client/http_policy_client.hpp"
#include "actors/policy_client/server_metrics.hpp"

namespace kernelmill {

namespace {

constexpr uint32_t probe_timeout_ms = 10000;

// A server whose metrics are not on may be started again with them.
constexpr std::chrono::seconds poll_interval{3};
constexpr std::chrono::seconds poll_interval_without{60};

// How long a server has to show that it is well, once a request's time is over. Those that ask
// this client wait little longer.
constexpr std::chrono::milliseconds control_time{1000};

// A server that lists its models and completes nothing is not well.
constexpr uint32_t most_overdue = 8;

constexpr uint32_t swallowed_before_telling = 3;

// Servers put the status that they would have sent into the code of an error within a 200.
bool refused_for_load(const attempt_signal& x) {
  if (x.error_within) return x.server.code == "429" || x.server.code == "503";
  return x.status == 429 || x.status == 503;
}

// What stands in front of an engine answers for one that is dead or overloaded, too.
bool is_well(long status) {
  return status >= 200 && status < 500 && status != 408 && status != 429;
}

} // namespace

bool policy_inbox::put(policy_event event) {
  std::lock_guard guard{mutex_};
  events_.push_back(std::move(event));
  return events_.size() == 1;
}

std::vector<policy_event> policy_inbox::take() {
  std::lock_guard guard{mutex_};
  return std::exchange(events_, {});
}

void tell_policy_client(const caf::weak_actor_ptr& to, policy_inbox& inbox, policy_event event) {
  if (!inbox.put(std::move(event))) return;
  if (auto actor = caf::actor_cast<caf::strong_actor_ptr>(to))
    caf::anon_send(caf::actor_cast<policy_event_sink>(actor), policy_event{inbox_filled{}});
}

template <class Answered>
void http_policy_client_state::get(const std::string& url) {
  http_request request;
  request.post = false;
  request.url = url;
  request.bearer = key_;
  request.connect_timeout_ms = config_.connect_timeout_ms;
  request.timeout_ms = probe_timeout_ms;
  caf::weak_actor_ptr self{self_->ctrl()};
  transport_->submit(std::move(request), [self, inbox = inbox_](http_response response) {
    tell_policy_client(self, *inbox,
                       Answered{std::make_shared<http_response>(std::move(response))});
  });
}

// Asks once what the server serves. No completion depends on the answer: a server without this
// endpoint is as good as any.
void http_policy_client_state::probe() {
  if (probed_) return;
  probed_ = true;
  get<models_answered>(endpoint(config_, "models"));
}

void http_policy_client_state::take(models_answered& answer) {
  const auto& response = *answer.response;
  if (response.fault == transport_fault::none && response.status == 200)
    models_ = parse_model_list(response.body);
  reached_ = reached_ || response.status != 0;
  asking_sign_ = false;
  if (is_well(response.status)) note_sign();
  // What the probe cannot do, the completion will report.
  if (response.fault != transport_fault::none) probed_ = reached_;
}

void http_policy_client_state::poll_metrics() {
  if (config_.kind == server_kind::openai || polling_ || !reached_ || in_flight_ == 0) return;
  if (now() < next_poll_) return;
  polling_ = true;
  get<metrics_answered>(metrics_address(config_.base_url));
}

void http_policy_client_state::take(metrics_answered& answer) {
  const auto& response = *answer.response;
  polling_ = false;
  if (is_well(response.status)) note_sign();
  auto load = response.fault == transport_fault::none && response.status == 200
                  ? parse_server_load(response.body)
                  : std::nullopt;
  if (load) window_.observe(now(), *load);
  next_poll_ = now() + (load ? poll_interval : poll_interval_without);
}

// -- requests whose time is over --------------------------------------------------------------

// Stops the transfer; false when the lateness is not the server's.
bool http_policy_client_state::stop_at_deadline(job& x) {
  if (x.transfer == 0 || !x.mostly_since(x.sent)) return false;
  x.overdue = true;
  x.judged_at = now() + control_time;
  timers_.erase(x.at_deadline);
  x.at_deadline = timers_.emplace(x.judged_at, x.id).first;
  transport_->cancel(x.transfer);
  if (gave_sign(x) || std::exchange(asking_sign_, true)) return true;
  get<models_answered>(endpoint(config_, "models"));
  return true;
}

// Whether the server was well in the later half of the request's time.
bool http_policy_client_state::gave_sign(const job& x) const {
  return last_sign_ >= x.sent + (x.deadline - x.sent) / 2;
}

void http_policy_client_state::note_sign() {
  last_sign_ = now();
  std::vector<uint64_t> overdue;
  for (const auto& [id, x] : jobs_)
    if (x.overdue) overdue.push_back(id);
  for (auto id : overdue) judge_overdue(jobs_.at(id));
}

void http_policy_client_state::judge_overdue(job& x) {
  if (now() < x.judged_at && !(x.partial && gave_sign(x))) return;
  attempt_signal signal;
  signal.overdue = true;
  signal.server_works = gave_sign(x) && overdue_in_a_row_ < most_overdue;
  signal.detail =
      fmt::format("{:.1f} s", std::chrono::duration<double>(x.deadline - x.started).count());
  auto decision = classify(signal, x.history, 0);
  if (decision.fault.cls != fault_class::policy) return give_up(x);
  ++overdue_in_a_row_;
  fail(x, decision.fault, std::move(x.partial).value_or(completion_answer{}));
}

// -- parsers of the server --------------------------------------------------------------------

void http_policy_client_state::note_swallowed(const completion_answer& answer) {
  auto hint = swallowed_hint(answer, config_.kind);
  if (hint.empty()) {
    swallowed_in_a_row_ = 0;
    swallows_.clear();
  } else if (++swallowed_in_a_row_ == swallowed_before_telling) {
    swallows_ =
        fmt::format("{} answers in a row had no content: {}", swallowed_before_telling, hint);
    config_.log.warn({name, {}, {}, {}}, config_.base_url + ": " + swallows_);
  }
}

// REQUIRES: the attempt still counts as in flight.
void http_policy_client_state::adapt(const job& x, const attempt_reading& reading, bool good) {
  if (good)
    window_.succeed(now(), in_flight_);
  else if (refused_for_load(reading.signal))
    window_.refuse(now(), x.sent);
}

} // namespace kernelmill
