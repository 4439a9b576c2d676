// The keys of reward.*: what a turn earns.

#include "launch/config/key_builders.hpp"

namespace kernelmill {

using namespace key_builders;

void add_reward_keys(std::vector<config_key>& k) {
  const auto from_preset = std::string{" null: the preset's."};
  k.push_back(one_of(KEY(reward.preset, "Weights to start from."),
                     {"kevin", "correctness", "staged", "sparse", "stage1", "stage2", "stage3",
                      "sol", "optimize_v1"}));
  k.push_back(
      within(KEY(reward.format, "Weight of a well-formed completion." + from_preset), -100, 100));
  k.push_back(
      within(KEY(reward.build, "Weight of a candidate that builds." + from_preset), -100, 100));
  k.push_back(within(KEY(reward.partial, "Weight of the share of cases that pass." + from_preset),
                     -100, 100));
  k.push_back(
      within(KEY(reward.correct, "Weight of a correct candidate." + from_preset), -100, 100));
  k.push_back(within(KEY(reward.speed, "Weight of the lower bound of the speedup." + from_preset),
                     -100, 100));
  k.push_back(
      within(KEY(reward.speed_cap, "Most that the speedup counts before its weight." + from_preset),
             0, 1e6));
  k.push_back(within(KEY(reward.unchanged_speed,
                         "Most that the speedup counts, before its weight, of an answer that is a "
                         "copy of what the prompt showed or of the baseline." +
                             from_preset),
                     0, 1e6));
  k.push_back(
      within(KEY(reward.diagnosis, "Weight of the right label in a `diagnose` task." + from_preset),
             -100, 100));
  k.push_back(within(
      KEY(reward.thinking, "Weight of a thought of moderate length, in an answer that is well "
                           "formed: 1 up to 2,000 bytes, 0.7 from 4,000 on, 0.5 without one." +
                               from_preset),
      -100, 100));
  k.push_back(within(
      KEY(reward.length, "Weight of a short kernel that is accepted: 1 up to 500 bytes, 0 from "
                         "8,000 on." +
                             from_preset),
      -100, 100));
  k.push_back(
      within(KEY(reward.sol, "Weight of the nearness to the roofline: 1/(1 + (t - t_sol)/(t_b - "
                             "t_sol)), 0.5 at the baseline's time." +
                                 from_preset),
             -100, 100));
  k.push_back(within(
      KEY(reward.success, "Weight of an accepted candidate that is no copy and, in an `optimize` "
                          "task, fast enough." +
                              from_preset),
      -100, 100));
  k.push_back(within(KEY(reward.correctness, "Weight of the gate `correctness`." + from_preset),
                     -100, 100));
  k.push_back(within(KEY(reward.determinism, "Weight of the gate `determinism`." + from_preset),
                     -100, 100));
  k.push_back(
      within(KEY(reward.performance,
                 "Weight of the gate `performance`, passed by what is no copy." + from_preset),
             -100, 100));
  k.push_back(within(KEY(reward.integrity_penalty,
                         "Subtracted for a critical integrity violation, once a turn; in mode "
                         "`tools` also of a measurement that decides no reward." +
                             from_preset),
                     0, 100));
  k.push_back(
      one_of(KEY(reward.shaping, "What tool calls earn beside the submission: nothing, or gpu_rl's "
                                 "costs and bonuses. `preset`: the preset's."),
             {"preset", "none", "optimize_v1"}));
  k.push_back(one_of(KEY(reward.memory_safety,
                         "Whether the gate `memory_safety` rejects a candidate, or only reports. "
                         "`preset`: it rejects, except with the preset `kevin`."),
                     {"preset", "reject", "report"}));
  k.push_back(within(
      KEY(reward.minimum_speedup, "Lower bound of the speedup that the performance gate asks for."),
      0, 1e6));
  k.push_back(within(
      KEY(reward.significant_speedup, "Lower bound from which a speedup counts as real."), 1, 1e6));
}

} // namespace kernelmill
