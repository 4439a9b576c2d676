// What requests hold and what answers hold, field by field.

#include "launch/server/api/api_fields.hpp"
#include "launch/server/api/kernel_api.hpp"
#include "launch/server/api/kernelgym_fields.hpp"
#include "launch/server/api/rollout_fields.hpp"
#include "launch/server/api/seat_api.hpp"

namespace kernelmill::services {

namespace {

constexpr bool required = true;
constexpr bool nullable = true;

const fields& evaluation_fields() {
  static const fields all{
      {"schema_version", kind::whole, "Of this document.", required},
      {"id", kind::text, "What to ask for it by.", required},
      {"task", kind::text, "The task's id.", required},
      {"name", kind::text, "The candidate's name, as it was sent.", required},
      {"state",
       kind::text,
       "`cancelled` and `done` are final.",
       required,
       false,
       {"waiting", "building", "evaluating", "done", "cancelled"}},
      {"position", kind::whole, "How many wait before it; null unless it waits.", required,
       nullable},
      {"expected_wait_s", kind::number,
       "Seconds until it is begun, by how long the latest ones took; null when unknown.", required,
       nullable},
      {"from_cache", kind::flag, "Whether an earlier evaluation of the same is the answer.",
       required},
      {"seconds", kind::object, "Spent so far.", required, false, {}, "Seconds"},
      {"verdict", kind::object, "Null until it is done.", required, nullable, {}, "Verdict"},
      {"feedback", kind::text,
       "What a policy may be told in its next turn; hidden cases show no numbers. Null until it is "
       "done.",
       required, nullable}};
  return all;
}

const fields& seconds_fields() {
  static const fields all{{"waiting", kind::number, "Until it was begun.", required},
                          {"running", kind::number, "Since then, until it was done.", required}};
  return all;
}

const fields& evaluations_fields() {
  static const fields all{{"schema_version", kind::whole, "Of this document.", required},
                          {"evaluations",
                           kind::list,
                           "In the order of the candidates.",
                           required,
                           false,
                           {},
                           "Evaluation"}};
  return all;
}

const fields& verdict_fields() {
  static const fields all{
      {"task", kind::text, "", required},
      {"candidate_sha256", kind::text, "Of the source.", required},
      {"backend", kind::text, "`cpu` or `cuda`.", required},
      {"contract", kind::text, "`native`, `device` or `torch`.", required},
      {"format_ok", kind::flag, "One source could be taken from what was sent.", required},
      {"format_problems", kind::list, "What is wrong with its form.", required},
      {"compiled", kind::flag, "", required},
      {"build", kind::object, "Toolchain, seconds, diagnostics, kernels.", required},
      {"correct", kind::flag, "Every case passes.", required},
      {"deterministic", kind::flag, "", required},
      {"cases", kind::list, "Each case with its largest error and its bound.", required},
      {"checks", kind::list,
       "What the task's verb asks for beyond right results: evidence, another strategy.", required},
      {"integrity", kind::object, "Findings with their evidence.", required},
      {"timing", kind::object, "The speedup's estimate, its interval, the times.", required},
      {"profile", kind::object, "What limits it, by which numbers, what to try.", required},
      {"conditions", kind::list, "Of the machine while it timed.", required},
      {"slot_seconds", kind::object, "What the slot spent them on.", required},
      {"gates", kind::list, "Each gate's status and reason.", required},
      {"reward", kind::number, "Null where the machine is at fault: leave it out of training.",
       required, nullable},
      {"outcome", kind::text, "", required, false, {"accepted", "rejected", "infrastructure"}},
      {"category", kind::text, "docs/reference/errors.md lists them.", required},
      {"device", kind::text, "", required},
      {"device_uuid", kind::text, "", required},
      {"output", kind::text, "What the candidate printed.", required},
      {"sealed", kind::flag,
       "A hidden case or a timed row began: what the candidate said later is not shown.", required},
      {"layers", kind::list, "Of the sandbox, that stood.", required},
      {"error", kind::object, "Class, category, message and hint of the first fault.", required}};
  return all;
}

const fields& task_fields() {
  static const fields all{
      {"id", kind::text, "", required},
      {"title", kind::text, "", required},
      {"verb", kind::text, "What is to be done: `optimize`, `debug` and others.", required},
      {"contract", kind::text, "`native` or `torch`.", required},
      {"difficulty", kind::text, "", required},
      {"operator_family", kind::text, "", required},
      {"digest", kind::text, "Of the files that define it.", required},
      {"prompt", kind::text, "The whole first message of an episode, without examples.", required}};
  return all;
}

const fields& tasks_fields() {
  static const fields all{{"schema_version", kind::whole, "Of this document.", required},
                          {"backend", kind::text, "Where candidates run.", required},
                          {"tasks", kind::list, "", required, false, {}, "Task"}};
  return all;
}

const fields& health_fields() {
  static const fields all{{"status", kind::text, "`ok`.", required}};
  return all;
}

const fields& readiness_fields() {
  static const fields all{
      {"ready", kind::flag, "Whether there is room for one more candidate.", required},
      {"waiting", kind::whole, "Evaluations that wait.", required},
      {"running", kind::whole, "Evaluations that are being built or run.", required}};
  return all;
}

const fields& error_fields() {
  static const fields all{{"error", kind::object, "Class, category, message and hint.", required}};
  return all;
}

} // namespace

const fields& candidate_fields() {
  static const fields all{
      {"task", kind::text, "The task's id, as GET /v1/tasks lists it.", required},
      {"source", kind::text, "The candidate's source. This or `completion`."},
      {"completion", kind::text,
       "A policy's whole answer, with <think> and <KERNEL>. This or `source`."},
      {"name", kind::text, "Comes back unchanged."},
      {"contract",
       kind::text,
       "What the source is; `auto` goes by the task and looks for launch lines.",
       false,
       false,
       {"auto", "native", "device", "torch", "program"}}};
  return all;
}

const fields& evaluate_fields() {
  static const fields all = [] {
    fields result{
        {"candidates",
         kind::list,
         "Many candidates, in place of one's fields.",
         false,
         false,
         {},
         "Candidate"},
        {"wait", kind::flag, "Answer when all are done; else at once, with ids. Default false."},
        {"cache",
         kind::text,
         "`allow` takes an earlier answer to the same candidate, task, device and rules. Default "
         "`refuse`.",
         false,
         false,
         {"allow", "refuse"}},
        {"on_disconnect",
         kind::text,
         "What becomes of evaluations that still wait when a client that waits for them leaves. "
         "Default `cancel`.",
         false,
         false,
         {"cancel", "continue"}}};
    for (auto one : candidate_fields()) {
      one.required = false;
      result.push_back(one);
    }
    return result;
  }();
  return all;
}

const std::vector<schema>& schemas() {
  static const std::vector<schema> all = [] {
    std::vector<schema> result{
        {"Evaluate", "One candidate's fields, or `candidates`.", evaluate_fields()},
        {"Candidate", "One candidate.", candidate_fields()},
        {"Evaluation", "One candidate on its way, or judged.", evaluation_fields()},
        {"Evaluations", "Those of one request.", evaluations_fields()},
        {"Seconds", "By the server's clock.", seconds_fields()},
        {"Verdict", "What `kernelmill eval --json` prints.", verdict_fields()},
        {"Task", "What a candidate is for.", task_fields()},
        {"Tasks", "All of them.", tasks_fields()},
        {"Health", "It answers.", health_fields()},
        {"Readiness", "Room.", readiness_fields()},
        {"KernelGymTask", "KernelGYM's EvaluationRequest.", kernelgym_task_fields(), true},
        {"KernelGymBatch", "Many of them.", kernelgym_batch_fields(), true},
        {"KernelGymBatchResult", "Their results.", kernelgym_batch_result_fields()},
        {"KernelGymWorkflow", "KernelGYM's WorkflowRequest.", kernelgym_workflow_fields(), true},
        {"KernelGymWorkflowResult", "KernelGYM's WorkflowResponse.",
         kernelgym_workflow_result_fields()},
        {"KernelGymStatus", "Where a task stands.", kernelgym_status_fields()},
        {"KernelGymResult", "KernelGYM's EvaluationResponse.", kernelgym_result_fields()},
        {"KernelGymHealth", "KernelGYM's SystemHealthResponse.", kernelgym_health_fields()},
        {"KernelGymMetrics", "KernelGYM's MetricsResponse.", kernelgym_metrics_fields()},
        {"KernelGymQueue", "How many wait.", kernelgym_queue_fields()},
        {"Error", "What went wrong, and the next step.", error_fields()}};
    for (const auto& x : kernel_schemas()) result.push_back(x);
    for (const auto& x : rollout_schemas()) result.push_back(x);
    for (const auto& x : seat_schemas()) result.push_back(x);
    return result;
  }();
  return all;
}

} // namespace kernelmill::services
