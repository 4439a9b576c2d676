#pragma once

// Every command of the program: its row of the table, made beside its handler. Each noun is a file
// of this folder.

#include "launch/cli/command.hpp"

namespace kernelmill::commands {

using cli::invocation;

cli::command run_row();
cli::command resume_row();
cli::command search_row();
cli::command eval_row();
cli::command judge_batch_row();
cli::command build_row();
cli::command bench_row();
cli::command serve_row();
cli::command kernels_row();
cli::command rollouts_log_row();
cli::command train_row();
cli::command train_show_row();
cli::command train_check_row();
cli::command show_row();
cli::command report_row();
cli::command export_row();
cli::command bundle_make_row();
cli::command bundle_verify_row();
cli::command bundle_keygen_row();
cli::command import_gpu_rl_row();
cli::command import_kernel_rl_row();
cli::command runs_row();
cli::command runs_rm_row();
cli::command runs_rename_row();
cli::command runs_tag_row();
cli::command ps_row();
cli::command top_row();
cli::command watch_row();
cli::command explain_row();
cli::command stats_row();
cli::command lineage_row();
cli::command logs_row();
cli::command actor_list_row();
cli::command actor_show_row();
cli::command node_list_row();
cli::command gpu_list_row();
cli::command fsck_row();
cli::command doctor_row();
cli::command adapter_list_row();
cli::command adapter_summary_row();
cli::command task_list_row();
cli::command task_show_row();
cli::command task_check_row();
cli::command task_import_row();
cli::command task_apply_row();
cli::command head_row();
cli::command node_row();
cli::command submit_row();
cli::command status_row();
cli::command drain_row();
cli::command cancel_row();
cli::command pause_row();
cli::command simulate_row();
cli::command policy_attach_row();
cli::command policy_list_row();
cli::command policy_detach_row();
cli::command policy_weights_row();
cli::command cluster_init_row();
cli::command policy_scripted_row();
cli::command policy_probe_row();
cli::command inspect_row();
cli::command profile_row();
cli::command sanitize_row();
cli::command profile_read_row();
cli::command profile_command_row();
cli::command index_build_row();
cli::command index_query_row();
cli::command index_retract_row();
cli::command index_audit_row();
cli::command config_list_row();
cli::command config_show_row();
cli::command config_validate_row();
cli::command config_init_row();
cli::command config_diff_row();
cli::command config_schema_row();
cli::command completion_row();
cli::command version_row();
cli::command remote_ls_row();
cli::command remote_attach_row();
cli::command remote_close_row();
cli::command remote_far_row();
cli::command complete_row();
cli::command reference_row();

/// `status` with --head.
expected<int> head_status(const invocation& in);

/// `resume` with --head.
expected<int> resume_at_head(const invocation& in);

/// The table of all of the above.
const cli::command_table& all();

} // namespace kernelmill::commands
