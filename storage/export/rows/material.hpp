#pragma once

// What rows are made of: a group of a run as plain values, with its texts read. Rows are then pure
// functions of it.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "messages/common.capnp.h"
#include "storage/artifacts.hpp"
#include "storage/export/licences/licence_gate.hpp"

namespace kernelmill::exports {

/// A call of a tool as a server's message has it.
struct tool_call {
  std::string id, name, arguments;
};

struct message {
  std::string role, content;
  std::vector<tool_call> calls = {}; ///< of an assistant that called natively
  std::string call_id = {};          ///< of a message of the role `tool`: which call it answers
};

/// A call of a tool and what became of it.
struct done_call {
  tool_call call;
  std::string observation, status;
  std::string transition; ///< "patch_applied", "benchmarked", ...
  std::string input, output;
  uint32_t steps = 0;
  double gpu_seconds = 0;
};

/// A node of an episode's graph of candidates.
struct made_candidate {
  std::string id, parent, sha256, source, role, origin, patch, patch_kind;
};

struct weight_span { ///< half-open, in tokens
  std::string version;
  uint32_t start = 0, end = 0;
};

struct finding {
  std::string rule, severity, evidence;
};

struct speedup {
  double estimate = 0, low = 0, high = 0;
};

/// A part of a reward, weighted.
struct component {
  std::string name;
  std::optional<double> value;
};

struct stage_seconds {
  double retrieve = 0, policy = 0, build = 0, evaluate = 0, profile = 0, judge = 0;
  double sum() const { return retrieve + policy + build + evaluate + profile + judge; }
};

struct turn {
  uint32_t number = 0;
  bool shared = false; ///< with the episode that a fork began from: context, whose credit is there
  std::string id, parent_id;
  std::vector<message> added;        ///< to the conversation, before the answer
  std::vector<std::string> examples; ///< ids of what the retriever added to it
  std::string answer;
  std::string finish_reason, model;
  std::vector<done_call> calls;
  bool called_natively = false; ///< the calls are not in the answer's text
  std::vector<made_candidate> candidates;
  std::string code, code_sha256;
  std::string transition; ///< actors/episode/transition.hpp lists the words
  wire::Outcome outcome = wire::Outcome::ACCEPTED;
  std::string category;
  std::vector<finding> findings;
  std::optional<double> reward; ///< none: lost to the infrastructure, or not timed
  std::optional<double> back;   ///< the discounted return from here on; none: a reward is missing
  std::optional<speedup> faster;
  std::optional<double> candidate_ms, reference_ms;
  std::vector<component> components;
  bool format_ok = false, compiled = false, correct = false, terminal = false;
  uint32_t cases_passed = 0, cases_total = 0, max_turns = 0;
  std::string error;                ///< of its fault; empty: none
  double committed_at = 0;          ///< seconds since 1970
  double evidence = 0;              ///< messages/evidence.hpp
  std::string quality = "unusable"; ///< "positive", "near_miss", ...
  stage_seconds seconds;
  uint32_t prompt_tokens = 0, completion_tokens = 0; ///< as the server counted

  std::vector<int32_t> prompt_ids, ids; ///< empty: the server did not tell
  std::vector<float> logprobs;          ///< of `ids`; NaN: the server did not tell
  std::vector<weight_span> versions;    ///< in tokens of `ids`
  std::string audit;                    ///< of the ids against those of the turn before

  bool lost() const { return outcome == wire::Outcome::INFRASTRUCTURE; }
  bool accepted() const { return outcome == wire::Outcome::ACCEPTED; }
  bool open() const { return outcome == wire::Outcome::OPEN; } ///< it asked for no verdict
};

struct episode {
  uint32_t member = 0;
  bool ended = false;
  std::string outcome, stop_reason;
  std::string terminal_state; ///< of mode `tools`: "success", ...
  uint32_t steps = 0;
  double gpu_seconds = 0;
  std::string governance; ///< "usable_positive_sft", ...
  std::vector<std::string> reasons;
  uint32_t best_turn = 0;
  double seconds = 0;
  std::optional<double> advantage; ///< none: not compared with its siblings
  std::vector<turn> turns;
};

struct group {
  std::string run, task, verb, operator_family, backend, contract, split;
  uint32_t number = 0;
  bool ended = false;
  double temperature = 1; ///< that the run asked its policy for
  std::optional<double> mean, deviation;
  std::vector<episode> episodes;
};

/// "RUN/g3".
std::string name_of(const group& x);
std::string name_of(const group& x, const episode& e);                ///< "RUN/g3.e1"
std::string name_of(const group& x, const episode& e, const turn& t); ///< "RUN/g3.e1.t2"

/// Says that the first turns of each episode are shared: they have neither reward nor return here.
void share_first(group& x, uint32_t turns);

/// Position of an episode's first turn that is its own; the number of its turns when none is.
size_t first_own(const episode& x);

/// What the model answered, with its calls where they came natively.
message answer_of(const turn& x);

/// Whether a turn or one of its calls is of such a transition.
bool has_transition(const turn& x, const std::set<std::string>& kinds);

/// Whether a turn made a candidate by a patch.
bool bears_patch(const turn& x);

/// The conversation up to and without the answer of turn `end` of the episode.
std::vector<message> conversation(const episode& x, size_t end);

/// Reads texts and copies numbers. `split` and `temperature` are the caller's. Errors: those of the
/// artifacts.
expected<group> read_material(const admitted_group& from, const artifact_store& artifacts,
                              const std::string& run);

} // namespace kernelmill::exports
