// The fields of each form, as data; trainer_fields.cpp has those that trainers define.

#include "storage/export/rows/field_words.hpp"
#include "storage/export/rows/trainer_fields.hpp"

namespace kernelmill::exports {

namespace {

using namespace field_words;

// -- parts --------------------------------------------------------------------------------------

type speedup_type() {
  return record({n("estimate", real, "over the task's baseline"),
                 n("low", real, "lower end of the 95 % interval; rewards use this end"),
                 n("high", real, "upper end")});
}

type spans(const char* of) {
  return list_of(record({f("version", text, "of the policy's weights"),
                         f("start", integer, std::string{"first position in "} + of),
                         f("end", integer, "one behind the last")}));
}

fields task_fields() {
  return {f("run", text, "name of the run"),
          f("task", text, "id of the task"),
          f("split", text, "`train` or `dev`; all rows of a task are in one"),
          f("verb", text, "`optimize`, `debug`, ..."),
          f("operator_family", text, "`reduction`, `matmul`, ..."),
          f("backend", text, "`cpu` or `cuda`"),
          f("contract", text, "`native`, `device` or `torch`")};
}

const field group_number = f("group", integer, "number of the group within its run");
const field member = f("member", integer, "number of the episode within its group");
const field outcome =
    f("outcome", text,
      "`accepted`, `rejected`, `infrastructure`, or `open`: it asked for no verdict");
const field category = f("category", text, "`success`, `wrong_result`, ... (errors.md)");
const field reward =
    n("reward", real, "of the turn; null when the infrastructure lost it or could not time it");
const field parts = f("reward_parts",
                      list_of(record({f("name", text, "`correct`, `speed`, `tool_cost`, ..."),
                                      f("value", real, "weighted: they add up to `reward`")})),
                      "empty when there is no reward");
const field back = n("return", real, "discounted sum of the rewards from this turn on");
const field shared =
    f("shared", flag, "a fork's turn that is its origin's too: context, without reward and return");
const field speedup_field = n("speedup", speedup_type(), "null when nothing was timed");
const field evidence = f("evidence_score", real, "how much evidence there is of the turn, 0 to 1");
const field quality = f("quality", text, "`positive`, `near_miss`, `negative` or `unusable`");
const field advantage = n("advantage", real,
                          "within the group; null when the member is not compared: lost to the "
                          "infrastructure, or with a turn that could not be timed");

// -- forms --------------------------------------------------------------------------------------

fields sft() {
  auto weighted = list_of(record(
      fields{f("role", text, "`system`, `user`, `assistant` or `tool`"),
             f("content", text, "as the model read or wrote it"),
             n("weight", integer,
               "of `assistant` alone: 1 for the last answer, 0 for earlier attempts, which are "
               "context")} +
      tool_fields()));
  return fields{f("messages", weighted, "the conversation; its last message is the answer"),
                f("id", text, "`RUN/g3.e1.t2`"),
                f("turn_id", text, "SHA-256 of run, task, episode and turn")} +
         task_fields() +
         fields{
             group_number,
             member,
             f("turn", integer, "number of the turn within its episode"),
             model,
             f("governance", text, "what the episode may be used for: `usable_positive_sft`, ..."),
             f("transition", text,
               "how the code came: `synthesized`, `repaired`, `rewritten`, `reverted`, "
               "`repeated` or `none`"),
             outcome,
             category,
             reward,
             speedup_field,
             evidence,
             quality,
             f("code", text, "the program in the answer"),
             f("code_sha256", text, "of `code`")};
}

fields trajectories() {
  auto finding = record({f("rule", text, "name of the rule"),
                         f("severity", text, "`info`, `warning` or `critical`"),
                         f("evidence", text, "the numbers that make the case")});
  auto call = record({f("id", text, "of the call"), f("tool", text, "that was called"),
                      f("arguments", text, "JSON, as the model wrote it"),
                      f("observation", text, "what the model was told"),
                      f("status", text, "`ok`, `failed`, `refused` or `lost`"),
                      f("transition", text, "`inspect_only`, `patch_applied`, `benchmarked`, ..."),
                      n("input", text, "the candidate that it began with"),
                      n("output", text, "the candidate that it ended with"),
                      f("steps", integer, "of the step budget"),
                      n("gpu_seconds", real, "of the budget of GPU seconds")});
  auto candidate =
      record({f("id", text, "`c0`, ..."), n("parent", text, "the candidate that was changed"),
              f("sha256", text, "of `source`"), f("source", text, "the whole program"),
              f("role", text, "`working`, `patched`, `branched`, ..."),
              f("origin", text, "`patch`, `branch`, `revert`, ..."),
              n("patch", text, "unified diff from the parent"),
              n("patch_kind", text,
                "`bug_fix`, `perf_transform`, `refactor`, `instrumentation` or "
                "`no_op`; null: none can be told")});
  auto turn = record({f("turn", integer, "number, from 0"),
                      f("turn_id", text, "SHA-256 of run, task, episode and turn"),
                      n("parent_turn_id", text, "the turn before"),
                      f("messages", messages(), "that this turn added to the conversation"),
                      f("examples", list_of(text),
                        "ids of the kernels and cards that its prompt or a tool showed"),
                      f("response", text, "the answer as the model wrote it"),
                      f("finish_reason", text, "`stop`, `length`, ..."),
                      model,
                      f("code", text, "the program in the answer; empty when there is none"),
                      n("code_sha256", text, "of `code`"),
                      f("transition", text, "how the code came"),
                      outcome,
                      category,
                      f("findings", list_of(finding), "of the checks of integrity"),
                      shared,
                      reward,
                      parts,
                      back,
                      speedup_field,
                      evidence,
                      quality,
                      n("seconds", real, "of all stages"),
                      n("calls", list_of(call), "of tools, in order; not there without"),
                      n("candidates", list_of(candidate),
                        "that the turn added to the episode's graph; not there without")});
  return fields{f("id", text, "`RUN/g3.e1`")} + task_fields() +
         fields{group_number,
                member,
                f("outcome", text, "of the best turn"),
                f("stop_reason", text, "`completed`, `max_turns`, ..."),
                f("governance", text, "what it may be used for"),
                f("governance_reasons", list_of(text), "why"),
                f("best_turn", integer, "number of the best turn"),
                advantage,
                n("seconds", real, "from its first request to its end"),
                f("turns", list_of(turn), "in order")};
}

fields preference() {
  auto side = record({f("id", text, "`RUN/g3.e1.t0`"), f("turn_id", text, "of the answer's turn"),
                      model, outcome, category, reward, speedup_field,
                      f("code", text, "the program in the answer")});
  return fields{f("prompt", messages(), "the first prompt, the same for both"),
                f("chosen", messages(), "the better answer, as one message"),
                f("rejected", messages(), "the worse one"),
                f("margin", real, "difference of the rewards, above 0")} +
         task_fields() +
         fields{group_number, f("chosen_answer", side, "where the better one comes from"),
                f("rejected_answer", side, "where the worse one comes from")};
}

fields rl() {
  auto turn =
      record({f("turn", integer, "number, from 0"),
              f("turn_id", text, "SHA-256 of run, task, episode and turn"),
              f("messages", messages(), "that this turn added to the conversation"),
              f("response", text, "the answer as the model wrote it"),
              f("finish_reason", text, "`stop`, `length`, ..."), model, outcome, category, shared,
              reward, parts, back, f("mask", integer, "1 when it has a return, else 0"),
              f("token_audit", text,
                "`exact`, `branch`, `inexact` or `unknown`: its ids against those of the "
                "turn before"),
              n("sequence", integer, "which of `sequences` has it; null without ids"),
              n("start", integer, "of its sampled ids in there"),
              n("end", integer, "one behind the last")});
  auto sequence =
      record({f("token_ids", list_of(id), "prompt and answers as the model read and sampled them"),
              f("mask", list_of(id), "1: sampled in a turn whose `mask` is 1"),
              n("logprobs", list_of(real32),
                "0 where nothing was sampled; null when the server did not tell all"),
              f("prompt_length", integer, "ids before the first sampled one"),
              f("weight_versions", spans("`token_ids`"), "empty when the server did not tell")});
  auto episode =
      record({f("id", text, "`RUN/g3.e1`"), member, f("outcome", text, "of the best turn"),
              f("stop_reason", text, "`completed`, `max_turns`, ..."), advantage,
              f("turns", list_of(turn), "in order"),
              f("sequences", list_of(sequence),
                "one as long as each prompt goes on from the turn before")});
  return fields{f("group_id", text, "`RUN/g3`")} + task_fields() +
         fields{group_number, n("mean", real, "of the returns of the members that are compared"),
                n("deviation", real, "of the population"),
                f("episodes", list_of(episode), "in order of members")};
}

fields harbor() {
  auto metrics = record({f("prompt_tokens", integer, "as the server counted"),
                         f("completion_tokens", integer, "as the server counted"),
                         n("prompt_token_ids", list_of(id), "where the server told them"),
                         n("completion_token_ids", list_of(id), "where the server told them"),
                         n("logprobs", list_of(real32), "where the server told all")});
  auto judged = record({f("turn_id", text, "SHA-256 of run, task, episode and turn"), outcome,
                        category, reward, back});
  auto arguments = record({f("json", text, "as the model wrote them, broken or not")});
  auto call = record({f("tool_call_id", text, "of the call"),
                      f("function_name", text, "of the tool"), f("arguments", arguments, "")});
  auto result = record({f("source_call_id", text, "the call that it answers"),
                        f("content", text, "what the model was told")});
  auto step = record(
      {f("step_id", integer, "from 1"), f("source", text, "`system`, `user` or `agent`"),
       f("message", text, "prompt, feedback or answer"),
       n("model_name", text, "of the agent's steps"), n("metrics", metrics, "of the agent's steps"),
       n("extra", judged, "of the agent's steps"),
       n("tool_calls", list_of(call), "of an agent's step that called tools natively"),
       n("observation", record({f("results", list_of(result), "in the order of the calls")}),
         "of such a step")});
  auto agent = record({f("name", text, "`kernelmill`"), f("version", text, "of Kernelmill"),
                       f("model_name", text, "of the first turn")});
  auto totals = record({f("total_prompt_tokens", integer, ""),
                        f("total_completion_tokens", integer, ""), f("total_steps", integer, "")});
  return {
      f("schema_version", text, "`ATIF-v1.7`"),
      f("session_id", text, "`RUN/g3.e1`"),
      f("trajectory_id", text, "the same"),
      f("agent", agent, ""),
      f("steps", list_of(step), "in order"),
      f("final_metrics", totals, ""),
      f("extra",
        record(task_fields() + fields{f("outcome", text, "of the best turn"),
                                      f("stop_reason", text, "`completed`, `max_turns`, ..."),
                                      f("governance", text, "what it may be used for"), advantage}),
        "")};
}

fields kernel_rl() {
  auto response =
      record(fields{f("raw", text, "the answer as the model wrote it"),
                    f("thought", text, "what stands between `<think>` and `</think>`"),
                    f("kernel", text, "the program in it; empty when there is none"),
                    f("format_ok", flag, "one program could be taken from the answer")} +
             fields{tool_fields().front()});
  auto timings = record({n("reference_load_s", real, "null: the reference is built beforehand"),
                         n("modal_eval_s", real, "null: nothing runs on Modal"),
                         n("total_eval_s", real, "of the evaluation"),
                         n("cache_hit", flag, "null: verdicts come from no cache")});
  auto result =
      record({f("format_ok", flag, "as above"), f("compiled", flag, "the kernel compiled"),
              f("correctness", flag, "every case was right"),
              f("tests_passed", integer, "cases that were right"),
              f("tests_total", integer, "cases that ran; 0 in an imported turn"),
              n("speedup", real, "the estimate over the task's baseline"),
              n("runtime_ms", real, "of a call of the kernel"),
              n("baseline_runtime_ms", real, "of a call of the baseline, in the same blocks"),
              f("cheated", flag, "there is a critical finding"),
              n("error_message", text, "of the first fault"),
              f("code_length", integer, "bytes of `kernel`"),
              f("metadata", record({f("timings", timings, "seconds")}), "")});
  auto part = [](const char* name, const char* doc) { return n(name, real, doc); };
  auto breakdown =
      record({part("format", "weighted, as all parts; null where the run's reward has no such"),
              part("compile", "`build` of the run"), part("correctness", "`correct` of the run"),
              part("speed", "by the lower bound of the interval"),
              part("length", "of the kernel, where it has a weight"),
              part("thinking", "where it has a weight"), part("partial", "share of cases"),
              part("diagnosis", "of tasks that ask for one"), part("integrity", "a penalty")});
  auto metrics = record({n("time/retrieve", real, "seconds"), n("time/policy", real, "seconds"),
                         n("time/build", real, "seconds"), n("time/eval", real, "seconds"),
                         n("time/profile", real, "seconds"), n("time/judge", real, "seconds")});
  type scores{"list", {{"", real, "", true}}};
  auto state = record({f("turn_idx", integer, "number of the turn"),
                       f("done", flag, "the episode ended with it"),
                       f("success", flag, "it or a turn before was accepted"),
                       f("step_scores", scores, "rewards of the turns before; null as `reward`")});
  return {f("mode", text, "`train`, or `eval` for a task of `dev`"),
          n("level", integer, "of KernelBench; null for other tasks"),
          n("problem_id", integer, "of KernelBench; null for other tasks: see `task`"),
          f("backend", text, "`cpu` or `cuda`"),
          f("dataset_src", text, "`local`: tasks are folders"),
          f("prompt_option", text,
            "`raicl` where the prompt shows retrieved examples, else "
            "`zero_shot`"),
          f("raicl_k", integer, "how many"),
          f("turn", integer, "number, from 0"),
          f("max_turns", integer, "that the episode could have"),
          f("prompt_messages", messages(), "that this turn added to the conversation"),
          n("renderer", text, "null: the policy server renders"),
          f("response", response, ""),
          f("eval_result", result, "`KernelEvalResult`"),
          reward,
          f("reward_breakdown", breakdown, ""),
          f("metrics", metrics, ""),
          f("state", state, ""),
          n("history_entry", text,
            "null: what the policy reads of a turn is the next line's `prompt_messages`"),
          n("timestamp", real, "of the commit, in seconds since 1970"),
          n("stop_condition", text, "of the episode's last turn alone: `completed`, ..."),
          f("task", text, "id of the task"),
          f("split", text, "`train` or `dev`; all rows of a task are in one"),
          f("episode", text, "`RUN/g3.e1`"),
          model};
}

} // namespace

const std::vector<field>& fields_of(form x) {
  static const std::vector<fields> all = {sft(),
                                          trajectories(),
                                          preference(),
                                          rl(),
                                          trainer_fields::trl(),
                                          trainer_fields::verl(),
                                          trainer_fields::prime_rl(),
                                          trainer_fields::skyrl(),
                                          trainer_fields::tinker(),
                                          trainer_fields::nemo_gym(),
                                          trainer_fields::megatron(),
                                          harbor(),
                                          kernel_rl()};
  return all[static_cast<size_t>(x)];
}

} // namespace kernelmill::exports
