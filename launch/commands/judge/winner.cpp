#include "launch/commands/judge/winner.hpp"

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/machine/python.hpp"
#include "launch/machine/scratch_folder.hpp"
#include "launch/node/node_plan.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::commands {

namespace {

constexpr size_t most_tried = 3;

/// What a candidate is measured with: of its own, so that nothing of the search is left in it.
struct winner_bench {
  task_ptr what;
  governance_config rules;
  workbench bench;
};

expected<winner_bench> open_bench(const run_config& config, const std::string& builds) {
  auto rules = governance_of(config);
  KM_TRY(rules);
  auto backend = choose_backend(config.evaluation.backend);
  KM_TRY(backend);
  auto tasks = load_tasks(config, *backend);
  KM_TRY(tasks);
  if (any_torch(*tasks)) {
    auto python = find_python(config.evaluation.python);
    KM_TRY(python);
    backend->python = python->path;
  }
  auto bench = workbench::open(std::move(*backend));
  KM_TRY(bench);
  bench->build_afresh_in(builds);
  bench->repeat_calls(config.evaluation.determinism_runs);
  return winner_bench{tasks->front(), std::move(*rules), std::move(*bench)};
}

expected<offered_candidate> candidate_of(const run_directory& run, const task_ptr& what,
                                         const searching::search_story& story, uint32_t index,
                                         measured_winner& to) {
  const auto& one = story.episodes[index];
  to.turn = searching::turn_name(one);
  to.found = one.what;
  to.sha256 = one.what.sha256;
  to.language = answer_language(*what); // a policy's fence may say nothing, or something else
  auto from = open_for_reading(run);
  KM_TRY(from);
  auto name = parse_name(to.turn);
  auto stored = read_episode(*from, run.name, name->group, *name->member);
  KM_TRY(stored);
  auto record = stored->turns.at(one.turn).open();
  auto turn = record->getTurn();
  auto source = artifact_store{run.artifacts}.candidate(turn);
  KM_TRY(source);
  to.source = std::move(*source);
  offered_candidate x;
  x.what = what;
  x.parsed.ok = true;
  x.parsed.kernel = to.source;
  x.parsed.language = to.language;
  x.parsed.diagnosis = turn.getFacts().getParsed().getDiagnosis().cStr();
  x.sha256 = to.sha256;
  return x;
}

benching::bench_sample sample_of_timing(wire::Timing::Reader x) {
  auto speedup = x.getSpeedup();
  return {x.getCandidateMs(),
          x.getReferenceMs(),
          {speedup.getEstimate(), speedup.getLow(), speedup.getHigh()},
          x.getSamples()};
}

/// Judges a candidate so many times. Answers why it fell; empty: it stands, and `to` has its speed.
expected<std::string> judge_again(winner_bench& by, const run_config& config,
                                  const offered_candidate& x, measured_winner& to) {
  cli::show_activity("building " + to.turn + " again");
  auto built = build_candidate(by.bench.toolchain(), x);
  if (!built.open()->getCompiled()) return std::string{"it does not compile now"};
  auto referee = by.bench.referee();
  KM_TRY(referee);
  const auto& section = config.evaluation;
  judging_options how{section.timing.enabled, {}, section.timing, section.clock};
  benching::bench_row row;
  to.evaluations = 0;
  while (to.evaluations < config.search.evaluations) {
    cli::show_activity(fmt::format("measuring {} again: evaluation {} of {}", to.turn,
                                   to.evaluations + 1, config.search.evaluations));
    auto evaluated = evaluate_candidate(**referee, how, x, *built.open());
    KM_TRY(evaluated);
    auto facts = facts_of(x, built, *evaluated, std::nullopt);
    auto verdict = judge(*facts.open(), by.rules);
    auto judged = verdict.open();
    if (judged->getOutcome() == wire::Outcome::INFRASTRUCTURE) {
      auto why = fault_of(judged->getFault());
      why.message = "failed to measure " + to.turn + " again: " + why.message;
      return tl::unexpected<error>{std::move(why)};
    }
    if (judged->getOutcome() != wire::Outcome::ACCEPTED)
      return std::string{judged->getCategory().cStr()};
    ++to.evaluations;
    auto timing = evaluated->open()->getTiming();
    if (timing.getMeasured()) row.samples.push_back(sample_of_timing(timing));
  }
  if (!row.samples.empty()) to.speedup = row.speedup();
  return std::string{};
}

} // namespace

expected<std::optional<measured_winner>> measure_winner(const run_directory& run,
                                                        const run_config& config,
                                                        const searching::search_story& story) {
  auto order = story.fastest();
  if (order.empty()) return std::nullopt;
  scratch_folder builds{"search"};
  if (builds.path().empty())
    return infrastructure_error("io_error", "failed to make a folder for builds");
  auto bench = open_bench(config, builds.path());
  KM_TRY(bench);
  std::vector<std::string> fallen;
  for (size_t i = 0; i < std::min(order.size(), most_tried); ++i) {
    measured_winner result;
    auto x = candidate_of(run, bench->what, story, order[i], result);
    KM_TRY(x);
    auto why = judge_again(*bench, config, *x, result);
    KM_TRY(why);
    if (why->empty()) {
      result.fallen = std::move(fallen);
      return result;
    }
    fallen.push_back(result.turn + ": " + *why);
  }
  return std::nullopt;
}

} // namespace kernelmill::commands
