#include "storage/export/rows/row_values.hpp"
#include "storage/export/rows/rows.hpp"

namespace kernelmill::exports {

namespace {

// Only the last answer is to be learned: what came before it is context, and often wrong.
row conversation_json(const episode& x, size_t last) {
  auto result = messages_json(conversation(x, last));
  for (auto& message : result)
    if (message["role"] == "assistant") message["weight"] = 0;
  result.push_back(message_json(answer_of(x.turns[last])));
  result.back()["weight"] = 1;
  return result;
}

row row_of(const group& from, const episode& e, size_t position) {
  const auto& turn = e.turns[position];
  row result = {{"messages", conversation_json(e, position)},
                {"id", name_of(from, e, turn)},
                {"turn_id", turn.id}};
  add_task(result, from);
  result["group"] = from.number;
  result["member"] = e.member;
  result["turn"] = turn.number;
  result["model"] = turn.model;
  result["governance"] = e.governance;
  result["transition"] = turn.transition;
  result["outcome"] = outcome_word(turn.outcome);
  result["category"] = turn.category;
  result["reward"] = number(turn.reward);
  result["speedup"] = speedup_json(turn.faster);
  result["evidence_score"] = number(turn.evidence);
  result["quality"] = turn.quality;
  result["code"] = turn.code;
  result["code_sha256"] = turn.code_sha256;
  return result;
}

} // namespace

expected<void> sft_rows(const group& from, const row_context& in, const row_taker& to) {
  auto wanted = with_defaults_of_sft(in.wanted);
  for (const auto& e : from.episodes) {
    if (!e.ended) {
      in.leave_out("open_episodes");
      continue;
    }
    if (!takes(wanted, e)) {
      in.leave_out("episodes_of_other_governance");
      continue;
    }
    auto taken = turns_taken(wanted, e);
    in.leave_out("turns_not_taken", e.turns.size() - taken.size());
    for (auto position : taken)
      if (auto ok = to(row_of(from, e, position)); !ok) return ok;
  }
  return {};
}

} // namespace kernelmill::exports
