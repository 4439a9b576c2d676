// The table of commands, in the order in which help shows them.

#include "launch/commands/commands.hpp"
#include "launch/commands/monitoring.hpp"

namespace kernelmill::commands {

const cli::command_table& all() {
  static const cli::command_table table{
      run_row(),
      resume_row(),
      eval_row(),
      judge_batch_row(),
      serve_row(),
      page_row(),
      show_row(),
      report_row(),
      export_row(),
      ps_row(),
      doctor_row(),
      task_list_row(),
      task_show_row(),
      task_check_row(),
      task_import_row(),
      head_row(),
      node_row(),
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
