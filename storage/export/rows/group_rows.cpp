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

// Its messages know no role `tool`: what a tool said is what the agent was told.
std::string nemo_role(const message& x) {
  return x.role == "tool" ? "user" : x.role;
}

row input_message(const message& x) {
  return {{"role", nemo_role(x)}, {"content", x.content}, {"type", "message"}};
}

row input_json(const std::vector<message>& xs) {
  auto result = row::array();
  for (const auto& x : xs) result.push_back(input_message(x));
  return result;
}

row feedback_message(const message& x) {
  auto text = row{{"text", x.content}, {"type", "input_text"}};
  return {{"content", row::array({std::move(text)})},
          {"role", nemo_role(x)},
          {"status", "completed"},
          {"type", "message"}};
}

row output_message(const turn& x) {
  auto text = row{{"annotations", row::array()}, {"text", x.answer}, {"type", "output_text"}};
  return {{"id", x.id},
          {"content", row::array({std::move(text)})},
          {"role", "assistant"},
          {"status", x.finish_reason == "length" ? "incomplete" : "completed"},
          {"type", "message"},
          {"prompt_token_ids", list(x.prompt_ids)},
          {"generation_token_ids", list(x.ids)},
          {"generation_log_probs", floats(x.logprobs)}};
}

row nemo_gym_row(const group& from, const trained_episode& e) {
  const auto& turns = e.of->turns;
  auto own = first_own(*e.of); // what a fork shares is input
  auto output = row::array();
  for (size_t i = own; i < turns.size(); ++i) {
    const auto& x = turns[i];
    if (!output.empty())
      for (const auto& added : x.added) output.push_back(feedback_message(added));
    output.push_back(output_message(x));
  }
  return {{"responses_create_params", {{"input", input_json(conversation(*e.of, own))}}},
          {"response",
           {{"id", name_of(from, *e.of)},
            {"created_at", 0.0},
            {"model", turns.back().model},
            {"object", "response"},
            {"output", std::move(output)},
            {"parallel_tool_calls", false},
            {"tool_choice", "none"},
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
