#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/store/export_folders.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "messages/base/json_value.hpp"
#include "storage/export/gates.hpp"
#include "storage/export/sol_files.hpp"
#include "storage/files.hpp"

namespace kernelmill::commands {

namespace {

using sol_document = nlohmann::ordered_json;

/// Writes as it reads; a file of traces is open a definition.
class sol_folder {
public:
  explicit sol_folder(std::string directory) : directory_(std::move(directory)) {}

  expected<void> take(const exports::sol_turn& x) {
    auto file = traces_.find(x.definition);
    if (file == traces_.end()) {
      KM_TRY(make_directories(directory_ + "/solutions/" + x.definition));
      auto made =
          exports::row_file::create(directory_ + "/traces/" + x.definition + ".jsonl", false);
      KM_TRY(made);
      file = traces_.emplace(x.definition, std::move(*made)).first;
    }
    KM_TRY(file->second.append(x.trace));
    ++counts_[x.definition];
    return write_json(directory_ + "/solutions/" + x.definition + "/" + x.name + ".json",
                      x.solution);
  }

  /// The number of traces, by definition.
  expected<std::map<std::string, uint64_t>> finish() {
    for (auto& [definition, file] : traces_) KM_TRY(file.finish());
    return counts_;
  }

private:
  std::string directory_;
  std::map<std::string, exports::row_file> traces_;
  std::map<std::string, uint64_t> counts_;
};

} // namespace

expected<void> prepare_folder(const cli::invocation& in) {
  const auto& directory = in.value("--out");
  if (directory == "-")
    return configuration_error(
        "usage", "failed to run 'export': the form " + in.value("--form") + " is a folder of files",
        "give a folder: --out DIR");
  std::error_code code;
  if (std::filesystem::exists(directory, code) && !std::filesystem::is_empty(directory, code) &&
      !in.has("--force"))
    return configuration_error("directory_not_empty",
                               "failed to export to " + directory + ": there is something already",
                               "name another folder, or add --force to replace its files");
  return make_directories(directory);
}

expected<int> export_sol(const cli::invocation& in, const exported_runs& runs) {
  auto gate = exports::gate_of(runs.sources);
  KM_TRY(gate.check());
  KM_TRY(prepare_folder(in));
  const auto& directory = in.value("--out");
  KM_TRY(make_directories(directory + "/traces"));
  sol_folder to{directory};
  exports::left_out without;
  exports::refusals refused;
  bool any_left = false;
  sol_document facts = sol_document::array();
  for (size_t i = 0; i < runs.opened.size(); ++i) {
    const auto& run = runs.opened[i];
    auto about = runs.sources[i].facts;
    about["run"] = run.where.name;
    facts.push_back(std::move(about));
    KM_TRY(for_each_group(
        run.lineage, run.where.name, [&](const stored_group& group) -> expected<void> {
          auto admitted = gate.admit(runs.sources[i].may, group);
          if (!admitted) {
            ++without[admitted.error().counted];
            exports::note(refused, admitted.error());
            return {};
          }
          any_left = true;
          return exports::sol_turns(*admitted, run.artifacts, build_id(), without,
                                    [&](const exports::sol_turn& x) { return to.take(x); });
        }));
  }
  auto traces = to.finish();
  KM_TRY(traces);
  KM_TRY(exports::check_any_left(refused, any_left));
  uint64_t solutions = 0;
  for (const auto& [definition, count] : *traces) solutions += count;
  auto kept_out = refusals_json(refused);
  KM_TRY(write_json(directory + "/PROVENANCE.json", {{"schema_version", 1},
                                                     {"form", "sol"},
                                                     {"made_by", made_by()},
                                                     {"solutions", solutions},
                                                     {"traces", *traces},
                                                     {"left_out", without},
                                                     {"refused", kept_out},
                                                     {"runs", std::move(facts)}}));
  say_refusals(refused);
  if (in.json) {
    cli::print_json({{"form", "sol"},
                     {"directory", directory},
                     {"solutions", solutions},
                     {"traces", *traces},
                     {"left_out", without},
                     {"refused", std::move(kept_out)}});
    return 0;
  }
  auto said = fmt::format("wrote {}: {} solutions and as many traces\n", directory, solutions);
  for (const auto& [reason, count] : without)
    said += fmt::format("left out: {} {}\n", count, reason);
  cli::print(said);
  if (solutions == 0)
    return configuration_error("export_empty", "failed to export: no turn gives a solution",
                               "`kernelmill query 'accepted' RUN` lists the accepted turns");
  return 0;
}

} // namespace kernelmill::commands
