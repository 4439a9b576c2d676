// kernelmill: the table of commands, in the order in which help shows them.

#include <csignal>

#include <sys/prctl.h>
#include <sys/resource.h>

#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

const cli::command_table& all() {
  static const cli::command_table table{
      run_row(),
      resume_row(),
      eval_row(),
      judge_batch_row(),
      show_row(),
      report_row(),
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

// This process holds keys: no image of its memory is written, and none can be taken by another
// process of the same user. What it starts sets its own limits.
static void keep_memory_private() {
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char** argv) {
  keep_memory_private();
  // A reader of ours that goes away and a file that may not grow are errors of a write, not our
  // end.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return kernelmill::cli::dispatch(kernelmill::commands::all(),
                                   {argv + (argc > 0 ? 1 : 0), argv + argc});
}
