// `kernelmill search`: the best verified kernel of one task within a budget.

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/remote/on_host.hpp"
#include "launch/commands/run/policy_words.hpp"
#include "launch/commands/run/run_driver.hpp"
#include "launch/commands/run_name.hpp"
#include "launch/commands/sources.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/config/keys.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"
#include "messages/base/text.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

/// Where only another budget ends the search.
constexpr uint64_t turns_at_most = 100'000;

tl::unexpected<error> search_usage(std::string message, std::string hint) {
  return configuration_error("usage", "failed to run 'search': " + std::move(message),
                             std::move(hint));
}

struct asked_budget {
  uint64_t turns = turns_at_most;
  std::vector<std::string> overrides; ///< search.KEY=VALUE
};

expected<asked_budget> read_budget(const std::string& text) {
  static const std::vector<std::string> names{"turns", "gpu_minutes", "tokens", "dollars"};
  asked_budget result;
  std::set<std::string> given;
  for (const auto& part : split(text, ',')) {
    auto equals = part.find('=');
    auto name = part.substr(0, equals);
    double value = 0;
    const auto* begin = part.data() + (equals == part.npos ? part.size() : equals + 1);
    const auto* end = part.data() + part.size();
    auto read = std::from_chars(begin, end, value);
    if (std::find(names.begin(), names.end(), name) == names.end())
      return search_usage("--budget has no '" + cli::clean(name) + "'",
                          "its parts are turns, gpu_minutes, tokens and dollars, as in "
                          "turns=200,gpu_minutes=30");
    if (read.ec != std::errc{} || read.ptr != end || !(value > 0) || value > 1e15)
      return search_usage("'" + cli::clean(part) + "' of --budget has no number above 0",
                          "write --budget turns=200,gpu_minutes=30");
    if (!given.insert(name).second)
      return search_usage("--budget gives " + name + " twice", "leave one of them out");
    auto whole = static_cast<uint64_t>(value);
    if (name == "turns")
      result.turns = std::clamp(whole, uint64_t{1}, turns_at_most);
    else
      result.overrides.push_back(
          "search." + name + "=" +
          (name == "tokens" ? fmt::to_string(whole) : fmt::format("{}", value)));
  }
  return result;
}

expected<std::vector<std::string>> overrides_of(const invocation& in, const asked_budget& budget) {
  auto width = in.integer("--width", 1, 4096);
  KM_TRY(width);
  std::vector<std::string> result{
      "tasks.ids=" + nlohmann::json::array({in.value("TASK")}).dump(), "tasks.groups=1",
      "tasks.group_size=" + fmt::to_string(std::min<uint64_t>(*width, budget.turns)),
      "tasks.max_turns=1", "search.strategy=" + in.value("--strategy")};
  auto add = [&](const std::vector<std::string>& more) {
    result.insert(result.end(), more.begin(), more.end());
  };
  add(budget.overrides);
  add(policy_overrides(in, "openai"));
  for (const auto& x : in.list("OVERRIDE")) {
    auto key = x.substr(0, x.find('='));
    if (key.ends_with('+')) key.pop_back();
    if (key == "tasks.ids" || key == "tasks.groups" || key == "tasks.group_size")
      return search_usage(key + " is given, and a search is for one task",
                          "TASK names it; --width and --budget turns=N say how many episodes "
                          "there are");
  }
  return result;
}

/// A generation is as wide as the group; what is left of the turns makes no generation.
uint32_t generations_of(const run_config& config, uint64_t turns) {
  uint64_t each = config.episode.mode == "tools" ? 1 : config.tasks.max_turns;
  auto generation = uint64_t{config.tasks.group_size} * each;
  return static_cast<uint32_t>(std::max<uint64_t>(1, turns / generation));
}

expected<int> resume_search(const invocation& in) {
  if (in.has("TASK"))
    return search_usage("a task and --resume are given",
                        "`kernelmill search --resume RUN` goes on with that run's task");
  if (in.has("--on"))
    return search_usage("--on and --resume are given",
                        "resume it on that machine, where its folder is");
  for (const char* name : {"--policy", "--budget", "--strategy", "--width", "--dry-run"})
    if (in.was_typed(name))
      return search_usage(std::string{name} + " and --resume are given",
                          "leave it out: the run has its own. `kernelmill resume RUN KEY=VALUE` "
                          "changes what a resumed run may change");
  auto run = find_run(in.value("--resume"), in.value("--root"));
  KM_TRY(run);
  config_sources stored;
  stored.files = {run->config_file()};
  if (auto config = load_config(stored); config && !config->config.search.on())
    return search_usage("the run " + run->name + " is no search",
                        "`kernelmill resume " + run->path + "` continues it");
  auto order = in;
  order.values["RUN"] = {in.value("--resume")};
  order.values.erase("--resume");
  return resume_row().handle(order);
}

/// The words with which `run` and `submit` do this search.
std::vector<std::string> words_of_search(config_sources sources, const run_config& config) {
  auto words = std::move(sources.files);
  words.insert(words.end(), sources.overrides.begin(), sources.overrides.end());
  words.push_back("tasks.groups=" + fmt::to_string(config.tasks.groups));
  words.push_back("run.name=" + config.run.name);
  return words;
}

expected<int> search_on_host(const invocation& in, std::vector<std::string> words,
                             const std::string& directory) {
  auto order = in;
  for (const auto& name : {"TASK", "OVERRIDE", "--policy", "--budget", "--strategy", "--width"})
    order.values.erase(name);
  words.push_back("run.dir=" + directory);
  order.values["CONFIG"] = std::move(words);
  return run_row().handle(order);
}

// The head's nodes do the search. The head has no GPU, so another command measures the winner.
expected<int> search_at_head(const invocation& in, std::vector<std::string> words,
                             const std::string& name) {
  auto order = in;
  order.values["CONFIG"] = std::move(words);
  order.values["--wait"] = {""};
  auto code = submit_row().handle(order);
  if (code && *code == cli::exit_ok)
    cli::talk("next: `kernelmill search --resume " + name +
              " --root ROOT`, with the --root of the head, on a machine with such a GPU: it "
              "measures the winner again in fresh processes");
  return code;
}

expected<void> check_elsewhere(const invocation& in) {
  if (!in.has("--head")) return {};
  for (const char* name : {"--on", "--monitor", "--root"})
    if (in.was_typed(name))
      return search_usage(std::string{name} + " and --head are given",
                          "leave it out: a head keeps its runs and has a page of its own");
  return {};
}

expected<int> search_task(const invocation& in) {
  if (in.has("--resume")) return resume_search(in);
  if (!in.has("TASK"))
    return search_usage("no task is given", "`kernelmill task list` shows the ids");
  KM_TRY(check_elsewhere(in));
  auto budget = read_budget(in.value("--budget"));
  KM_TRY(budget);
  auto overrides = overrides_of(in, *budget);
  KM_TRY(overrides);
  auto sources = sources_of(in.list("OVERRIDE"));
  bool has_policy = in.has("--policy") || !sources.files.empty() ||
                    std::any_of(sources.overrides.begin(), sources.overrides.end(),
                                [](const auto& x) { return x.starts_with("policy."); });
  if (!has_policy)
    return search_usage("no policy is given",
                        "add --policy http://127.0.0.1:8000/v1 policy.model=MODEL, or the script "
                        "of a policy");
  sources.overrides.insert(sources.overrides.begin(), overrides->begin(), overrides->end());
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  run_options options;
  options.config = std::move(loaded->config);
  auto& config = options.config;
  KM_TRY(accept_terms(in, config));
  config.tasks.groups = generations_of(config, budget->turns);
  auto named = sources;
  if (named.files.empty()) named.files = {"search"}; // what an unnamed run is named after
  bool below = in.was_typed("--root") && config.run.dir.empty();
  name_run(config, named);
  if (below) config.run.dir = std::filesystem::absolute(in.value("--root")) / config.run.name;
  options.directory = config.run.dir;
  options.config_json = kernelmill::to_json(config).dump(2);
  if (in.has("--dry-run")) {
    cli::print(options.config_json + "\n");
    return cli::exit_ok;
  }
  auto words = words_of_search(std::move(sources), config);
  if (in.has("--on")) return search_on_host(in, std::move(words), config.run.dir);
  if (in.has("--head")) return search_at_head(in, std::move(words), config.run.name);
  return drive_run(in, std::move(options));
}

std::vector<cli::option_spec> search_options() {
  auto result = with_head_options(with_monitor_options(
      {policy_option("Address of a policy server, or a script of answers."),
       {"--budget",
        "BUDGET",
        "What the search may use up, such as turns=200,gpu_minutes=30.",
        "turns=64",
        false,
        {},
        nothing},
       {"--strategy",
        "NAME",
        "How candidates to improve are chosen.",
        "tree",
        false,
        {"tree", "islands", "beam", "random", "best_of_n"},
        nothing},
       {"--width", "N", "Episodes of a generation.", "8", false, {}, nothing},
       {"--resume", "RUN", "Continues a search.", "", false, {}, completes::run},
       accept_terms_option(),
       on_option(),
       runs_root(),
       flag("--dry-run", "Prints the resolved configuration and exits.")}));
  for (auto& x : result)
    if (x.name == std::string_view{"--head"})
      x.doc = "Head of which the nodes search. Default: this machine.";
  return result;
}

} // namespace

cli::command search_row() {
  return {
      "search",
      "Searches for the fastest verified kernel of one task, within a budget.",
      "kernelmill search native/softmax --policy http://127.0.0.1:8000/v1 policy.model=my-model "
      "--budget turns=200,gpu_minutes=30\n"
      "kernelmill search native/row_sum --policy script.json --strategy islands --width 4 --budget "
      "turns=32\n"
      "kernelmill search --resume runs/search-20261130-120000",
      "A search is a run whose groups are generations: each episode is shown a candidate of those "
      "before, with its verdict,\n"
      "and asked for a faster one. Strategies: tree (UCB on the upper bound of the speedup), "
      "islands (MAP-Elites with\n"
      "migration), beam (the fastest few), random, best_of_n (always from the task alone); keys "
      "search.* set them. BUDGET:\n"
      "turns, gpu_minutes (of evaluation slots, on a CPU too), tokens, dollars (needs "
      "search.prompt_price and\n"
      "search.completion_price). Turns are counted in whole generations; another budget ends the "
      "search after the generation\n"
      "that uses it up. At the end the winner is measured again on fresh inputs in fresh "
      "processes. `resume` continues a\n"
      "search that was cut off. Exit code 5: no candidate was verified.",
      {{"TASK", "Id of the task.", false, false, completes::task, {}},
       {"OVERRIDE", "a.b=value of the configuration, or a file of it.", false, true, nothing, {}}},
      search_options(),
      search_task};
}

} // namespace kernelmill::commands
