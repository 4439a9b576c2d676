#include "launch/config/keys.hpp"

#include <algorithm>
#include <cctype>
#include <type_traits>

#include "launch/config/suggest.hpp"

namespace kernelmill {

namespace {

template <class T>
constexpr value_kind kind_of() {
  if constexpr (std::is_same_v<T, bool>)
    return value_kind::boolean;
  else if constexpr (std::is_integral_v<T>)
    return value_kind::integer;
  else if constexpr (std::is_same_v<T, double>)
    return value_kind::number;
  else if constexpr (std::is_same_v<T, std::optional<double>>)
    return value_kind::optional_number;
  else if constexpr (std::is_same_v<T, std::string>)
    return value_kind::text;
  else
    return value_kind::text_list;
}

template <class T>
nlohmann::json read_member(const T& x) {
  return x;
}
nlohmann::json read_member(const std::optional<double>& x) {
  return x ? nlohmann::json(*x) : nlohmann::json(nullptr);
}

template <class T>
void write_member(T& x, const nlohmann::json& value) {
  x = value.get<T>();
}
void write_member(std::optional<double>& x, const nlohmann::json& value) {
  x = value.is_null() ? std::nullopt : std::optional<double>{value.get<double>()};
}

/// Binds a key to a member: `member` maps run_config& to a reference.
template <class F>
config_key make_key(std::string name, F member, std::string doc) {
  using value = std::remove_cvref_t<decltype(member(std::declval<run_config&>()))>;
  config_key key;
  key.name = std::move(name);
  key.doc = std::move(doc);
  key.kind = kind_of<value>();
  key.get = [member](const run_config& c) {
    return read_member(member(const_cast<run_config&>(c)));
  };
  key.set = [member](run_config& c, const nlohmann::json& v) { write_member(member(c), v); };
  return key;
}

config_key within(config_key key, double low, double high) {
  key.low = low;
  key.high = high;
  return key;
}

config_key above(config_key key, double low, double high) {
  key = within(std::move(key), low, high);
  key.open_low = true;
  return key;
}

config_key one_of(config_key key, std::vector<std::string> choices) {
  key.choices = std::move(choices);
  return key;
}

config_key file(config_key key) {
  key.path = path_kind::file;
  return key;
}

config_key directory(config_key key) {
  key.path = path_kind::directory;
  return key;
}

config_key matching(config_key key, std::string pattern, bool (*matches)(const std::string&)) {
  key.pattern = std::move(pattern);
  key.matches = matches;
  return key;
}

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

bool is_seed(const std::string& x) {
  return x.empty() || (x.size() == 64 && std::all_of(x.begin(), x.end(), [](unsigned char c) {
                         return std::isdigit(c) || (c >= 'a' && c <= 'f');
                       }));
}

/// A key pasted in the place of its variable's name must not reach a terminal or a log.
config_key variable_name(config_key key) {
  key.sensitive = true;
  return matching(std::move(key), "^([A-Za-z_][A-Za-z0-9_]*)?$", is_variable_name);
}

config_key url(config_key key) {
  key.sensitive = true;
  return matching(std::move(key), "^(https?://[^/@\\s]+(/\\S*)?)?$", is_url);
}

constexpr double max_u32 = 4294967295.0;
constexpr double week_ms = 7 * 86400e3;

#define AT(member)                                                                                 \
  [](run_config & c) -> auto& {                                                                    \
    return c.member;                                                                               \
  }
#define KEY(member, doc) make_key(#member, AT(member), doc)

void add_run_keys(std::vector<config_key>& k) {
  k.push_back(matching(
      KEY(run.name, "Name of the run; empty: made from the first file's name and the time."),
      "^([A-Za-z0-9_][A-Za-z0-9._-]*)?$", is_run_name));
  k.push_back(directory(
      KEY(run.dir, "Directory of the run; empty: runs/NAME below the working directory.")));
  k.push_back(within(KEY(run.seed, "Seed of every choice that the run makes by itself."), 0,
                     9007199254740991.0));
  k.push_back(directory(
      KEY(tasks.root,
          "Folder below which tasks are found; empty: configs/tasks of the installation.")));
  k.push_back(
      KEY(tasks.ids, "Ids of tasks, or globs such as \"native/*soft*\"; \"!ID\" leaves one out."));
  k.push_back(within(KEY(tasks.groups, "Groups of episodes for each task."), 1, 1e6));
  k.push_back(within(KEY(tasks.group_size, "Sibling episodes in a group."), 1, 4096));
  k.push_back(within(KEY(tasks.max_turns, "Most turns of an episode."), 1, 256));
}

void add_policy_keys(std::vector<config_key>& k) {
  k.push_back(one_of(KEY(policy.kind, "Kind of the policy server; `scripted` starts one in this "
                                      "process and talks to it over HTTP."),
                     {"scripted", "openai", "vllm", "sglang", "llamacpp"}));
  k.push_back(url(
      KEY(policy.base_url,
          "Address with its version path, e.g. http://host:8000/v1; keys never belong in it.")));
  k.push_back(KEY(policy.model, "Model to ask for, as the server names it."));
  k.push_back(file(KEY(policy.script, "Script of the `scripted` kind.")));
  k.push_back(variable_name(
      KEY(policy.api_key_env, "Name of the environment variable that holds the API key.")));
  k.push_back(file(KEY(policy.api_key_file, "File that holds the API key.")));
  k.push_back(KEY(policy.stream, "Whether completions are streamed (SSE)."));
  k.push_back(within(KEY(policy.max_in_flight, "Most requests open at once."), 1, 65536));
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
  k.push_back(within(KEY(policy.sampling.max_tokens, "Most tokens of a completion."), 1, 10e6));
  k.push_back(within(KEY(policy.sampling.seed, "Seed sent to the server; below 0: none is sent."),
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
  k.push_back(KEY(retrieval.live, "Whether kernels that this run verifies become examples as it "
                                  "goes; prompts then depend on what was verified first."));
  k.push_back(
      one_of(KEY(retrieval.embedder.kind, "`hashed` needs no server; `http` asks /v1/embeddings."),
             {"hashed", "http"}));
  k.push_back(within(
      KEY(retrieval.embedder.dimension, "Length of the vectors of the `hashed` kind."), 64, 65536));
  k.push_back(
      url(KEY(retrieval.embedder.base_url, "Address of the `http` kind, with its version path.")));
  k.push_back(KEY(retrieval.embedder.model, "Model of the `http` kind."));
  k.push_back(variable_name(KEY(retrieval.embedder.api_key_env,
                                "Name of the environment variable that holds the API key.")));
  k.push_back(file(KEY(retrieval.embedder.api_key_file, "File that holds the API key.")));
  k.push_back(
      within(KEY(retrieval.embedder.timeout_ms, "Time for one request for embeddings."), 1, 600e3));
}

void add_tool_keys(std::vector<config_key>& k) {
  k.push_back(within(KEY(compile.slots, "Builds at once; 0: one for each core."), 0, 4096));
  k.push_back(within(KEY(compile.deadline_ms, "Time for one build."), 100, week_ms));
  k.push_back(within(KEY(compile.memory_mb, "Memory for one build."), 256, 1048576));
  k.push_back(directory(KEY(
      compile.cache_dir, "Folder of the build cache; empty: $XDG_CACHE_HOME/kernelmill/build.")));
  k.push_back(matching(KEY(compile.compiler, "Absolute path of the C++ compiler."), "^/",
                       [](const std::string& x) { return x.starts_with("/"); }));
  k.push_back(one_of(
      KEY(evaluation.backend, "Where kernels run; `auto` takes the best that this machine has."),
      {"auto", "cpu", "cuda"}));
  k.push_back(
      one_of(KEY(evaluation.contract, "What candidates are: `native` libraries or `device` code."),
             {"native", "device"}));
  k.push_back(
      within(KEY(evaluation.slots, "Evaluations at once; 0: as many as fit the cores."), 0, 1024));
  k.push_back(within(KEY(evaluation.threads_per_slot,
                         "Cores of one evaluation; 0: the cores divided by the slots."),
                     0, 1024));
  k.push_back(within(KEY(evaluation.deadline_ms, "Time for one evaluation."), 100, week_ms));
  k.push_back(matching(
      KEY(evaluation.seed,
          "64 hex digits that replay an evaluation; empty: drawn after the candidate is loaded."),
      "^([0-9a-f]{64})?$", is_seed));
  k.push_back(KEY(evaluation.timing.enabled, "Whether correct candidates are timed."));
  k.push_back(within(KEY(evaluation.timing.min_blocks,
                         "Fewest blocks (reference, candidate, candidate, reference) of a timing."),
                     3, 1000));
  k.push_back(within(KEY(evaluation.timing.max_blocks, "Most blocks of a timing."), 3, 1000));
  k.push_back(above(KEY(evaluation.timing.half_width,
                        "Timing ends when half the relative width of the interval is below this."),
                    0, 1));
  k.push_back(
      within(KEY(evaluation.timing.budget_ms, "Time for the timing of one candidate."), 10, 600e3));
  k.push_back(
      one_of(KEY(evaluation.required_layers,
                 "Sandbox layers without which a run does not start; see `kernelmill doctor`."),
             {"namespaces", "seccomp", "cgroup_memory", "cgroup_pids", "rlimits", "no_network"}));
  k.push_back(KEY(profile.enabled, "Whether candidates are profiled."));
  k.push_back(one_of(KEY(profile.when, "Which candidates are profiled."), {"accepted", "never"}));
}

void add_judgement_keys(std::vector<config_key>& k) {
  k.push_back(
      within(KEY(episode.gamma, "Discount of the returns: R_t = r_t + gamma R_(t+1)."), 0, 1));
  k.push_back(
      KEY(episode.stop_on_correct, "Whether an episode ends with its first accepted turn."));
  k.push_back(
      within(KEY(episode.stop_speedup,
                 "An episode ends when the lower bound of a speedup reaches this; 0: never."),
             0, 1e6));
  k.push_back(within(KEY(episode.feedback_bytes, "Most bytes of feedback in a prompt."), 500, 1e6));
  k.push_back(
      within(KEY(episode.turn_deadline_ms, "Time for one turn; longer than any one tool's."), 100,
             week_ms));
  k.push_back(
      within(KEY(episode.deadline_ms, "Time for one episode; at least one turn's."), 100, week_ms));
  k.push_back(within(KEY(episode.max_live, "Most episodes in progress at once."), 1, 1e6));
  k.push_back(one_of(KEY(reward.preset, "Weights to start from."),
                     {"kevin", "correctness", "staged", "sparse"}));
  const auto from_preset = std::string{" null: the preset's."};
  k.push_back(
      within(KEY(reward.format, "Weight of a well-formed completion." + from_preset), -100, 100));
  k.push_back(
      within(KEY(reward.build, "Weight of a candidate that builds." + from_preset), -100, 100));
  k.push_back(within(KEY(reward.partial, "Weight of the share of cases that pass." + from_preset),
                     -100, 100));
  k.push_back(
      within(KEY(reward.correct, "Weight of a correct candidate." + from_preset), -100, 100));
  k.push_back(within(KEY(reward.speed, "Weight of the lower bound of the speedup." + from_preset),
                     -100, 100));
  k.push_back(
      within(KEY(reward.speed_cap, "Most that the speedup counts before its weight." + from_preset),
             0, 1e6));
  k.push_back(
      within(KEY(reward.diagnosis, "Weight of the right label in a `diagnose` task." + from_preset),
             -100, 100));
  k.push_back(within(
      KEY(reward.integrity_penalty, "Subtracted for a critical integrity finding." + from_preset),
      0, 100));
  k.push_back(within(
      KEY(reward.minimum_speedup, "Lower bound of the speedup that the performance gate asks for."),
      0, 1e6));
  k.push_back(within(
      KEY(reward.significant_speedup, "Lower bound from which a speedup counts as real."), 1, 1e6));
  k.push_back(one_of(KEY(advantage, "How the members of a group are compared."),
                     {"mean_centered", "normalized", "leave_one_out"}));
  k.push_back(directory(KEY(
      storage.store, "Directory of the lineage store; empty: lineage/ of the run's directory.")));
  k.push_back(
      KEY(storage.durable,
          "Whether a commit waits for the disk; false loses turns when the machine goes down."));
  k.push_back(one_of(KEY(log.level, "Least severe level that is logged."),
                     {"trace", "debug", "info", "warn", "error"}));
}

#undef KEY
#undef AT

/// What names, places or paces a run without changing what it measures.
constexpr const char* changeable[] = {
    "run.name",
    "run.dir",
    "policy.base_url",
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
    "episode.turn_deadline_ms",
    "episode.deadline_ms",
    "episode.max_live",
    "log.level",
};

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
  add_judgement_keys(keys);
  for (const char* name : changeable) find_in(keys, name).may_change = true;
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
