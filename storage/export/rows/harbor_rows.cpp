// Harbor's trajectories (ATIF): an episode as steps of system, user and agent.

#include <algorithm>

#include "storage/export/rows/row_values.hpp"
#include "storage/export/rows/rows.hpp"

namespace kernelmill::exports {

namespace {

row metrics_json(const turn& x) {
  row result = {{"prompt_tokens", x.prompt_tokens}, {"completion_tokens", x.completion_tokens}};
  if (x.ids.empty()) return result;
  result["prompt_token_ids"] = list(x.prompt_ids);
  result["completion_token_ids"] = list(x.ids);
  if (x.logprobs.size() == x.ids.size() &&
      std::all_of(x.logprobs.begin(), x.logprobs.end(), [](float p) { return std::isfinite(p); }))
    result["logprobs"] = floats(x.logprobs);
  return result;
}

// A model's arguments need not be JSON, and an object of any names has no columns: they go as text.
void add_calls(row& to, const turn& x) {
  auto calls = row::array(), results = row::array();
  for (const auto& done : x.calls) {
    calls.push_back({{"tool_call_id", done.call.id},
                     {"function_name", done.call.name},
                     {"arguments", {{"json", done.call.arguments}}}});
    results.push_back({{"source_call_id", done.call.id}, {"content", done.observation}});
  }
  to["tool_calls"] = std::move(calls);
  to["observation"] = {{"results", std::move(results)}};
}

row agent_step(const turn& x, size_t position) {
  row result = {{"step_id", position},
                {"source", "agent"},
                {"message", x.answer},
                {"model_name", x.model},
                {"metrics", metrics_json(x)},
                {"extra",
                 {{"turn_id", x.id},
                  {"outcome", outcome_word(x.outcome)},
                  {"category", x.category},
                  {"reward", number(x.reward)},
                  {"return", number(x.back)}}}};
  if (x.called_natively) add_calls(result, x);
  return result;
}

row steps_json(const episode& e) {
  auto result = row::array();
  for (const auto& turn : e.turns) {
    for (const auto& x : turn.added)
      if (x.role != "tool") // what tools said stands with the step that called them
        result.push_back({{"step_id", result.size() + 1},
                          {"source", x.role == "system" ? "system" : "user"},
                          {"message", x.content}});
    result.push_back(agent_step(turn, result.size() + 1));
  }
  return result;
}

row row_of(const group& from, const row_context& in, const episode& e) {
  uint64_t prompt = 0, completion = 0;
  for (const auto& x : e.turns) {
    prompt += x.prompt_tokens;
    completion += x.completion_tokens;
  }
  auto steps = steps_json(e);
  auto count = steps.size();
  row extra;
  add_task(extra, from);
  extra["outcome"] = e.outcome;
  extra["stop_reason"] = e.stop_reason;
  extra["governance"] = e.governance;
  extra["advantage"] = number(e.advantage);
  return {
      {"schema_version", "ATIF-v1.7"},
      {"session_id", name_of(from, e)},
      {"trajectory_id", name_of(from, e)},
      {"agent",
       {{"name", "kernelmill"}, {"version", in.version}, {"model_name", e.turns.front().model}}},
      {"steps", std::move(steps)},
      {"final_metrics",
       {{"total_prompt_tokens", prompt},
        {"total_completion_tokens", completion},
        {"total_steps", count}}},
      {"extra", std::move(extra)}};
}

} // namespace

expected<void> harbor_rows(const group& from, const row_context& in, const row_taker& to) {
  for (const auto& e : from.episodes) {
    if (!e.ended || e.turns.empty()) {
      in.leave_out("open_episodes");
      continue;
    }
    if (!takes_episode(in.wanted, e)) {
      in.leave_out("episodes_not_taken");
      continue;
    }
    if (auto ok = to(row_of(from, in, e)); !ok) return ok;
  }
  return {};
}

} // namespace kernelmill::exports
