#include "launch/server/api/kernelgym_fields.hpp"

namespace kernelmill::services {

namespace {

constexpr bool always_there = true;
constexpr bool may_be_null = true;

std::vector<std::string> error_codes() {
  return {"VALIDATION_ERROR", "COMPILATION_ERROR", "RUNTIME_ERROR",      "CORRECTNESS_ERROR",
          "TIMEOUT_ERROR",    "SYSTEM_ERROR",      "RESOURCE_ERROR",     "UNKNOWN_ERROR",
          "SYNTAX_ERROR",     "IMPORT_ERROR",      "INSTANTIATION_ERROR"};
}

std::vector<std::string> statuses() {
  return {"pending", "processing", "completed", "failed", "cancelled"};
}

} // namespace

const fields& kernelgym_result_fields() {
  static const fields all{
      {"task_id", kind::text, "", always_there},
      {"status", kind::text, "", always_there, false, statuses()},
      {"compiled", kind::flag, "Null until it is judged.", always_there, may_be_null},
      {"correctness", kind::flag, "", always_there, may_be_null},
      {"decoy_kernel", kind::flag, "An integrity rule was broken.", always_there, may_be_null},
      {"reference_runtime", kind::number, "In milliseconds; null if it was not timed.",
       always_there, may_be_null},
      {"kernel_runtime", kind::number, "In milliseconds; null if it was not timed.", always_there,
       may_be_null},
      {"speedup", kind::number, "Lower bound of the interval; 0 if it was not timed.", always_there,
       may_be_null},
      {"metadata", kind::object,
       "The evaluation's id, what was not used, the verdict, and how much of the work is the "
       "candidate's own: null for Python candidates, of which it is not measured.",
       always_there},
      {"error_message", kind::text, "", always_there, may_be_null},
      {"error_code", kind::text, "", always_there, may_be_null, error_codes()},
      {"processing_time", kind::number, "Seconds.", always_there, may_be_null}};
  return all;
}

const fields& kernelgym_status_fields() {
  static const fields all{
      {"task_id", kind::text, "", always_there},
      {"status", kind::text, "", always_there, false, statuses()},
      {"queue_position", kind::whole, "Null unless it waits.", always_there, may_be_null},
      {"error_message", kind::text, "", always_there, may_be_null}};
  return all;
}

const fields& kernelgym_task_fields() {
  static const fields all{
      {"task_id", kind::text, "The client's own id.", always_there},
      {"reference_code", kind::text, "Must be the reference of an installed task.", always_there},
      {"kernel_code", kind::text, "The candidate.", always_there},
      {"force_refresh", kind::flag, "False takes an earlier answer to the same. Default true."},
      {"workflow", kind::text, "`kernelbench`; there is no other."},
      {"toolkit", kind::any, "Not used."},
      {"backend_adapter", kind::any, "Not used."},
      {"backend", kind::any, "Not used: the server has one."},
      {"num_correct_trials", kind::any, "Not used: the task says."},
      {"num_perf_trials", kind::any, "Not used: timed until its interval is narrow."},
      {"num_warmup", kind::any, "Not used."},
      {"timeout", kind::any, "Not used: the server has deadlines of its own."},
      {"device", kind::any, "Not used."},
      {"priority", kind::any, "Not used."},
      {"entry_point", kind::any, "Not used."},
      {"reference_backend", kind::any, "Not used."},
      {"device_preference", kind::any, "Not used."},
      {"uuid", kind::any, "Not used."},
      {"use_reference_cache", kind::any, "Not used."},
      {"is_valid", kind::any, "Not used."},
      {"verbose_errors", kind::any, "Not used."},
      {"enable_profiling", kind::any, "Not used."},
      {"enable_triton_detection", kind::any, "Not used."},
      {"detect_decoy_kernel", kind::any, "Not used: integrity rules always hold."},
      {"measure_performance", kind::any, "Not used."},
      {"run_correctness", kind::any, "Not used."},
      {"run_triton_detection", kind::any, "Not used."},
      {"run_performance", kind::any, "Not used."},
      {"cases", kind::any, "Not used."},
      {"cases_code", kind::any, "Not used."},
      {"resources", kind::any, "Not used."}};
  return all;
}

const fields& kernelgym_batch_fields() {
  static const fields all{{"batch_id", kind::text, "Comes back unchanged."},
                          {"tasks", kind::list, "", always_there, false, {}, "KernelGymTask"}};
  return all;
}

const fields& kernelgym_batch_result_fields() {
  static const fields all{
      {"batch_id", kind::text, "", always_there},
      {"total_tasks", kind::whole, "", always_there},
      {"completed_tasks", kind::whole, "", always_there},
      {"failed_tasks", kind::whole, "Where the machine is at fault.", always_there},
      {"batch_status", kind::text, "", always_there},
      {"results", kind::list, "In their order.", always_there, false, {}, "KernelGymResult"}};
  return all;
}

const fields& kernelgym_workflow_fields() {
  static const fields all{
      {"workflow", kind::text, "`kernelbench`; there is no other."},
      {"payload", kind::object, "The task.", always_there, false, {}, "KernelGymTask"},
      {"task_id", kind::text, "In place of the payload's."},
      {"force_refresh", kind::flag, "In place of the payload's."},
      {"resources", kind::any, "Not used."}};
  return all;
}

const fields& kernelgym_workflow_result_fields() {
  static const fields all{{"task_id", kind::text, "", always_there},
                          {"status", kind::text, "", always_there, false, statuses()},
                          {"result", kind::object,
                           "KernelGymResult without its status; null until it is judged.",
                           always_there, may_be_null},
                          {"error_message", kind::text, "", always_there, may_be_null},
                          {"error_code", kind::text, "", always_there, may_be_null, error_codes()}};
  return all;
}

const fields& kernelgym_health_fields() {
  static const fields all{
      {"status", kind::text, "`healthy`.", always_there},
      {"timestamp", kind::text, "", always_there},
      {"gpu_status", kind::object, "Empty.", always_there},
      {"queue_status", kind::object, "pending, processing, completed.", always_there},
      {"memory_usage", kind::object, "Empty.", always_there},
      {"active_tasks", kind::whole, "", always_there},
      {"total_processed", kind::whole, "", always_there},
      {"uptime", kind::number, "Seconds.", always_there}};
  return all;
}

const fields& kernelgym_metrics_fields() {
  static const fields all{
      {"timestamp", kind::text, "", always_there},
      {"performance_metrics", kind::object, "throughput_per_hour, success_rate.", always_there},
      {"resource_metrics", kind::object, "Empty.", always_there},
      {"queue_metrics", kind::object, "pending_tasks, active_tasks, completed_tasks.",
       always_there},
      {"error_metrics", kind::object, "infrastructure: faults of the machine.", always_there}};
  return all;
}

const fields& kernelgym_queue_fields() {
  static const fields all{{"pending", kind::whole, "", always_there},
                          {"pending_by_prefix", kind::object, "Empty.", always_there},
                          {"worker_queues", kind::object, "Empty.", always_there}};
  return all;
}

} // namespace kernelmill::services
