#include "actors/governance/reward.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace kernelmill {

namespace {

struct named_preset {
  const char* name;
  reward_config weights;
};

// kevin: what Kevin-32B was trained with, 0.3 for a correct kernel plus its speedup; the speedup
//   is the interval's lower bound, so that noise is not rewarded. It knew no sanitizer.
// staged: rewards each step on the way, for a policy that seldom gets a kernel right; the speed
//   term is capped at 3 so that its sum with the steps stays near 1.
// correctness: only right results count, and a share of the cases is worth something.
// sparse: all or nothing.
constexpr std::array<named_preset, 4> presets{{
    {"kevin", {.correct = 0.3, .speed = 1, .speed_cap = 10, .memory_safety_rejects = false}},
    {"staged",
     {.format = 0.05,
      .build = 0.1,
      .partial = 0.15,
      .correct = 0.3,
      .speed = 0.2,
      .speed_cap = 3,
      .diagnosis = 0.1,
      .integrity_penalty = 0.5}},
    {"correctness", {.partial = 0.3, .correct = 0.7, .speed = 0}},
    {"sparse", {.correct = 1, .speed = 0}},
}};

double speed_term(const reward_facts& facts, const reward_config& config) {
  if (!facts.accepted || !facts.speedup_low || !std::isfinite(*facts.speedup_low)) return 0;
  auto most =
      facts.unchanged ? std::min(config.unchanged_speed, config.speed_cap) : config.speed_cap;
  return std::clamp(*facts.speedup_low, 0.0, most);
}

struct range {
  const char* key;
  double value;
  double low;
  double high;
};

tl::unexpected<error> out_of_range(const range& x) {
  auto number = [](double v) {
    auto text = std::to_string(v);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  };
  return configuration_error("invalid_value",
                             std::string{"failed to use "} + x.key + " = " + number(x.value) +
                                 ": it must be a number from " + number(x.low) + " to " +
                                 number(x.high),
                             std::string{"set "} + x.key + " or leave it to the preset");
}

} // namespace

reward_breakdown reward_of(const reward_facts& facts, const reward_config& config) {
  // A critical finding takes everything: a cheat must not live on its format.
  const double honest = facts.critical ? 0 : 1;
  reward_breakdown result;
  result.parts = {{
      {"format", honest * facts.format, config.format},
      {"build", honest * facts.build, config.build},
      {"partial", honest * facts.build * std::clamp(facts.share, 0.0, 1.0), config.partial},
      {"correct", honest * facts.accepted, config.correct},
      {"speed", honest * speed_term(facts, config), config.speed},
      {"diagnosis", honest * facts.diagnosis, config.diagnosis},
      {"integrity", facts.critical ? 1.0 : 0.0, -config.integrity_penalty},
  }};
  for (const auto& x : result.parts) result.total += x.value * x.weight;
  return result;
}

std::vector<std::string> reward_presets() {
  std::vector<std::string> names;
  for (const auto& x : presets) names.emplace_back(x.name);
  return names;
}

expected<reward_config> reward_preset(const std::string& name) {
  for (const auto& x : presets)
    if (name == x.name) return x.weights;
  std::string known;
  for (const auto& x : presets) known.append(known.empty() ? "" : ", ").append(x.name);
  return configuration_error(
      "unknown_preset", "failed to use reward.preset = \"" + name + "\": there is no such preset",
      "use one of " + known);
}

expected<void> validate(const governance_config& config) {
  KM_TRY(reward_preset(config.preset));
  const auto& w = config.reward;
  const range ranges[] = {
      {"reward.format", w.format, -100, 100},
      {"reward.build", w.build, -100, 100},
      {"reward.partial", w.partial, -100, 100},
      {"reward.correct", w.correct, -100, 100},
      {"reward.speed", w.speed, -100, 100},
      {"reward.diagnosis", w.diagnosis, -100, 100},
      {"reward.speed_cap", w.speed_cap, 0, 1e6},
      {"reward.unchanged_speed", w.unchanged_speed, 0, 1e6},
      {"reward.integrity_penalty", w.integrity_penalty, 0, 1e6},
      {"reward.minimum_speedup", config.minimum_speedup, 0, 1e6},
      {"reward.significant_speedup", config.significant_speedup, 1, 1e6},
  };
  for (const auto& x : ranges)
    if (!(x.value >= x.low && x.value <= x.high)) return out_of_range(x); // also NaN
  const double weights[] = {w.format, w.build, w.partial, w.correct, w.speed, w.diagnosis};
  if (std::all_of(std::begin(weights), std::end(weights), [](double x) { return x == 0; }))
    return configuration_error("invalid_value",
                               "failed to use the reward: every weight below reward is 0, so that "
                               "no turn would be rewarded",
                               "name a reward.preset or set reward.correct");
  return {};
}

} // namespace kernelmill
