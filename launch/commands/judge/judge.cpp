// `kernelmill judge`: many candidates, each through the same compiler, referee and judge as in a
// run. Compilers work on every core and never wait for a GPU; each GPU judges one candidate at a
// time.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "actors/governance/judge.hpp"
#include "gpu/referee/clock.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/judge/candidate_source.hpp"
#include "launch/commands/judge/suite_batch.hpp"
#include "launch/commands/judge/workbench.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/remote/on_host.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/judging/candidate_line.hpp"
#include "launch/judging/verdict_text.hpp"
#include "launch/machine/python.hpp"
#include "launch/node/named_baseline.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using nlohmann::ordered_json;

struct job {
  std::string name;
  size_t place = 0; // among the answers of the file
  offered_candidate candidate;
  Message<wire::BuildResult> built;
  double build_seconds = 0;
};

/// Jobs between the compilers and the slots; bounded, so that no slot falls behind for ever.
class job_queue {
public:
  explicit job_queue(size_t limit) : limit_(limit) {}

  void push(job x) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return waiting_.size() < limit_; });
    waiting_.push_back(std::move(x));
    changed_.notify_all();
  }

  /// For one of several slots. A referee keeps a few tasks ready: the next candidate of the same
  /// task costs less, and one of a task that no other slot has at hand costs no slot more.
  std::optional<job> pop(size_t slot) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return !waiting_.empty() || closed_; });
    if (waiting_.empty()) return std::nullopt;
    auto first = [&](auto holds) {
      return std::find_if(waiting_.begin(), waiting_.end(),
                          [&](const job& x) { return holds(x.candidate.what->id); });
    };
    auto next = first([&](const std::string& task) { return latest_[slot] == task; });
    if (next == waiting_.end())
      next = first([&](const std::string& task) {
        return std::none_of(latest_.begin(), latest_.end(),
                            [&](const auto& x) { return x.second == task; });
      });
    if (next == waiting_.end()) next = waiting_.begin();
    job result = std::move(*next);
    waiting_.erase(next);
    latest_[slot] = result.candidate.what->id;
    changed_.notify_all();
    return result;
  }

  void close() {
    std::lock_guard lock{mutex_};
    closed_ = true;
    changed_.notify_all();
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> waiting_;
  size_t limit_;
  std::map<size_t, std::string> latest_; // task of each slot
  bool closed_ = false;
};

tl::unexpected<error> bad_line(const std::string& path, size_t line, const std::string& cause) {
  return configuration_error(
      "bad_batch", "failed to read " + path + ", line " + std::to_string(line) + ": " + cause,
      "each line is {\"task\": \"native/row_sum\", \"file\": \"kernel.cu\"}, with a \"name\" and a "
      "\"contract\" if you like");
}

/// Makes jobs of sources: the part that lines of ours and answers of a suite share.
struct job_maker {
  const invocation& options;
  const task_roots& roots;
  const chosen_backend& backend;
  baseline_finder& baselines;

  expected<job> operator()(const std::string& task, const std::string& contract, std::string name,
                           std::string source) const {
    job one;
    auto what = load_task(roots, task);
    KM_TRY(what);
    auto here = on_terms(**what, terms_of(backend, torch_choice_of(options)));
    KM_TRY(here);
    auto asked = on_contract(*here, contract, source);
    KM_TRY(asked);
    asked = baselines.give(std::move(*asked));
    KM_TRY(asked);
    one.name = std::move(name);
    one.candidate.parsed = as_source(std::move(source), **asked);
    one.candidate.sha256 = sha256_hex(one.candidate.parsed.kernel);
    one.candidate.what = std::move(*asked);
    return one;
  }
};

expected<std::vector<job>> read_batch(const std::string& path, const job_maker& make) {
  std::ifstream in{path};
  if (!in)
    return configuration_error("missing_file",
                               "failed to read " + path + ": it is not a readable file",
                               "name a file with one candidate a line, as NDJSON");
  auto folder = std::filesystem::path{path}.parent_path();
  std::vector<job> result;
  std::string text;
  for (size_t line = 1; std::getline(in, text); ++line) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto x = read_candidate_line(text);
    if (!x) return bad_line(path, line, x.error());
    auto what = load_task(make.roots, x->task);
    if (!what) {
      auto near = choose_task(make.roots, x->task); // which names the closest id
      return bad_line(path, line,
                      near ? what.error().message
                           : near.error().message + "; " + near.error().hint);
    }
    auto source = read_candidate_for(**what, (folder / x->file).string());
    if (!source) return bad_line(path, line, source.error().message);
    auto one = make(x->task, x->contract, std::move(x->name), std::move(*source));
    if (!one) return bad_line(path, line, one.error().message);
    result.push_back(std::move(*one));
  }
  return result;
}

// Answers that no candidate can be made of are said here; their place in the file stays empty.
// A suite has answers to tasks that other machines judge: those of one without their backend are
// passed over, unless nothing is left.
expected<std::vector<job>> jobs_of(suite_batch& answers, const job_maker& make) {
  std::vector<job> result;
  std::optional<error> elsewhere;
  for (size_t i = 0; i < answers.all().size(); ++i) {
    const auto& x = answers.all()[i];
    if (!x.refused.empty()) continue;
    auto one = make(x.task, x.contract, x.name, x.source);
    if (!one && one.error().category == "unsupported_backend") {
      elsewhere = one.error();
      auto what = load_task(make.roots, x.task);
      KM_TRY(what);
      answers.pass_over(i, **what, elsewhere->message);
      continue;
    }
    if (!one)
      return configuration_error("bad_batch",
                                 "failed to judge " + x.name + ": " + one.error().message,
                                 "`kernelmill task import` imports the suite's problems");
    one->place = i;
    result.push_back(std::move(*one));
  }
  if (result.empty() && elsewhere) return tl::unexpected<error>{*elsewhere};
  return result;
}

class batch {
public:
  batch(workbench& bench, judging_options options, governance_config rules, std::vector<job> jobs,
        suite_batch& answers)
      : bench_(bench), options_(std::move(options)), rules_(std::move(rules)),
        jobs_(std::move(jobs)), answers_(answers),
        ready_(2 * std::max<size_t>(4, std::thread::hardware_concurrency())) {}

  /// Prints a line for each candidate as soon as it is judged.
  expected<void> run(size_t compilers) {
    auto referees = bench_.referees();
    KM_TRY(referees);
    tell_progress();
    auto& toolchain = bench_.toolchain();
    std::vector<std::string> folders;
    for (const auto& x : jobs_) folders.push_back(x.candidate.what->directory);
    bench_.build_ahead(folders);
    std::vector<std::jthread> slots;
    for (size_t i = 0; i < referees->size(); ++i)
      slots.emplace_back([this, i, referee = (*referees)[i]] {
        while (auto x = ready_.pop(i)) judge_one(*referee, *x);
      });
    {
      std::vector<std::jthread> building;
      for (size_t i = 0; i < compilers; ++i)
        building.emplace_back([&] {
          for (size_t k = next_++; k < jobs_.size(); k = next_++) build_one(toolchain, jobs_[k]);
        });
    }
    ready_.close();
    return {};
  }

private:
  void build_one(native_toolchain& toolchain, job& x) {
    double started = now_seconds();
    if (x.candidate.parsed.ok) x.built = build_candidate(toolchain, x.candidate);
    x.build_seconds = now_seconds() - started;
    ready_.push(std::move(x));
  }

  void judge_one(referee_client& referee, job& x) {
    double started = now_seconds();
    Message<wire::EvaluateResult> evaluated;
    std::optional<error> fault;
    if (auto built = x.built.open(); x.candidate.parsed.ok && built->getCompiled()) {
      auto result = evaluate_candidate(referee, options_, x.candidate, *built);
      if (result)
        evaluated = *result;
      else
        fault = result.error();
    }
    auto facts = facts_of(x.candidate, x.built, evaluated, fault);
    auto opened = facts.open();
    auto verdict = judge(*opened, rules_);
    auto document = verdict_json(*opened, *verdict.open());
    ordered_json line{{"schema_version", cli::document_version}, {"name", x.name}};
    line["cached"] = x.built.open()->getCached();
    line["build_s"] = x.build_seconds;
    line["slot_s"] = now_seconds() - started;
    line["device"] = evaluated.open()->getDevice().cStr();
    line.update(document);
    std::lock_guard lock{printing_};
    cli::print_now(line.dump() + "\n");
    ++judged_;
    tell_progress();
    answers_.keep(x.place, *x.candidate.what, std::move(line), *x.built.open());
  }

  void tell_progress() const {
    if (judged_ < jobs_.size())
      cli::show_activity(fmt::format("judging: {} of {} done", judged_, jobs_.size()));
  }

  workbench& bench_;
  judging_options options_;
  governance_config rules_;
  std::vector<job> jobs_;
  suite_batch& answers_;
  job_queue ready_;
  std::atomic<size_t> next_ = 0;
  std::mutex printing_;
  size_t judged_ = 0; ///< guarded by printing_
};

expected<int> judge_batch(const invocation& in) {
  if (in.has("--on")) return on_host(in, judge_batch_row());
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto backend = choose_backend(in.value("--backend"));
  KM_TRY(backend);
  auto rules = governance_rules(in.value("--preset"));
  KM_TRY(rules);
  auto answers = suite_batch::read(in, *roots);
  KM_TRY(answers);
  auto choice = torch_choice_of(in);
  baseline_finder baselines{{choice.baseline, choice.best_kernels, in.value("--python"), {}},
                            *backend};
  job_maker make{in, *roots, *backend, baselines};
  auto jobs = answers->is_given() ? jobs_of(*answers, make) : read_batch(in.value("BATCH"), make);
  KM_TRY(jobs);
  if (std::any_of(jobs->begin(), jobs->end(), [](const job& x) {
        return x.candidate.what->contract == contract_kind::torch;
      })) {
    auto python = find_python(in.value("--python"));
    KM_TRY(python);
    backend->python = python->path;
  }
  auto bench = workbench::open(std::move(*backend));
  KM_TRY(bench);
  bench->keep_warm(gpu_pool);
  batch all{*bench,
            {!in.has("--no-timing"), {}, {}, in.value("--clock")},
            std::move(*rules),
            std::move(*jobs),
            *answers};
  auto done = all.run(bench->compilers());
  KM_TRY(done);
  KM_TRY(answers->write());
  return cli::exit_ok;
}

} // namespace

cli::command judge_batch_row() {
  return {"judge",
          "Builds, runs and judges many kernels, on all cores and GPUs.",
          "kernelmill judge candidates.ndjson > verdicts.ndjson\n"
          "kernelmill judge solutions.jsonl --suite compute-eval --graded graded.jsonl",
          "Each line of BATCH is {\"task\": \"native/row_sum\", \"file\": \"kernel.cu\"}, with an "
          "optional \"name\". File names are\n"
          "relative to BATCH. Each line of the output is a verdict, as `eval --json` prints it. "
          "Verdicts are printed as\n"
          "soon as they are ready. With --suite BATCH is what that suite's own harness reads.",
          {{"BATCH", "File of candidates, one per line.", true, false, completes::file, {}}},
          with_torch_options(with_suite_options(
              {{"--backend",
                "NAME",
                "Where they run.",
                "auto",
                false,
                {"auto", "cpu", "cuda", "hip"},
                nothing},
               {"--preset", "NAME", "Reward preset.", "kevin", false, reward_presets(), nothing},
               clock_option(),
               flag("--no-timing", "Checks correctness and skips timing."),
               tasks_root(),
               on_option()})),
          judge_batch};
}

} // namespace kernelmill::commands
