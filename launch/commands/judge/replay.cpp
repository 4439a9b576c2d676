// `kernelmill replay`: turns built and evaluated again from what is stored.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/place.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/stored_runs.hpp"
#include "launch/config/load.hpp"
#include "launch/judging/replaying.hpp"
#include "launch/machine/python.hpp"
#include "launch/machine/scratch_folder.hpp"
#include "launch/node/node_plan.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

// -- one turn -----------------------------------------------------------------------------------

struct replayed {
  std::string name, task, before, after; ///< categories of the verdicts
  std::vector<replay_check> checks;
  bool stands = false;
  std::string lost; ///< why it could not be replayed; empty: it was
};

class replayer {
public:
  static expected<replayer> open(const run_directory& run, const std::string& build_directory,
                                 bool timed) {
    config_sources sources;
    sources.files = {run.config_file()};
    auto loaded = load_config(sources);
    KM_TRY(loaded);
    auto rules = governance_of(loaded->config);
    KM_TRY(rules);
    auto backend = choose_backend(loaded->config.evaluation.backend);
    KM_TRY(backend);
    auto tasks = load_tasks(loaded->config, *backend);
    KM_TRY(tasks);
    if (any_torch(*tasks)) {
      auto python = find_python(loaded->config.evaluation.python);
      KM_TRY(python);
      backend->python = python->path;
    }
    auto manifest = read_json(run.manifest_file());
    KM_TRY(manifest);
    auto bench = workbench::open(std::move(*backend));
    KM_TRY(bench);
    bench->build_afresh_in(build_directory);
    replayer result{std::move(loaded->config), std::move(*rules), std::move(*bench),
                    artifact_store{run.artifacts}};
    result.timed_ = timed;
    for (auto& x : *tasks) result.tasks_[x->id] = x;
    for (const auto& x : manifest->value("tasks", json::array()))
      result.digests_[x.value("id", std::string{})] = x.value("digest", std::string{});
    return result;
  }

  expected<replayed> replay(wire::TurnRecord::Reader turn) {
    replayed result;
    auto where = turn.getEpisode();
    result.task = where.getTask().cStr();
    result.name = fmt::format("g{}.e{}.t{}", where.getGroup(), where.getMember(), turn.getTurn());
    result.before = turn.getVerdict().getCategory().cStr();
    auto texts = read_texts(turn, artifacts_);
    KM_TRY(texts);
    result.checks = texts->checks;
    auto task = tasks_.find(result.task);
    if (task == tasks_.end()) {
      result.lost = "the task is not there";
      return result;
    }
    check_task(result, *task->second);
    bool formatted = turn.getFacts().getParsed().getOk();
    if (formatted && !texts->usable) return result; // other code than the run's: nothing to build
    auto facts = formatted ? do_again(result, turn, task->second, *texts)
                           : std::optional{facts_again(turn, {}, {}, std::nullopt)};
    if (facts) judge_again(result, turn, *facts->open());
    return result;
  }

private:
  replayer(run_config config, governance_config rules, workbench bench, artifact_store artifacts)
      : config_(std::move(config)), rules_(std::move(rules)), bench_(std::move(bench)),
        artifacts_(std::move(artifacts)) {}

  void check_task(replayed& to, const task& what) const {
    auto found = digests_.find(what.id);
    auto known = found == digests_.end() ? std::string{} : found->second;
    auto said = known.empty()          ? sameness::not_compared
                : known == what.digest ? sameness::equal
                                       : sameness::different;
    to.checks.push_back(
        {"build", "task files", said,
         said == sameness::equal ? std::string{} : "was " + known + ", is " + what.digest});
  }

  offered_candidate candidate_of(wire::TurnRecord::Reader turn, const task_ptr& what,
                                 const stored_texts& texts) const {
    offered_candidate x;
    x.what = what;
    x.parsed.ok = true;
    x.parsed.kernel = texts.candidate;
    x.parsed.diagnosis = turn.getFacts().getParsed().getDiagnosis().cStr();
    x.sha256 = turn.getCandidateSha256().cStr();
    return x;
  }

  /// Nothing when the machine failed, which `to` then says.
  std::optional<Message<wire::TurnFacts>> do_again(replayed& to, wire::TurnRecord::Reader turn,
                                                   const task_ptr& what,
                                                   const stored_texts& texts) {
    auto x = candidate_of(turn, what, texts);
    auto stored = turn.getFacts();
    auto built = build_candidate(bench_.toolchain(), x);
    auto now = built.open();
    add(to, compare_builds(stored.getBuild(), *now));
    if (now->getFault().getClass() == wire::FaultClass::INFRASTRUCTURE) {
      to.lost = now->getFault().getMessage().cStr();
      return std::nullopt;
    }
    Message<wire::EvaluateResult> evaluated;
    std::optional<error> fault;
    if (now->getCompiled()) {
      auto result = evaluate(x, *now, seed_hex(stored.getEvaluation()));
      if (result && result->open()->getFault().getClass() != wire::FaultClass::INFRASTRUCTURE) {
        evaluated = *result;
        add(to, compare_evaluations(stored.getEvaluation(), *evaluated.open()));
      } else if (!result && result.error().cls != fault_class::infrastructure) {
        fault = result.error();
      } else {
        to.lost = result ? result->open()->getFault().getMessage().cStr() : result.error().message;
        return std::nullopt;
      }
    }
    return facts_again(turn, *now, evaluated, fault);
  }

  expected<Message<wire::EvaluateResult>>
  evaluate(const offered_candidate& x, wire::BuildResult::Reader built, std::string seed) {
    auto referee = bench_.referee();
    KM_TRY(referee);
    const auto& section = config_.evaluation;
    return evaluate_candidate(**referee, {timed_, std::move(seed), section.timing, section.clock},
                              x, built);
  }

  void judge_again(replayed& to, wire::TurnRecord::Reader turn, wire::TurnFacts::Reader facts) {
    auto verdict = judge(facts, rules_);
    auto view = verdict.open();
    to.after = view->getCategory().cStr();
    to.stands = verdict_stands(turn.getVerdict(), *view);
  }

  static void add(replayed& to, std::vector<replay_check> checks) {
    for (auto& x : checks) to.checks.push_back(std::move(x));
  }

  run_config config_;
  governance_config rules_;
  workbench bench_;
  artifact_store artifacts_;
  bool timed_ = true;
  std::map<std::string, task_ptr> tasks_;
  std::map<std::string, std::string> digests_;
};

// -- many turns ---------------------------------------------------------------------------------

struct tally {
  uint64_t equal = 0, different = 0, not_compared = 0;
};

struct replay_summary {
  std::vector<std::pair<std::string, tally>> checks; ///< "build: toolchain", in order
  uint64_t turns = 0, stand = 0, fall = 0, lost = 0, infrastructure = 0, others = 0;

  void note(const replayed& x) {
    ++turns;
    ++(!x.lost.empty() ? lost : x.stands ? stand : fall);
    for (const auto& c : x.checks) {
      auto name = fmt::format("{}: {}", c.level, c.what);
      auto found = std::find_if(checks.begin(), checks.end(),
                                [&](const auto& y) { return y.first == name; });
      auto& to = found == checks.end() ? checks.emplace_back(name, tally{}).second : found->second;
      ++(c.said == sameness::equal       ? to.equal
         : c.said == sameness::different ? to.different
                                         : to.not_compared);
    }
  }
};

const char* word(sameness x) {
  return x == sameness::equal ? "equal" : x == sameness::different ? "different" : "not_compared";
}

json to_json(const replayed& x) {
  json checks = json::array();
  for (const auto& c : x.checks)
    checks.push_back({{"level", c.level},
                      {"what", c.what},
                      {"said", word(c.said)},
                      {"detail", cli::clean(c.detail)}});
  return {{"turn", x.name},
          {"task", x.task},
          {"category_before", x.before},
          {"category_after", x.after},
          {"stands", x.stands},
          {"not_replayed", cli::clean(x.lost)},
          {"checks", std::move(checks)}};
}

std::string text_of(const replayed& x) {
  auto result = !x.lost.empty()
                    ? fmt::format("{} {}: not replayed: {}\n", x.name, x.task, cli::clean(x.lost))
                    : fmt::format("{} {}: {}, was {}, is {}\n", x.name, x.task,
                                  x.stands ? "stands" : "does not stand", x.before,
                                  x.after.empty() ? "not judged" : x.after);
  for (const auto& c : x.checks)
    if (c.said == sameness::different)
      result += fmt::format("  {}: {} differs: {}\n", c.level, c.what,
                            cli::shorten(cli::clean(c.detail), 400));
  return result;
}

json to_json(const replay_summary& x, json turns, const std::string& run) {
  json checks = json::object();
  for (const auto& [name, t] : x.checks)
    checks[name] = {
        {"equal", t.equal}, {"different", t.different}, {"not_compared", t.not_compared}};
  return {{"run", run},
          {"turns", x.turns},
          {"stand", x.stand},
          {"do_not_stand", x.fall},
          {"not_replayed", x.lost},
          {"skipped_infrastructure", x.infrastructure},
          {"skipped_others", x.others},
          {"checks", std::move(checks)},
          {"replayed", std::move(turns)}};
}

std::string text_of(const replay_summary& x) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, t] : x.checks)
    rows.push_back({name, fmt::to_string(t.equal), fmt::to_string(t.different),
                    fmt::to_string(t.not_compared)});
  return cli::format_table({"CHECK", "EQUAL>", "DIFFERENT>", "NOT COMPARED>"}, rows) +
         fmt::format("\n{} of {} verdicts stand; {} do not; {} could not be replayed\n", x.stand,
                     x.turns, x.fall, x.lost);
}

bool is_wanted(const place& at, wire::TurnRecord::Reader turn) {
  if (at.whole_run) return true;
  auto where = turn.getEpisode();
  return where.getGroup() == at.name.group &&
         (!at.name.member || where.getMember() == *at.name.member) &&
         (!at.name.turn || turn.getTurn() == *at.name.turn);
}

int exit_of(const replay_summary& x) {
  if (x.fall > 0) return cli::exit_quality;
  return x.lost > 0 ? cli::exit_failed : cli::exit_ok;
}

expected<replay_summary> replay_all(const invocation& in, const place& at, replayer& by,
                                    json& document) {
  auto from = open_for_reading(at.run);
  KM_TRY(from);
  replay_summary result;
  auto visit = [&](const stored_group& group) -> expected<void> {
    for (const auto& episode : group.episodes)
      for (const auto& record : episode.turns) {
        auto view = record.open();
        auto turn = view->getTurn();
        if (!is_wanted(at, turn)) continue;
        auto outcome = turn.getVerdict().getOutcome();
        result.infrastructure += outcome == wire::Outcome::INFRASTRUCTURE;
        if (outcome == wire::Outcome::INFRASTRUCTURE) continue; // nothing was said of it
        bool open = outcome == wire::Outcome::OPEN;             // it asked for no verdict
        bool skip = open || (in.has("--accepted") && outcome != wire::Outcome::ACCEPTED);
        result.others += skip;
        if (skip) continue;
        cli::show_activity(fmt::format("judging turn {} again", result.turns + 1));
        auto one = by.replay(turn);
        KM_TRY(one);
        result.note(*one);
        if (in.json)
          document.push_back(to_json(*one));
        else
          cli::print(text_of(*one));
      }
    return {};
  };
  KM_TRY(for_each_group(*from, at.run.name, visit));
  return result;
}

expected<int> replay(const invocation& in) {
  auto at = locate(in.value("WHAT"), in.value("--root"));
  KM_TRY(at);
  scratch_folder builds{"replay"};
  if (builds.path().empty())
    return infrastructure_error("io_error", "failed to make a folder for builds");
  auto by = replayer::open(at->run, builds.path(), !in.has("--no-timing"));
  KM_TRY(by);
  json document = json::array();
  auto done = replay_all(in, *at, *by, document);
  KM_TRY(done);
  if (done->turns == 0 && done->infrastructure + done->others == 0)
    return configuration_error("not_found",
                               "failed to replay '" + in.value("WHAT") + "': it has no turn",
                               "`kernelmill show " + at->run.path + "` lists what is there");
  if (in.json)
    cli::print_json(to_json(*done, std::move(document), at->run.name));
  else
    cli::print("\n" + text_of(*done));
  return exit_of(*done);
}

} // namespace

cli::command replay_row() {
  return {
      "replay",
      "Builds and evaluates stored turns again, and says whether their verdicts stand.",
      "kernelmill replay runs/first/g3.e1.t2\nkernelmill replay runs/first --accepted --json",
      "Each turn is compared on four levels: record (hashes, and the completion parsed again), "
      "build, correctness (with\n"
      "the seed of the run) and timing. A verdict stands when outcome, category and gates are the "
      "same; how fast a kernel\n"
      "is does not decide it: `success`, `slower` and `not_timed` count as one. Exit code 5: a "
      "verdict does not stand;\n"
      "1: a turn could not be replayed. Builds are made afresh, in a folder that is removed at the "
      "end.",
      {{"WHAT", "RUN, RUN/g3, RUN/g3.e1 or RUN/g3.e1.t2.", true, false, completes::run, {}}},
      {flag("--accepted", "Only accepted turns."),
       flag("--no-timing", "Checks correctness and skips timing."), runs_root()},
      replay};
}

} // namespace kernelmill::commands
