// `kernelmill task apply`: a kernel goes back into the user's model that its task was made of.

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/candidate_source.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/import/model.hpp"
#include "launch/node/task_choice.hpp"
#include "storage/files.hpp"

namespace kernelmill::commands {

namespace {

// This process becomes `eval` of the whole model, with the same options.
expected<int> judge_whole(const invocation& in, const std::string& whole) {
  std::vector<std::string> words{"kernelmill", "eval", "--task", whole};
  for (const char* name : {"--python", "--root", "--backend"})
    if (in.has(name)) words.insert(words.end(), {name, in.value(name)});
  if (in.json) words.emplace_back("--json");
  words.push_back(in.value("--to"));
  std::vector<char*> arguments;
  for (auto& x : words) arguments.push_back(x.data());
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  return infrastructure_error("program_missing",
                              std::string{"failed to start eval: "} + std::strerror(errno));
}

expected<int> task_apply(const invocation& in) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto task = choose_task(*roots, in.value("--task"));
  KM_TRY(task);
  if ((*task)->contract != contract_kind::torch)
    return configuration_error("bad_problem",
                               "failed to apply a kernel of " + (*task)->id +
                                   ": it was not made of a model",
                               "`kernelmill task import model FILE.py` makes such tasks");
  cli::show_activity("reading the model");
  auto made = patch_model(in.value("KERNEL"), (*task)->directory + "/problem.py",
                          in.value("--model"), in.value("--python"));
  KM_TRY(made);
  auto whole = choose_task(*roots, made->whole); // before anything is written
  KM_TRY(whole);
  KM_TRY(write_file(in.value("--to"), made->text));
  cli::talk("wrote " + in.value("--to") + "; it is judged now as an answer to " + made->whole);
  return judge_whole(in, made->whole);
}

} // namespace

cli::command task_apply_row() {
  return {
      "task apply",
      "Puts a kernel back into the model that its task was made of, and judges the whole.",
      "kernelmill task apply answer.py --task model/net/Attention --model net.py --to fast.py",
      "For tasks of `kernelmill task import model`. The file that is written has the model's file "
      "with the kernel in place\n"
      "of the submodules that the task is of, and their parameters. Then `eval` judges it as an "
      "answer to the whole model's\n"
      "task, which says whether it is right and how much faster the whole is.",
      {{"KERNEL", "File with the answer to the task.", true, false, completes::file, {}}},
      {{"--task", "TASK", "Id of the task that the kernel answers.", "", true, {}, completes::task},
       {"--model", "FILE", "The model's file.", "", true, {}, completes::file},
       {"--to", "FILE", "File to write.", "", true, {}, completes::file},
       tasks_root(),
       backend_option({"auto", "cpu", "cuda"}),
       python_path()},
      task_apply};
}

} // namespace kernelmill::commands
