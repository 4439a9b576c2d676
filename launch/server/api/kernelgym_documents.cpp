#include "launch/server/api/kernelgym_documents.hpp"

#include <set>

#include "launch/server/api/api_fields.hpp"
#include "launch/server/api/evaluation_api.hpp"

namespace kernelmill::services {

namespace {

using gym_json = nlohmann::ordered_json;

const char* status_of(const gym_json& evaluation) {
  auto state = evaluation["state"].get<std::string>();
  if (state == "waiting") return "pending";
  if (state == "cancelled") return "cancelled";
  if (state != "done") return "processing";
  return evaluation["verdict"]["outcome"] == "infrastructure" ? "failed" : "completed";
}

// Clients put it into a policy's next prompt: of what was hidden it tells nothing.
gym_json error_message(const gym_json& evaluation) {
  const auto& verdict = evaluation["verdict"];
  if (verdict.is_null()) return nullptr;
  auto text = verdict["error"]["message"].get<std::string>();
  if (text.empty()) return nullptr;
  if (verdict["outcome"] != "rejected" || !verdict["sealed"].get<bool>()) return text;
  return verdict["category"].get<std::string>() +
         ": it ended in a hidden case or while it was timed; no more is shown";
}

/// Fields of the request that change nothing here.
gym_json not_used() {
  auto result = gym_json::array();
  for (const auto& one : kernelgym_task_fields())
    if (std::string{one.doc}.starts_with("Not used")) result.push_back(one.name);
  return result;
}

const char* code_of_rejected(const std::string& category, const gym_json& verdict) {
  static const std::set<std::string> late{"compile_timeout", "timed_out"};
  static const std::set<std::string> large{"compile_memory", "out_of_memory"};
  static const std::set<std::string> fell{"crashed",        "exited",       "runtime_error",
                                          "illegal_access", "device_error", "bad_launch",
                                          "load_failed",    "output_flood", "missing_symbol"};
  if (late.contains(category)) return "TIMEOUT_ERROR";
  if (large.contains(category)) return "RESOURCE_ERROR";
  if (category == "import_error") return "IMPORT_ERROR";
  if (category == "init_error" || category == "missing_model") return "INSTANTIATION_ERROR";
  if (!verdict["compiled"].get<bool>()) {
    bool python = verdict["contract"] == "torch";
    auto text = verdict["error"]["message"].get<std::string>();
    return python && text.find("SyntaxError") != text.npos ? "SYNTAX_ERROR" : "COMPILATION_ERROR";
  }
  if (fell.contains(category)) return "RUNTIME_ERROR";
  return verdict["cases"].empty() ? "UNKNOWN_ERROR" : "CORRECTNESS_ERROR";
}

/// How much of the work is the candidate's own. Under the contracts `native` and `device` nothing
/// else runs; of a Python candidate no such share is measured: integrity rules find work that is
/// not its own.
void add_coverage(gym_json& metadata, const gym_json& verdict, const gym_json& candidate_ms) {
  bool own = verdict["contract"] != "torch" && verdict["compiled"].get<bool>();
  auto kernels = verdict["build"].value("kernels", gym_json::array());
  auto count = own ? gym_json(std::max<size_t>(1, kernels.size())) : gym_json(nullptr);
  auto time_us = own && candidate_ms.is_number() ? gym_json(candidate_ms.get<double>() * 1000)
                                                 : gym_json(nullptr);
  metadata["num_custom_kernels"] = count;
  metadata["num_total_kernels"] = count;
  metadata["custom_kernel_cuda_time_in_profiling_us"] = time_us;
  metadata["total_kernel_run_time_in_profiling_us"] = time_us;
  metadata["custom_kernel_cuda_time_coverage"] = own ? gym_json(1.0) : gym_json(nullptr);
}

} // namespace

gym_json kernelgym_error_code(const gym_json& verdict) {
  auto category = verdict["category"].get<std::string>();
  if (is_accepted(verdict)) return nullptr;
  if (verdict["outcome"] == "infrastructure") {
    static const std::set<std::string> scarce{"gpu_memory", "no_descriptors", "disk_full",
                                              "out_of_memory"};
    return scarce.contains(category) ? "RESOURCE_ERROR" : "SYSTEM_ERROR";
  }
  if (!verdict["format_ok"].get<bool>() || !verdict["integrity"]["clean"].get<bool>())
    return "VALIDATION_ERROR";
  return code_of_rejected(category, verdict);
}

gym_json kernelgym_status(const std::string& task_id, const gym_json& evaluation) {
  return {{"task_id", task_id},
          {"status", status_of(evaluation)},
          {"queue_position", evaluation["position"]},
          {"error_message", error_message(evaluation)}};
}

gym_json kernelgym_result(const std::string& task_id, const gym_json& evaluation) {
  const auto& verdict = evaluation["verdict"];
  gym_json result{{"task_id", task_id}, {"status", status_of(evaluation)}};
  gym_json metadata{
      {"evaluation", evaluation["id"]}, {"not_used", not_used()}, {"verdict", verdict}};
  if (verdict.is_null()) {
    for (const char* name : {"compiled", "correctness", "decoy_kernel", "reference_runtime",
                             "kernel_runtime", "speedup"})
      result[name] = nullptr;
    result["metadata"] = metadata;
    for (const char* name : {"error_message", "error_code", "processing_time"})
      result[name] = nullptr;
    return result;
  }
  const auto& timing = verdict["timing"];
  bool timed = timing.value("measured", false);
  auto candidate_ms = timed ? number_or_null(timing["candidate_ms"]) : gym_json(nullptr);
  add_coverage(metadata, verdict, candidate_ms);
  result["compiled"] = verdict["compiled"];
  result["correctness"] = is_accepted(verdict);
  result["decoy_kernel"] = !verdict["integrity"]["clean"].get<bool>();
  result["reference_runtime"] = timed ? number_or_null(timing["reference_ms"]) : gym_json(nullptr);
  result["kernel_runtime"] = candidate_ms;
  auto speedup = speedup_of(verdict);
  result["speedup"] = speedup.is_null() ? gym_json(0) : speedup;
  result["metadata"] = std::move(metadata);
  result["error_message"] = error_message(evaluation);
  result["error_code"] = kernelgym_error_code(verdict);
  result["processing_time"] = evaluation["seconds"]["running"];
  return result;
}

gym_json kernelgym_workflow(const std::string& task_id, const gym_json& evaluation) {
  auto result = kernelgym_result(task_id, evaluation);
  auto status = result["status"];
  auto message = result["error_message"];
  auto code = result["error_code"];
  result.erase("status");
  return {{"task_id", task_id},
          {"status", std::move(status)},
          {"result", evaluation["verdict"].is_null() ? gym_json(nullptr) : std::move(result)},
          {"error_message", std::move(message)},
          {"error_code", std::move(code)}};
}

} // namespace kernelmill::services
