// Rows of the table: credentials, policy servers, the index of kernels.

#include "launch/command_rows.hpp"

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
       "Creates the cluster's credentials: a CA, a certificate and a key.",
       "kernelmill cluster init\n"
       "kernelmill cluster init --dir credentials",
       "Run it once per cluster, then copy ca.pem, node.pem and node.key to every machine. A "
       "machine that has the key\n"
       "can join the cluster. Do not copy ca.key. Exit code 4 when credentials exist already. "
       "Prints the directory on\n"
       "stdout.",
       {},
       {{"--dir",
         "DIR",
         "Directory to write to. Default: $KERNELMILL_CREDENTIALS, then "
         "$XDG_STATE_HOME/kernelmill/cluster, then ~/.local/state/kernelmill/cluster.",
         "",
         false,
         {},
         completes::directory}},
       cluster_init});
}

void add_policy_and_index_commands(cli::command_table& table) {
  table.push_back(
      {"policy scripted",
       "Starts a policy server that answers from a script.",
       "kernelmill policy scripted --script configs/policies/quickstart/script.json --port 8080\n"
       "kernelmill policy scripted --script script.json --kind vllm --port 8000",
       "Prints its address on stdout once it listens. Format of a script: "
       "docs/reference/policy-script.md.",
       {},
       {{"--script", "FILE", "Script file.", "", true, {}, completes::file},
        {"--port", "N", "Port. 0 takes a free one.", "0", false, {}, nothing},
        {"--host", "HOST", "Address to listen on.", "127.0.0.1", false, {}, nothing},
        {"--kind", "KIND", "Protocol to speak. Default: the script's kind.", "", false,
         server_kinds, nothing}},
       policy_scripted});
  table.push_back(
      {"policy probe",
       "Tests what a policy server can do, and lists what a trainer loses without each missing "
       "feature.",
       "kernelmill policy probe http://127.0.0.1:8000/v1\n"
       "kernelmill policy probe http://127.0.0.1:8000/v1 --kind vllm --model my-model --json",
       "Samples a few dozen tokens. Default of --kind: by the server's routes. Default of "
       "--model: the first model that\n"
       "the server lists. Exit code 69 when no server answers.",
       {{"URL", "Address with its version path (/v1).", true, false, nothing, {}}},
       {{"--kind", "KIND", "Protocol of the server.", "", false, server_kinds, nothing},
        {"--model", "MODEL", "Model to request.", "", false, {}, nothing},
        {"--api-key-env",
         "NAME",
         "Environment variable that holds the API key.",
         "",
         false,
         {},
         nothing},
        {"--api-key-file", "FILE", "File that holds the API key.", "", false, {}, completes::file},
        {"--ca-file", "FILE", "Certificates to trust.", "", false, {}, completes::file},
        {"--timeout-ms", "MS", "Timeout of one request.", "60000", false, {}, nothing}},
       policy_probe});
  table.push_back(
      {"index build",
       "Builds a retrieval index from knowledge cards and the verified kernels of a run.",
       "kernelmill index build index\n"
       "kernelmill index build index --kernels first",
       "A run uses the index given by `retrieval.index`. Verified kernels are the candidates of "
       "accepted turns. A kernel\n"
       "is never shown for the task that it solves.",
       {{"DIR", "Folder of the index. Created if missing.", true, false, completes::directory, {}}},
       {{"--corpus",
         "DIR",
         "Folder of the cards. Default: the installation's.",
         "",
         false,
         {},
         completes::directory},
        {"--kernels",
         "RUN",
         "Run whose verified kernels are indexed too.",
         "",
         false,
         {},
         completes::run},
        {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory}},
       index_build});
  table.push_back(
      {"index query",
       "Searches a retrieval index.",
       "kernelmill index query index sum of each row",
       "",
       {{"DIR", "Folder of the index.", true, false, completes::directory, {}},
        {"TEXT", "Search text.", true, true, nothing, {}}},
       {{"--count", "N", "Maximum number of results.", "5", false, {}, nothing},
        {"--exclude-task",
         "TASK",
         "Leaves out kernels that solve this task.",
         "",
         false,
         {},
         completes::task},
        {"--family", "NAME", "Ranks this operator family higher.", "", false, {}, nothing},
        {"--backend", "NAME", "Ranks this backend higher.", "", false, {}, nothing}},
       index_query});
}

} // namespace kernelmill::commands
