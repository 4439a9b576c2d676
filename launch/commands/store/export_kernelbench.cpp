#include "launch/commands/store/export_kernelbench.hpp"

#include <fmt/format.h>

#include "launch/analysis/report/kernelbench_folder.hpp"
#include "launch/analysis/report/run_samples.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/store/export_folders.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace rp = reporting;

tl::unexpected<error> bad_option(std::string message, std::string hint) {
  return configuration_error("usage", "failed to run 'export': " + std::move(message),
                             std::move(hint));
}

/// Rows on stdout: one level, since the form has no place for its number.
expected<int> print_results(const rp::sample_set& set) {
  std::optional<uint32_t> level;
  for (const auto& x : set.samples) {
    auto at = rp::place_of(x.task);
    if (!at.level || !at.problem) continue;
    if (level && *level != *at.level)
      return bad_option("the run has several levels, and an eval_results.json holds one",
                        "give a folder: --out DIR");
    level = *at.level;
  }
  if (!level)
    return configuration_error("not_found",
                               "failed to export: the run has no problem of KernelBench",
                               "its tasks have ids such as kernelbench/level1/19_ReLU");
  cli::print(rp::eval_results(set.samples, *level).dump(2) + "\n");
  return 0;
}

json document_of(const rp::kernelbench_folder& x, const rp::sample_set& set) {
  auto files = json::array();
  for (const auto& f : x.files)
    files.push_back({{"level", f.level}, {"path", f.file}, {"samples", f.samples}});
  return {{"form", "kernelbench"},
          {"files", std::move(files)},
          {"baseline", x.baseline},
          {"left_out",
           {{"infrastructure_or_open", set.without.size()}, {"of_other_tasks", x.passed_over}}},
          {"untimed", x.untimed}};
}

} // namespace

expected<int> export_kernelbench(const cli::invocation& in, const exported_runs& runs) {
  if (runs.opened.size() != 1)
    return bad_option("the form kernelbench takes one run",
                      "export each run to a folder of its own");
  // A report is of a whole run, and holds no text: it is passed on, not trained on.
  KM_TRY(exports::check_all(runs.sources.front().may, "failed to export"));
  const auto& run = runs.opened.front();
  auto by = in.value("--by") == "turn" ? rp::sample_unit::turn : rp::sample_unit::episode;
  auto set = rp::read_samples(run.lineage, run.where, by);
  KM_TRY(set);
  const auto& directory = in.value("--out");
  if (directory == "-") return print_results(*set);
  KM_TRY(prepare_folder(in));
  auto written = rp::write_kernelbench_folder(set->samples, directory);
  KM_TRY(written);
  if (in.json) {
    cli::print_json(document_of(*written, *set));
    return 0;
  }
  std::string said;
  for (const auto& f : written->files)
    said += fmt::format("wrote {}: {} samples of level {}\n", f.file, f.samples, f.level);
  said += fmt::format("wrote {}\n", written->baseline);
  for (const auto& task : written->untimed)
    said += fmt::format("no time: {} is right and could not be timed; KernelBench's analysis takes "
                        "it for slow\n",
                        task);
  cli::print(said);
  return 0;
}

} // namespace kernelmill::commands
