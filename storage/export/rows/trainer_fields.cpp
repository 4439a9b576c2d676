#include "storage/export/rows/trainer_fields.hpp"

#include "storage/export/rows/field_words.hpp"

namespace kernelmill::exports::trainer_fields {

using namespace field_words;

fields trl() {
  return {f("prompt", messages(), "the conversation up to the first answer"),
          f("completion", messages(), "answers, and what was said between them"),
          f("input_ids", list_of(id), "of the whole sequence"),
          f("completion_mask", list_of(id), "1: sampled"),
          f("old_log_probs", list_of(real32), "0 where nothing was sampled"),
          f("advantage", real, "of the episode within its group"),
          f("model_version", integer, "digits at the end of the latest weight version, else 0"),
          f("group_id", integer, "number of the group within the export"),
          f("metrics",
            record({f("reward", real, "the return from the first turn on"),
                    f("turns", real, "in this sequence")}),
            "")};
}

fields verl() {
  auto metrics =
      record({f("generate_sequences", real, "seconds of its turns"), f("tool_calls", real, "0"),
              f("compute_score", real, "0"), f("num_preempted", integer, "-1: not known")});
  auto extra = record({f("uid", text, "`RUN/g3`"), f("session_id", integer, "number of the member"),
                       f("index", integer, "of the sequence within the episode"),
                       f("turn_scores", list_of(real), "reward of each turn"),
                       f("task", text, "id of the task")});
  return {f("prompt_ids", list_of(id), "before the first answer"),
          f("response_ids", list_of(id), "from the first answer to the end"),
          f("response_mask", list_of(id), "1: sampled"),
          n("response_logprobs", list_of(real32), "0 where nothing was sampled"),
          f("reward_score", real, "the return from the first turn on"),
          f("num_turns", integer, "messages of user and assistant"),
          f("metrics", metrics, "`AgentLoopMetrics`"),
          f("extra_fields", extra, "")};
}

fields prime_rl() {
  return {f("token_ids", list_of(id), "of the whole sequence"),
          f("mask", list_of(flag), "true: sampled"),
          f("logprobs", list_of(real32), "0 where nothing was sampled"),
          f("temperatures", list_of(real), "that the run asked for"),
          f("env_name", text, "id of the task"),
          f("advantages", list_of(real), "0 where nothing was sampled")};
}

fields skyrl() {
  auto trajectory = record(
      {f("instance_id", text, "`RUN/g3`"), f("repetition_id", integer, "number of the member")});
  return {f("prompt_token_ids", list_of(list_of(id)), "of each sequence"),
          f("response_ids", list_of(list_of(id)), "from its first answer to its end"),
          f("rewards", list_of(real), "the return from its first turn on"),
          f("loss_masks", list_of(list_of(id)), "1: sampled"),
          f("stop_reasons", list_of(text), "`stop`, `length`, ..."),
          n("rollout_metrics", text, "null"),
          n("rollout_logprobs", list_of(list_of(real32)), "null when one is not known"),
          f("trajectory_ids", list_of(trajectory), "`TrajectoryID`"),
          f("trajectory_generation_times", list_of(real), "seconds of each episode"),
          n("trajectory_time_splits", text, "null"),
          n("rollout_expert_indices", text, "null"),
          n("rollout_sample_support", text, "null"),
          n("is_last_step", list_of(flag), "when an episode has several sequences"),
          n("env_metrics", text, "null"),
          n("pixel_values", text, "null"),
          n("image_grid_thw", text, "null")};
}

static type tensor(const type& item, const char* dtype) {
  return record({f("data", list_of(item), "one for each position of `tokens`"),
                 f("dtype", text, std::string{"`"} + dtype + "`"),
                 f("shape", list_of(integer), "")});
}

fields tinker() {
  auto chunk = record({f("type", text, "`encoded_text`"),
                       f("tokens", list_of(id), "all but the last of the sequence")});
  auto inputs = record({f("target_tokens", tensor(integer, "int64"), "what follows each position"),
                        f("logprobs", tensor(real32, "float32"), "0 where nothing was sampled"),
                        f("advantages", tensor(real32, "float32"), "0 where nothing was sampled")});
  return {f("model_input", record({f("chunks", list_of(chunk), "one")}), "`ModelInput`"),
          f("loss_fn_inputs", inputs, "")};
}

fields nemo_gym() {
  const fields of_calls{n("call_id", text, "of a call of a tool, and of what it was told"),
                        n("name", text, "of the tool that a `function_call` calls"),
                        n("arguments", text, "JSON, as text"),
                        n("output", text, "what the model was told of a call")};
  auto input =
      record(fields{n("role", text, "of a message"), n("content", text, "of a message"),
                    f("type", text, "`message`, `function_call` or `function_call_output`"),
                    n("status", text, "of a `function_call`: `completed`")} +
             of_calls);
  auto part = record({n("annotations", list_of(text), "empty; of answers alone"),
                      f("text", text, "the answer, or the feedback"),
                      f("type", text, "`output_text`, or `input_text` for feedback")});
  auto output = record(
      fields{n("id", text, "of the turn; answers alone"),
             n("content", list_of(part), "of a message: one"),
             n("role", text, "of a message: `assistant`, or `user` for feedback"),
             n("status", text, "`completed` or `incomplete`"),
             f("type", text, "`message`, `function_call` or `function_call_output`"),
             n("prompt_token_ids", list_of(id), "the last item of an answer alone"),
             n("generation_token_ids", list_of(id), "the last item of an answer alone"),
             n("generation_log_probs", list_of(real32), "the last item of an answer alone")} +
      of_calls);
  auto response = record({f("id", text, "`RUN/g3.e1`"), f("created_at", real, "0"), model,
                          f("object", text, "`response`"), f("output", list_of(output), "in order"),
                          f("parallel_tool_calls", flag, "whether tools were called natively"),
                          f("tool_choice", text, "`auto` or `none`: the same"),
                          f("tools", list_of(text), "empty")});
  return {
      f("responses_create_params", record({f("input", list_of(input), "the first prompt")}), ""),
      f("response", response, "`NeMoGymResponse`"),
      f("reward", real, "the return from the first turn on")};
}

fields megatron() {
  auto epochs = list_of(list_of(list_of(integer)));
  auto rollout =
      record({f("trajectory", list_of(list_of(id)), "of each turn, prompt and answer"),
              f("reward", real, "the return from the first turn on"),
              f("generation_mask", list_of(list_of(flag)), "true: sampled"),
              f("logprobs", list_of(list_of(real32)), "of the answers' ids alone"),
              f("env_id", text, "the task's verb"), f("problem_id", text, "id of the task"),
              f("policy_epoch", epochs,
                "of each turn `[[first id of the answer, weight version's digits]]`"),
              f("kv_cache_epoch", epochs, "the same: servers do not tell"),
              f("num_evictions", list_of(integer), "0: servers do not tell")});
  return {f("rollouts", list_of(rollout), "of the members that are compared"),
          f("batch_id", integer, "0"),
          f("index_in_batch", integer, "number of the group within the export"),
          f("uid", text, "`RUN/g3`")};
}

} // namespace kernelmill::exports::trainer_fields
