#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "gpu/task/task.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/store/export_folders.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/config/paths.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "storage/export/gates.hpp"
#include "storage/export/harbor_files.hpp"
#include "storage/files.hpp"

namespace kernelmill::commands {

namespace {

namespace fs = std::filesystem;
using harbor_json = nlohmann::ordered_json;

/// Copies a task's folder, hidden files and all below it.
expected<void> copy_task(const std::string& from, const std::string& to) {
  std::error_code code;
  for (fs::recursive_directory_iterator i{from, code}, end; !code && i != end; i.increment(code)) {
    auto target = to + "/" + fs::relative(i->path(), from, code).string();
    if (i->is_directory(code)) continue;
    KM_TRY(make_directories(fs::path{target}.parent_path().string()));
    auto bytes = read_file(i->path().string());
    KM_TRY(bytes);
    KM_TRY(write_file(target, *bytes));
  }
  if (code) return tl::unexpected<error>{file_error(code.value(), "read", from)};
  return {};
}

/// The tasks of a run, each with the words that its episodes began with; one of which no group may
/// leave is among `forbidden`.
expected<void> collect(const exported_run& run, const exports::licence_gate& gate,
                       const exports::permits& may, std::map<std::string, exports::harbor_task>& to,
                       exports::refusals& forbidden) {
  return for_each_group(run.lineage, run.where.name,
                        [&](const stored_group& group) -> expected<void> {
                          auto admitted = gate.admit(may, group);
                          if (!admitted) {
                            exports::note(forbidden, admitted.error());
                            return {};
                          }
                          auto task = exports::harbor_task_of(*admitted, run.artifacts);
                          KM_TRY(task);
                          if (*task) to.emplace((*task)->id, std::move(**task));
                          return {};
                        });
}

expected<task_roots> roots_of(const exported_run& run) {
  auto config = read_json(run.where.config_file());
  KM_TRY(config);
  auto root = config->value(harbor_json::json_pointer{"/tasks/root"}, std::string{});
  return root.empty() ? default_tasks_roots() : task_roots{root};
}

expected<void> write_task(exports::harbor_task& x, const exported_run& run, const task_roots& roots,
                          const std::string& directory) {
  auto loaded = load_task(roots, x.id);
  KM_TRY(loaded);
  auto manifest = read_json(run.where.manifest_file());
  KM_TRY(manifest);
  for (const auto& known : manifest->value("tasks", harbor_json::array()))
    if (known.value("id", std::string{}) == x.id) x.digest = known.value("digest", std::string{});
  if (!x.digest.empty() && x.digest != (*loaded)->digest)
    return configuration_error(
        "task_changed", "failed to export " + x.id + ": its files have changed since the run",
        "restore them, or export from a newer run");
  for (const auto& file : exports::harbor_files(x, run.where.name, build_id())) {
    auto path = directory + "/" + file.path;
    KM_TRY(make_directories(fs::path{path}.parent_path().string()));
    KM_TRY(write_file(path, file.text));
    std::error_code ignored;
    if (file.program) fs::permissions(path, fs::perms{0755}, ignored);
  }
  return copy_task((*loaded)->directory, directory + "/tests/tasks/" + x.id);
}

} // namespace

expected<int> export_harbor_tasks(const cli::invocation& in, const exported_runs& runs) {
  auto gate = exports::gate_of(runs.sources);
  KM_TRY(gate.check());
  KM_TRY(prepare_folder(in));
  std::vector<std::string> written;
  exports::refusals forbidden;
  for (size_t i = 0; i < runs.opened.size(); ++i) {
    const auto& run = runs.opened[i];
    std::map<std::string, exports::harbor_task> tasks;
    KM_TRY(collect(run, gate, runs.sources[i].may, tasks, forbidden));
    auto roots = roots_of(run);
    KM_TRY(roots);
    for (auto& [id, x] : tasks) {
      auto name = id;
      std::replace(name.begin(), name.end(), '/', '_');
      if (std::find(written.begin(), written.end(), name) != written.end()) continue;
      auto directory = in.value("--out") + "/" + name;
      KM_TRY(make_directories(directory));
      KM_TRY(write_task(x, run, *roots, directory));
      written.push_back(name);
    }
  }
  KM_TRY(exports::check_any_left(forbidden, !written.empty()));
  say_refusals(forbidden);
  if (in.json)
    cli::print_json({{"form", "harbor-tasks"},
                     {"directory", in.value("--out")},
                     {"tasks", written},
                     {"refused", refusals_json(forbidden)}});
  else
    cli::print(fmt::format("wrote {}: {}\n", in.value("--out"), counted(written.size(), "task")));
  return 0;
}

} // namespace kernelmill::commands
