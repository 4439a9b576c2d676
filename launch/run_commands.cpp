// Rows of the table: runs, single answers, tasks.

#include "launch/command_rows.hpp"

#include "actors/governance/judge.hpp"
#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

namespace {

using cli::argument_spec;
using cli::completes;
using cli::option_spec;

constexpr auto nothing = completes::nothing;

const option_spec runs_root{"--root", "DIR", "Folder that holds the runs.", "runs",
                            false,    {},    completes::directory};
const option_spec tasks_root{
    "--root",
    "DIR",
    "Folder that holds the tasks. Default: the installation's tasks and the imported ones.",
    "",
    false,
    {},
    completes::directory};

const option_spec python_path{"--python",
                              "PATH",
                              "Python interpreter with torch, for tasks of the contract torch. "
                              "Default: $KERNELMILL_PYTHON, then python3.",
                              "",
                              false,
                              {},
                              completes::file};

std::vector<option_spec> resume_options() {
  auto result = with_head_options({runs_root});
  for (auto& x : result)
    if (x.name == std::string_view{"--head"})
      x.doc = "Head that has the run. Default: a run of this machine.";
  return result;
}

const option_spec clock_option{"--clock",
                               "NAME",
                               "Time that the reward uses: `call` includes launches, `device` is "
                               "the GPU's work alone.",
                               "call",
                               false,
                               {"call", "device"},
                               nothing};

/// What answers of the contract torch are asked for and judged by.
std::vector<option_spec> with_torch_options(std::vector<option_spec> options) {
  const option_spec torch[] = {
      python_path,
      {"--torch-mode",
       "MODE",
       "`honest`, or `kernelbench` for KernelBench's own tolerances and trial counts.",
       "honest",
       false,
       {"honest", "kernelbench"},
       nothing},
      {"--language",
       "NAME",
       "Language that the kernels of a Python candidate must use.",
       "any",
       false,
       {"any", "cuda", "triton", "torch"},
       nothing},
      {"--float32",
       "NAME",
       "Arithmetic that a Python candidate may use for float32.",
       "ieee",
       false,
       {"ieee", "tf32"},
       nothing}};
  options.insert(options.end(), std::begin(torch), std::end(torch));
  return options;
}

} // namespace

void add_run_commands(cli::command_table& table) {
  table.push_back(
      {"run",
       "Runs a configuration: episodes of every task, until all have ended.",
       "kernelmill run quickstart\n"
       "kernelmill run configs/quickstart.json tasks.ids='[\"native/softmax\"]' run.dir=runs/first",
       "Later files and overrides win. The first Ctrl-C stops the run and keeps every committed "
       "turn. A second\n"
       "one ends it at once. `kernelmill config show --resolved --origin CONFIG...` shows the "
       "configuration of the run.",
       {config_words()},
       {flag("--dry-run", "Prints the resolved configuration and exits.")},
       run});
  table.push_back({"resume",
                   "Continues a run from its last committed turns.",
                   "kernelmill resume runs/first",
                   "Overrides may change addresses, keys, slots, deadlines and the log. They may "
                   "not change what the run\n"
                   "measures. With --head it continues a run of that head that was paused, was "
                   "cancelled or has failed.",
                   {{"RUN", "Name of a run, or its directory.", true, false, completes::run, {}},
                    {"OVERRIDE", "a.b=value.", false, true, nothing, {}}},
                   resume_options(),
                   resume});
  table.push_back(
      {"eval",
       "Builds, runs and judges one kernel.",
       "kernelmill eval --task native/row_sum kernel.cpp\n"
       "kernelmill eval --task native/row_sum --json - < kernel.cpp\n"
       "kernelmill eval --task native/row_sum --compile-only --arch gfx90a kernel.hip\n"
       "kernelmill eval --task kernelbench/level1/19_ReLU --python venv/bin/python answer.py",
       "A kernel that fails is a normal result: exit code 0. Exit code 1 means that the machine "
       "failed.\n"
       "HIP kernels, for AMD GPUs, are compiled but not judged yet.",
       {{"FILE", "Source file; - reads stdin.", true, false, completes::file, {}}},
       with_torch_options(
           {{"--task", "TASK", "Id of the task.", "", true, {}, completes::task},
            {"--contract",
             "NAME",
             "Contract of FILE: source of a `native` library, `device` code or a `torch` module. "
             "`auto` decides by the task and by launch lines.",
             "auto",
             false,
             {"auto", "native", "device", "torch"},
             nothing},
            {"--backend",
             "NAME",
             "Where it runs. `auto` decides by the file's name, then by the machine's hardware.",
             "auto",
             false,
             {"auto", "cpu", "cuda", "hip"},
             nothing},
            {"--gpu",
             "N",
             "Number of the GPU. Default: the first in CUDA_VISIBLE_DEVICES.",
             "",
             false,
             {},
             nothing},
            {"--preset", "NAME", "Reward preset.", "kevin", false, reward_presets(), nothing},
            {"--seed",
             "HEX",
             "Secret seed of an earlier evaluation, 64 hex digits, to replay it. Default: random.",
             "",
             false,
             {},
             nothing},
            clock_option,
            flag("--no-timing", "Checks correctness and skips timing."),
            flag("--compile-only", "Builds and prints the compiler's diagnostics. Needs no GPU."),
            {"--arch",
             "ARCH",
             "With --compile-only: target architecture, such as sm_90 or gfx90a. Default: this "
             "machine's GPU.",
             "",
             false,
             {},
             nothing},
            flag("--completion", "FILE is a whole completion with <think> and <KERNEL>."),
            tasks_root}),
       eval});
  table.push_back(
      {"judge",
       "Builds, runs and judges many kernels, on all cores and GPUs.",
       "kernelmill judge candidates.ndjson > verdicts.ndjson",
       "Each line of BATCH is {\"task\": \"native/row_sum\", \"file\": \"kernel.cu\"}, with an "
       "optional \"name\". File names are\n"
       "relative to BATCH. Each line of the output is a verdict, as `eval --json` prints it. "
       "Verdicts are printed as\n"
       "soon as they are ready.",
       {{"BATCH", "File of candidates, one per line.", true, false, completes::file, {}}},
       with_torch_options(
           {{"--backend",
             "NAME",
             "Where they run.",
             "auto",
             false,
             {"auto", "cpu", "cuda", "hip"},
             nothing},
            {"--preset", "NAME", "Reward preset.", "kevin", false, reward_presets(), nothing},
            clock_option,
            flag("--no-timing", "Checks correctness and skips timing."),
            tasks_root}),
       judge_batch});
  table.push_back(
      {"show",
       "Shows a run, a group, an episode, a turn or a candidate.",
       "kernelmill show runs/first\nkernelmill show runs/first/g3.e1.t2\nkernelmill show 3fa9c1d2",
       "",
       {{"WHAT",
         "RUN, RUN/g3, RUN/g3.e1, RUN/g3.e1.t2, or the first digits of a candidate's SHA-256.",
         true,
         false,
         completes::run,
         {}}},
       {runs_root},
       show});
  table.push_back(
      {"report",
       "Reports a run in KernelBench's metrics: fast_p, pass@k and speedups, by level.",
       "kernelmill report runs/first\n"
       "kernelmill report runs/first --eval-results eval_results_level{level}.json\n"
       "kernelmill report --from eval_results.json --baseline baseline_time_torch.json --level 1",
       "A sample is correct when it was accepted. FAST_p uses the estimated speedup; the column "
       "FAST_1 LOW uses the\n"
       "lower bound of its 95 % interval. INFRA counts samples lost to infrastructure faults; no "
       "rate includes them.\n"
       "An eval_results.json holds one level.",
       {{"RUN", "Name of a run, or its directory.", false, false, completes::run, {}}},
       {{"--by",
         "UNIT",
         "Unit of a sample: `episode` counts its best accepted turn, `turn` counts every turn.",
         "episode",
         false,
         {"episode", "turn"},
         nothing},
        {"--p", "LIST", "Values of p for fast_p.", "0,1,2", false, {}, nothing},
        {"--k", "LIST", "Values of k for pass@k.", "1,5,10", false, {}, nothing},
        {"--eval-results",
         "FILE",
         "Writes the samples as KernelBench's eval_results.json. {level} is replaced by the "
         "level's number.",
         "",
         false,
         {},
         completes::file},
        {"--from",
         "FILE",
         "Reads an eval_results.json of KernelBench or Kernelmill instead of a run. {level} "
         "stands for each level's number.",
         "",
         false,
         {},
         completes::file},
        {"--baseline",
         "FILE",
         "With --from: KernelBench's reference times, for entries without ref_runtime.",
         "",
         false,
         {},
         completes::file},
        {"--level", "N", "With --from: level of the file.", "", false, {}, nothing},
        runs_root},
       report});
  table.push_back({"ps",
                   "Lists the live episodes of runs in progress and their states.",
                   "kernelmill ps",
                   "",
                   {{"RUN",
                     "Name of a run, or its directory. Default: all runs below --root.",
                     false,
                     false,
                     completes::run,
                     {}}},
                   {runs_root},
                   ps});
  table.push_back({"doctor",
                   "Checks this machine and lists what is missing.",
                   "kernelmill doctor",
                   "Exit code 1 when a check fails. Warnings do not change the exit code.",
                   {},
                   {{"--dir",
                     "DIR",
                     "Directory in which runs would be stored.",
                     "runs",
                     false,
                     {},
                     completes::directory}},
                   doctor});
}

void add_task_commands(cli::command_table& table) {
  const argument_spec task_id{"TASK", "Id of a task.", true, false, completes::task, {}};
  table.push_back(
      {"task list", "Lists the tasks.", "kernelmill task list", "", {}, {tasks_root}, task_list});
  table.push_back({"task show",
                   "Shows a task: signature, cases, prompt.",
                   "kernelmill task show native/row_sum",
                   "",
                   {task_id},
                   {tasks_root},
                   task_show});
  table.push_back(
      {"task check",
       "Checks that no output can pass the task without doing the work.",
       "kernelmill task check native/row_sum\n"
       "kernelmill task check --backend cuda native/row_sum",
       "On cuda, baseline.cu must pass every case, and reference.cu must agree with "
       "reference.cpp on each case.\n"
       "Exit code 5 when a task is refused.",
       {{"TASK", "Ids or globs. Default: all tasks.", false, true, completes::task, {}}},
       {{"--backend",
         "NAME",
         "Backend to check. `auto`: every backend that the task names and this "
         "machine has.",
         "auto",
         false,
         {"auto", "cpu", "cuda"},
         nothing},
        python_path,
        tasks_root},
       task_check});
  table.push_back(
      {"task import",
       "Imports a benchmark's problems as tasks.",
       "kernelmill task import kernelbench ~/KernelBench\n"
       "kernelmill task import kernelbench problems.jsonl --level 1",
       "Tasks are written to $XDG_DATA_HOME/kernelmill/tasks (~/.local/share/kernelmill/tasks), "
       "where every command\n"
       "finds them. Each task is written atomically. A second import changes nothing. Exit code "
       "4 when existing tasks\n"
       "differ and were not replaced.",
       {{"SUITE", "Benchmark.", true, false, nothing, {"kernelbench"}},
        {"PATH",
         "Checkout of KernelBench, or its problems.jsonl. Default: $KERNELBENCH_ROOT.",
         false,
         false,
         completes::file,
         {}}},
       {{"--to", "DIR", "Folder to write tasks to.", "", false, {}, completes::directory},
        {"--level", "N", "Imports only this level.", "", false, {}, nothing},
        flag("--force", "Replaces existing tasks that differ.")},
       task_import});
}

} // namespace kernelmill::commands
