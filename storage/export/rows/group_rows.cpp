// Rows of trainers that take a group or an episode a row: SkyRL, NeMo-Gym, Megatron.

#include <algorithm>

#include "storage/export/rows/row_values.hpp"
#include "storage/export/rows/trained.hpp"

namespace kernelmill::exports {

namespace {

// -- SkyRL --------------------------------------------------------------------------------------

struct skyrl_lists {
  row prompts = row::array(), responses = row::array(), rewards = row::array(),
      masks = row::array(), reasons = row::array(), logprobs = row::array(),
      trajectories = row::array(), seconds = row::array(), last = row::array();

  void add(const group& from, const trained_episode& e, const sequence& x) {
    auto length = x.prompt_length;
    prompts.push_back(front(x.ids, length));
    responses.push_back(list(behind(x.ids, length)));
    rewards.push_back(e.score(x));
    masks.push_back(list(behind(x.mask, length)));
    reasons.push_back(e.last_turn(x).finish_reason);
    logprobs.push_back(floats(behind(x.logprobs, length)));
    trajectories.push_back({{"instance_id", name_of(from)}, {"repetition_id", e.of->member}});
    last.push_back(&x == &e.sequences.back());
  }
};

row skyrl_row(skyrl_lists x, bool has_logprobs, bool by_step) {
  return {{"prompt_token_ids", std::move(x.prompts)},
          {"response_ids", std::move(x.responses)},
          {"rewards", std::move(x.rewards)},
          {"loss_masks", std::move(x.masks)},
          {"stop_reasons", std::move(x.reasons)},
          {"rollout_metrics", nullptr},
          {"rollout_logprobs", has_logprobs ? std::move(x.logprobs) : row(nullptr)},
          {"trajectory_ids", std::move(x.trajectories)},
          {"trajectory_generation_times", std::move(x.seconds)},
          {"trajectory_time_splits", nullptr},
          {"rollout_expert_indices", nullptr},
          {"rollout_sample_support", nullptr},
          {"is_last_step", by_step ? std::move(x.last) : row(nullptr)},
          {"env_metrics", nullptr},
          {"pixel_values", nullptr},
          {"image_grid_thw", nullptr}};
}

// -- NeMo-Gym -----------------------------------------------------------------------------------

// Messages of the API of responses: calls and what they were told are items of their own.
row call_item(const tool_call& x) {
  return {{"type", "function_call"},
          {"call_id", x.id},
          {"name", x.name},
          {"arguments", x.arguments},
          {"status", "completed"}};
}

row result_item(const message& x) {
  return {{"type", "function_call_output"}, {"call_id", x.call_id}, {"output", x.content}};
}

row input_json(const std::vector<message>& xs) {
  auto result = row::array();
  for (const auto& x : xs) {
    if (x.role == "tool") {
      result.push_back(result_item(x));
      continue;
    }
    if (!x.content.empty() || x.calls.empty())
      result.push_back({{"role", x.role}, {"content", x.content}, {"type", "message"}});
    for (const auto& call : x.calls) result.push_back(call_item(call));
  }
  return result;
}

row told_item(const message& x) {
  if (x.role == "tool") return result_item(x);
  auto text = row{{"text", x.content}, {"type", "input_text"}};
  return {{"content", row::array({std::move(text)})},
          {"role", x.role},
          {"status", "completed"},
          {"type", "message"}};
}

// The last item of an answer has its tokens, as NeMo-Gym's own models put them.
void add_answer(row& to, const turn& x) {
  auto said = answer_of(x);
  if (!said.content.empty() || said.calls.empty()) {
    auto text = row{{"annotations", row::array()}, {"text", x.answer}, {"type", "output_text"}};
    to.push_back({{"id", x.id},
                  {"content", row::array({std::move(text)})},
                  {"role", "assistant"},
                  {"status", x.finish_reason == "length" ? "incomplete" : "completed"},
                  {"type", "message"}});
  }
  for (const auto& call : said.calls) to.push_back(call_item(call));
  to.back().update({{"prompt_token_ids", list(x.prompt_ids)},
                    {"generation_token_ids", list(x.ids)},
                    {"generation_log_probs", floats(x.logprobs)}});
}

row nemo_gym_row(const group& from, const trained_episode& e) {
  const auto& turns = e.of->turns;
  auto own = first_own(*e.of); // what a fork shares is input
  auto output = row::array();
  bool calls = false;
  for (size_t i = own; i < turns.size(); ++i) {
    const auto& x = turns[i];
    calls |= x.called_natively;
    if (!output.empty())
      for (const auto& added : x.added) output.push_back(told_item(added));
    add_answer(output, x);
  }
  return {{"responses_create_params", {{"input", input_json(conversation(*e.of, own))}}},
          {"response",
           {{"id", name_of(from, *e.of)},
            {"created_at", 0.0},
            {"model", turns.back().model},
            {"object", "response"},
            {"output", std::move(output)},
            {"parallel_tool_calls", calls},
            {"tool_choice", calls ? "auto" : "none"},
            {"tools", row::array()}}},
          {"reward", *turns[own].back}};
}

// -- Megatron -----------------------------------------------------------------------------------

// [[first token, version], ...]: the tokens of the answer from there on are of that version.
row epochs_json(const turn& x) {
  auto result = row::array();
  for (const auto& span : x.versions)
    result.push_back(row::array({span.start, version_number(span.version)}));
  if (result.empty()) result.push_back(row::array({0, 0}));
  return result;
}

row megatron_rollout(const group& from, const trained_episode& e) {
  auto ids = row::array(), masks = row::array(), logprobs = row::array(), epochs = row::array(),
       evictions = row::array();
  for (const auto& x : e.of->turns) {
    if (x.shared) continue; // in the prompt of the next
    auto all = list(x.prompt_ids);
    for (auto id : x.ids) all.push_back(id);
    auto mask = row::array();
    for (size_t i = 0; i < all.size(); ++i) mask.push_back(i >= x.prompt_ids.size());
    ids.push_back(std::move(all));
    masks.push_back(std::move(mask));
    logprobs.push_back(floats(x.logprobs));
    epochs.push_back(epochs_json(x));
    evictions.push_back(0);
  }
  return {{"trajectory", std::move(ids)},
          {"reward", *e.of->turns[first_own(*e.of)].back},
          {"generation_mask", std::move(masks)},
          {"logprobs", std::move(logprobs)},
          {"env_id", from.verb},
          {"problem_id", from.task},
          {"policy_epoch", epochs},
          {"kv_cache_epoch", std::move(epochs)},
          {"num_evictions", std::move(evictions)}};
}

} // namespace

expected<void> skyrl_rows(const group& from, const row_context& in, const row_taker& to) {
  auto members = trained_episodes(from, in, logprobs::optional);
  if (members.empty()) return {};
  skyrl_lists lists;
  bool has_logprobs = true, by_step = false;
  for (const auto& e : members) {
    by_step |= e.sequences.size() > 1;
    lists.seconds.push_back(e.of->seconds);
    for (const auto& x : e.sequences) {
      lists.add(from, e, x);
      has_logprobs &= x.has_logprobs;
    }
  }
  return to(skyrl_row(std::move(lists), has_logprobs, by_step));
}

expected<void> nemo_gym_rows(const group& from, const row_context& in, const row_taker& to) {
  for (const auto& e : trained_episodes(from, in, logprobs::needed)) {
    if (e.sequences.size() > 1) { // its readers assert that each prompt goes on from the last
      in.leave_out("branches");
      continue;
    }
    if (auto ok = to(nemo_gym_row(from, e)); !ok) return ok;
  }
  return {};
}

expected<void> megatron_rows(const group& from, const row_context& in, const row_taker& to) {
  auto rollouts = row::array();
  for (const auto& e : trained_episodes(from, in, logprobs::needed))
    rollouts.push_back(megatron_rollout(from, e));
  if (rollouts.empty()) return {};
  return to({{"rollouts", std::move(rollouts)},
             {"batch_id", 0},
             {"index_in_batch", in.group_id},
             {"uid", name_of(from)}});
}

} // namespace kernelmill::exports
