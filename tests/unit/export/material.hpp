#pragma once

// A small run as plain values: what rows are made of.

#include <fstream>
#include <sstream>

#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "storage/export/rows/rows.hpp"

namespace kernelmill::exports::row_fixtures {

inline std::string source_file(const std::string& path) {
  return std::string{std::getenv("KERNELMILL_SOURCE_DIR")} + "/" + path;
}

inline std::string text_of_file(const std::string& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A turn with ids: the prompt's are `prompt`, the answer's ten times the turn's number and up.
inline turn make_turn(uint32_t number, double reward, std::vector<int32_t> prompt,
                      wire::Outcome outcome = wire::Outcome::ACCEPTED) {
  turn x;
  x.number = number;
  x.id = sha256_hex("turn " + std::to_string(number) + std::to_string(reward)).substr(0, 16);
  x.added = {{"user", number == 0 ? "Make it fast." : "compiled: yes, make it faster"}};
  x.code = "int kernel_" + std::to_string(number) + "_" +
           std::to_string(static_cast<int>(reward * 100)) + ";";
  x.answer = "<KERNEL>" + x.code + "</KERNEL>";
  x.finish_reason = "stop";
  x.model = "scripted";
  x.code_sha256 = sha256_hex(x.code);
  x.transition = number == 0 ? "synthesized" : "repaired";
  x.outcome = outcome;
  x.category = outcome == wire::Outcome::ACCEPTED ? "success" : "wrong_result";
  x.reward = x.back = reward;
  if (outcome == wire::Outcome::ACCEPTED)
    x.faster = speedup{1 + reward, 0.9 + reward, 1.1 + reward};
  x.evidence = outcome == wire::Outcome::ACCEPTED ? 0.95 : 0.7;
  x.quality = outcome == wire::Outcome::ACCEPTED ? "positive" : "near_miss";
  x.seconds = {.policy = 1.125, .build = 0.25, .evaluate = 0.125};
  x.components = {{"correct", outcome == wire::Outcome::ACCEPTED ? 0.25 : 0.0},
                  {"speed", std::max(reward - 0.25, 0.0)}};
  x.format_ok = x.compiled = true;
  x.correct = outcome == wire::Outcome::ACCEPTED;
  x.cases_total = 4;
  x.cases_passed = x.correct ? 4 : 3;
  x.max_turns = 2;
  x.committed_at = 1765000000.5 + number;
  if (x.correct) {
    x.candidate_ms = 2;
    x.reference_ms = 2 * (1 + reward);
  } else {
    x.error = "case 3 is wrong";
  }
  x.prompt_tokens = static_cast<uint32_t>(prompt.size());
  x.completion_tokens = 2;
  x.prompt_ids = std::move(prompt);
  auto first = static_cast<int32_t>(10 * number + 10);
  x.ids = {first, first + 1};
  x.logprobs = {-0.1f, -2.5f};
  x.versions = {{"step-7", 0, 2}};
  x.audit = "exact";
  return x;
}

/// Takes the reward away as the infrastructure does.
inline turn lost(turn x) {
  x.outcome = wire::Outcome::INFRASTRUCTURE;
  x.category = "gpu_lost";
  x.evidence = 0.05;
  x.quality = "unusable";
  x.reward = x.back = std::nullopt;
  x.faster = std::nullopt;
  x.candidate_ms = x.reference_ms = std::nullopt;
  x.components.clear();
  x.correct = x.compiled = false;
  x.cases_passed = x.cases_total = 0;
  x.error = "the GPU is gone";
  return x;
}

/// Right, but the machine could not time it.
inline turn not_timed(turn x) {
  x.category = "not_timed";
  x.reward = x.back = std::nullopt;
  x.faster = std::nullopt;
  x.candidate_ms = x.reference_ms = std::nullopt;
  return x;
}

inline episode make_episode(uint32_t member, std::optional<double> advantage,
                            std::vector<turn> turns) {
  episode x;
  x.member = member;
  x.ended = true;
  x.outcome = "accepted";
  x.stop_reason = "max_turns";
  x.governance = "usable_positive_sft";
  x.reasons = {"it is a test"};
  x.best_turn = static_cast<uint32_t>(turns.size()) - 1;
  x.seconds = 3;
  x.advantage = advantage;
  x.turns = std::move(turns);
  if (!x.turns.empty()) x.turns.back().terminal = true;
  return x;
}

/// Four members: two that are compared, of which one branches; one lost, one not timed.
inline group make_group() {
  constexpr auto rejected = wire::Outcome::REJECTED;
  group x;
  x.run = "first";
  x.task = "native/row_sum";
  x.verb = "optimize";
  x.operator_family = "reduction";
  x.backend = "cpu";
  x.contract = "native";
  x.split = "train";
  x.number = 3;
  x.ended = true;
  x.temperature = 0.8;
  x.mean = 0.75;
  x.deviation = 0.25;
  x.episodes = {
      make_episode(
          0, 1.0, {make_turn(0, 0, {1, 2, 3}, rejected), make_turn(1, 1.25, {1, 2, 3, 10, 11, 4})}),
      make_episode(1, -1.0, {make_turn(0, 0.5, {1, 2, 3}), make_turn(1, 0.25, {1, 2, 9})}),
      make_episode(2, std::nullopt, {lost(make_turn(0, 0, {1, 2, 3}))}),
      make_episode(3, std::nullopt, {not_timed(make_turn(0, 0, {1, 2, 3}))})};
  x.episodes[2].outcome = "infrastructure";
  x.episodes[2].governance = x.episodes[3].governance = "unusable";
  x.episodes[0].turns[0].back = 0.5;
  x.episodes[0].turns[0].faster = std::nullopt;
  return x;
}

struct made {
  std::vector<row> rows;
  left_out without;
};

inline made rows_of(form as, const group& from, const filter& wanted = {}) {
  made result;
  row_context in{wanted, 0, &result.without, "1.2.3"};
  auto ok = make_rows(as, from, in, [&](row x) -> expected<void> {
    result.rows.push_back(std::move(x));
    return {};
  });
  if (!ok) throw std::runtime_error(render(ok.error()));
  return result;
}

} // namespace kernelmill::exports::row_fixtures
