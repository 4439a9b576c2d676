#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/export_folders.hpp"
#include "storage/export/gates.hpp"
#include "storage/export/sol_files.hpp"
#include "storage/files.hpp"

namespace kernelmill::commands {

namespace {

using sol_document = nlohmann::ordered_json;

struct sol_counts {
  std::map<std::string, uint64_t> traces; ///< by definition
  std::map<std::string, uint64_t> left_out;
  uint64_t solutions = 0;
};

/// Writes as it reads; a file of traces is open a definition.
class sol_folder {
public:
  explicit sol_folder(std::string directory) : directory_(std::move(directory)) {}

  expected<void> take(wire::TurnRecord::Reader turn, const artifact_store& artifacts,
                      const exports::permit& may) {
    if (!may.allowed) {
      ++counts_.left_out["turns_forbidden_by_licence"];
      return {};
    }
    std::string why;
    auto trace = exports::sol_trace(turn, build_id(), why);
    if (!trace) {
      ++counts_.left_out[why];
      return {};
    }
    auto code = artifacts.candidate(turn);
    KM_TRY(code);
    if (code->empty()) {
      ++counts_.left_out["turns_without_kernel"];
      return {};
    }
    auto definition = (*trace)["definition"].get<std::string>();
    auto file = traces_.find(definition);
    if (file == traces_.end()) {
      KM_TRY(make_directories(directory_ + "/solutions/" + definition));
      auto made = exports::row_file::create(directory_ + "/traces/" + definition + ".jsonl", false);
      KM_TRY(made);
      file = traces_.emplace(definition, std::move(*made)).first;
    }
    KM_TRY(file->second.append(*trace));
    ++counts_.traces[definition];
    ++counts_.solutions;
    return write_json(directory_ + "/solutions/" + definition + "/" + exports::sol_name(turn) +
                          ".json",
                      exports::sol_solution(turn, *code));
  }

  expected<sol_counts> finish() {
    for (auto& [definition, file] : traces_) KM_TRY(file.finish());
    return counts_;
  }

private:
  std::string directory_;
  std::map<std::string, exports::row_file> traces_;
  sol_counts counts_;
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
  exports::licence_gate gate{runs.sources};
  KM_TRY(gate.check(runs.sources));
  KM_TRY(prepare_folder(in));
  const auto& directory = in.value("--out");
  KM_TRY(make_directories(directory + "/traces"));
  sol_folder to{directory};
  sol_document facts = sol_document::array();
  for (size_t i = 0; i < runs.opened.size(); ++i) {
    const auto& run = runs.opened[i];
    auto about = runs.sources[i].facts;
    about["run"] = run.where.name;
    facts.push_back(std::move(about));
    KM_TRY(for_each_group(
        run.lineage, run.where.name, [&](const stored_group& group) -> expected<void> {
          for (const auto& episode : group.episodes)
            for (const auto& record : episode.turns) {
              auto opened = record.open();
              auto turn = opened->getTurn();
              KM_TRY(to.take(turn, run.artifacts,
                             gate.of_task(runs.sources[i], turn.getEpisode().getTask())));
            }
          return {};
        }));
  }
  auto counts = to.finish();
  KM_TRY(counts);
  KM_TRY(write_json(directory + "/PROVENANCE.json", {{"schema_version", 1},
                                                     {"form", "sol"},
                                                     {"made_by", made_by()},
                                                     {"solutions", counts->solutions},
                                                     {"traces", counts->traces},
                                                     {"left_out", counts->left_out},
                                                     {"runs", std::move(facts)}}));
  if (in.json) {
    cli::print_json({{"form", "sol"},
                     {"directory", directory},
                     {"solutions", counts->solutions},
                     {"traces", counts->traces},
                     {"left_out", counts->left_out}});
    return 0;
  }
  auto said =
      fmt::format("wrote {}: {} solutions and as many traces\n", directory, counts->solutions);
  for (const auto& [reason, count] : counts->left_out)
    said += fmt::format("left out: {} {}\n", count, reason);
  cli::print(said);
  return 0;
}

} // namespace kernelmill::commands
