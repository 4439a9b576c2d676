#include "storage/export/rows/row_values.hpp"
#include "storage/export/rows/rows.hpp"

namespace kernelmill::exports {

namespace {

row findings_json(const std::vector<finding>& xs) {
  auto result = row::array();
  for (const auto& x : xs)
    result.push_back({{"rule", x.rule}, {"severity", x.severity}, {"evidence", x.evidence}});
  return result;
}

row call_json(const done_call& x) {
  return {{"id", x.call.id},
          {"tool", x.call.name},
          {"arguments", x.call.arguments},
          {"observation", x.observation},
          {"status", x.status},
          {"transition", x.transition},
          {"input", text_or_null(x.input)},
          {"output", text_or_null(x.output)},
          {"steps", x.steps},
          {"gpu_seconds", number(x.gpu_seconds)}};
}

row candidate_json(const made_candidate& x) {
  return {{"id", x.id},
          {"parent", text_or_null(x.parent)},
          {"sha256", x.sha256},
          {"source", x.source},
          {"role", x.role},
          {"origin", x.origin},
          {"patch", text_or_null(x.patch)},
          {"patch_kind", text_or_null(x.patch_kind)}};
}

row step_json(const turn& x) {
  row result = {{"turn", x.number},
                {"turn_id", x.id},
                {"parent_turn_id", text_or_null(x.parent_id)},
                {"messages", messages_json(x.added)},
                {"examples", x.examples},
                {"response", x.answer},
                {"finish_reason", x.finish_reason},
                {"model", x.model},
                {"code", x.code},
                {"code_sha256", text_or_null(x.code_sha256)},
                {"transition", x.transition},
                {"outcome", outcome_word(x.outcome)},
                {"category", x.category},
                {"findings", findings_json(x.findings)},
                {"shared", x.shared},
                {"reward", number(x.reward)},
                {"reward_parts", parts_json(x)},
                {"return", number(x.back)},
                {"speedup", speedup_json(x.faster)},
                {"evidence_score", number(x.evidence)},
                {"quality", x.quality},
                {"seconds", number(x.seconds.sum())}};
  for (const auto& call : x.calls) result["calls"].push_back(call_json(call));
  for (const auto& made : x.candidates) result["candidates"].push_back(candidate_json(made));
  return result;
}

row row_of(const group& from, const episode& e) {
  row result = {{"id", name_of(from, e)}};
  add_task(result, from);
  result["group"] = from.number;
  result["member"] = e.member;
  result["outcome"] = e.outcome;
  result["stop_reason"] = e.stop_reason;
  result["governance"] = e.governance;
  result["governance_reasons"] = list(e.reasons);
  result["best_turn"] = e.best_turn;
  result["advantage"] = number(e.advantage);
  result["seconds"] = number(e.seconds);
  auto& turns = result["turns"] = row::array();
  for (const auto& x : e.turns) turns.push_back(step_json(x));
  return result;
}

} // namespace

expected<void> trajectory_rows(const group& from, const row_context& in, const row_taker& to) {
  for (const auto& e : from.episodes) {
    if (!takes_whole(in, e)) continue;
    if (auto ok = to(row_of(from, e)); !ok) return ok;
  }
  return {};
}

} // namespace kernelmill::exports
