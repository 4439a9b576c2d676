// kernel_rl's line of traces.jsonl. What does not exist here is null: docs/reference/imports.md
// says of each such key why.

#include <algorithm>
#include <charconv>

#include "storage/export/rows/row_values.hpp"
#include "storage/export/rows/rows.hpp"
#include "storage/journal/projections.hpp"

namespace kernelmill::exports {

namespace {

struct problem_place {
  std::optional<int> level, problem;
};

std::optional<int> leading_number(std::string_view x) {
  int result = 0;
  auto [end, code] = std::from_chars(x.data(), x.data() + x.size(), result);
  return code == std::errc{} && result >= 0 ? std::optional{result} : std::nullopt;
}

/// "kernelbench/level1/19_ReLU" is problem 19 of level 1; other tasks have neither.
problem_place place_in_kernelbench(std::string_view task) {
  constexpr std::string_view suite = "kernelbench/level";
  auto slash = task.rfind('/');
  if (!task.starts_with(suite) || slash < suite.size()) return {};
  return {leading_number(task.substr(suite.size())), leading_number(task.substr(slash + 1))};
}

row whole(std::optional<int> x) {
  return x ? row(*x) : row(nullptr);
}

bool has_critical(const turn& x) {
  return std::any_of(x.findings.begin(), x.findings.end(),
                     [](const finding& f) { return f.severity == "critical"; });
}

row result_json(const turn& x) {
  row timings = {{"reference_load_s", nullptr},
                 {"modal_eval_s", nullptr},
                 {"total_eval_s", number(x.seconds.evaluate)},
                 {"cache_hit", nullptr}};
  return {{"format_ok", x.format_ok},
          {"compiled", x.compiled},
          {"correctness", x.correct},
          {"tests_passed", x.cases_passed},
          {"tests_total", x.cases_total},
          {"speedup", x.faster ? number(x.faster->estimate) : row(nullptr)},
          {"runtime_ms", number(x.candidate_ms)},
          {"baseline_runtime_ms", number(x.reference_ms)},
          {"cheated", has_critical(x)},
          {"error_message", text_or_null(x.error)},
          {"code_length", x.code.size()},
          {"metadata", {{"timings", std::move(timings)}}}};
}

/// A part by its name here, or by kernel_rl's where the turn was imported.
row part(const turn& x, std::string_view ours, std::string_view theirs) {
  for (const auto& c : x.components)
    if (c.name == ours || c.name == "imported." + std::string{theirs}) return number(c.value);
  return nullptr;
}

row breakdown_json(const turn& x) {
  return {{"format", part(x, "format", "format")},
          {"compile", part(x, "build", "compile")},
          {"correctness", part(x, "correct", "correctness")},
          {"speed", part(x, "speed", "speed")},
          {"length", part(x, "length", "length")},
          {"thinking", part(x, "thinking", "thinking")},
          {"partial", part(x, "partial", "partial")},
          {"diagnosis", part(x, "diagnosis", "diagnosis")},
          {"integrity", part(x, "integrity", "integrity")}};
}

row metrics_json(const stage_seconds& x) {
  return {{"time/retrieve", number(x.retrieve)}, {"time/policy", number(x.policy)},
          {"time/build", number(x.build)},       {"time/eval", number(x.evaluate)},
          {"time/profile", number(x.profile)},   {"time/judge", number(x.judge)}};
}

row response_json(const turn& x) {
  row result = {{"raw", x.answer},
                {"thought", thought_in(x.answer)},
                {"kernel", x.code},
                {"format_ok", x.format_ok}};
  auto said = message_json(answer_of(x));
  if (said.contains("tool_calls")) result["tool_calls"] = std::move(said["tool_calls"]);
  return result;
}

// The state before this turn's reward, with what this turn made of it.
row state_json(const episode& e, size_t at) {
  auto scores = row::array();
  bool success = false;
  for (size_t i = 0; i <= at; ++i) {
    success = success || e.turns[i].accepted();
    if (i < at) scores.push_back(number(e.turns[i].reward));
  }
  const auto& x = e.turns[at];
  return {{"turn_idx", x.number},
          {"done", x.terminal},
          {"success", success},
          {"step_scores", std::move(scores)}};
}

row line_of(const group& from, const episode& e, size_t at) {
  const auto& x = e.turns[at];
  auto place = place_in_kernelbench(from.task);
  uint64_t examples = 0;
  for (size_t i = 0; i <= at; ++i) examples += e.turns[i].examples.size();
  // The turns that a fork shares have no lines of their own.
  bool first = at == first_own(e);
  return {{"mode", from.split == "dev" ? "eval" : "train"},
          {"level", whole(place.level)},
          {"problem_id", whole(place.problem)},
          {"backend", from.backend},
          {"dataset_src", "local"},
          {"prompt_option", examples > 0 ? "raicl" : "zero_shot"},
          {"raicl_k", examples},
          {"turn", x.number},
          {"max_turns", x.max_turns},
          {"prompt_messages", messages_json(first ? conversation(e, at) : x.added)},
          {"renderer", nullptr},
          {"response", response_json(x)},
          {"eval_result", result_json(x)},
          {"reward", number(x.reward)},
          {"reward_breakdown", breakdown_json(x)},
          {"metrics", metrics_json(x.seconds)},
          {"state", state_json(e, at)},
          {"history_entry", nullptr},
          {"timestamp", number(x.committed_at)},
          {"stop_condition", x.terminal ? text_or_null(e.stop_reason) : row(nullptr)},
          {"task", from.task},
          {"split", from.split},
          {"episode", name_of(from, e)},
          {"model", x.model}};
}

} // namespace

expected<void> kernel_rl_rows(const group& from, const row_context& in, const row_taker& to) {
  for (const auto& e : from.episodes) {
    if (!takes_whole(in, e)) continue;
    for (size_t at = first_own(e); at < e.turns.size(); ++at)
      if (auto ok = to(line_of(from, e, at)); !ok) return ok;
  }
  return {};
}

} // namespace kernelmill::exports
