#include "launch/analysis/watch/policy_health.hpp"

#include <array>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

namespace {

// Of requests that were tried again, the one with the most attempts tells the most.
const tried_row* worst_request(const live_view& of) {
  const tried_row* worst = nullptr;
  for (const auto& [id, x] : of.tried)
    if (worst == nullptr || x.attempts > worst->attempts) worst = &x;
  return worst;
}

/// Of a pool: it knows no mean time.
bool has_answered(const live_view& of) {
  for (const auto& x : of.actors)
    if (x.role == "policy_server" && x.numbers.value("done", 0.0) > 0) return true;
  return false;
}

policy_health health_of_all(const live_view& of) {
  if (of.policy_state == "without_servers") return {"", "no server is attached", false};
  const auto* worst = worst_request(of);
  if (worst == nullptr) {
    if (of.policy_mean_seconds > 0)
      return {"", "answers in " + cli::format_seconds(of.policy_mean_seconds), true};
    if (has_answered(of)) return {"", "answers", true};
    return {"", of.policy_in_flight > 0 ? "has not answered yet" : "is not asked yet", true};
  }
  // Where every episode waits for it, the server itself is the trouble, and not one request.
  bool all = of.tried.size() + of.policy_queued >= of.live;
  auto words = !all                                ? "answers some requests"
               : answers_nonsense(worst->category) ? "answers nonsense"
                                                   : "does not answer";
  return {"",
          fmt::format("{}; {} tried again, attempt {}: {}", words, of.tried.size(), worst->attempts,
                      worst->last_error),
          false};
}

struct state_words {
  const char* state;
  const char* words;
  bool is_well;
};
constexpr std::array<state_words, 4> server_states{
    {{"serving", "serves", true},
     {"resting", "failed too often and rests before it is asked again", false},
     {"draining", "gets no new requests, and is detached when the open ones have ended", true},
     {"lost", "does not answer and gets no requests", false}}};

policy_health health_of_server(const actor_row& x) {
  auto count = [&](const char* name) { return x.numbers.value(name, 0.0); };
  policy_health result{x.id, x.state, false};
  for (const auto& known : server_states)
    if (x.state == known.state) {
      result.words = known.words;
      result.is_well = known.is_well;
    }
  result.words += fmt::format("; {:.0f} in flight, {:.0f} done", count("in_flight"), count("done"));
  if (count("failed") > 0) result.words += fmt::format(", {:.0f} failed", count("failed"));
  return result;
}

} // namespace

bool answers_nonsense(std::string_view category) {
  return category == "policy_bad_response" || category == "policy_bad_request";
}

std::vector<policy_health> health_of_policy(const live_view& of) {
  std::vector<policy_health> result{health_of_all(of)};
  for (const auto& x : of.actors)
    if (x.role == "policy_server") result.push_back(health_of_server(x));
  return result;
}

} // namespace kernelmill::watch
