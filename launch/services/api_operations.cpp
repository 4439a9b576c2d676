// Every way to ask: what the router serves and what the document lists.

#include "launch/services/api_fields.hpp"
#include "launch/services/rollout_fields.hpp"

namespace kernelmill::services {

namespace {

std::vector<operation> evaluation_operations() {
  return {
      {"evaluate",
       "POST",
       "/v1/evaluate",
       "Builds, runs and judges one candidate, or many of `candidates`. One is answered with an "
       "Evaluation, many with Evaluations.",
       {},
       "Evaluate",
       "Evaluations",
       false,
       {202, 409, 429}},
      {"evaluation",
       "GET",
       "/v1/evaluations/{id}",
       "Where an evaluation stands.",
       {{"wait_s", kind::number, "Waits so long for its end, at most 600 seconds."}},
       "",
       "Evaluation",
       false,
       {404}},
      {"cancel",
       "DELETE",
       "/v1/evaluations/{id}",
       "Cancels an evaluation; one that is done stays so.",
       {},
       "",
       "Evaluation",
       false,
       {404}},
      {"tasks",
       "GET",
       "/v1/tasks",
       "The tasks that candidates can be evaluated for.",
       {},
       "",
       "Tasks"},
      {"health",
       "GET",
       "/healthz",
       "Whether the server answers.",
       {},
       "",
       "Health",
       false,
       {},
       true},
      {"readiness",
       "GET",
       "/readyz",
       "Whether there is room for more.",
       {},
       "",
       "Readiness",
       false,
       {503},
       true},
      {"kernelgym_evaluate",
       "POST",
       "/evaluate",
       "KernelGYM: takes one task.",
       {},
       "KernelGymTask",
       "KernelGymStatus",
       false,
       {429}},
      {"kernelgym_batch",
       "POST",
       "/evaluate/batch",
       "KernelGYM: takes many tasks.",
       {},
       "KernelGymBatch",
       "KernelGymStatus",
       true,
       {429}},
      {"kernelgym_status",
       "GET",
       "/status/{id}",
       "KernelGYM: where a task stands.",
       {},
       "",
       "KernelGymStatus",
       false,
       {404}},
      {"kernelgym_result",
       "GET",
       "/results/{id}",
       "KernelGYM: a task's result.",
       {},
       "",
       "KernelGymResult",
       false,
       {404}},
      {"kernelgym_cancel",
       "DELETE",
       "/tasks/{id}",
       "KernelGYM: cancels a task.",
       {},
       "",
       "KernelGymStatus",
       false,
       {404}},
      {"kernelgym_health",
       "GET",
       "/health",
       "KernelGYM: whether the server answers.",
       {},
       "",
       "Health",
       false,
       {},
       true}};
}

} // namespace

const std::vector<operation>& operations() {
  static const std::vector<operation> all = [] {
    auto result = evaluation_operations();
    for (auto& x : rollout_operations()) result.push_back(std::move(x));
    return result;
  }();
  return all;
}

} // namespace kernelmill::services
