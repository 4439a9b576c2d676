// `kernelmill fork`: new episodes that share the first turns of one that is stored.

#include <filesystem>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/episode_candidates.hpp"
#include "launch/commands/monitoring.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/place.hpp"
#include "launch/commands/run/policy_words.hpp"
#include "launch/commands/run/run_driver.hpp"
#include "launch/commands/stored_runs.hpp"
#include "launch/config/keys.hpp"
#include "launch/config/load.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"
#include "storage/files.hpp"
#include "storage/lineage/fork.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

tl::unexpected<error> fork_usage(std::string message, std::string hint) {
  return configuration_error("usage", "failed to run 'fork': " + std::move(message),
                             std::move(hint));
}

expected<fork_origin> origin_of_turn(const invocation& in) {
  auto at = locate(in.value("TURN"), in.value("--root"));
  KM_TRY(at);
  if (at->whole_run || !at->name.turn)
    return fork_usage("'" + cli::clean(in.value("TURN")) + "' is no turn",
                      "name the first turn that is to be another: RUN/g3.e1.t2 shares t0 and t1");
  return fork_from(at->run, at->name.group, *at->name.member, *at->name.turn);
}

bool has_submitted(const std::vector<Message<wire::Record>>& turns, uint32_t number) {
  for (const auto& record : turns) {
    auto opened = record.open();
    auto turn = opened->getTurn();
    if (turn.getTurn() == number) return turn.getVerdict().getOutcome() != wire::Outcome::OPEN;
  }
  return false;
}

/// The turns up to the one that made the candidate. In mode `refine` the next one improves on it by
/// itself.
expected<fork_origin> origin_of_candidate(const invocation& in) {
  auto all = candidates_of(in);
  KM_TRY(all);
  auto found = all->find(in.value("ID"));
  KM_TRY(found);
  // What would be shared has the end in it, and the new episodes would begin behind that.
  if ((*found)->node && has_submitted(all->turns, (*found)->turn))
    return fork_usage(
        cli::clean((*found)->id) + " was made by the turn that submitted",
        fmt::format("`kernelmill fork` of turn t{} asks for that turn anew", (*found)->turn));
  auto origin =
      fork_from(all->where.run, all->where.name.group, *all->where.name.member, (*found)->turn + 1);
  KM_TRY(origin);
  if ((*found)->node) origin->candidate = (*found)->id;
  return std::move(*origin);
}

expected<std::string> extra_prompt(const invocation& in) {
  auto prompt = in.value("--prompt");
  if (prompt.starts_with('@')) {
    auto text = read_file(prompt.substr(1));
    KM_TRY(text);
    prompt = std::move(*text);
  }
  if (!is_utf8(prompt)) return fork_usage("the text of --prompt is not UTF-8", "save it as UTF-8");
  return prompt;
}

/// The other run's configuration, narrowed to one task and one group, with what is given here.
expected<run_config> fork_config(const invocation& in, const fork_origin& origin) {
  config_sources sources;
  sources.files = {origin.directory + "/config.json"};
  auto before = load_config(sources);
  KM_TRY(before);
  std::error_code code;
  sources.directory = fs::current_path(code).string();
  sources.overrides = {"tasks.ids=" + json::array({origin.task}).dump(),
                       "tasks.groups=1",
                       "tasks.group_size=1",
                       "tasks.quorum=0",
                       "search.strategy=off",
                       "run.name=\"\"",
                       "run.dir=\"\""};
  for (auto& x : policy_overrides(in, before->config.policy.kind))
    sources.overrides.push_back(std::move(x));
  for (const auto& x : in.list("OVERRIDE")) {
    auto key = x.substr(0, x.find('='));
    if (key.ends_with('+')) key.pop_back();
    if (key == "tasks.ids" || key == "tasks.groups" || key == "tasks.quorum")
      return fork_usage("a fork is one group of its episode's task, and " + key + " is given",
                        "tasks.group_size says how many episodes it has");
    sources.overrides.push_back(x);
  }
  auto after = load_config(sources);
  KM_TRY(after);
  auto& config = after->config;
  // The shared prompt says how to answer, and shared turns have done so.
  if (config.episode.mode != before->config.episode.mode ||
      config.tools.calls != before->config.tools.calls)
    return fork_usage("a fork goes on in its episode's mode with its form of calls, and "
                      "episode.mode or tools.calls is another",
                      "start a new run");
  if (config.tasks.max_turns <= origin.turns)
    return fork_usage(fmt::format("an episode has up to {}, and {} shared",
                                  counted(config.tasks.max_turns, "turn"),
                                  counted(origin.turns, "is", "are")),
                      fmt::format("add tasks.max_turns={}", origin.turns + 2));
  if (config.run.name.empty() && !config.run.dir.empty())
    config.run.name = fs::path{config.run.dir + "/"}.parent_path().filename().string();
  return std::move(config);
}

/// Beside the other run, under its name, the turn's and the first number that is free.
void name_fork(run_config& config, const fork_origin& origin) {
  auto beside = fs::path{origin.directory}.parent_path();
  std::error_code code;
  if (config.run.name.empty()) {
    auto stem = fmt::format("{}-g{}e{}t{}", origin.run, origin.group, origin.member, origin.turns);
    config.run.name = stem;
    for (int n = 2; fs::exists(beside / config.run.name, code); ++n)
      config.run.name = stem + "-" + std::to_string(n);
  }
  if (config.run.dir.empty()) config.run.dir = (beside / config.run.name).string();
}

expected<int> start_fork(const invocation& in, fork_origin origin) {
  auto prompt = extra_prompt(in);
  KM_TRY(prompt);
  origin.prompt = std::move(*prompt);
  auto config = fork_config(in, origin);
  KM_TRY(config);
  name_fork(*config, origin);
  run_options options;
  options.config = std::move(*config);
  options.directory = options.config.run.dir;
  options.config_json = kernelmill::to_json(options.config).dump(2);
  options.fork_json = kernelmill::to_json(origin).dump();
  return drive_run(in, std::move(options));
}

expected<int> fork_turn(const invocation& in) {
  auto origin = origin_of_turn(in);
  KM_TRY(origin);
  return start_fork(in, std::move(*origin));
}

expected<int> branch_candidate(const invocation& in) {
  auto origin = origin_of_candidate(in);
  KM_TRY(origin);
  return start_fork(in, std::move(*origin));
}

std::vector<cli::option_spec> fork_options() {
  return with_monitor_options(
      {policy_option("Address of another policy server, or a script of answers."),
       {"--prompt",
        "TEXT|@FILE",
        "Extra text for the policy, after the feedback of the last shared turn.",
        "",
        false,
        {},
        nothing},
       runs_root()});
}

cli::argument_spec override_argument() {
  return {"OVERRIDE", "a.b=value of the configuration.", false, true, nothing, {}};
}

} // namespace

cli::command fork_row() {
  return {
      "fork",
      "Starts new episodes from the first turns of a stored one, with another policy, prompt or "
      "sampling.",
      "kernelmill fork runs/first/g3.e1.t2 --policy http://127.0.0.1:8000/v1 policy.model=big\n"
      "kernelmill fork runs/first/g3.e1.t2 policy.sampling.temperature=1.2 tasks.group_size=8\n"
      "kernelmill fork runs/first/g3.e1.t2 --prompt 'Use shared memory.' run.name=hinted",
      "RUN/g3.e1.t2 shares the turns t0 and t1 and replaces t2. The fork is a run of its own: "
      "one group of the episode's\n"
      "task, with the other run's configuration and the overrides given here. `lineage` shows it "
      "as "
      "a branch. Its shared turns\n"
      "are context: exports count their credit where they come from. `resume` continues a fork "
      "that was cut off.",
      {{"TURN", "First turn to replace, as RUN/g3.e1.t2.", true, false, completes::run, {}},
       override_argument()},
      fork_options(),
      fork_turn};
}

cli::command candidate_branch_row() {
  return {"candidate branch",
          "Starts new episodes that go on from one candidate of a stored episode.",
          "kernelmill candidate branch first/g3.e1 c2\n"
          "kernelmill candidate branch first/g3.e1 c2 --prompt 'Use shared memory.' "
          "tasks.group_size=8",
          "A fork (`kernelmill fork`) that shares the turns up to the one that made the candidate, "
          "and has it as its active one.\n"
          "What tool calls of shared turns took of the budgets stays taken: tools.steps=N gives "
          "more.",
          {episode_argument(),
           {"ID", "A candidate as c2.", true, false, nothing, {}},
           override_argument()},
          fork_options(),
          branch_candidate};
}

} // namespace kernelmill::commands
