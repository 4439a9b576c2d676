// `kernelmill bench`: one candidate at several shapes of its task, by the referee and its clock.

#include <fmt/format.h>

#include "actors/governance/judge.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/candidate_source.hpp"
#include "launch/commands/judge/compile_only.hpp"
#include "launch/commands/judge/left_bundle.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/remote/on_host.hpp"
#include "launch/judging/benching/bench_text.hpp"
#include "launch/judging/benching/shapes.hpp"
#include "launch/judging/verdict_text.hpp"
#include "launch/machine/scratch_folder.hpp"
#include "messages/base/json_value.hpp"
#include "messages/json.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
using benching::bench_shape;

constexpr const char* usual_shapes = "timed cases";

double value_at(const task& x, const expression& what) {
  auto value = what.evaluate(x.timed.scalars);
  return value ? static_cast<double>(*value) : 0;
}

// Why there is no time; empty where there is one.
std::string reason_of(wire::EvaluateResult::Reader evaluated, wire::Verdict::Reader verdict) {
  auto timing = evaluated.getTiming();
  if (verdict.getOutcome() == wire::Outcome::ACCEPTED) {
    if (timing.getMeasured()) return {};
    return timing.getNote().size() > 0 ? timing.getNote().cStr() : "it could not be timed";
  }
  for (auto gate : verdict.getGates())
    if (gate.getStatus() == wire::GateStatus::FAIL && gate.getReason().size() > 0)
      return fmt::format("{}: {}", gate.getName().cStr(), gate.getReason().cStr());
  return verdict.getFault().getMessage().cStr();
}

benching::bench_sample sample_of(wire::Timing::Reader x) {
  auto speedup = x.getSpeedup();
  return {x.getCandidateMs(),
          x.getReferenceMs(),
          {speedup.getEstimate(), speedup.getLow(), speedup.getHigh()},
          x.getSamples()};
}

/// Judges one candidate that was built, at one shape after the other.
class shape_judge {
public:
  shape_judge(const invocation& in, referee_client& referee, const offered_candidate& x,
              const Message<wire::BuildResult>& built, size_t evaluations)
      : referee_(referee), candidate_(x), built_(built),
        evaluations_(evaluations), options_{true, {}, {}, in.value("--clock")} {}

  /// `what` is the candidate's task at the shape.
  expected<benching::bench_row> judge_at(const bench_shape& shape, const task_ptr& what) {
    benching::bench_row row;
    row.name = shape.name;
    row.shape = shape_text(*candidate_.what, shape.scalars);
    auto there = candidate_;
    there.what = what;
    if (there.what->contract != contract_kind::torch) {
      row.bytes = value_at(*there.what, there.what->bytes);
      row.flops = value_at(*there.what, there.what->flops);
    }
    while (row.reason.empty() && row.samples.size() < evaluations_) KM_TRY(add_sample(there, row));
    return row;
  }

  const std::string& device() const { return device_; }

  /// The latest evaluation at the first shape.
  const Message<wire::TurnFacts>& first_facts() const { return first_facts_; }
  const Message<wire::Verdict>& first_verdict() const { return first_verdict_; }

private:
  // A row with a reason has had its last evaluation: what is right only sometimes is wrong.
  expected<void> add_sample(const offered_candidate& x, benching::bench_row& row) {
    static const auto rules = governance_rules("kevin"); // which decide no time
    KM_TRY(rules);
    Message<wire::EvaluateResult> evaluated;
    std::optional<error> fault;
    auto result = evaluate_candidate(referee_, options_, x, *built_.open());
    if (result)
      evaluated = *result;
    else
      fault = result.error();
    auto facts = facts_of(x, built_, evaluated, fault);
    auto verdict = judge(*facts.open(), *rules);
    if (first_shape_.empty()) first_shape_ = row.shape;
    if (first_shape_ == row.shape) {
      first_facts_ = facts;
      first_verdict_ = verdict;
    }
    auto judged = verdict.open();
    auto seen = evaluated.open();
    if (seen->getDevice().size() > 0) device_ = seen->getDevice().cStr();
    row.outcome = enum_name(capnp::DynamicEnum{judged->getOutcome()});
    row.category = judged->getCategory().cStr();
    row.reason = reason_of(*seen, *judged);
    row.machine_failed = judged->getOutcome() == wire::Outcome::INFRASTRUCTURE;
    if (!row.reason.empty()) return {};
    row.samples.push_back(sample_of(seen->getTiming()));
    row.roofline_ms = seen->getTiming().getRooflineMs();
    return {};
  }

  referee_client& referee_;
  const offered_candidate& candidate_;
  const Message<wire::BuildResult>& built_;
  size_t evaluations_;
  judging_options options_;
  std::string device_;
  std::string first_shape_; ///< empty: none yet
  Message<wire::TurnFacts> first_facts_;
  Message<wire::Verdict> first_verdict_;
};

expected<std::vector<bench_shape>> shapes_of(const invocation& in, const task& x) {
  if (x.contract == contract_kind::program)
    return configuration_error("unsupported_contract",
                               "failed to bench task " + x.id +
                                   ": a program has the one shape of its benchmark command",
                               "`kernelmill eval` times it");
  if (x.contract != contract_kind::torch)
    return benching::read_shapes(x, in.has("--shapes") ? in.value("--shapes") : usual_shapes);
  if (in.has("--shapes"))
    return configuration_error("usage",
                               "failed to use --shapes: the shapes of task " + x.id +
                                   " are those that its problem.py draws",
                               "leave it out, or import the problem at other shapes as a task");
  return std::vector<bench_shape>{{"problem.py", {}}};
}

/// The task at each shape, before any work: a shape that it cannot have is the user's error.
expected<std::vector<task_ptr>> tasks_at(const std::vector<bench_shape>& shapes, const task_ptr& x,
                                         const std::string& root) {
  std::vector<task_ptr> result;
  for (const auto& shape : shapes) {
    auto one = benching::at_shape(x, shape.scalars, root + "/" + std::to_string(result.size()));
    KM_TRY(one);
    result.push_back(std::move(*one));
  }
  return result;
}

json document_of(const offered_candidate& x, wire::BuildResult::Reader built, size_t evaluations,
                 const std::string& clock, const std::string& device,
                 const std::vector<benching::bench_row>& rows) {
  auto list = json::array();
  for (const auto& row : rows) list.push_back(benching::row_json(row));
  return {{"task", x.what->id},
          {"candidate_sha256", x.sha256},
          {"backend", x.what->terms.backend},
          {"contract", to_string(x.what->contract)},
          {"device", cli::clean(device)},
          {"compiled", true},
          {"build", build_json(built)},
          {"clock", clock},
          {"evaluations", evaluations},
          {"confidence", 0.95},
          {"shapes", std::move(list)}};
}

expected<int> bench(const invocation& in) {
  if (in.has("--on")) return on_host(in, bench_row());
  auto bundle = left_bundle::begin(in, "bench");
  KM_TRY(bundle);
  auto evaluations = in.integer("--evaluations", 1, 100);
  KM_TRY(evaluations);
  auto offer = open_candidate(in, candidate_use::judging);
  KM_TRY(offer);
  auto& bench = offer->bench;
  auto& candidate = offer->candidate;
  auto shapes = shapes_of(in, *candidate.what);
  KM_TRY(shapes);
  scratch_folder folder{"bench"};
  auto tasks = tasks_at(*shapes, candidate.what, folder.path());
  KM_TRY(tasks);
  Message<wire::BuildResult> built;
  cli::show_activity("compiling");
  if (candidate.parsed.ok) built = build_candidate(bench.toolchain(), candidate);
  // The document has the list in each case.
  if (!built.open()->getCompiled())
    return show_build(in, bench, candidate, built, *bundle, {{{"shapes", json::array()}}, {}});
  auto referee = bench.referee();
  KM_TRY(referee);
  auto count = static_cast<size_t>(*evaluations);
  shape_judge judging{in, **referee, candidate, built, count};
  std::vector<benching::bench_row> rows;
  bool machine_failed = false;
  for (const auto& shape : *shapes) {
    cli::talk(fmt::format("{} of {}: {}", rows.size() + 1, shapes->size(),
                          shape_text(*candidate.what, shape.scalars)));
    auto row = judging.judge_at(shape, (*tasks)[rows.size()]);
    KM_TRY(row);
    machine_failed = machine_failed || row->machine_failed;
    rows.push_back(std::move(*row));
  }
  auto document =
      document_of(candidate, *built.open(), count, in.value("--clock"), judging.device(), rows);
  if (in.json) {
    cli::print_json(document);
  } else {
    auto width = cli::terminal_width(1);
    cli::print(fmt::format("{}  candidate {}  {}/{}  {}\n\n", candidate.what->id,
                           candidate.sha256.substr(0, 12), candidate.what->terms.backend,
                           to_string(candidate.what->contract), cli::clean(judging.device())));
    cli::print(benching::table_text(rows, width));
    cli::print(benching::few_text(rows, count));
    if (auto bars = benching::bars_text(rows, width); !bars.empty()) cli::print("\n" + bars);
  }
  if (bundle->wanted()) {
    bundle->facts = judging.first_facts();
    bundle->verdict = judging.first_verdict();
    bundle->output = std::move(document);
    KM_TRY(bundle->leave(candidate, bench));
  }
  return machine_failed ? cli::exit_failed : cli::exit_ok;
}

} // namespace

cli::command bench_row() {
  return {
      "bench",
      "Times one kernel at several shapes of its task, beside the task's baseline.",
      "kernelmill bench kernel.cpp --task native/row_sum\n"
      "kernelmill bench kernel.cu --task native/row_sum --shapes rows=64:1024:8192,cols=4096\n"
      "kernelmill bench kernel.cpp --task native/row_sum --shapes 'timed; rows=1,cols=1000000'",
      "Each shape is judged as `eval` judges the task's own: by the referee, in the sandbox, on "
      "fresh contents, with all of\n"
      "the task's cases. An evaluation is one value: 95 % intervals say what the next one may "
      "differ by, processes included.\n"
      "SAMPLE: evaluations x timed calls of each. A shape that fails is a row with its reason. "
      "Exit code 1: the machine\n"
      "failed; 2: the task cannot have a shape.\n"
      "SHAPES, with blanks or ; between: `timed`, `cases` (the visible ones), a case's name, or "
      "scalars. Lists of values are\n"
      "combined; scalars that are left out are those of the timed shape, as are the "
      "distributions of the inputs.\n"
      "A task of the contract torch has the one shape of its problem.",
      {{"FILE", "Source file; - reads stdin.", true, false, completes::file, {}}},
      with_torch_options(with_candidate_options(
          {{"--task", "TASK", "Id of the task.", "", true, {}, completes::task},
           {"--shapes",
            "SHAPES",
            "Shapes, such as rows=128:256,cols=1024. Default: the timed one and those of visible "
            "cases.",
            "",
            false,
            {},
            nothing},
           {"--evaluations", "N", "Evaluations of each shape.", "5", false, {}, nothing},
           clock_option(),
           bundle_option(),
           tasks_root(),
           on_option()})),
      bench};
}

} // namespace kernelmill::commands
