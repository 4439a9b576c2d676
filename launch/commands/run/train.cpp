// `kernelmill train`: a policy learns from its own episodes. One process is the hand-off, the slots
// that judge, and the loop; the policy's server and the trainer are programs beside it.

#include <caf/all.hpp>

#include "actors/cluster/cluster.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/link.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run/hosting_system.hpp"
#include "launch/commands/run/train_text.hpp"
#include "launch/config/load.hpp"
#include "launch/learning/training/held_out.hpp"
#include "launch/learning/training/training.hpp"
#include "launch/machine/programs.hpp"
#include "launch/machine/python.hpp"
#include "launch/node/hosted_run.hpp"
#include "launch/node/node_plan.hpp"
#include "launch/node/slot_actors.hpp"
#include "launch/server/rollouts/hosting.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

expected<training::train_config> training_of(const invocation& in) {
  auto words = in.list("CONFIG");
  return training::read_train_config(words.front(), {words.begin() + 1, words.end()});
}

/// The sections of `run` as a run's configuration, checked, for the slots of this machine.
expected<run_config> slots_config(const training::train_config& config) {
  KM_TRY(make_directories(config.dir));
  auto path = config.dir + "/run.json";
  KM_TRY(write_json(path, nlohmann::ordered_json(config.run)));
  auto loaded = load_config({{path}, {}, {}, config.dir});
  KM_TRY(loaded);
  return loaded->config;
}

expected<chosen_backend> training_backend(const training::train_config& config,
                                          const run_config& run,
                                          const training::chosen_tasks& tasks) {
  auto backend = choose_backend(config.backend);
  KM_TRY(backend);
  if (!any_torch(tasks.all)) return backend;
  auto python = find_python(run.evaluation.python);
  KM_TRY(python);
  backend->python = python->path;
  return backend;
}

expected<void> stopped() {
  if (interrupt::signal() == 0) return {};
  return infrastructure_error("interrupted", "the training was stopped",
                              "the same command goes on from here");
}

/// Trains until the last step; slots and actors end with the process.
expected<int> run_training(const invocation& in, const training::train_config& config,
                           training::chosen_tasks tasks, const run_config& run,
                           const chosen_backend& backend) {
  std::vector<std::string> directories;
  for (const auto& x : tasks.all) directories.push_back(x->directory);
  auto processes = start_spawner();
  KM_TRY(processes);
  auto slots = start_slots(run, backend, directories);
  KM_TRY(slots);
  hosting_system_config actors_config;
  caf::actor_system system{actors_config};
  auto cluster = system.spawn(leasing_cluster, leases_of_own_slots(longest_lease(run)));
  auto workers = spawn_slot_actors(system, *slots, cluster, {});
  rollouts::local_options options;
  options.root = training::runs_of(config.dir);
  options.queues = cluster;
  options.lane = rollouts::lane_of(backend, *slots);
  options.backend = backend;
  options.tasks_root = config.tasks_root;
  options.own_orders = true;
  auto handoff = rollouts::start_handoff(system, std::move(options));
  auto ended = [&]() -> expected<void> {
    KM_TRY(handoff);
    auto loop = training::training::open(
        {config, std::move(tasks), training::handoff_client{*handoff},
         std::make_shared<spawner>(std::move(*processes)), stopped,
         [&in](const training::training_record::line& x) {
           cli::print(in.json ? cli::line_text(x) : training_line(x) + "\n");
           cli::finish_output();
         }});
    KM_TRY(loop);
    return (*loop)->run();
  }();
  int code = cli::exit_ok;
  if (!ended) {
    bool by_signal = ended.error().category == "interrupted";
    code = by_signal ? 128 + interrupt::signal() : cli::exit_code(ended.error());
    cli::print_error(ended.error(), in.json, in.colour_err);
  }
  cli::finish_output();
  // What counts is durable, and a candidate may run for minutes yet: it ends with its parent.
  leave(code);
}

expected<int> train(const invocation& in) {
  auto config = training_of(in);
  KM_TRY(config);
  auto tasks = training::choose_tasks(*config);
  KM_TRY(tasks);
  auto run = slots_config(*config);
  KM_TRY(run);
  auto backend = training_backend(*config, *run, *tasks);
  KM_TRY(backend);
  interrupt stop;
  return run_training(in, *config, std::move(*tasks), *run, *backend);
}

expected<int> train_show(const invocation& in) {
  auto config = training_of(in);
  KM_TRY(config);
  auto record = training::training_record::open(config->dir, config->steps);
  KM_TRY(record);
  auto x = training_summary(*record);
  if (in.json)
    cli::print_json(x);
  else
    cli::print(training_text(*record, x));
  return cli::exit_ok;
}

expected<int> train_check(const invocation& in) {
  auto config = training_of(in);
  KM_TRY(config);
  auto tasks = training::choose_tasks(*config);
  KM_TRY(tasks);
  auto report = training::check_held_out(*config, *tasks);
  KM_TRY(report);
  if (in.json)
    cli::print_json(held_out_document(*report));
  else
    cli::print(held_out_text(*report));
  return report->leaks.empty() ? cli::exit_ok : cli::exit_quality;
}

cli::argument_spec training_words() {
  return {"CONFIG",
          "The training's file; then seed=N, dir=DIR, steps=N or backend=NAME, in place of the "
          "file's.",
          true,
          true,
          completes::file,
          {}};
}

} // namespace

cli::command train_row() {
  return {"train",
          "Trains a policy on its own episodes, with your trainer and your policy server.",
          "kernelmill train training.json\n"
          "kernelmill train training.json dir=second seed=2",
          "Each step makes groups of episodes, drops those that teach nothing, has the trainer "
          "learn from the rest, and has\nthe policy server load the new weights. The same command "
          "continues after Ctrl-C, kill -9 or a reboot; no group is\nlearned from twice. "
          "docs/reference/training.md lists the keys of the file.",
          {training_words()},
          {},
          train};
}

cli::command train_show_row() {
  return {"train show",
          "Shows a training: its curve, its rate, its best kernels, and violations by class.",
          "kernelmill train show training.json",
          "Reads checkpoints.jsonl and evaluations.jsonl, also while the training runs.",
          {training_words()},
          {},
          train_show};
}

cli::command train_check_row() {
  return {"train check",
          "Checks the training data for leaks of held-out tasks.",
          "kernelmill train check training.json",
          "Searches the prompts of all training runs, with the examples in them, and the files of "
          "tasks.texts, for ids, lines\nof prompts and timed shapes of held-out tasks. Exit code 5 "
          "when it finds one.",
          {training_words()},
          {},
          train_check};
}

} // namespace kernelmill::commands
