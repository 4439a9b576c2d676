#include "storage/export/rows/row_values.hpp"
#include "storage/export/rows/rows.hpp"
#include "storage/export/rows/sequences.hpp"

namespace kernelmill::exports {

namespace {

row turn_json(const turn& x) {
  return {{"turn", x.number},
          {"turn_id", x.id},
          {"messages", messages_json(x.added)},
          {"response", x.answer},
          {"finish_reason", x.finish_reason},
          {"model", x.model},
          {"outcome", outcome_word(x.outcome)},
          {"category", x.category},
          {"shared", x.shared},
          {"reward", number(x.reward)},
          {"reward_parts", parts_json(x)},
          {"return", number(x.back)},
          {"mask", x.back ? 1 : 0},
          {"token_audit", x.audit},
          {"sequence", nullptr},
          {"start", nullptr},
          {"end", nullptr}};
}

row sequence_json(const sequence& x) {
  return {{"token_ids", list(x.ids)},
          {"mask", list(x.mask)},
          {"logprobs", x.has_logprobs ? floats(x.logprobs) : row(nullptr)},
          {"prompt_length", x.prompt_length},
          {"weight_versions", spans_json(x.versions)}};
}

row episode_json(const group& from, const episode& e) {
  auto turns = row::array();
  for (const auto& x : e.turns) turns.push_back(turn_json(x));
  auto sequences = row::array();
  for (const auto& x : sequences_of(e)) {
    for (const auto& span : x.turns) {
      auto& turn = turns[span.turn];
      turn["sequence"] = sequences.size();
      turn["start"] = span.start;
      turn["end"] = span.end;
    }
    sequences.push_back(sequence_json(x));
  }
  return {{"id", name_of(from, e)},
          {"member", e.member},
          {"outcome", e.outcome},
          {"stop_reason", e.stop_reason},
          {"advantage", number(e.advantage)},
          {"turns", std::move(turns)},
          {"sequences", std::move(sequences)}};
}

} // namespace

expected<void> rl_rows(const group& from, const row_context& in, const row_taker& to) {
  if (!from.ended) {
    in.leave_out("open_groups");
    return {};
  }
  row result = {{"group_id", name_of(from)}};
  add_task(result, from);
  result["group"] = from.number;
  result["mean"] = number(from.mean);
  result["deviation"] = number(from.deviation);
  auto& episodes = result["episodes"] = row::array();
  for (const auto& e : from.episodes) {
    if (e.ended)
      episodes.push_back(episode_json(from, e));
    else
      in.leave_out("open_episodes");
  }
  return to(std::move(result));
}

} // namespace kernelmill::exports
