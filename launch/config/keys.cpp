#include "launch/config/keys.hpp"

#include <algorithm>
#include <cctype>

#include "launch/config/key_builders.hpp"
#include "messages/base/suggest.hpp"

namespace kernelmill {

namespace {

bool all_of_class(const std::string& x, const char* more) {
  return std::all_of(x.begin(), x.end(), [&](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) || std::string_view{more}.find(static_cast<char>(c)) !=
                                               std::string_view::npos);
  });
}

bool is_run_name(const std::string& x) {
  return x.size() <= 128 && all_of_class(x, "._-") && (x.empty() || x[0] != '.') &&
         (x.empty() || x[0] != '-');
}

bool is_variable_name(const std::string& x) {
  return x.size() <= 128 && all_of_class(x, "_") &&
         (x.empty() || !std::isdigit(static_cast<unsigned char>(x[0])));
}

bool is_url(const std::string& x) {
  auto begin = x.starts_with("http://") ? 7u : x.starts_with("https://") ? 8u : 0u;
  if (x.empty()) return true;
  auto host = x.substr(begin, x.find('/', begin) - begin);
  return begin > 0 && !host.empty() && host.find('@') == std::string::npos &&
         std::none_of(x.begin(), x.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
}

} // namespace

/// A key pasted in the place of its variable's name must not reach a terminal or a log.
config_key variable_name(config_key key) {
  using namespace key_builders;
  key.sensitive = true;
  key.of_machine = true;
  return matching(std::move(key), "^([A-Za-z_][A-Za-z0-9_]*)?$", is_variable_name);
}

config_key url(config_key key) {
  using namespace key_builders;
  key.sensitive = true;
  key.of_machine = true; // it is told things, or asked with what this machine knows
  return matching(std::move(key), "^(https?://[^/@\\s]+(/\\S*)?)?$", is_url);
}

namespace {

using namespace key_builders;

void add_run_keys(std::vector<config_key>& k) {
  k.push_back(matching(
      KEY(run.name, "Name of the run; empty: made from the first file's name and the time."),
      "^([A-Za-z0-9_][A-Za-z0-9._-]*)?$", is_run_name));
  k.push_back(directory(
      KEY(run.dir, "Directory of the run; empty: runs/NAME below the working directory.")));
  k.push_back(
      within(KEY(run.seed, "Seed of random draws outside the referee: of requests, if "
                           "policy.sampling.seed is 0 or more, and of `kernelmill simulate`."),
             0, 9007199254740991.0));
  k.push_back(within(KEY(run.priority,
                         "Priority among the runs of one head. Jobs of the highest priority go "
                         "first, on nodes and at policy servers. Runs of one priority take turns."),
                     -100, 100));
  k.push_back(KEY(run.accepted_terms,
                  "Terms of sources that are accepted, as `--accept-terms` names them; "
                  "docs/reference/licences.md lists them."));
  k.push_back(within(KEY(run.max_infrastructure,
                         "Share of the turns that faults of the machine or of a server may lose. "
                         "After 32 turns a run that has lost more ends, with exit code 70."),
                     0, 1));
  k.push_back(directory(
      KEY(tasks.root,
          "Folder below which tasks are found; empty: configs/tasks of the installation, and "
          "where `kernelmill task import` puts tasks.")));
  k.push_back(
      KEY(tasks.ids, "Ids of tasks, or globs such as \"native/*soft*\"; \"!ID\" leaves one out."));
  k.push_back(one_of(KEY(tasks.split,
                         "Takes only the tasks of this split: a task's own `split`, else by the "
                         "hash of its id, as exports have it. `dev` is held out."),
                     {"all", "train", "dev"}));
  k.push_back(within(KEY(tasks.groups, "Groups of episodes for each task."), 1, 1e6));
  k.push_back(within(KEY(tasks.group_size, "Sibling episodes in a group."), 1, 4096));
  k.push_back(within(KEY(tasks.quorum,
                         "Usable episodes of a group after which the others are dropped: they "
                         "are closed, left out of its advantages and counted. 0: waits for all."),
                     0, 4096));
  k.push_back(within(
      KEY(tasks.max_turns, "Maximum number of turns of an episode of mode `refine`."), 1, 256));
}

void add_policy_keys(std::vector<config_key>& k) {
  k.push_back(
      one_of(KEY(policy.kind, "Kind of the policy server; `scripted` starts one in this "
                              "process and talks to it over HTTP, `attached` uses the servers that "
                              "`kernelmill policy attach` has given to the head."),
             {"scripted", "attached", "openai", "vllm", "sglang", "llamacpp"}));
  k.push_back(url(
      KEY(policy.base_url,
          "Address with its version path, e.g. http://host:8000/v1; keys never belong in it.")));
  k.push_back(KEY(policy.model, "Model to ask for, as the server names it."));
  k.push_back(KEY(policy.licence, "Licence of the model, for the data card of an export, such as "
                                  "Apache-2.0; a source of configs/licences binds exports of its "
                                  "answers. Empty: not known."));
  k.push_back(file(KEY(policy.script, "Script of the `scripted` kind.")));
  k.push_back(variable_name(
      KEY(policy.api_key_env, "Name of the environment variable that holds the API key.")));
  k.push_back(file(KEY(policy.api_key_file, "File that holds the API key.")));
  k.push_back(KEY(policy.stream, "Whether completions are streamed (SSE)."));
  k.push_back(one_of(KEY(policy.tokens,
                         "`chat` sends messages. `exact` (kinds vllm, sglang and llamacpp) sends "
                         "token ids, and every turn's prompt continues the ids that were sampled "
                         "before it."),
                     {"chat", "exact"}));
  k.push_back(within(KEY(policy.max_in_flight,
                         "Maximum number of open requests. Fewer are open while the server "
                         "answers 429 or 503, or reports a growing queue."),
                     1, 65536));
  k.push_back(
      within(KEY(policy.timeout_ms, "Time for one completion, with its retries."), 1, week_ms));
  k.push_back(within(KEY(policy.connect_timeout_ms, "Time to open a connection."), 1, 600e3));
  k.push_back(within(KEY(policy.first_contact_ms, "How long a server that was never reached may "
                                                  "stay away before the run ends; 0: no limit."),
                     0, week_ms));
  k.push_back(
      within(KEY(policy.stall_ms, "Longest silence within a stream; 0: no limit."), 0, week_ms));
  k.push_back(
      within(KEY(policy.max_response_bytes, "Largest answer that is read."), 1024, 134217728));
  k.push_back(file(KEY(policy.ca_file, "Certificates to trust; empty: the system's.")));
  k.push_back(within(KEY(policy.sampling.temperature, "Sampling temperature."), 0, 10));
  k.push_back(
      above(KEY(policy.sampling.top_p, "Nucleus sampling: the share of probability that is kept."),
            0, 1));
  k.push_back(within(KEY(policy.sampling.max_tokens, "Maximum number of tokens of a completion."),
                     1, 10e6));
  k.push_back(within(KEY(policy.sampling.seed,
                         "Below 0: no seed is sent. Otherwise each request is sent one of its own, "
                         "made of this, run.seed, the task, and group, member and turn."),
                     -1, 9007199254740991.0));
  k.push_back(KEY(policy.sampling.stop, "Texts at which the server ends a completion."));
  k.push_back(KEY(policy.sampling.logprobs,
                  "Whether log-probabilities of the sampled tokens are asked for."));
}

void add_retrieval_keys(std::vector<config_key>& k) {
  k.push_back(KEY(retrieval.enabled, "Whether prompts show retrieved examples."));
  k.push_back(
      file(KEY(retrieval.index,
               "Index made by `kernelmill index build`; empty: built in memory from the corpus.")));
  k.push_back(
      directory(KEY(retrieval.corpus,
                    "Folder of knowledge cards; empty: configs/knowledge of the installation.")));
  k.push_back(
      within(KEY(retrieval.count, "Examples shown in the first prompt of an episode."), 0, 32));
  k.push_back(KEY(retrieval.live,
                  "Whether kernels that this run verifies become examples as it goes, and of later "
                  "runs with the same `retrieval.index`; prompts then depend on what was verified "
                  "first."));
  k.push_back(within(KEY(retrieval.code_weight,
                         "Share of a task's reference in the vector that examples are searched by; "
                         "its words have the rest. For tasks in PyTorch."),
                     0, 1));
  k.push_back(
      within(KEY(retrieval.words_weight,
                 "Weight of the ranks by words (BM25) against those by vectors, which is 1; "
                 "0: vectors alone."),
             0, 100));
  k.push_back(
      one_of(KEY(retrieval.embedder.kind, "`hashed` needs no server; `http` asks /v1/embeddings."),
             {"hashed", "http"}));
  k.push_back(within(
      KEY(retrieval.embedder.dimension,
          "Length of the vectors, 64 or more for the `hashed` kind; 0: that of `retrieval.index`; "
          "without one 1024, or what the server answers."),
      0, 32768));
  k.push_back(
      url(KEY(retrieval.embedder.base_url, "Address of the `http` kind, with its version path.")));
  k.push_back(KEY(retrieval.embedder.model, "Model of the `http` kind."));
  k.push_back(variable_name(KEY(retrieval.embedder.api_key_env,
                                "Name of the environment variable that holds the API key.")));
  k.push_back(file(KEY(retrieval.embedder.api_key_file, "File that holds the API key.")));
  k.push_back(
      within(KEY(retrieval.embedder.timeout_ms, "Time for one request for embeddings."), 1, 600e3));
}

void add_agent_keys(std::vector<config_key>& k) {
  k.push_back(one_of(KEY(tools.calls,
                         "How the policy calls tools in mode `tools`: `native` as OpenAI's API has "
                         "it, `text` between tags in its text. `kernelmill policy probe` says "
                         "what a server takes."),
                     {"native", "text"}));
  k.push_back(within(KEY(tools.steps, "Steps that the tool calls of an episode may take; "
                                      "docs/reference/tools.md has each tool's."),
                     1, 1000));
  k.push_back(within(KEY(tools.gpu_seconds, "Seconds of a slot (a GPU, or cores) that the tool "
                                            "calls of an episode may take, without submit's."),
                     1, 1e6));
  k.push_back(within(KEY(tools.hidden_evaluations,
                         "Tool calls of an episode that may try a candidate on hidden cases."),
                     0, 1000));
  k.push_back(above(KEY(tools.half_width, "As evaluation.timing.half_width, of tool calls; submit "
                                          "is timed by evaluation.timing."),
                    0, 1));
  k.push_back(within(KEY(tools.gamma, "As episode.gamma, in mode `tools`."), 0, 1));
  k.push_back(
      within(KEY(tools.observation_bytes, "Maximum size of what one call is told, in bytes, "
                                          "beside its last line."),
             500, 1e6));
}

void add_judgement_keys(std::vector<config_key>& k) {
  k.push_back(one_of(KEY(episode.mode,
                         "`refine`: each answer is a whole program, and the next one is asked for "
                         "with what became of it. `tools`: answers call tools on a graph of "
                         "candidates until one is submitted."),
                     {"refine", "tools"}));
  k.push_back(KEY(episode.patches, "Whether an answer of mode `refine` may be a change to the last "
                                   "kernel, a unified diff or blocks of SEARCH and REPLACE; the "
                                   "prompt offers it then."));
  k.push_back(
      within(KEY(episode.gamma, "Discount of the returns: R_t = r_t + gamma R_(t+1)."), 0, 1));
  k.push_back(
      KEY(episode.stop_on_correct, "Whether an episode ends with its first accepted turn."));
  k.push_back(
      within(KEY(episode.stop_speedup,
                 "An episode ends when the lower bound of a speedup reaches this; 0: never. The "
                 "last reward counts for all turns that are left."),
             0, 1e6));
  k.push_back(within(KEY(episode.feedback_bytes, "Maximum size of the feedback in a prompt, in "
                                                 "bytes."),
                     500, 1e6));
  k.push_back(
      within(KEY(episode.turn_deadline_ms, "Time for one turn; longer than any one tool's."), 100,
             week_ms));
  k.push_back(
      within(KEY(episode.deadline_ms, "Time for one episode; at least one turn's."), 100, week_ms));
  k.push_back(within(KEY(episode.max_live, "Maximum number of live episodes."), 1, 1e6));
  add_reward_keys(k);
  k.push_back(one_of(KEY(advantage, "How the members of a group are compared."),
                     {"mean_centered", "normalized", "leave_one_out"}));
  k.push_back(directory(KEY(
      storage.store, "Directory of the lineage store; empty: lineage/ of the run's directory.")));
  k.push_back(
      KEY(storage.durable,
          "Whether a commit waits for the disk; false loses turns when the machine goes down."));
  k.push_back(one_of(KEY(log.level, "Lowest level that is logged."),
                     {"trace", "debug", "info", "warn", "error"}));
  k.push_back(one_of(KEY(log.format, "`text` is for people: logs/run.log of the run's directory. "
                                     "`json` is one object a line: logs/run.jsonl."),
                     {"text", "json"}));
  k.push_back(within(KEY(log.file_bytes, "Size of a log file, in bytes, after which a new file is "
                                         "started."),
                     4096, double{1 << 30}));
  k.push_back(within(KEY(log.files, "Files that are kept, the latest among them."), 1, 1000));
}

/// What names, places or paces a run without changing what it measures.
constexpr const char* changeable[] = {
    "run.name",
    "run.dir",
    "run.max_infrastructure",
    "run.priority",
    "run.accepted_terms",
    "policy.base_url",
    "policy.licence",
    "policy.api_key_env",
    "policy.api_key_file",
    "policy.max_in_flight",
    "policy.timeout_ms",
    "policy.connect_timeout_ms",
    "policy.first_contact_ms",
    "policy.stall_ms",
    "policy.max_response_bytes",
    "policy.ca_file",
    "retrieval.embedder.base_url",
    "retrieval.embedder.api_key_env",
    "retrieval.embedder.api_key_file",
    "retrieval.embedder.timeout_ms",
    "compile.slots",
    "compile.cache_dir",
    "evaluation.slots",
    "evaluation.python",
    "episode.turn_deadline_ms",
    "episode.deadline_ms",
    "episode.max_live",
    "search.gpu_minutes",
    "search.tokens",
    "search.dollars",
    "log.level",
    "log.format",
    "log.file_bytes",
    "log.files",
    "hooks.url",
    "hooks.url_env",
    "hooks.command",
    "hooks.token_env",
    "hooks.token_file",
    "hooks.on",
    "hooks.no_progress_minutes",
    "hooks.infrastructure_share",
    "hooks.findings_share",
    "hooks.timeout_ms",
};

/// Programs, and what they are told: no path and no variable, but the machine's all the same.
constexpr const char* of_the_machine[] = {"hooks.command", "compile.compiler", "otlp.content",
                                          "evaluation.determinism_runs"};

/// The servers that a run asks: the client that orders the run may choose them.
constexpr const char* of_the_asker[] = {"policy.base_url", "retrieval.embedder.base_url"};

config_key& find_in(std::vector<config_key>& keys, const std::string& name) {
  return *std::find_if(keys.begin(), keys.end(),
                       [&](const config_key& k) { return k.name == name; });
}

std::vector<config_key> make_keys() {
  std::vector<config_key> keys;
  add_run_keys(keys);
  add_policy_keys(keys);
  add_retrieval_keys(keys);
  add_tool_keys(keys);
  add_agent_keys(keys);
  add_search_keys(keys);
  add_judgement_keys(keys);
  add_notification_keys(keys);
  for (const char* name : changeable) find_in(keys, name).may_change = true;
  for (const char* name : of_the_machine) find_in(keys, name).of_machine = true;
  for (const char* name : of_the_asker) find_in(keys, name).of_machine = false;
  return keys;
}

} // namespace

const std::vector<config_key>& config_keys() {
  static const auto keys = make_keys();
  return keys;
}

const config_key* find_config_key(const std::string& name) {
  for (const auto& key : config_keys())
    if (key.name == name) return &key;
  return nullptr;
}

bool is_config_section(const std::string& name) {
  return std::any_of(config_keys().begin(), config_keys().end(),
                     [&](const config_key& key) { return key.name.starts_with(name + "."); });
}

const std::vector<std::string>& config_key_names() {
  static const auto names = [] {
    std::vector<std::string> result;
    for (const auto& key : config_keys()) {
      for (size_t dot = key.name.find('.'); dot != std::string::npos;
           dot = key.name.find('.', dot + 1)) {
        auto section = key.name.substr(0, dot);
        if (std::find(result.begin(), result.end(), section) == result.end())
          result.push_back(section);
      }
      result.push_back(key.name);
    }
    return result;
  }();
  return names;
}

std::string environment_name(const config_key& key) {
  std::string result = "KERNELMILL_";
  for (char c : key.name) {
    if (c == '.')
      result += "__";
    else
      result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

nlohmann::ordered_json to_json(const run_config& config) {
  auto result = nlohmann::ordered_json::object();
  for (const auto& key : config_keys()) {
    auto* at = &result;
    size_t begin = 0;
    for (size_t dot; (dot = key.name.find('.', begin)) != std::string::npos; begin = dot + 1)
      at = &(*at)[key.name.substr(begin, dot - begin)];
    (*at)[key.name.substr(begin)] = nlohmann::ordered_json(key.get(config));
  }
  return result;
}

} // namespace kernelmill
