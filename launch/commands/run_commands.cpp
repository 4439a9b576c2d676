// Rows of the table: runs, single answers, tasks.

#include "launch/commands/command_rows.hpp"

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
    "Folder below which tasks are found; without it the installation's, and "
    "those that were imported.",
    "",
    false,
    {},
    completes::directory};

const option_spec python_path{"--python",
                              "PATH",
                              "Interpreter that has torch, for tasks of the contract torch; "
                              "without it $KERNELMILL_PYTHON, then python3.",
                              "",
                              false,
                              {},
                              completes::file};

std::vector<option_spec> resume_options() {
  auto result = with_head_options({runs_root});
  for (auto& x : result)
    if (x.name == std::string_view{"--head"})
      x.doc = "The head that has the run; without it the run is one of this machine.";
  return result;
}

const option_spec clock_option{"--clock",
                               "NAME",
                               "Which time is paid: of calls with their launches, or of the GPU's "
                               "work alone.",
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
       "`honest`, or `kernelbench` for its own tolerances and trial counts.",
       "honest",
       false,
       {"honest", "kernelbench"},
       nothing},
      {"--language",
       "NAME",
       "What the kernels of an answer in Python must be written in.",
       "any",
       false,
       {"any", "cuda", "triton", "torch"},
       nothing},
      {"--float32",
       "NAME",
       "Arithmetic that an answer in Python may use for float32.",
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
       "Runs a configuration: episodes of every task, to the end.",
       "kernelmill run quickstart\n"
       "kernelmill run configs/quickstart.json tasks.ids='[\"native/softmax\"]' run.dir=runs/first",
       "Later files and overrides win. The first Ctrl-C ends the run with every committed turn "
       "kept; a second\n"
       "one ends it at once. `kernelmill config show --resolved --origin CONFIG...` shows what "
       "would be run.",
       {config_words()},
       {flag("--dry-run", "Prints the resolved configuration and runs nothing.")},
       run});
  table.push_back({"resume",
                   "Goes on with a run from its last committed turns.",
                   "kernelmill resume runs/first",
                   "Overrides may change how the run goes on (addresses, keys, slots, deadlines, "
                   "the log), not what it\n"
                   "measures. With --head it is a run of a head that was paused, cancelled, or has "
                   "failed.",
                   {{"RUN", "Name of a run, or its directory.", true, false, completes::run, {}},
                    {"OVERRIDE", "a.b=value.", false, true, nothing, {}}},
                   resume_options(),
                   resume});
  table.push_back(
      {"eval",
       "Builds, runs and judges one candidate.",
       "kernelmill eval --task native/row_sum kernel.cpp\n"
       "kernelmill eval --task native/row_sum --json - < kernel.cpp\n"
       "kernelmill eval --task native/row_sum --compile-only --arch gfx90a kernel.hip\n"
       "kernelmill eval --task kernelbench/level1/19_ReLU --python venv/bin/python answer.py",
       "A candidate that fails is a normal answer: exit code 0. Only a fault of the machine is 1.\n"
       "Candidates in HIP, for AMD GPUs, can be compiled only: nothing here judges them yet.",
       {{"FILE", "The source; - reads stdin.", true, false, completes::file, {}}},
       with_torch_options(
           {{"--task", "TASK", "Id of the task.", "", true, {}, completes::task},
            {"--contract",
             "NAME",
             "What FILE is: a `native` library's source, `device` code or a `torch` module; `auto` "
             "goes by the task and looks for launch lines.",
             "auto",
             false,
             {"auto", "native", "device", "torch"},
             nothing},
            {"--backend",
             "NAME",
             "Where it runs; auto goes by the name of the file, then by what this machine has.",
             "auto",
             false,
             {"auto", "cpu", "cuda", "hip"},
             nothing},
            {"--gpu",
             "N",
             "Which GPU; without it the first that CUDA_VISIBLE_DEVICES shows.",
             "",
             false,
             {},
             nothing},
            {"--preset", "NAME", "Weights of the reward.", "kevin", false, reward_presets(),
             nothing},
            {"--seed",
             "HEX",
             "64 hex digits that replay an evaluation; without it they are drawn.",
             "",
             false,
             {},
             nothing},
            clock_option,
            flag("--no-timing", "Checks without timing."),
            flag("--compile-only", "Builds and says what the compiler said; needs no GPU."),
            {"--arch",
             "ARCH",
             "With --compile-only: what to build for, such as sm_90 or gfx90a; without it the GPU "
             "at "
             "hand.",
             "",
             false,
             {},
             nothing},
            flag("--completion", "FILE is a whole completion with <think> and <KERNEL>."),
            tasks_root}),
       eval});
  table.push_back(
      {"judge",
       "Builds, runs and judges many candidates, on every core and every GPU.",
       "kernelmill judge candidates.ndjson > verdicts.ndjson",
       "Each line of BATCH is {\"task\": \"native/row_sum\", \"file\": \"kernel.cu\"}, with a "
       "\"name\" if you like; files are\n"
       "looked for beside BATCH. Each line of the output is a verdict as `eval --json` prints it, "
       "in "
       "the order in\n"
       "which they come.",
       {{"BATCH", "The candidates, one a line.", true, false, completes::file, {}}},
       with_torch_options({{"--backend",
                            "NAME",
                            "Where they run.",
                            "auto",
                            false,
                            {"auto", "cpu", "cuda", "hip"},
                            nothing},
                           {"--preset", "NAME", "Weights of the reward.", "kevin", false,
                            reward_presets(), nothing},
                           clock_option,
                           flag("--no-timing", "Checks without timing."),
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
       "Reports a run in KernelBench's figures: fast_p, pass@k, speedups, by level.",
       "kernelmill report runs/first\n"
       "kernelmill report runs/first --eval-results eval_results_level{level}.json\n"
       "kernelmill report --from eval_results.json --baseline baseline_time_torch.json --level 1",
       "A sample is correct when it was accepted. Its speedup is the estimate of its timing; the "
       "column FAST_1 LOW\n"
       "counts the lower bound of the 95 % interval instead. What the infrastructure lost is "
       "counted in INFRA and is\n"
       "in no rate. An eval_results.json holds one level.",
       {{"RUN", "Name of a run, or its directory.", false, false, completes::run, {}}},
       {{"--by",
         "UNIT",
         "What a sample is: an episode, which stands for its best accepted turn, or each turn.",
         "episode",
         false,
         {"episode", "turn"},
         nothing},
        {"--p", "LIST", "Speedups to give fast_p for.", "0,1,2", false, {}, nothing},
        {"--k", "LIST", "Numbers of samples to give pass@k for.", "1,5,10", false, {}, nothing},
        {"--eval-results",
         "FILE",
         "Writes the samples as KernelBench's eval_results.json; {level} becomes the level's "
         "number.",
         "",
         false,
         {},
         completes::file},
        {"--from",
         "FILE",
         "Reads an eval_results.json, the benchmark's or ours, in place of a run; {level} means a "
         "file for each level.",
         "",
         false,
         {},
         completes::file},
        {"--baseline",
         "FILE",
         "With --from: KernelBench's times of the references, for entries without ref_runtime.",
         "",
         false,
         {},
         completes::file},
        {"--level", "N", "With --from: the level that FILE is of.", "", false, {}, nothing},
        runs_root},
       report});
  table.push_back({"ps",
                   "Lists the live episodes of runs in progress, with their states.",
                   "kernelmill ps",
                   "",
                   {{"RUN",
                     "Name of a run, or its directory; without it all below runs/.",
                     false,
                     false,
                     completes::run,
                     {}}},
                   {runs_root},
                   ps});
  table.push_back(
      {"doctor",
       "Tries what Kernelmill needs of this machine, and says what is missing.",
       "kernelmill doctor",
       "Exit code 1 when something fails; warnings are 0.",
       {},
       {{"--dir", "DIR", "Where runs would be stored.", "runs", false, {}, completes::directory}},
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
  table.push_back({"task check",
                   "Refuses tasks that an output without work can pass.",
                   "kernelmill task check native/row_sum\n"
                   "kernelmill task check --backend cuda native/row_sum",
                   "With cuda, baseline.cu must pass every case and reference.cu must agree with "
                   "reference.cpp on each.\n"
                   "Exit code 5 when a task is refused.",
                   {{"TASK", "Ids or globs; without them all.", false, true, completes::task, {}}},
                   {{"--backend",
                     "NAME",
                     "Whose files are checked; auto: of every backend that the task names and this "
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
       "Makes tasks of a benchmark's problems.",
       "kernelmill task import kernelbench ~/KernelBench\n"
       "kernelmill task import kernelbench problems.jsonl --level 1",
       "Tasks come to $XDG_DATA_HOME/kernelmill/tasks (~/.local/share/kernelmill/tasks), where "
       "every command finds\n"
       "them. Each is there whole or not at all; a second import changes nothing. Exit code 4 when "
       "tasks that\n"
       "differ were left alone.",
       {{"SUITE", "Whose problems they are.", true, false, nothing, {"kernelbench"}},
        {"PATH",
         "A checkout of KernelBench, or its problems.jsonl; without it $KERNELBENCH_ROOT.",
         false,
         false,
         completes::file,
         {}}},
       {{"--to", "DIR", "Another folder of tasks.", "", false, {}, completes::directory},
        {"--level", "N", "Only the problems of one level.", "", false, {}, nothing},
        flag("--force", "Replaces tasks that differ.")},
       task_import});
}

} // namespace kernelmill::commands
