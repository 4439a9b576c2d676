#include "actors/governance/reward.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "messages/sol_score.hpp"

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
// stage1, stage2, stage3: kernel_rl's weights for a policy that learns to answer, to be right, and
//   to be fast. There an incorrect kernel earned nothing whatever the stage; here it earns its
//   part.
// sol: how near the roofline the kernel is, which counts a gain by what there was to gain.
// optimize_v1: gpu_rl's optimize_reward_v1.
constexpr std::array<named_preset, 9> presets{{
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
    {"stage1", {.format = 0.3, .build = 0.5, .partial = 0.2, .correct = 0, .speed = 0}},
    {"stage2", {.format = 0.1, .build = 0.2, .partial = 0.7, .correct = 0, .speed = 0}},
    {"stage3", {.format = 0.05, .build = 0.1, .correct = 0.5, .speed = 0.35}},
    {"sol", {.correct = 0.3, .speed = 0, .sol = 1}},
    {"optimize_v1",
     {.correct = 0,
      .speed = 0,
      .success = 0.6,
      .correctness = 0.25,
      .determinism = 0.1,
      .performance = 0.05,
      .shaping = shaping_kind::optimize_v1}},
}};

constexpr reward_number numbers[] = {
    {"format", &reward_config::format, -100, 100, true},
    {"build", &reward_config::build, -100, 100, true},
    {"partial", &reward_config::partial, -100, 100, true},
    {"correct", &reward_config::correct, -100, 100, true},
    {"speed", &reward_config::speed, -100, 100, true},
    {"speed_cap", &reward_config::speed_cap, 0, 1e6, false},
    {"unchanged_speed", &reward_config::unchanged_speed, 0, 1e6, false},
    {"diagnosis", &reward_config::diagnosis, -100, 100, true},
    {"thinking", &reward_config::thinking, -100, 100, true},
    {"length", &reward_config::length, -100, 100, true},
    {"sol", &reward_config::sol, -100, 100, true},
    {"success", &reward_config::success, -100, 100, true},
    {"correctness", &reward_config::correctness, -100, 100, true},
    {"determinism", &reward_config::determinism, -100, 100, true},
    {"performance", &reward_config::performance, -100, 100, true},
    {"integrity_penalty", &reward_config::integrity_penalty, 0, 1e6, false},
};

// Of an accepted, timed turn, and of a copy as far as copies earn speed; 0: nothing to pay.
double paid_speedup(const reward_facts& facts, const reward_config& config) {
  if (!facts.accepted || !facts.speedup_low || !std::isfinite(*facts.speedup_low)) return 0;
  auto low = std::max(*facts.speedup_low, 0.0);
  return facts.unchanged ? std::min(low, config.unchanged_speed) : low;
}

double sol_term(const reward_facts& facts, const reward_config& config) {
  auto speedup = paid_speedup(facts, config);
  return speedup > 0 ? sol_score(facts.baseline_ms / speedup, facts.baseline_ms, facts.roofline_ms)
                     : 0;
}

// From `high` at `from` bytes in a line to `low` at `to`.
double falling(size_t bytes, double from, double to, double high, double low) {
  auto position = std::clamp((static_cast<double>(bytes) - from) / (to - from), 0.0, 1.0);
  return high - position * (high - low);
}

// kernel_rl's: it costs half not to think, and little to think long.
double thinking_term(size_t bytes) {
  return bytes == 0 ? 0.5 : falling(bytes, 2000, 4000, 1, 0.7);
}

tl::unexpected<error> out_of_range(const std::string& key, double value, double low, double high) {
  auto number = [](double v) {
    auto text = std::to_string(v);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  };
  return configuration_error("invalid_value",
                             "failed to use " + key + " = " + number(value) +
                                 ": it must be a number from " + number(low) + " to " +
                                 number(high),
                             "set " + key + " or leave it to the preset");
}

} // namespace

reward_breakdown reward_of(const reward_facts& facts, const reward_config& config) {
  // A critical finding takes everything: a cheat must not live on its format. Nor does a copied
  // example: whatever it earned, a policy would learn to copy.
  const double honest = facts.critical || facts.borrowed ? 0 : 1;
  reward_breakdown result;
  result.parts = {
      {"format", honest * facts.format, config.format},
      {"build", honest * facts.build, config.build},
      {"partial", honest * facts.build * std::clamp(facts.share, 0.0, 1.0), config.partial},
      {"correct", honest * facts.accepted, config.correct},
      {"speed", honest * std::min(paid_speedup(facts, config), config.speed_cap), config.speed},
      {"diagnosis", honest * facts.diagnosis, config.diagnosis},
      {"integrity", facts.critical ? 1.0 : 0.0, -config.integrity_penalty},
  };
  auto add = [&](const char* name, double value, double weight) {
    if (weight != 0) result.parts.push_back({name, honest * value, weight});
  };
  add("thinking", facts.format * thinking_term(facts.thought_bytes), config.thinking);
  // Of a kernel that works: else the shortest would be none.
  add("length", facts.accepted * falling(facts.kernel_bytes, 500, 8000, 1, 0), config.length);
  add("sol", sol_term(facts, config), config.sol);
  add("success", facts.success, config.success);
  add("correctness", facts.correct, config.correctness);
  add("determinism", facts.deterministic, config.determinism);
  add("performance", facts.fast, config.performance);
  for (const auto& x : result.parts) result.total += x.value * x.weight;
  return result;
}

std::span<const reward_number> reward_numbers() {
  return numbers;
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
  auto check = [](const std::string& key, double value, double low, double high) -> expected<void> {
    if (value >= low && value <= high) return {}; // not of NaN
    return out_of_range("reward." + key, value, low, high);
  };
  bool pays = false;
  for (const auto& x : numbers) {
    KM_TRY(check(x.key, w.*x.member, x.low, x.high));
    pays |= x.is_weight && w.*x.member != 0;
  }
  KM_TRY(check("minimum_speedup", config.minimum_speedup, 0, 1e6));
  KM_TRY(check("significant_speedup", config.significant_speedup, 1, 1e6));
  if (!pays)
    return configuration_error("invalid_value",
                               "failed to use the reward: every weight below reward is 0, so that "
                               "no turn would be rewarded",
                               "name a reward.preset or set reward.correct");
  return {};
}

} // namespace kernelmill
