#include "launch/command_rows.hpp"

#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

namespace {

using cli::argument_spec;
using cli::completes;
using cli::option_spec;

constexpr auto nothing = completes::nothing;

const option_spec credentials{"--credentials",
                              "DIR",
                              "Credentials made by `cluster init`. Default: "
                              "$KERNELMILL_CREDENTIALS, then its default directory.",
                              "",
                              false,
                              {},
                              completes::directory};
const option_spec insecure{"--insecure-loopback",
                           "",
                           "Disables TLS. Allowed on 127.0.0.1 and ::1 only.",
                           "",
                           false,
                           {},
                           nothing};
const option_spec log_file{
    "--log-file", "FILE",         "Also logs to FILE. Four files of 16 MiB are kept.", "", false,
    {},           completes::file};

argument_spec run_name() {
  return {"RUN", "Name of a run of the head.", true, false, nothing, {}};
}

} // namespace

argument_spec config_words() {
  return {"CONFIG",
          "Configuration file, preset, or override: a.b=value, +a.b=value, ~a.b.",
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
                     "Address of the head. Default: $KERNELMILL_HEAD, then 127.0.0.1:7612.",
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
       "Attaches a policy server to a head, also while runs are in progress.",
       "kernelmill policy attach http://10.0.0.5:8000/v1\n"
       "kernelmill policy attach http://10.0.0.5:8000/v1 --kind vllm --model my-model --name a",
       "Runs with policy.kind=attached use all servers of the head. A conversation stays with "
       "one server while that\n"
       "server works. Without --kind or --model the head asks the server. With both, the server "
       "need not be up yet.\n"
       "Only the key's name is sent; the head reads the key. A head that restarts attaches its "
       "servers again.",
       {{"URL",
         "Address as the head reaches it, with its version path (/v1).",
         true,
         false,
         nothing,
         {}}},
       with_head_options(
           {{"--name", "NAME", "Name of the server. Default: HOST:PORT.", "", false, {}, nothing},
            {"--kind",
             "KIND",
             "Protocol of the server.",
             "",
             false,
             {"openai", "vllm", "sglang", "llamacpp"},
             nothing},
            {"--model", "MODEL", "Model to request.", "", false, {}, nothing},
            {"--max-in-flight", "N", "Maximum number of open requests.", "64", false, {}, nothing},
            {"--api-key-env",
             "NAME",
             "Environment variable on the head that holds the API key.",
             "",
             false,
             {},
             nothing},
            {"--api-key-file",
             "FILE",
             "File on the head that holds the API key.",
             "",
             false,
             {},
             nothing}}),
       policy_attach});
  table.push_back(
      {"policy list",
       "Lists the policy servers of a head.",
       "kernelmill policy list",
       "`resting`: the server fails and gets no requests while others work. `unattached`: the "
       "head could not attach\n"
       "it after a restart.",
       {},
       with_head_options({}),
       policy_list});
  table.push_back(
      {"policy detach",
       "Detaches a policy server from a head. Open requests may finish.",
       "kernelmill policy detach 10.0.0.5:8000\n"
       "kernelmill policy detach a --drain-ms 0",
       "Returns at once. `kernelmill policy list` shows the server until it is drained. Requests "
       "still open after\n"
       "--drain-ms go to another server, or wait for one.",
       {{"NAME_OR_URL",
         "Name or address of a server, as `policy list` shows it.",
         true,
         false,
         nothing,
         {}}},
       with_head_options({{"--drain-ms",
                           "MS",
                           "Time that open requests have to finish.",
                           "600000",
                           false,
                           {},
                           nothing}}),
       policy_detach});
  table.push_back(
      {"policy weights",
       "Declares the version of the weights that servers use from now on.",
       "kernelmill policy weights step-12\n"
       "kernelmill policy weights step-12 --server a",
       "The version is recorded with every turn as half-open spans of tokens. A version reported "
       "by a server of kind\n"
       "vllm or sglang takes precedence. A completion in flight gets one span with the version "
       "BEFORE..AFTER.",
       {{"VERSION", "Any text without blanks and without `..`.", true, false, nothing, {}}},
       with_head_options({{"--server",
                           "NAME",
                           "Only this server. Default: all servers.",
                           "",
                           false,
                           {},
                           nothing}}),
       policy_weights});
}

} // namespace

void add_cluster_commands(cli::command_table& table) {
  table.push_back(
      {"head",
       "Starts the head of a cluster. It owns runs and distributes their work to nodes.",
       "kernelmill head --listen 10.0.0.1:7612\n"
       "kernelmill head --insecure-loopback",
       "Prints its address once it listens. Links use mutual TLS with the credentials of "
       "`kernelmill cluster init`.\n"
       "Ctrl-C or SIGTERM ends it. The next head with the same --root continues the runs in "
       "progress, also after\n"
       "kill -9.",
       {},
       {{"--listen",
         "ADDR:PORT",
         "Address to listen on. Port 0 takes a free one.",
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
         "Lowest level that is logged.",
         "info",
         false,
         {"trace", "debug", "info", "warn", "error"},
         nothing},
        {"--log-format",
         "FORMAT",
         "`text`, or `json` with one object per line.",
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
       "Rejoins when the connection or the head is lost. SIGTERM, SIGUSR1 and Ctrl-C drain it: "
       "it takes no new jobs,\n"
       "finishes the current ones, and ends. A second signal ends it at once. It uses the "
       "sections `compile`,\n"
       "`evaluation` and `log` of the configuration.",
       {words},
       with_head_options({{"--name",
                           "NAME",
                           "Name of the node. Default: the host's name.",
                           "",
                           false,
                           {},
                           nothing},
                          {"--gpus",
                           "LIST",
                           "GPUs to offer: `all`, `none`, or numbers such as 0,2 among those in "
                           "CUDA_VISIBLE_DEVICES.",
                           "all",
                           false,
                           {},
                           nothing},
                          {"--arch",
                           "ARCH",
                           "Only compiles, for GPUs of this architecture (sm_90).",
                           "",
                           false,
                           {},
                           nothing},
                          {"--compilers",
                           "N",
                           "Concurrent builds. Default: one per core.",
                           "",
                           false,
                           {},
                           nothing},
                          log_file}),
       node});
  table.push_back(
      {"submit",
       "Submits a run to a head.",
       "kernelmill submit quickstart --head 10.0.0.1:7612 --wait\n"
       "kernelmill submit base.json run.name=first tasks.groups=8",
       "Configuration files are read on this machine. Paths in them must exist on the head's "
       "machine. With --wait the\n"
       "exit code is 0 when the run has finished.",
       {config_words()},
       with_head_options(
           {{"--wait", "", "Waits until the run has ended.", "", false, {}, nothing}}),
       submit});
  table.push_back({"status",
                   "Shows a head's nodes, queues and runs.",
                   "kernelmill status --head 10.0.0.1:7612",
                   "Exit code 69 when the head cannot be reached.",
                   {},
                   with_head_options({}),
                   status});
  table.push_back({"drain",
                   "Drains a node: it gets no new jobs, finishes the current ones, and ends.",
                   "kernelmill drain gpu-host-3",
                   "The node continues to drain when the link or the head is lost.",
                   {{"NODE", "Name of a node, as `status` shows it.", true, false, nothing, {}}},
                   with_head_options({}),
                   drain});
  table.push_back({"cancel",
                   "Cancels a run of a head. Committed turns are kept.",
                   "kernelmill cancel first",
                   "`kernelmill resume first --head ADDR:PORT` continues it.",
                   {run_name()},
                   with_head_options({}),
                   cancel});
  table.push_back({"pause",
                   "Pauses a run of a head: no new episodes start.",
                   "kernelmill pause first",
                   "Episodes in progress continue. `kernelmill resume first --head ADDR:PORT` "
                   "ends the pause.",
                   {run_name()},
                   with_head_options({}),
                   pause});
  table.push_back(
      {"simulate",
       "Estimates a run's duration on hardware that you do not have yet, and names the "
       "bottleneck.",
       "kernelmill simulate quickstart --nodes 2 --slots 8 --compilers 64\n"
       "kernelmill simulate base.json tasks.groups=64 --servers 4 --policy-seconds 20:60\n"
       "kernelmill simulate base.json --from runs/first --nodes 4 --slots 8",
       "DIST is a number of seconds (0.15), a uniform range (1..3), or a median and a 90th "
       "percentile (20:60). Without\n"
       "--from, guesses are used: policy 20:60, build 5:15, evaluation 0.15. The same seed "
       "(run.seed) gives the same\n"
       "result.",
       {config_words()},
       {{"--from",
         "RUN",
         "Takes durations, numbers of turns and rates of builds from this run.",
         "",
         false,
         {},
         completes::run},
        {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory},
        {"--nodes", "N", "Number of nodes.", "1", false, {}, nothing},
        {"--slots",
         "S",
         "Concurrent evaluations per node. Default: evaluation.slots, else 1.",
         "",
         false,
         {},
         nothing},
        {"--compilers",
         "C",
         "Concurrent builds per node. Default: compile.slots, else this machine's cores.",
         "",
         false,
         {},
         nothing},
        {"--servers", "N", "Number of policy servers.", "1", false, {}, nothing},
        {"--in-flight",
         "W",
         "Concurrent requests per policy server. Default: policy.max_in_flight.",
         "",
         false,
         {},
         nothing},
        {"--policy-seconds", "DIST", "Duration of a completion.", "", false, {}, nothing},
        {"--build-seconds",
         "DIST",
         "Duration of a build that is not cached.",
         "",
         false,
         {},
         nothing},
        {"--evaluate-seconds",
         "DIST",
         "Time that an evaluation, with its profile, occupies a slot.",
         "",
         false,
         {},
         nothing}},
       simulate});
  add_policy_commands(table);
}

} // namespace kernelmill::commands
