#pragma once

// Gates, integrity, reward and readiness as plain functions on plain values. What governance
// says about the usefulness of data (readiness) never enters the reward.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "messages/error.hpp"
#include "messages/lineage.capnp.h"
#include "messages/message.hpp"
#include "messages/verdict.capnp.h"

namespace kernelmill {

/// What tool calls earn beside the verdict of what was submitted.
enum class shaping_kind : unsigned char { none, optimize_v1 };

/// Weights of one turn's reward, which is the sum of weight * part. docs/explanation/governance.md
/// says what each part is. What is fast counts by the lower bound of its speedup's interval, and
/// only when every gate before `performance` passes.
struct reward_config {
  double format = 0;
  double build = 0;
  double partial = 0;
  double correct = 0.3;
  double speed = 1.0;
  double speed_cap = 10;      ///< of the speed term before its weight
  double unchanged_speed = 0; ///< the same of a copy of what was shown; 0: a copy earns no speed
  double diagnosis = 0;       ///< for `diagnose` tasks: the right label
  double thinking = 0;        ///< a thought of moderate length
  double length = 0;          ///< a short kernel
  double sol = 0;             ///< nearness to the roofline
  double success = 0;         ///< gpu_rl's success of the task
  double correctness = 0;     ///< the gate of that name, as the next two
  double determinism = 0;
  double performance = 0;
  double integrity_penalty = 0;      ///< subtracted (as a positive number) for a critical finding
  bool memory_safety_rejects = true; ///< whether the gate of that name rejects, or only tells
  shaping_kind shaping = shaping_kind::none;
};

struct governance_config {
  std::string preset = "kevin"; ///< see reward_presets()
  reward_config reward;
  double minimum_speedup = 1.0; ///< the performance gate: lower bound at least this
  double significant_speedup = 1.02;
};

/// Names of the presets: "kevin", "correctness", "staged", "sparse", ...
std::vector<std::string> reward_presets();
expected<reward_config> reward_preset(const std::string& name);

/// Checks ranges. Errors name the key.
expected<void> validate(const governance_config& config);

/// Judges one turn. An infrastructure fault anywhere but in the profile (which is no part of the
/// verdict) makes the outcome `infrastructure`, whatever else the facts say; so does a
/// configuration fault, and a stage that is missing without a reason. Accepted means: format,
/// build, correctness, determinism and integrity pass, and memory_safety does not fail where it
/// rejects; a copy of what was shown is accepted, too,
/// as `unchanged`, and earns no speed. What was to be timed and was not is accepted as `not_timed`:
/// it has no reward where the machine could not time it, else that of a correct kernel without
/// a speed. The verdict's fault is the first failing stage's, or the critical finding's where there
/// is one.
Message<wire::Verdict> judge(wire::TurnFacts::Reader facts, const governance_config& config);

/// What readiness needs to know of a turn: 12 bytes, so that 100,000 live episodes can keep it of
/// every turn instead of the records.
struct readiness_evidence {
  /// What shows why the turn failed; `none` also when its kernel is not kept.
  enum class cause : unsigned char { none, build, cases, fault };

  uint32_t turn = 0;
  wire::Outcome outcome = wire::Outcome::INFRASTRUCTURE;
  unsigned char gates = 0; ///< passed in a row, without `performance`
  cause shown = cause::none;
  bool critical : 1 = false;  ///< a critical integrity finding
  bool slower : 1 = false;    ///< accepted, but it failed the performance gate
  bool copied : 1 = false;    ///< accepted, but a copy of what was shown
  bool not_timed : 1 = false; ///< accepted, but how fast it is could not be measured
  bool has_id : 1 = false;
  bool has_prompt : 1 = false;
  bool has_completion : 1 = false;
  bool has_candidate : 1 = false; ///< its text and its hash
  bool has_toolchain : 1 = false;
  bool has_cases : 1 = false;
};
readiness_evidence evidence_of(wire::TurnRecord::Reader turn);

/// The same under another verdict than the turn's own.
readiness_evidence evidence_of(wire::TurnRecord::Reader turn, wire::Verdict::Reader verdict);

/// Says what an episode may be used for, from its committed turns in order, by the rules of
/// docs/explanation/governance.md.
struct readiness {
  wire::EpisodeKind kind = wire::EpisodeKind::UNUSABLE;
  std::vector<std::string> reasons;
};
readiness readiness_of_episode(std::span<const readiness_evidence> turns);

/// What a run as a whole may be used for.
struct run_counts {
  uint64_t episodes = 0, turns = 0;
  uint64_t infrastructure = 0; ///< episodes that our own faults left without a judged turn
  uint64_t unpaid =
      0; ///< episodes that are in no comparison, for the machine could not time a turn
  uint64_t usable_positive_sft = 0, usable_negative_debug = 0, usable_negative_transition = 0;
  uint64_t benchmark_only = 0, unusable = 0;
  bool complete = false;             ///< every planned episode ended
  bool sandbox_complete = false;     ///< no layer was missing
  std::vector<std::string> alarms{}; ///< of loss_ledger
};
struct run_readiness {
  struct use {
    bool eligible = false;
    std::vector<std::string> reasons; ///< why not; of an eligible use, what to keep in mind
  };
  use benchmark_reporting, sft_collection, rl_reward_trace;
};
run_readiness readiness_of_run(const run_counts& counts);

} // namespace kernelmill
