// The table of commands, in the order in which help shows them.

#include <utility>

#include "launch/commands/commands.hpp"
#include "launch/commands/kernel_export.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/stored_runs.hpp"

namespace kernelmill::commands {

namespace {

void add(cli::command_table& table, const char* group, cli::command_table rows) {
  for (auto& x : rows) {
    x.group = group;
    table.push_back(std::move(x));
  }
}

cli::command_table grouped() {
  cli::command_table table;
  add(table, "Run episodes",
      {run_row(), search_row(), status_row(), pause_row(), cancel_row(), resume_row(), fork_row(),
       candidate_branch_row(), rollouts_log_row(), train_row(), train_show_row(), train_check_row(),
       serve_row()});
  add(table, "Judge kernels",
      {eval_row(), judge_batch_row(), build_row(), bench_row(), inspect_row(), profile_row(),
       profile_read_row(), profile_command_row(), sanitize_row()});
  add(table, "Watch and read runs",
      {runs_row(), ps_row(), top_row(), watch_row(), page_row(), page_export_row(), show_row(),
       report_row(), compare_row(), query_row(), stats_row(), lineage_row(), candidate_show_row(),
       candidate_diff_row(), candidate_promote_row(), candidate_revert_row(), explain_row(),
       kernels_row(), logs_row()});
  add(table, "Check and keep runs",
      {runs_rename_row(), runs_tag_row(), runs_rm_row(), replay_row(), rescore_row(), fsck_row(),
       export_row(), kernel_export_row(), bundle_make_row(), bundle_verify_row(),
       bundle_keygen_row(), import_gpu_rl_row(), import_kernel_rl_row()});
  add(table, "Tasks, policies and retrieval",
      {task_list_row(), task_show_row(), task_check_row(), task_import_row(), task_apply_row(),
       policy_probe_row(), policy_scripted_row(), policy_attach_row(), policy_list_row(),
       policy_detach_row(), policy_weights_row(), index_build_row(), index_query_row(),
       index_retract_row(), index_audit_row()});
  add(table, "Other machines", {remote_ls_row(), remote_attach_row(), remote_close_row()});
  add(table, "Clusters",
      {cluster_init_row(), head_row(), node_row(), node_list_row(), gpu_list_row(), submit_row(),
       drain_row(), simulate_row(), actor_list_row(), actor_show_row()});
  add(table, "Configuration and machine",
      {config_init_row(), config_list_row(), config_show_row(), config_diff_row(),
       config_validate_row(), config_schema_row(), doctor_row(), adapter_list_row(),
       adapter_summary_row(), completion_row(), version_row()});
  add(table, "", {complete_row(), reference_row(), remote_far_row()}); // hidden
  return table;
}

} // namespace

const cli::command_table& all() {
  static const auto table = grouped();
  return table;
}

} // namespace kernelmill::commands
