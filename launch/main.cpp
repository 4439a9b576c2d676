// kernelmill: the commands. Each is one row of the table below; its code is in launch/commands.

#include <csignal>

#include "actors/governance/judge.hpp"
#include "launch/cluster_commands.hpp"
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
       {"any", "cuda", "triton", "torch", "hip"},
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

const std::vector<std::string> server_kinds{"openai", "vllm", "sglang", "llamacpp"};

option_spec flag(const char* name, const char* doc) {
  return {name, "", doc, "", false, {}, nothing};
}

/// Daily work.
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
                   with_head_options({runs_root}),
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
            {"--gpu", "N", "Which GPU; without it the first.", "", false, {}, nothing},
            {"--preset", "NAME", "Weights of the reward.", "kevin", false, reward_presets(),
             nothing},
            {"--seed",
             "HEX",
             "64 hex digits that replay an evaluation; without it they are drawn.",
             "",
             false,
             {},
             nothing},
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

void add_credentials_commands(cli::command_table& table) {
  table.push_back(
      {"cluster init",
       "Makes what lets the machines of a cluster know each other: a CA, a certificate, a key.",
       "kernelmill cluster init\n"
       "kernelmill cluster init --dir credentials",
       "Once for a cluster. Every machine then gets ca.pem, node.pem and node.key, and whoever has "
       "the key is a node\n"
       "of the cluster. ca.key stays where it is made. Exit code 4 when there are credentials "
       "already. Prints the\n"
       "directory on stdout.",
       {},
       {{"--dir",
         "DIR",
         "Where; without it $KERNELMILL_CREDENTIALS, then $XDG_STATE_HOME/kernelmill/cluster, then "
         "~/.local/state/kernelmill/cluster.",
         "",
         false,
         {},
         completes::directory}},
       cluster_init});
}

void add_policy_and_index_commands(cli::command_table& table) {
  table.push_back(
      {"policy scripted",
       "Serves a script as a policy server of any kind.",
       "kernelmill policy scripted --script configs/policies/quickstart/script.json --port 8080\n"
       "kernelmill policy scripted --script script.json --kind vllm --port 8000",
       "Prints its address on stdout once it listens. docs/reference/policy-script.md lists what a "
       "script says.",
       {},
       {{"--script", "FILE", "The script.", "", true, {}, completes::file},
        {"--port", "N", "Port; 0 takes a free one.", "0", false, {}, nothing},
        {"--host", "HOST", "Address to listen on.", "127.0.0.1", false, {}, nothing},
        {"--kind", "KIND", "Kind of server to behave like; without it what the script says.", "",
         false, server_kinds, nothing}},
       policy_scripted});
  table.push_back(
      {"policy probe",
       "Asks a policy server what it can do, and says what a trainer loses where it cannot.",
       "kernelmill policy probe http://127.0.0.1:8000/v1\n"
       "kernelmill policy probe http://127.0.0.1:8000/v1 --kind vllm --model my-model --json",
       "Samples a few dozen tokens. Without --kind it goes by the routes that the server has, "
       "without --model it takes\nthe first that the server lists. 69: no server answers there.",
       {{"URL", "Address with its version path.", true, false, nothing, {}}},
       {{"--kind", "KIND", "Kind of the server.", "", false, server_kinds, nothing},
        {"--model", "MODEL", "Model to ask for.", "", false, {}, nothing},
        {"--api-key-env",
         "NAME",
         "Environment variable that holds the API key.",
         "",
         false,
         {},
         nothing},
        {"--api-key-file", "FILE", "File that holds the API key.", "", false, {}, completes::file},
        {"--ca-file", "FILE", "Certificates to trust.", "", false, {}, completes::file},
        {"--timeout-ms", "MS", "Time for one answer.", "60000", false, {}, nothing}},
       policy_probe});
  table.push_back(
      {"index build",
       "Builds a retrieval index from knowledge cards.",
       "kernelmill index build index",
       "",
       {{"DIR", "Folder of the index; made when missing.", true, false, completes::directory, {}}},
       {{"--corpus",
         "DIR",
         "Folder of the cards; without it the installation's.",
         "",
         false,
         {},
         completes::directory}},
       index_build});
  table.push_back({"index query",
                   "Asks a retrieval index.",
                   "kernelmill index query index sum of each row",
                   "",
                   {{"DIR", "Folder of the index.", true, false, completes::directory, {}},
                    {"TEXT", "What to look for.", true, true, nothing, {}}},
                   {{"--count", "N", "Most results.", "5", false, {}, nothing},
                    {"--exclude-task",
                     "TASK",
                     "Withholds what solves this task.",
                     "",
                     false,
                     {},
                     completes::task},
                    {"--family", "NAME", "Prefers an operator family.", "", false, {}, nothing},
                    {"--backend", "NAME", "Prefers a backend.", "", false, {}, nothing}},
                   index_query});
}

void add_config_commands(cli::command_table& table) {
  table.push_back({"config show",
                   "Shows what the files, the environment and the overrides come to.",
                   "kernelmill config show configs/quickstart.json tasks.groups=2\n"
                   "kernelmill config show --resolved --origin quickstart",
                   "",
                   {config_words()},
                   {flag("--resolved", "Shows every key, defaults too."),
                    flag("--origin", "Says where each value comes from.")},
                   config_show});
  table.push_back({"config validate",
                   "Checks a configuration and lists everything that is wrong with it.",
                   "kernelmill config validate configs/quickstart.json",
                   "",
                   {config_words()},
                   {},
                   config_validate});
  table.push_back({"config schema",
                   "Prints the JSON Schema of a configuration file.",
                   "kernelmill config schema > kernelmill.schema.json",
                   "",
                   {},
                   {flag("--markdown", "Prints the reference page instead.")},
                   config_schema});
}

void add_other_commands(cli::command_table& table) {
  table.push_back({"completion",
                   "Prints a completion script for a shell.",
                   "source <(kernelmill completion bash)",
                   "",
                   {{"SHELL", "bash, zsh or fish.", true, false, nothing, {"bash", "zsh", "fish"}}},
                   {},
                   completion});
  table.push_back({"version",
                   "Prints the versions of the program, its formats and its libraries.",
                   "kernelmill version --json",
                   "",
                   {},
                   {},
                   version});
  table.push_back({"__complete",
                   "Prints names for completion scripts.",
                   "kernelmill __complete task",
                   "",
                   {{"KIND", "task or run.", true, false, nothing, {"task", "run"}}},
                   {},
                   complete,
                   true});
  table.push_back({"__reference",
                   "Prints docs/reference/cli.md.",
                   "kernelmill __reference",
                   "",
                   {},
                   {},
                   reference,
                   true});
}

} // namespace

const cli::command_table& all() {
  static const auto table = [] {
    cli::command_table result;
    add_run_commands(result);
    add_task_commands(result);
    add_cluster_commands(result);
    add_credentials_commands(result);
    add_policy_and_index_commands(result);
    add_config_commands(result);
    add_other_commands(result);
    return result;
  }();
  return table;
}

} // namespace kernelmill::commands

int main(int argc, char** argv) {
  // A reader of ours that goes away and a file that may not grow are errors of a write, not our
  // end.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return kernelmill::cli::dispatch(kernelmill::commands::all(),
                                   {argv + (argc > 0 ? 1 : 0), argv + argc});
}
