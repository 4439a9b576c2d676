#include "launch/services/kernelgym_fields.hpp"

namespace kernelmill::services {

namespace {

constexpr bool always_there = true;
constexpr bool may_be_null = true;

} // namespace

const fields& kernelgym_result_fields() {
  static const fields all{
      {"task_id", kind::text, "", always_there},
      {"status",
       kind::text,
       "",
       always_there,
       false,
       {"pending", "processing", "completed", "failed", "cancelled"}},
      {"compiled", kind::flag, "", always_there},
      {"correctness", kind::flag, "", always_there},
      {"decoy_kernel", kind::flag, "An integrity rule was broken.", always_there},
      {"reference_runtime", kind::number, "In milliseconds; null if it was not timed.",
       always_there, may_be_null},
      {"kernel_runtime", kind::number, "In milliseconds; null if it was not timed.", always_there,
       may_be_null},
      {"speedup", kind::number, "Lower bound of the interval; 0 if it was not timed.",
       always_there},
      {"metadata", kind::object, "The evaluation's id, what was not used, and the verdict.",
       always_there},
      {"error_message", kind::text, "", always_there, may_be_null},
      {"error_code",
       kind::text,
       "",
       always_there,
       may_be_null,
       {"VALIDATION", "COMPILATION", "RUNTIME", "CORRECTNESS", "TIMEOUT", "SYSTEM"}}};
  return all;
}

const fields& kernelgym_status_fields() {
  static const fields all{{"task_id", kind::text, "", always_there},
                          {"status", kind::text, "", always_there},
                          {"error_message", kind::text, "", always_there, may_be_null}};
  return all;
}

const fields& kernelgym_task_fields() {
  static const fields all{
      {"task_id", kind::text, "The client's own id.", always_there},
      {"reference_code", kind::text, "Must be the reference of an installed task.", always_there},
      {"kernel_code", kind::text, "The candidate.", always_there},
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
  static const fields all{{"tasks", kind::list, "", always_there, false, {}, "KernelGymTask"}};
  return all;
}

} // namespace kernelmill::services
