// Rows of trainers that take one sequence a row: TRL, verl, prime-rl, Tinker.

#include <algorithm>

#include "storage/export/rows/row_values.hpp"
#include "storage/export/rows/trained.hpp"

namespace kernelmill::exports {

namespace {

// Advantages and temperatures are one number for all tokens of a sequence.
std::vector<double> where_sampled(const sequence& x, double value) {
  std::vector<double> result(x.ids.size());
  for (size_t i = 0; i < result.size(); ++i) result[i] = x.mask[i] ? value : 0;
  return result;
}

std::string latest_version(const sequence& x) {
  return x.versions.empty() ? std::string{} : x.versions.back().version;
}

/// Of the sequence's first answer that is the episode's own: what a fork shares is in its prompt.
size_t first_answer(const episode& e, const sequence& x) {
  return std::max(x.turns.front().turn, first_own(e));
}

double own_turns(const episode& e, const sequence& x) {
  return static_cast<double>(
      std::count_if(x.turns.begin(), x.turns.end(),
                    [&](const sampled_span& span) { return !e.turns[span.turn].shared; }));
}

/// What was said from the sequence's first answer to its last.
std::vector<message> completion_of(const episode& e, const sequence& x) {
  std::vector<message> result;
  for (auto i = first_answer(e, x); i <= x.turns.back().turn; ++i) {
    const auto& turn = e.turns[i];
    if (!result.empty()) result.insert(result.end(), turn.added.begin(), turn.added.end());
    result.push_back(answer_of(turn));
  }
  return result;
}

using sequence_row = row (*)(const group&, const row_context&, const trained_episode&,
                             const sequence&);

expected<void> each_sequence(const group& from, const row_context& in, const row_taker& to,
                             logprobs wanted, sequence_row row_of) {
  for (const auto& e : trained_episodes(from, in, wanted))
    for (const auto& x : e.sequences)
      if (auto ok = to(row_of(from, in, e, x)); !ok) return ok;
  return {};
}

row trl_row(const group&, const row_context& in, const trained_episode& e, const sequence& x) {
  auto first = first_answer(*e.of, x);
  return {{"prompt", messages_json(conversation(*e.of, first))},
          {"completion", messages_json(completion_of(*e.of, x))},
          {"input_ids", list(x.ids)},
          {"completion_mask", list(x.mask)},
          {"old_log_probs", floats(x.logprobs)},
          {"advantage", e.advantage},
          {"model_version", version_number(latest_version(x))},
          {"group_id", in.group_id},
          {"metrics", {{"reward", e.score(x)}, {"turns", own_turns(*e.of, x)}}}};
}

row verl_row(const group& from, const row_context&, const trained_episode& e, const sequence& x) {
  auto scores = row::array();
  double seconds = 0;
  for (const auto& span : x.turns) {
    const auto& turn = e.of->turns[span.turn];
    if (turn.shared) continue;
    scores.push_back(*turn.reward);
    seconds += turn.seconds.sum();
  }
  auto index = static_cast<size_t>(&x - e.sequences.data());
  auto length = x.prompt_length;
  return {{"prompt_ids", front(x.ids, length)},
          {"response_ids", list(behind(x.ids, length))},
          {"response_mask", list(behind(x.mask, length))},
          {"response_logprobs", x.has_logprobs ? floats(behind(x.logprobs, length)) : row(nullptr)},
          {"reward_score", e.score(x)},
          {"num_turns", 2 * scores.size()},
          {"metrics",
           {{"generate_sequences", seconds},
            {"tool_calls", 0.0},
            {"compute_score", 0.0},
            {"num_preempted", -1}}},
          {"extra_fields",
           {{"uid", name_of(from)},
            {"session_id", e.of->member},
            {"index", index},
            {"turn_scores", std::move(scores)},
            {"task", from.task}}}};
}

row prime_rl_row(const group& from, const row_context&, const trained_episode& e,
                 const sequence& x) {
  auto mask = row::array();
  for (auto sampled : x.mask) mask.push_back(sampled != 0);
  return {{"token_ids", list(x.ids)},
          {"mask", std::move(mask)},
          {"logprobs", floats(x.logprobs)},
          {"temperatures", list(std::vector<double>(x.ids.size(), from.temperature))},
          {"env_name", from.task},
          {"advantages", list(where_sampled(x, e.advantage))}};
}

row tensor(const char* dtype, row data) {
  auto size = data.size();
  return {{"data", std::move(data)}, {"dtype", dtype}, {"shape", row::array({size})}};
}

// Position i says what is to be learned of the token that follows token i.
row tinker_row(const group&, const row_context&, const trained_episode& e, const sequence& x) {
  auto count = static_cast<uint32_t>(x.ids.size());
  auto chunk = row{{"type", "encoded_text"}, {"tokens", front(x.ids, count - 1)}};
  return {{"model_input", {{"chunks", row::array({std::move(chunk)})}}},
          {"loss_fn_inputs",
           {{"target_tokens", tensor("int64", list(behind(x.ids, 1)))},
            {"logprobs", tensor("float32", floats(behind(x.logprobs, 1)))},
            {"advantages", tensor("float32", list(behind(where_sampled(x, e.advantage), 1)))}}}};
}

} // namespace

expected<void> trl_rows(const group& from, const row_context& in, const row_taker& to) {
  return each_sequence(from, in, to, logprobs::needed, trl_row);
}

expected<void> verl_rows(const group& from, const row_context& in, const row_taker& to) {
  return each_sequence(from, in, to, logprobs::optional, verl_row);
}

expected<void> prime_rl_rows(const group& from, const row_context& in, const row_taker& to) {
  return each_sequence(from, in, to, logprobs::needed, prime_rl_row);
}

expected<void> tinker_rows(const group& from, const row_context& in, const row_taker& to) {
  return each_sequence(from, in, to, logprobs::needed, tinker_row);
}

} // namespace kernelmill::exports
