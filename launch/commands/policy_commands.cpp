// Rows of the table: credentials, policy servers, the index of kernels.

#include "launch/commands/command_rows.hpp"

#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

namespace {

using cli::argument_spec;
using cli::completes;
using cli::option_spec;

constexpr auto nothing = completes::nothing;

const std::vector<std::string> server_kinds{"openai", "vllm", "sglang", "llamacpp"};

} // namespace

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
       "Builds a retrieval index from knowledge cards and the verified kernels of a run.",
       "kernelmill index build index\n"
       "kernelmill index build index --kernels first",
       "A run uses it by `retrieval.index`. Verified are the candidates of accepted turns; none is "
       "shown for the task\n"
       "that it solves.",
       {{"DIR", "Folder of the index; made when missing.", true, false, completes::directory, {}}},
       {{"--corpus",
         "DIR",
         "Folder of the cards; without it the installation's.",
         "",
         false,
         {},
         completes::directory},
        {"--kernels",
         "RUN",
         "A run whose verified kernels are indexed too.",
         "",
         false,
         {},
         completes::run},
        {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory}},
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

} // namespace kernelmill::commands
