// `kernelmill import`: what other systems recorded, as runs that say so.

#include <filesystem>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/import/gpu_rl.hpp"
#include "launch/import/kernel_rl.hpp"
#include "launch/node/run_rights.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

std::string name_of_source(const std::string& path) {
  auto x = std::filesystem::path{path}.lexically_normal();
  return x.has_filename() ? x.filename().string() : x.parent_path().filename().string();
}

/// A file's own statement of its licence is not trusted: the user who imports it names the source.
expected<std::string> named_source(const invocation& in) {
  if (!in.has("--source")) return std::string{};
  auto licences = installed_licences();
  KM_TRY(licences);
  const auto& name = in.value("--source");
  if (licences->find(name)) return name;
  std::vector<std::string> known;
  for (const auto& x : licences->all()) known.push_back(x.source);
  return configuration_error("usage",
                             "failed to run 'import': no file of licences describes the source '" +
                                 cli::clean(name) + "'",
                             fmt::format("there are: {}", fmt::join(known, ", ")));
}

expected<int> write_imported(const invocation& in, const char* system, const std::string& sha256,
                             const std::vector<foreign_group>& groups,
                             nlohmann::ordered_json settings = {}) {
  const auto& out = in.value("--out");
  auto source = named_source(in);
  KM_TRY(source);
  auto licence = source->empty() ? std::string{"unknown"} : *source;
  auto counts = write_foreign_run(
      out,
      {system, name_of_source(in.value("PATH")), sha256, std::move(*source), std::move(settings)},
      groups);
  KM_TRY(counts);
  if (in.json)
    cli::print_json({{"schema_version", 1},
                     {"directory", out},
                     {"system", system},
                     {"groups", counts->groups},
                     {"episodes", counts->episodes},
                     {"turns", counts->turns},
                     {"accepted", counts->accepted},
                     {"measured_here", false},
                     {"licence", licence}});
  else
    cli::print(fmt::format("imported {} of {}, {} accepted by {}: {}\nrewards and "
                           "speedups are what {} said; nothing was measured here; licence: {}\n",
                           counted(counts->turns, "turn"), counted(counts->episodes, "episode"),
                           counts->accepted, system, out, system, licence));
  return cli::exit_ok;
}

expected<int> import_gpu_rl(const invocation& in) {
  auto read = read_gpu_rl_bundles(in.value("PATH"));
  KM_TRY(read);
  return write_imported(in, "gpu_rl", read->sha256, read->groups);
}

expected<int> import_kernel_rl(const invocation& in) {
  auto read = read_kernel_rl_traces(in.value("PATH"));
  KM_TRY(read);
  return write_imported(in, "kernel_rl", read->sha256, read->groups, std::move(read->settings));
}

constexpr const char* imported_details =
    "The run says that it is imported: each verdict has the finding `imported`, no turn has a "
    "timing, and every\n"
    "episode is `unusable`, so exports take it only when asked with --governance unusable, and "
    "only when --source says\n"
    "where its tasks, prompts and answers are from. docs/reference/imports.md says which file and "
    "key "
    "becomes what.";

cli::option_spec source_option() {
  return {"--source",
          "NAME",
          "Source of all of it, of docs/reference/licences.md; `own` is your own work.",
          "",
          false,
          {},
          completes::nothing};
}

cli::option_spec run_out() {
  return {"--out",
          "DIR",
          "A new run's directory, such as runs/old.",
          "",
          true,
          {},
          completes::directory};
}

} // namespace

cli::command import_gpu_rl_row() {
  return without_tables({"import gpu-rl-bundle",
                         "Imports run bundles of gpu_rl as a run.",
                         "kernelmill import gpu-rl-bundle runs/run_20260511 --out runs/old\n"
                         "kernelmill import gpu-rl-bundle first.tar.zst --out runs/copy",
                         imported_details,
                         {{"PATH",
                           "A bundle's folder, a folder of them, or a bundle of ours (.tar.zst).",
                           true,
                           false,
                           completes::file,
                           {}}},
                         {run_out(), source_option()},
                         import_gpu_rl});
}

cli::command import_kernel_rl_row() {
  return without_tables({"import kernel-rl-traces",
                         "Imports traces of kernel_rl as a run.",
                         "kernelmill import kernel-rl-traces traces.jsonl --out runs/old",
                         imported_details,
                         {{"PATH", "A traces.jsonl.", true, false, completes::file, {}}},
                         {run_out(), source_option()},
                         import_kernel_rl});
}

} // namespace kernelmill::commands
