// `kernelmill rescore`: new verdicts from stored facts.

#include <chrono>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "actors/governance/reward.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/store/export_runs.hpp"
#include "launch/commands/stored_runs.hpp"
#include "launch/config/load.hpp"
#include "launch/judging/rejudging.hpp"
#include "launch/node/node_plan.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "retrieval/search/live_kernels.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/fork.hpp"
#include "storage/lineage/verdicts.hpp"
#include "storage/restore/trace_record.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t records_a_commit = 4096;

tl::unexpected<error> bad_rule(std::string message, std::string hint) {
  return configuration_error("usage", "failed to run 'rescore': " + std::move(message),
                             std::move(hint));
}

// -- the rules ----------------------------------------------------------------------------------

bool is_rule(const std::string& key) {
  return key.starts_with("reward.") || key == "advantage" || key == "episode.gamma" ||
         key == "tools.gamma";
}

/// "a=1,b=2" of --governance as overrides of the configuration.
expected<std::vector<std::string>> governance_overrides(const std::string& text) {
  std::vector<std::string> result;
  for (size_t at = 0; at < text.size();) {
    auto comma = std::min(text.find(',', at), text.size());
    auto word = text.substr(at, comma - at);
    auto key = word.substr(0, word.find('='));
    if (key != "minimum_speedup" && key != "significant_speedup")
      return bad_rule("--governance takes minimum_speedup=X and significant_speedup=X, not '" +
                          cli::clean(word) + "'",
                      "weights are words of their own: reward.correct=0.5");
    result.push_back("reward." + word);
    at = comma + 1;
  }
  return result;
}

/// The run's own rules with what the command line changes.
expected<run_config> rules_config(const invocation& in, const run_directory& run) {
  config_sources sources;
  sources.files = {run.config_file()};
  auto before = load_config(sources);
  KM_TRY(before);
  if (in.has("--reward")) {
    const auto& reward = before->config.reward;
    sources.overrides = {"~reward", "reward.preset=" + in.value("--reward"),
                         fmt::format("reward.minimum_speedup={}", reward.minimum_speedup),
                         fmt::format("reward.significant_speedup={}", reward.significant_speedup)};
  }
  auto governance = governance_overrides(in.value("--governance"));
  KM_TRY(governance);
  for (auto& x : *governance) sources.overrides.push_back(std::move(x));
  for (const auto& word : in.list("RULE")) {
    auto key = word.substr(0, word.find('='));
    if (!is_rule(key) || key == word)
      return bad_rule("'" + cli::clean(word) + "' is no rule of a verdict",
                      "rules are reward.KEY=X, episode.gamma=X, tools.gamma=X and advantage=KIND");
    sources.overrides.push_back(word);
  }
  auto after = load_config(sources);
  KM_TRY(after);
  return std::move(after->config);
}

expected<scoring_rules> rules_of(const run_config& config) {
  scoring_rules result;
  auto judge = governance_of(config);
  KM_TRY(judge);
  auto advantage = advantage_of(config.advantage);
  KM_TRY(advantage);
  result.judge = std::move(*judge);
  result.gamma = gamma_of(config);
  result.advantage = *advantage;
  return result;
}

/// Everything that a verdict depends on besides the facts; the program's commit stands for the
/// code.
json document_of(const run_config& config, const scoring_rules& rules) {
  const auto& w = rules.judge.reward;
  auto program = made_by();
  json reward = {{"preset", rules.judge.preset}};
  for (const auto& x : reward_numbers()) reward[x.key] = w.*x.member;
  reward["memory_safety_rejects"] = w.memory_safety_rejects;
  reward["shaping"] = w.shaping == shaping_kind::optimize_v1 ? "optimize_v1" : "none";
  reward["minimum_speedup"] = rules.judge.minimum_speedup;
  reward["significant_speedup"] = rules.judge.significant_speedup;
  return {{"program", {{"version", program["version"]}, {"git", program["git"]}}},
          {"reward", std::move(reward)},
          {"gamma", rules.gamma},
          {"advantage", config.advantage}};
}

// -- judging ------------------------------------------------------------------------------------

/// Collects records into commits; a record that is there from an earlier rescore stays.
class collected {
public:
  explicit collected(store& to) : to_(to) {}

  expected<void> add(std::vector<Message<wire::Record>> records) {
    for (auto& x : records) waiting_.push_back(std::move(x));
    return waiting_.size() < records_a_commit ? expected<void>{} : flush();
  }

  expected<void> flush() {
    auto fresh = to_.commit(waiting_);
    KM_TRY(fresh);
    for (bool x : *fresh) fresh_ += x;
    waiting_.clear();
    return {};
  }

  uint64_t fresh() const { return fresh_; }

private:
  store& to_;
  std::vector<Message<wire::Record>> waiting_;
  uint64_t fresh_ = 0;
};

struct outcome {
  verdict_version version;
  rejudging_counts counts;
  uint64_t records = 0; ///< that were not there
  double seconds = 0;
  std::set<std::string> lost; ///< ids of turns that were accepted and are not

  double turns_a_minute() const {
    return seconds > 0 ? 60 * static_cast<double>(counts.turns) / seconds : 0;
  }
};

void note_lost(std::set<std::string>& to, const stored_group& before,
               const std::vector<Message<wire::Record>>& after) {
  auto for_accepted = [](const Message<wire::Record>& x, auto&& note) {
    auto view = x.open();
    if (view->isTurn() && view->getTurn().getVerdict().getOutcome() == wire::Outcome::ACCEPTED)
      note(std::string{view->getTurn().getTurnId().cStr()});
  };
  std::set<std::string> lost;
  for (const auto& episode : before.episodes)
    for (const auto& x : episode.turns)
      for_accepted(x, [&](std::string id) { lost.insert(std::move(id)); });
  for (const auto& x : after) for_accepted(x, [&](const std::string& id) { lost.erase(id); });
  to.merge(lost);
}

expected<outcome> judge_run(const run_directory& run, const scoring_rules& rules,
                            verdict_version version) {
  auto facts = open_for_reading(run);
  KM_TRY(facts);
  store_options options;
  options.directory = version.store();
  auto verdicts = store::open(options);
  KM_TRY(verdicts);
  outcome result{std::move(version), {}, 0, 0, {}};
  collected to{*verdicts};
  auto started = std::chrono::steady_clock::now();
  artifact_store artifacts{run.artifacts};
  auto read = [&](wire::TurnRecord::Reader turn) -> expected<answer_texts> {
    auto completion = artifacts.text(turn.getCompletion().getText());
    KM_TRY(completion);
    auto kernel = artifacts.candidate(turn);
    KM_TRY(kernel);
    return answer_texts{std::move(*completion), std::move(*kernel)};
  };
  auto done = for_each_group(*facts, run.name, [&](const stored_group& group) -> expected<void> {
    auto records = rejudge(group, rules, result.counts, read);
    KM_TRY(records);
    note_lost(result.lost, group, *records);
    return to.add(std::move(*records));
  });
  KM_TRY(done);
  KM_TRY(to.flush());
  result.records = to.fresh();
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

// -- what is said -------------------------------------------------------------------------------

json mean(double sum, uint64_t count) {
  return count > 0 ? json(sum / static_cast<double>(count)) : json(nullptr);
}

json document_of(const run_directory& run, const outcome& x) {
  const auto& c = x.counts;
  return {{"run", run.name},
          {"verdict", x.version.name},
          {"directory", x.version.path},
          {"digest", x.version.digest},
          {"rules", x.version.rules["rules"]},
          {"groups", c.groups},
          {"episodes", c.episodes},
          {"turns", c.turns},
          {"equal", c.equal},
          {"other_outcome", c.other_outcome},
          {"other_reward", c.other_reward},
          {"equal_episodes", c.equal_ends},
          {"mean_reward_before", mean(c.reward_before, c.paid_both)},
          {"mean_reward_after", mean(c.reward_after, c.paid_both)},
          {"new_records", x.records},
          {"no_longer_accepted", x.lost.size()},
          {"seconds", x.seconds},
          {"turns_per_minute", x.turns_a_minute()}};
}

std::string text_of(const run_directory& run, const outcome& x) {
  const auto& c = x.counts;
  auto result = fmt::format("judged {} of {} again in {}\n", counted(c.turns, "turn"),
                            counted(c.episodes, "episode"), cli::format_seconds(x.seconds));
  result += fmt::format("{} of {} verdicts are equal byte for byte; {} have another outcome, {} "
                        "another reward; what else differs is in gates and components\n",
                        c.equal, c.turns, c.other_outcome, c.other_reward);
  if (c.paid_both > 0)
    result += fmt::format("mean reward of a turn {:.4f}, was {:.4f}, of {} turns; `stats` has the "
                          "mean of the episodes' best\n",
                          c.reward_after / static_cast<double>(c.paid_both),
                          c.reward_before / static_cast<double>(c.paid_both), c.paid_both);
  return result +
         fmt::format("verdict: {} in {}\nuse them: kernelmill export {} --verdict {} ...\n",
                     x.version.name, x.version.path, run.path, x.version.name);
}

bool is_restored(wire::Verdict::Reader verdict) {
  for (auto x : verdict.getFindings())
    if (x.getRule() == restored_rule) return true;
  return false;
}

/// A fork begins with copies of its origin's turns, and these may have been restored there.
expected<bool> shares_restored_turns(const run_directory& run) {
  auto fork = fork_of(run);
  KM_TRY(fork);
  if (!*fork) return false;
  auto records = open_for_reading(run);
  KM_TRY(records);
  bool found = false;
  KM_TRY(records->scan_run(run.name, [&](wire::Record::Reader x) {
    found = x.isTurn() && is_restored(x.getTurn().getVerdict());
    return !found;
  }));
  return found;
}

/// A row of traces.jsonl has the verdict of a turn, not all the facts behind it.
expected<void> check_facts(const run_directory& run) {
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  std::string turns = "turns of it";
  if (!manifest->contains("restored")) {
    auto shared = shares_restored_turns(run);
    KM_TRY(shared);
    if (!*shared) return {};
    turns = "turns that it shares with the run that it was forked from";
  }
  return configuration_error("usage",
                             "failed to judge " + run.path + " again: " + turns +
                                 " were restored from traces.jsonl, which does not hold all the "
                                 "facts that rules ask for",
                             "`kernelmill replay " + run.path + "` judges their kernels afresh");
}

/// Without --retract, says how kernels that lost their verdict leave an index. Answers what the
/// document says of it.
expected<json> retract_lost(const invocation& in, const run_directory& run, const outcome& x) {
  auto turns = x.lost.size();
  if (!in.has("--retract")) {
    if (turns > 0)
      cli::talk(fmt::format("{} accepted and {} not: the same command with --retract DIR takes "
                            "their kernels out of an index",
                            counted(turns, "turn was", "turns were"), turns == 1 ? "is" : "are"));
    return nullptr;
  }
  const auto& index = in.value("--retract");
  auto done = retract_kernels(
      index, {x.lost, {}, fmt::format("verdict {} of run {}", x.version.name, run.name)});
  KM_TRY(done);
  cli::talk(fmt::format("{}: {} kernel{} retracted, {} before", index, done->retracted,
                        done->retracted == 1 ? "" : "s", done->already));
  return json{{"index", index}, {"now", done->retracted}, {"before", done->already}};
}

expected<int> rescore(const invocation& in) {
  auto run = find_run(in.value("RUN"), in.value("--root"));
  KM_TRY(run);
  KM_TRY(check_facts(*run));
  auto config = rules_config(in, *run);
  KM_TRY(config);
  auto rules = rules_of(*config);
  KM_TRY(rules);
  auto version = begin_verdicts(*run, in.value("--name"), document_of(*config, *rules));
  KM_TRY(version);
  cli::show_activity("judging the stored turns again");
  auto done = judge_run(*run, *rules, std::move(*version));
  KM_TRY(done);
  auto retracted = retract_lost(in, *run, *done);
  KM_TRY(retracted);
  if (in.json) {
    auto document = document_of(*run, *done);
    document["retracted"] = std::move(*retracted);
    cli::print_json(document);
  } else {
    cli::print(text_of(*run, *done));
  }
  return cli::exit_ok;
}

} // namespace

cli::command rescore_row() {
  return {
      "rescore",
      "Judges a run's stored turns again, by other rules.",
      "kernelmill rescore runs/first --reward staged\n"
      "kernelmill rescore runs/first reward.speed_cap=4 episode.gamma=0.9 --name capped\n"
      "kernelmill rescore runs/first --governance minimum_speedup=1.2",
      "Needs no policy server and no GPU: a verdict is a function of the facts that a turn keeps "
      "and of the rules.\n"
      "The new verdicts are a version beside the run's own, which stay; `export --verdict NAME` "
      "uses them. The same rules\n"
      "give the same bytes, and a second call judges only what was committed since.",
      {{"RUN", "Name of the run, or its directory.", true, false, completes::run, {}},
       {"RULE",
        "reward.KEY=X, episode.gamma=X, tools.gamma=X or advantage=KIND.",
        false,
        true,
        nothing,
        {}}},
      {{"--reward", "PRESET", "Starts from this preset, not from the run's own weights.", "", false,
        reward_presets(), nothing},
       {"--governance", "LIST", "minimum_speedup=X,significant_speedup=X.", "", false, {}, nothing},
       {"--name",
        "NAME",
        "Name of the version. Default: made from the rules.",
        "",
        false,
        {},
        nothing},
       {"--retract",
        "DIR",
        "Index that loses the kernels of turns that were accepted and are not.",
        "",
        false,
        {},
        completes::directory},
       runs_root()},
      rescore};
}

} // namespace kernelmill::commands
