#include "launch/commands/command_rows.hpp"

#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

namespace {

using cli::argument_spec;
using cli::completes;
using cli::option_spec;

constexpr auto nothing = completes::nothing;

const option_spec credentials{"--credentials",
                              "DIR",
                              "What `cluster init` made; without it $KERNELMILL_CREDENTIALS, then "
                              "the default place.",
                              "",
                              false,
                              {},
                              completes::directory};
const option_spec insecure{
    "--insecure-loopback", "", "No TLS, for 127.0.0.1 and ::1 alone.", "", false, {}, nothing};
const option_spec log_file{
    "--log-file", "FILE",         "Logs there too; four files of 16 MiB are kept.", "", false,
    {},           completes::file};

argument_spec run_name() {
  return {"RUN", "Name of a run of the head.", true, false, nothing, {}};
}

} // namespace

argument_spec config_words() {
  return {"CONFIG",
          "A configuration file or preset, or an override a.b=value, +a.b=value, ~a.b.",
          true,
          true,
          completes::config,
          {}};
}

option_spec flag(const char* name, const char* doc) {
  return {name, "", doc, "", false, {}, nothing};
}

std::vector<option_spec> with_head_options(std::vector<option_spec> options) {
  options.push_back({"--head",
                     "ADDR:PORT",
                     "The head; without it $KERNELMILL_HEAD, then 127.0.0.1:7612.",
                     "",
                     false,
                     {},
                     nothing});
  options.push_back(credentials);
  options.push_back(insecure);
  return options;
}

namespace {

void add_policy_commands(cli::command_table& table) {
  table.push_back(
      {"policy attach",
       "Gives a head a policy server, also while runs are in progress.",
       "kernelmill policy attach http://10.0.0.5:8000/v1\n"
       "kernelmill policy attach http://10.0.0.5:8000/v1 --kind vllm --model my-model --name a",
       "Runs with policy.kind=attached ask all servers of the head, each conversation the same one "
       "as long as that\n"
       "serves. Without --kind or --model the head asks the server; with both it need not be up "
       "yet. Keys are named\n"
       "and never sent: the head reads them. A head that starts again attaches its servers again.",
       {{"URL",
         "Address with its version path, as the head reaches it.",
         true,
         false,
         nothing,
         {}}},
       with_head_options(
           {{"--name", "NAME", "What to call it; without it HOST:PORT.", "", false, {}, nothing},
            {"--kind",
             "KIND",
             "Kind of the server.",
             "",
             false,
             {"openai", "vllm", "sglang", "llamacpp"},
             nothing},
            {"--model", "MODEL", "Model to ask for.", "", false, {}, nothing},
            {"--max-in-flight", "N", "Most requests open at once.", "64", false, {}, nothing},
            {"--api-key-env",
             "NAME",
             "Environment variable of the head that holds the API key.",
             "",
             false,
             {},
             nothing},
            {"--api-key-file",
             "FILE",
             "File on the head's machine that holds the API key.",
             "",
             false,
             {},
             nothing}}),
       policy_attach});
  table.push_back(
      {"policy list",
       "Shows the policy servers of a head.",
       "kernelmill policy list",
       "`resting` is a server that fails: it gets no requests while others serve. `unattached`: a "
       "head that started again\ncould not attach it.",
       {},
       with_head_options({}),
       policy_list});
  table.push_back(
      {"policy detach",
       "Takes a policy server away from a head; what is in flight may finish.",
       "kernelmill policy detach 10.0.0.5:8000\n"
       "kernelmill policy detach a --drain-ms 0",
       "Returns at once; `kernelmill policy list` shows the server until it is drained. What is in "
       "flight after the\n"
       "time goes to another server, or waits for one.",
       {{"NAME_OR_URL", "A server, as `policy list` shows it.", true, false, nothing, {}}},
       with_head_options(
           {{"--drain-ms", "MS", "Time for what is in flight.", "600000", false, {}, nothing}}),
       policy_detach});
  table.push_back(
      {"policy weights",
       "Declares which version of the weights servers have from now on.",
       "kernelmill policy weights step-12\n"
       "kernelmill policy weights step-12 --server a",
       "Recorded with every turn as half-open spans of tokens. What a server of kind vllm or "
       "sglang says itself wins.\n"
       "A completion that was in flight gets one span of the version BEFORE..AFTER.",
       {{"VERSION", "Any text without blanks and without `..`.", true, false, nothing, {}}},
       with_head_options(
           {{"--server", "NAME", "This server alone; without it all.", "", false, {}, nothing}}),
       policy_weights});
}

} // namespace

void add_cluster_commands(cli::command_table& table) {
  table.push_back(
      {"head",
       "Serves as the head of a cluster: owns runs, and gives their work to nodes.",
       "kernelmill head --listen 10.0.0.1:7612\n"
       "kernelmill head --insecure-loopback",
       "Prints its address once it listens. Links are mutual TLS with the credentials of "
       "`kernelmill cluster init`.\n"
       "Ctrl-C or SIGTERM ends it; runs in progress stay resumable, and the next head of the same "
       "--root goes on with\n"
       "them by itself, as it does after kill -9.",
       {},
       {{"--listen",
         "ADDR:PORT",
         "Where to listen; port 0 is any.",
         "127.0.0.1:7612",
         false,
         {},
         nothing},
        {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory},
        credentials,
        insecure,
        log_file,
        {"--log-level",
         "LEVEL",
         "Least severe level that is logged.",
         "info",
         false,
         {"trace", "debug", "info", "warn", "error"},
         nothing},
        {"--log-format",
         "FORMAT",
         "`text`, or `json`: one object a line.",
         "text",
         false,
         {"text", "json"},
         nothing}},
       head});
  auto words = config_words();
  words.required = false;
  table.push_back(
      {"node",
       "Offers this machine's compilers and GPUs to a head.",
       "kernelmill node --head 10.0.0.1:7612\n"
       "kernelmill node --head 10.0.0.1:7612 --gpus 0,2 --compilers 8\n"
       "kernelmill node --head 10.0.0.1:7612 --arch sm_90 --compilers 32",
       "Joins again by itself when the connection or the head is lost. SIGTERM, SIGUSR1 and Ctrl-C "
       "drain it: it takes\n"
       "nothing new, answers what it has, and ends; a second signal ends it at once. Of the "
       "configuration the sections\n"
       "`compile`, `evaluation` and `log` matter.",
       {words},
       with_head_options(
           {{"--name",
             "NAME",
             "What the cluster calls it; without it the host's name.",
             "",
             false,
             {},
             nothing},
            {"--gpus",
             "LIST",
             "`all`, `none`, or numbers like 0,2, of the GPUs that CUDA_VISIBLE_DEVICES shows.",
             "all",
             false,
             {},
             nothing},
            {"--arch",
             "ARCH",
             "Compile for GPUs of this kind (sm_90) and judge nothing.",
             "",
             false,
             {},
             nothing},
            {"--compilers", "N", "Builds at once; without it one a core.", "", false, {}, nothing},
            log_file}),
       node});
  table.push_back(
      {"submit",
       "Gives a run to a head.",
       "kernelmill submit quickstart --head 10.0.0.1:7612 --wait\n"
       "kernelmill submit base.json run.name=first tasks.groups=8",
       "Files are read here, and paths in them must exist on the head's machine. With "
       "--wait it stays until the run\n"
       "has ended and exits with 0 when it has finished.",
       {config_words()},
       with_head_options({{"--wait", "", "Stay until the run has ended.", "", false, {}, nothing}}),
       submit});
  table.push_back({"status",
                   "Shows a head's nodes, queues and runs.",
                   "kernelmill status --head 10.0.0.1:7612",
                   "Exit code 69 when the head cannot be reached.",
                   {},
                   with_head_options({}),
                   status});
  table.push_back({"drain",
                   "Gives a node no more jobs; it ends when it has answered.",
                   "kernelmill drain gpu-host-3",
                   "It goes on draining when the link or the head is lost meanwhile.",
                   {{"NODE", "Name of a node, as `status` shows it.", true, false, nothing, {}}},
                   with_head_options({}),
                   drain});
  table.push_back({"cancel",
                   "Ends a run of a head; committed turns stay.",
                   "kernelmill cancel first",
                   "`kernelmill resume first --head ADDR:PORT` goes on with it.",
                   {run_name()},
                   with_head_options({}),
                   cancel});
  table.push_back({"pause",
                   "Lets a run of a head start no more episodes.",
                   "kernelmill pause first",
                   "Episodes in progress go on. `kernelmill resume first --head ADDR:PORT` ends "
                   "the pause.",
                   {run_name()},
                   with_head_options({}),
                   pause});
  table.push_back(
      {"simulate",
       "Says how long a run would take on machines that need not be there, and what limits it.",
       "kernelmill simulate quickstart --nodes 2 --slots 8 --compilers 64\n"
       "kernelmill simulate base.json tasks.groups=64 --servers 4 --policy-seconds 20:60\n"
       "kernelmill simulate base.json --from runs/first --nodes 4 --slots 8",
       "DIST is a number of seconds (0.15), any between two (1..3), or a median and a 90th "
       "percentile (20:60). Without\n"
       "--from the policy takes 20:60, a build 5:15 and an evaluation 0.15: guesses. The same seed "
       "(run.seed) gives the\n"
       "same figures.",
       {config_words()},
       {{"--from",
         "RUN",
         "Takes the seconds of each stage, turns, and what builds and compiles from this run.",
         "",
         false,
         {},
         completes::run},
        {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory},
        {"--nodes", "N", "Nodes.", "1", false, {}, nothing},
        {"--slots",
         "S",
         "Evaluations at once on a node; without it evaluation.slots, else 1.",
         "",
         false,
         {},
         nothing},
        {"--compilers",
         "C",
         "Builds at once on a node; without it compile.slots, else this machine's cores.",
         "",
         false,
         {},
         nothing},
        {"--servers", "N", "Policy servers.", "1", false, {}, nothing},
        {"--in-flight",
         "W",
         "Requests at once to a server; without it policy.max_in_flight.",
         "",
         false,
         {},
         nothing},
        {"--policy-seconds", "DIST", "Of a completion.", "", false, {}, nothing},
        {"--build-seconds", "DIST", "Of a build that is not cached.", "", false, {}, nothing},
        {"--evaluate-seconds",
         "DIST",
         "That an evaluation, with its profile, holds a slot.",
         "",
         false,
         {},
         nothing}},
       simulate});
  add_policy_commands(table);
}

} // namespace kernelmill::commands
