// `kernelmill report`: the benchmark's figures of a run, or of a file of the benchmark's own form.

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "launch/analysis/report/eval_results.hpp"
#include "launch/analysis/report/report.hpp"
#include "launch/analysis/report/run_samples.hpp"
#include "launch/analysis/searching/story_text.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/view/number_lists.hpp"
#include "launch/commands/view/remote_run.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace rp = reporting;

constexpr uint32_t most_levels = 9; ///< that {level} of --from is tried with; the benchmark has 4

tl::unexpected<error> report_usage(std::string message, std::string hint) {
  return configuration_error("usage", "failed to run 'report': " + std::move(message),
                             std::move(hint));
}

/// What is reported on, and where it comes from.
struct source {
  rp::sample_set samples;
  json head; ///< of the document
  std::string title;
  std::vector<std::string> alarms{}; ///< of a run that has finished
  std::string search{};              ///< of a run that is one, what it has tried
};

// -- a run --------------------------------------------------------------------------------------

/// The run, and where its folder is.
struct found_run {
  run_directory run;
  std::string directory;
  std::unique_ptr<remote_run> remote; ///< null: its folder is here
};

expected<found_run> find_reported(const invocation& in) {
  if (!asks_head(in)) {
    auto run = find_run(in.value("RUN"), in.value("--root"));
    KM_TRY(run);
    auto directory = run->path;
    return found_run{std::move(*run), std::move(directory), nullptr};
  }
  auto remote = remote_run::fetch(in, in.value("RUN"), false);
  KM_TRY(remote);
  return found_run{(*remote)->where().run, (*remote)->directory(), std::move(*remote)};
}

// What its end said of lost turns.
expected<std::vector<std::string>> alarms_of(const store& from, const std::string& run) {
  std::vector<std::string> result;
  auto read = [&](wire::Record::Reader record) {
    auto said = json::parse(record.getRun().getReadiness().cStr(), nullptr, false);
    if (said.is_object()) result = said.value("alarms", std::vector<std::string>{});
    return true;
  };
  KM_TRY(from.scan_openings(run, read));
  return result;
}

/// Adds what a search has tried and used up so far.
expected<void> add_search(source& to, const run_directory& run, const store& from) {
  auto config = read_json(run.config_file());
  if (!config || !config->is_object()) return {}; // of another system, or in part
  auto strategy = config->value(json::json_pointer{"/search/strategy"}, std::string{"off"});
  if (strategy == "off") return {};
  auto story = searching::read_story(from, run.name);
  KM_TRY(story);
  to.head["search"] = {{"strategy", strategy}};
  to.head["search"].update(searching::story_json(*story));
  to.search = "\n" + searching::story_text(*story, strategy, cli::terminal_width(1));
  return {};
}

expected<source> from_run(const invocation& in) {
  auto found = find_reported(in);
  KM_TRY(found);
  const auto* run = &found->run;
  auto store = open_for_reading(*run);
  KM_TRY(store);
  bool turns = in.value("--by") == "turn";
  auto samples =
      rp::read_samples(*store, *run, turns ? rp::sample_unit::turn : rp::sample_unit::episode);
  KM_TRY(samples);
  auto alarms = alarms_of(*store, run->name);
  KM_TRY(alarms);
  source result{std::move(*samples),
                {{"run", run->name},
                 {"directory", found->directory},
                 {"by", in.value("--by")},
                 {"alarms", *alarms}},
                fmt::format("run {} in {}, a sample is {}", run->name, found->directory,
                            turns ? "a turn" : "an episode"),
                std::move(*alarms)};
  KM_TRY(add_search(result, *run, *store));
  return result;
}

// -- files of the benchmark ---------------------------------------------------------------------

/// The files that a name with {level} means, with their levels; else the one file.
expected<std::vector<rp::eval_results_source>> files_of(const invocation& in) {
  const std::string word = "{level}";
  const auto& name = in.value("--from");
  std::vector<rp::eval_results_source> result;
  if (name.find(word) == std::string::npos) {
    std::optional<uint32_t> level;
    if (in.has("--level")) {
      auto number = in.integer("--level", 0, 1000);
      KM_TRY(number);
      level = static_cast<uint32_t>(*number);
    }
    return std::vector<rp::eval_results_source>{{name, level, nullptr}};
  }
  if (in.has("--level"))
    return report_usage("--from with {level} needs no --level", "leave one of them");
  for (uint32_t level = 1; level <= most_levels; ++level) {
    auto file = name;
    for (size_t at; (at = file.find(word)) != std::string::npos;)
      file.replace(at, word.size(), std::to_string(level));
    std::error_code code;
    if (std::filesystem::exists(file, code)) result.push_back({file, level, nullptr});
  }
  if (result.empty())
    return configuration_error("not_found",
                               fmt::format("failed to read {}: there is no such file for levels 1 "
                                           "to {}",
                                           name, most_levels),
                               "check the path");
  return result;
}

expected<source> from_files(const invocation& in) {
  auto files = files_of(in);
  KM_TRY(files);
  rp::baseline_times baseline;
  if (in.has("--baseline")) {
    auto read = rp::read_baseline_times(in.value("--baseline"));
    KM_TRY(read);
    baseline = std::move(*read);
  }
  source result;
  result.samples.knows_left_out = false;
  result.head["files"] = json::array();
  for (auto& file : *files) {
    if (in.has("--baseline")) file.baseline = &baseline;
    auto read = rp::read_eval_results(file);
    KM_TRY(read);
    auto& to = result.samples.samples;
    to.insert(to.end(), std::make_move_iterator(read->samples.begin()),
              std::make_move_iterator(read->samples.end()));
    result.head["files"].push_back(file.file);
    result.title += (result.title.empty() ? "" : ", ") + file.file;
  }
  result.head["baseline"] = in.has("--baseline") ? json(in.value("--baseline")) : json(nullptr);
  return result;
}

// -- both ---------------------------------------------------------------------------------------

expected<void> check_sources(const invocation& in) {
  if (in.has("RUN") == in.has("--from"))
    return report_usage(in.has("RUN") ? "there are both a run and --from"
                                      : "there is nothing to report on",
                        "name a run, or a file: kernelmill report --from eval_results.json");
  if (in.has("--from") && in.has("--head"))
    return report_usage("--head belongs to a run", "leave --head out: files are read here");
  if (in.has("RUN"))
    for (const auto* name : {"--baseline", "--level"})
      if (in.has(name))
        return report_usage(std::string{name} + " belongs to --from: a run knows the times of its "
                                                "baselines and its levels",
                            std::string{"leave "} + name +
                                " out, or write the run with --eval-results "
                                "and read that with --from");
  if (in.has("--from") && in.has("--eval-results"))
    return report_usage("--eval-results belongs to a run: what a file says besides would be lost",
                        "leave --eval-results out, or copy the file");
  if (in.has("--from") && in.value("--by") == "turn")
    return report_usage("--by turn belongs to a run: the samples of a file are what they are",
                        "leave --by out");
  if (in.has("--from") && in.value("--group-by") != "level")
    return report_usage("--group-by " + in.value("--group-by") +
                            " belongs to a run: a file says no verb and no family",
                        "leave --group-by out");
  return {};
}

rp::grouping grouping_of(const invocation& in) {
  const auto& word = in.value("--group-by");
  return word == "verb"     ? rp::grouping::verb
         : word == "family" ? rp::grouping::family
                            : rp::grouping::level;
}

/// What the tables do not say by themselves.
std::string notes(const rp::report& x) {
  std::string result =
      "fast_p: correct and faster than p times the baseline, as a share of all samples.\n"
      "Speedups count by their estimate; FAST_1 LOW counts by the lower bound of the 95 % "
      "interval.\n";
  if (auto untimed = x.all.correct - x.all.timed; untimed > 0)
    result += fmt::format("without a speedup: {} correct samples, which no fast_p above 0 counts; "
                          "{} of them could not "
                          "be timed\n",
                          untimed, x.all.not_timed);
  if (!x.knows_left_out)
    return result + "INFRA and OPEN: files do not say what the infrastructure lost\n";
  if (x.all.infrastructure > 0)
    result += fmt::format("left out of every rate, as the infrastructure's fault: {}\n",
                          x.all.infrastructure);
  if (x.all.open > 0)
    result += fmt::format("left out of every rate, as not ended: {}\n", x.all.open);
  return result;
}

/// Lines that fit the terminal; the last newline is one.
std::string paragraph(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text.empty() ? text : cli::hanging("", 0, text);
}

json written_json(const rp::written_files& x) {
  json files = json::array();
  for (const auto& f : x.files)
    files.push_back({{"level", f.level}, {"file", f.file}, {"samples", f.samples}});
  return {{"files", files}, {"samples_of_other_tasks_passed_over", x.passed_over}};
}

expected<int> report(const invocation& in) {
  KM_TRY(check_sources(in));
  auto p = number_list<double>(in, "report", "--p", 0);
  KM_TRY(p);
  auto k = number_list<uint64_t>(in, "report", "--k", 1);
  KM_TRY(k);
  auto x = in.has("RUN") ? from_run(in) : from_files(in);
  KM_TRY(x);
  auto figures = rp::make_report(x->samples, {*p, *k}, grouping_of(in));
  auto document = x->head;
  document.update(rp::to_json(figures));
  std::string wrote;
  if (in.has("--eval-results")) {
    auto written = rp::write_eval_results(x->samples.samples, in.value("--eval-results"));
    KM_TRY(written);
    document["eval_results"] = written_json(*written);
    for (const auto& f : written->files)
      wrote += fmt::format("wrote {}: {} samples of level {}\n", f.file, f.samples, f.level);
    if (written->passed_over > 0)
      wrote += fmt::format("not written: {} samples of tasks that are no problems of KernelBench\n",
                           written->passed_over);
  }
  if (in.json) {
    cli::print_json(document);
    return 0;
  }
  std::string alarms;
  for (const auto& alarm : x->alarms) alarms += alarm_text(alarm);
  const auto& all = figures.all;
  if (in.has("RUN") && all.samples + all.infrastructure + all.open == 0)
    cli::print(x->title + "\n\nno turn is committed; `kernelmill show " + in.value("RUN") +
               "` says how the run ended\n");
  else
    cli::print(paragraph(x->title) + "\n" + rp::to_text(figures) + "\n" +
               paragraph(notes(figures)) + alarms + paragraph(wrote) + x->search);
  return 0;
}

} // namespace

cli::command report_row() {
  return {
      "report",
      "Reports a run in KernelBench's metrics: fast_p, pass@k and speedups, by level, verb or "
      "family.",
      "kernelmill report runs/first\n"
      "kernelmill report runs/held_out --group-by verb\n"
      "kernelmill report runs/first --eval-results eval_results_level{level}.json\n"
      "kernelmill report --from eval_results.json --baseline baseline_time_torch.json --level 1",
      "A sample is correct when it was accepted. FAST_p uses the estimated speedup; the column "
      "FAST_1 LOW uses the\n"
      "lower bound of its 95 % interval. INFRA counts samples lost to infrastructure faults; no "
      "rate includes them.\n"
      "An eval_results.json holds one level.",
      {{"RUN", "Name of a run, or its directory.", false, false, completes::run, {}}},
      with_view_options(
          {{"--by",
            "UNIT",
            "Unit of a sample: `episode` counts its best accepted turn, `turn` counts every turn.",
            "episode",
            false,
            {"episode", "turn"},
            nothing},
           {"--group-by",
            "WHAT",
            "What a row of the tables is: a `level` or suite, a `verb`, or an operator `family`.",
            "level",
            false,
            {"level", "verb", "family"},
            nothing},
           {"--p", "LIST", "Values of p for fast_p.", "0,1,2", false, {}, nothing},
           {"--k", "LIST", "Values of k for pass@k.", "1,5,10", false, {}, nothing},
           {"--eval-results",
            "FILE",
            "Writes the samples as KernelBench's eval_results.json. {level} is replaced by the "
            "level's number.",
            "",
            false,
            {},
            completes::file},
           {"--from",
            "FILE",
            "Reads an eval_results.json of KernelBench or Kernelmill instead of a run. {level} "
            "stands for each level's number.",
            "",
            false,
            {},
            completes::file},
           {"--baseline",
            "FILE",
            "With --from: KernelBench's times of the baseline, for entries without ref_runtime.",
            "",
            false,
            {},
            completes::file},
           {"--level", "N", "With --from: level of the file.", "", false, {}, nothing}}),
      report};
}

} // namespace kernelmill::commands
