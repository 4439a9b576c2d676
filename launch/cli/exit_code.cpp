#include "launch/cli/exit_code.hpp"

#include <algorithm>
#include <iterator>

namespace kernelmill::cli {

namespace {

struct rule {
  std::string_view category;
  int code;
};

// By category first: "not found" is 3 in every fault class.
constexpr rule rules[] = {
    {"not_found", exit_not_found},
    {"config_not_found", exit_not_found},
    {"missing_file", exit_not_found},
    {"not_a_run", exit_not_found},
    {"unknown_task", exit_not_found},
    {"index_missing", exit_not_found},
    {"knowledge_missing", exit_not_found},
    {"export_empty", exit_quality},
    {"credentials_missing", exit_not_found},
    {"credentials_exist", exit_conflict},
    {"run_exists", exit_conflict},
    {"run_name_taken", exit_conflict},
    {"policy_attached", exit_conflict},
    {"verdicts_exist", exit_conflict},
    {"bundle_exists", exit_conflict},
    {"bad_bundle", exit_quality},
    {"bad_signature", exit_quality},
    {"verdicts_incomplete", exit_conflict},
    {"run_torn", exit_conflict},
    {"run_incomplete", exit_conflict},
    {"directory_not_empty", exit_conflict},
    {"store_locked", exit_conflict},
    {"store_newer", exit_conflict},
    {"newer_schema", exit_conflict},
    {"store_busy", exit_conflict},
    {"index_mismatch", exit_conflict},
    {"address_in_use", exit_conflict},
    {"head_exists", exit_conflict},
    {"remote_unreachable", exit_unavailable},
    {"remote_denied", exit_permission},
    {"remote_program", exit_not_found},
    {"ssh_missing", exit_not_found},
    {"policy_unreachable", exit_unavailable},
    {"policy_unavailable", exit_unavailable},
    {"run_not_live", exit_unavailable},
    {"head_unreachable", exit_unavailable},
    {"head_refused", exit_permission},
    {"machine_faults", exit_machine},
    {"no_nodes", exit_temporary},
    {"disk_full", exit_temporary},
    {"store_removed", exit_temporary},
    {"policy_rate_limited", exit_temporary},
    {"policy_connection_lost", exit_unavailable},
    {"policy_timeout", exit_unavailable},
    {"store_read_only", exit_permission},
    {"read_only", exit_permission},
    {"credentials_exposed", exit_permission},
    {"credentials_unreadable", exit_permission},
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
