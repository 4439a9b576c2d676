#include "launch/cli/exit_code.hpp"

#include <algorithm>
#include <iterator>

namespace kernelmill::cli {

namespace {

struct rule {
  std::string_view category;
  int code;
};

// By category first: "not found" is 3 whoever is at fault.
constexpr rule rules[] = {
    {"not_found", exit_not_found},
    {"config_not_found", exit_not_found},
    {"task_not_found", exit_not_found},
    {"file_not_found", exit_not_found},
    {"run_not_found", exit_not_found},
    {"not_a_run", exit_not_found},
    {"index_not_found", exit_not_found},
    {"run_exists", exit_conflict},
    {"run_not_empty", exit_conflict},
    {"store_locked", exit_conflict},
    {"store_newer", exit_conflict},
    {"index_mismatch", exit_conflict},
    {"address_in_use", exit_conflict},
    {"connection_refused", exit_unavailable},
    {"policy_unreachable", exit_unavailable},
    {"policy_unavailable", exit_unavailable},
    {"run_not_live", exit_unavailable},
    {"disk_full", exit_temporary},
    {"store_read_only", exit_permission},
    {"permission_denied", exit_permission},
    {"sandbox_layer_missing", exit_permission},
    {"sandbox_unavailable", exit_permission},
};

} // namespace

int exit_code(const error& x) {
  const auto* found = std::find_if(std::begin(rules), std::end(rules),
                                   [&](const rule& r) { return r.category == x.category; });
  if (found != std::end(rules)) return found->code;
  return x.cls == fault_class::configuration ? exit_usage : exit_failed;
}

} // namespace kernelmill::cli
