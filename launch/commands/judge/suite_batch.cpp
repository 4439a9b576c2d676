#include "launch/commands/judge/suite_batch.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/options.hpp"
#include "storage/files.hpp"

namespace kernelmill::commands {

expected<suite_batch> suite_batch::read(const invocation& in, const task_roots& roots) {
  suite_batch result;
  if (!in.has("--suite")) {
    for (const char* option : {"--graded", "--release"})
      if (in.has(option))
        return configuration_error("usage", std::string{option} + " needs --suite",
                                   "name the suite whose answers BATCH holds");
    return result;
  }
  result.suite_ = find_suite_solutions(in.value("--suite"));
  if (result.suite_ == nullptr)
    return configuration_error("usage", "there is no suite " + in.value("--suite"),
                               "`kernelmill judge --help` names the suites");
  result.path_ = in.value("BATCH");
  auto answers = result.suite_->read(result.path_, {roots, in.value("--release")});
  KM_TRY(answers);
  result.answers_ = std::move(*answers);
  result.kept_.resize(result.answers_.size());
  if (in.has("--graded"))
    result.results_ = in.value("--graded");
  else if (result.suite_->results_file != nullptr)
    result.results_ = (std::filesystem::path{result.path_} / result.suite_->results_file).string();
  size_t refused = 0;
  for (size_t i = 0; i < result.answers_.size(); ++i) {
    const auto& x = result.answers_[i];
    if (x.refused.empty()) continue;
    ++refused;
    cli::talk(cli::clean("refused " + x.name + ": " + x.refused));
    auto what = load_task(roots, x.task);
    KM_TRY(what);
    result.kept_[i].folder = (*what)->directory;
  }
  if (refused > 0)
    cli::talk(fmt::format("{} of {} answers were refused", refused, result.answers_.size()));
  return result;
}

void suite_batch::pass_over(size_t place, const task& what, const std::string& why) {
  auto& x = answers_[place];
  cli::talk(cli::clean("passed over " + x.name + ": " + why));
  x.refused = why;
  kept_[place].folder = what.directory;
}

void suite_batch::keep(size_t place, const task& what, nlohmann::ordered_json verdict,
                       wire::BuildResult::Reader built) {
  if (results_.empty()) return;
  auto log = built.getLog();
  kept_[place] = {what.directory, std::move(verdict), cli::clean({log.cStr(), log.size()}), true};
}

expected<void> suite_batch::write() const {
  if (results_.empty()) return {};
  std::vector<graded_candidate> graded;
  for (size_t i = 0; i < answers_.size(); ++i)
    graded.push_back({&answers_[i], kept_[i].folder, kept_[i].judged ? &kept_[i].verdict : nullptr,
                      kept_[i].build_log});
  auto text = suite_->results(path_, graded);
  KM_TRY(text);
  return write_file(results_, *text);
}

std::vector<cli::option_spec> with_suite_options(std::vector<cli::option_spec> options) {
  std::vector<std::string> names;
  std::string reads;
  for (const auto& row : all_suite_solutions()) {
    names.emplace_back(row.name);
    reads += fmt::format("{}{}: {}", reads.empty() ? "" : "; ", row.name, row.reads);
  }
  options.push_back({"--suite", "NAME", "Reads BATCH as a suite's own answers. " + reads + ".", "",
                     false, names, nothing});
  options.push_back({"--release",
                     "NAME",
                     "With --suite compute-eval: the release that the answers are for. Default: "
                     "BATCH's own, else the newest one that is imported.",
                     "",
                     false,
                     {},
                     nothing});
  options.push_back({"--graded",
                     "FILE",
                     "With --suite: writes the verdicts in the form of that suite's own results.",
                     "",
                     false,
                     {},
                     completes::file});
  return options;
}

} // namespace kernelmill::commands
