// The tables of the API, and docs/reference/openapi.json made from them.

#include "launch/services/api_fields.hpp"

namespace kernelmill::services {

namespace {

using json = nlohmann::ordered_json;

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
      {"integrity", kind::object, "Findings with their evidence.", required},
      {"timing", kind::object, "The speedup's estimate, its interval, the times.", required},
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
      {"sealed", kind::flag, "It ran in a complete sandbox.", required},
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

const fields& kernelgym_result_fields() {
  static const fields all{
      {"task_id", kind::text, "", required},
      {"status",
       kind::text,
       "",
       required,
       false,
       {"pending", "processing", "completed", "failed", "cancelled"}},
      {"compiled", kind::flag, "", required},
      {"correctness", kind::flag, "", required},
      {"decoy_kernel", kind::flag, "An integrity rule was broken.", required},
      {"reference_runtime", kind::number, "In milliseconds; null if it was not timed.", required,
       nullable},
      {"kernel_runtime", kind::number, "In milliseconds; null if it was not timed.", required,
       nullable},
      {"speedup", kind::number, "Lower bound of the interval; 0 if it was not timed.", required},
      {"metadata", kind::object, "The evaluation's id, what was not used, and the verdict.",
       required},
      {"error_message", kind::text, "", required, nullable},
      {"error_code",
       kind::text,
       "",
       required,
       nullable,
       {"VALIDATION", "COMPILATION", "RUNTIME", "CORRECTNESS", "TIMEOUT", "SYSTEM"}}};
  return all;
}

const fields& kernelgym_status_fields() {
  static const fields all{{"task_id", kind::text, "", required},
                          {"status", kind::text, "", required},
                          {"error_message", kind::text, "", required, nullable}};
  return all;
}

json type_of(const field& x) {
  auto reference = [&] { return json{{"$ref", std::string{"#/components/schemas/"} + x.of}}; };
  json result;
  switch (x.type) {
    case kind::text: result["type"] = "string"; break;
    case kind::flag: result["type"] = "boolean"; break;
    case kind::number: result["type"] = "number"; break;
    case kind::whole: result["type"] = "integer"; break;
    case kind::list:
      result["type"] = "array";
      result["items"] = *x.of != 0 ? reference() : json::object();
      break;
    case kind::object:
      if (*x.of != 0)
        result["allOf"] = json::array({reference()});
      else
        result["type"] = "object";
      break;
    case kind::any: break;
  }
  if (x.nullable) result["nullable"] = true;
  if (!x.choices.empty()) result["enum"] = x.choices;
  if (!x.choices.empty() && x.nullable) result["enum"].push_back(nullptr);
  if (*x.doc != 0) result["description"] = x.doc;
  return result;
}

json schema_of(const schema& x) {
  json result{{"type", "object"}, {"description", x.doc}, {"additionalProperties", false}};
  auto needed = json::array();
  for (const auto& one : x.members) {
    result["properties"][one.name] = type_of(one);
    if (one.required) needed.push_back(one.name);
  }
  if (!needed.empty()) result["required"] = needed;
  return result;
}

json content_of(const char* name, bool list) {
  json one{{"$ref", std::string{"#/components/schemas/"} + name}};
  json all{{"type", "array"}, {"items", one}};
  return {{"application/json", {{"schema", list ? all : one}}}};
}

const char* words_of(int status) {
  switch (status) {
    case 200: return "The answer.";
    case 202: return "Taken; ask for it by its id.";
    case 400: return "The request is wrong; the message names the field.";
    case 401: return "The token is missing or wrong.";
    case 404: return "There is none of that name.";
    case 409: return "The idempotency key belongs to another request.";
    case 413: return "The body is too large.";
    case 429: return "The queue is full; come again after Retry-After seconds.";
    case 503: return "Not now.";
    default: return "";
  }
}

json operation_json(const operation& x) {
  json result{{"operationId", x.id}, {"summary", x.summary}};
  auto parameters = json::array();
  std::string path = x.path;
  if (auto from = path.find('{'); from != path.npos)
    parameters.push_back({{"name", path.substr(from + 1, path.find('}') - from - 1)},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}}});
  for (const auto& one : x.query)
    parameters.push_back({{"name", one.name},
                          {"in", "query"},
                          {"required", false},
                          {"description", one.doc},
                          {"schema", type_of({one.name, one.type, ""})}});
  if (std::string{x.id} == "evaluate")
    parameters.push_back(
        {{"name", "Idempotency-Key"},
         {"in", "header"},
         {"required", false},
         {"description", "A text of the client's. The same request with the same key is the same "
                         "evaluations, not new ones."},
         {"schema", {{"type", "string"}}}});
  if (!parameters.empty()) result["parameters"] = parameters;
  if (*x.body != 0)
    result["requestBody"] = {{"required", true}, {"content", content_of(x.body, false)}};
  result["responses"]["200"] = {{"description", words_of(200)},
                                {"content", content_of(x.answer, x.list)}};
  auto statuses = x.statuses;
  if (!x.open) statuses.insert(statuses.begin(), {400, 401});
  if (*x.body != 0) statuses.push_back(413);
  for (int status : statuses)
    result["responses"][std::to_string(status)] = {
        {"description", words_of(status)},
        {"content", content_of(status == 202             ? x.answer
                               : status == 503 && x.open ? x.answer
                                                         : "Error",
                               x.list && status == 202)}};
  if (x.open) result["security"] = json::array();
  return result;
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
       {"auto", "native", "device", "torch"}}};
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

const fields& kernelgym_task_fields() {
  static const fields all{
      {"task_id", kind::text, "The client's own id.", required},
      {"reference_code", kind::text, "Must be the reference of an installed task.", required},
      {"kernel_code", kind::text, "The candidate.", required},
      {"force_refresh", kind::flag, "False takes an earlier answer to the same. Default true."},
      {"toolkit", kind::text, "Not used."},
      {"backend_adapter", kind::text, "Not used."},
      {"backend", kind::text, "Not used: the server has one."},
      {"num_correct_trials", kind::whole, "Not used: the task says."},
      {"num_perf_trials", kind::whole, "Not used: timed until its interval is narrow."},
      {"timeout", kind::number, "Not used: the server has deadlines of its own."},
      {"device", kind::any, "Not used."},
      {"priority", kind::any, "Not used."},
      {"entry_point", kind::text, "Not used."},
      {"reference_backend", kind::any, "Not used."},
      {"device_preference", kind::any, "Not used."},
      {"uuid", kind::any, "Not used."},
      {"use_reference_cache", kind::flag, "Not used."},
      {"is_valid", kind::flag, "Not used."},
      {"enable_profiling", kind::flag, "Not used."},
      {"enable_triton_detection", kind::flag, "Not used."},
      {"measure_performance", kind::flag, "Not used."},
      {"run_correctness", kind::flag, "Not used."},
      {"run_triton_detection", kind::flag, "Not used."},
      {"run_performance", kind::flag, "Not used."},
      {"resources", kind::any, "Not used."}};
  return all;
}

const fields& kernelgym_batch_fields() {
  static const fields all{{"tasks", kind::list, "", required, false, {}, "KernelGymTask"}};
  return all;
}

const std::vector<operation>& operations() {
  static const std::vector<operation> all{
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
  return all;
}

const std::vector<schema>& schemas() {
  static const std::vector<schema> all{
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
      {"KernelGymTask", "KernelGYM's EvaluationTask.", kernelgym_task_fields()},
      {"KernelGymBatch", "Many of them.", kernelgym_batch_fields()},
      {"KernelGymStatus", "Where a task stands.", kernelgym_status_fields()},
      {"KernelGymResult", "KernelGYM's EvaluationResult.", kernelgym_result_fields()},
      {"Error", "What went wrong, and the next step.", error_fields()}};
  return all;
}

std::string openapi_text() {
  json result{{"openapi", "3.0.3"},
              {"info",
               {{"title", "Kernelmill: evaluation as a service"},
                {"description", "Served by `kernelmill serve`."},
                {"version", "1"}}},
              {"security", json::array({{{"bearer", json::array()}}})}};
  for (const auto& one : operations()) {
    std::string method = one.method;
    for (auto& c : method) c = static_cast<char>(c | 0x20);
    auto& place = result["paths"][one.path][method];
    place = operation_json(one);
    if (std::string{one.id} == "evaluate") // one candidate, or many
      for (const char* status : {"200", "202"})
        place["responses"][status]["content"]["application/json"]["schema"] = {
            {"oneOf", json::array({{{"$ref", "#/components/schemas/Evaluation"}},
                                   {{"$ref", "#/components/schemas/Evaluations"}}})}};
  }
  for (const auto& one : schemas()) result["components"]["schemas"][one.name] = schema_of(one);
  result["components"]["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  return result.dump(2) + "\n";
}

} // namespace kernelmill::services
