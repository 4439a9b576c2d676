// The table of commands, in the order in which help shows them.

#include "launch/commands/commands.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/stored_runs.hpp"

namespace kernelmill::commands {

const cli::command_table& all() {
  static const cli::command_table table{
      run_row(),
      resume_row(),
      eval_row(),
      judge_batch_row(),
      serve_row(),
      rollouts_log_row(),
      page_row(),
      show_row(),
      report_row(),
      export_row(),
      query_row(),
      compare_row(),
      fork_row(),
      rescore_row(),
      replay_row(),
      bundle_make_row(),
      bundle_verify_row(),
      bundle_keygen_row(),
      import_gpu_rl_row(),
      import_kernel_rl_row(),
      runs_row(),
      ps_row(),
      top_row(),
      watch_row(),
      explain_row(),
      stats_row(),
      lineage_row(),
      logs_row(),
      actor_list_row(),
      actor_show_row(),
      fsck_row(),
      doctor_row(),
      task_list_row(),
      task_show_row(),
      task_check_row(),
      task_import_row(),
      head_row(),
      node_row(),
      node_list_row(),
      gpu_list_row(),
      submit_row(),
      status_row(),
      drain_row(),
      cancel_row(),
      pause_row(),
      simulate_row(),
      policy_attach_row(),
      policy_list_row(),
      policy_detach_row(),
      policy_weights_row(),
      cluster_init_row(),
      policy_scripted_row(),
      policy_probe_row(),
      index_build_row(),
      index_query_row(),
      config_list_row(),
      config_show_row(),
      config_validate_row(),
      config_schema_row(),
      completion_row(),
      version_row(),
      complete_row(),
      reference_row(),
  };
  return table;
}

} // namespace kernelmill::commands
