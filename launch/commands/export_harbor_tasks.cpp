#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gpu/task/task.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/export_folders.hpp"
#include "launch/config/paths.hpp"
#include "storage/export/gates.hpp"
#include "storage/files.hpp"

namespace kernelmill::commands {

namespace {

namespace fs = std::filesystem;
using harbor_json = nlohmann::ordered_json;

struct harbor_task {
  std::string id, digest, instruction, contract, backend;
};

/// The folder in which Harbor and the agent look for the answer.
std::string answer_file(const harbor_task& x) {
  if (x.contract == "torch") return "/app/candidate.py";
  return x.backend == "cpu" ? "/app/kernel.cpp" : "/app/kernel.cu";
}

std::string quoted_toml(const std::string& text) {
  return harbor_json(text).dump(); // a TOML basic string has the escapes of JSON
}

std::string task_toml(const harbor_task& x, const std::string& run) {
  return fmt::format("version = \"1.0\"\n\n[metadata]\nkernelmill_task = {}\ntask_digest = {}\n"
                     "run = {}\nmade_by = {}\n\n[agent]\ntimeout_sec = 1800.0\n\n[verifier]\n"
                     "timeout_sec = 900.0\n\n[environment]\nbuild_timeout_sec = 1200.0\n{}",
                     quoted_toml(x.id), quoted_toml(x.digest), quoted_toml(run),
                     quoted_toml("kernelmill " + build_id()),
                     x.backend == "cpu" ? "" : "gpus = 1\n");
}

std::string instruction_of(const harbor_task& x) {
  return x.instruction + (x.instruction.ends_with('\n') ? "" : "\n") +
         fmt::format("\nWrite the code to `{}`, without tags around it. It is judged by what is in "
                     "that file when you stop.\n",
                     answer_file(x));
}

std::string dockerfile() {
  return "# KERNELMILL_IMAGE has `kernelmill` and a compiler: launch/compose/Containerfile makes "
         "one.\n"
         "ARG KERNELMILL_IMAGE=kernelmill:latest\n"
         "FROM ${KERNELMILL_IMAGE}\n"
         "WORKDIR /app\n";
}

// The task's files come with the tests, so that the agent sees no hidden case.
std::string test_sh(const harbor_task& x) {
  return fmt::format(
      "#!/bin/sh\n"
      "# Judges the answer and writes its reward; a fault of the machine writes none and ends with "
      "1.\n"
      "set -u\n"
      "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
      "logs=${{HARBOR_LOGS:-/logs/verifier}}\n"
      "answer=${{HARBOR_ANSWER:-{}}}\n"
      "mkdir -p \"$logs\"\n"
      "if [ ! -f \"$answer\" ]; then\n"
      "  echo 0 > \"$logs/reward.txt\"\n"
      "  exit 0\n"
      "fi\n"
      "kernelmill eval --task {} --root \"$here/tasks\" --backend {} --json \"$answer\" > "
      "\"$logs/verdict.json\"\n"
      "code=$?\n"
      "reward=$(sed -n 's/^ *\"reward\": *\\([-0-9.eE+]*\\),*$/\\1/p' \"$logs/verdict.json\" | "
      "head -n 1)\n"
      "if [ -z \"$reward\" ]; then\n"
      "  echo \"no verdict (exit code $code)\" >&2\n"
      "  exit 1\n"
      "fi\n"
      "echo \"$reward\" > \"$logs/reward.txt\"\n",
      answer_file(x), x.id, x.backend);
}

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

/// The tasks of a run, each with the words that its episodes began with.
expected<void> collect(const exported_run& run, std::map<std::string, harbor_task>& to) {
  return for_each_group(
      run.lineage, run.where.name, [&](const stored_group& group) -> expected<void> {
        for (const auto& episode : group.episodes) {
          if (episode.turns.empty()) continue;
          auto opened = episode.turns.front().open();
          auto turn = opened->getTurn();
          std::string id = turn.getEpisode().getTask();
          if (turn.getTurn() != 0 || to.contains(id)) continue;
          harbor_task x{id, {}, {}, turn.getFacts().getContract(), turn.getFacts().getBackend()};
          for (auto part : turn.getPrompt()) {
            if (part.getRole() != "user") continue;
            auto words = run.artifacts.text(part.getContent());
            KM_TRY(words);
            x.instruction += *words;
          }
          to.emplace(id, std::move(x));
        }
        return {};
      });
}

expected<task_roots> roots_of(const exported_run& run) {
  auto config = read_json(run.where.config_file());
  KM_TRY(config);
  auto root = config->value(harbor_json::json_pointer{"/tasks/root"}, std::string{});
  return root.empty() ? default_tasks_roots() : task_roots{root};
}

expected<void> write_task(harbor_task& x, const exported_run& run, const task_roots& roots,
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
  KM_TRY(write_file(directory + "/task.toml", task_toml(x, run.where.name)));
  KM_TRY(write_file(directory + "/instruction.md", instruction_of(x)));
  KM_TRY(make_directories(directory + "/environment"));
  KM_TRY(write_file(directory + "/environment/Dockerfile", dockerfile()));
  KM_TRY(make_directories(directory + "/tests"));
  KM_TRY(write_file(directory + "/tests/test.sh", test_sh(x)));
  std::error_code ignored;
  fs::permissions(directory + "/tests/test.sh", fs::perms{0755}, ignored);
  return copy_task((*loaded)->directory, directory + "/tests/tasks/" + x.id);
}

} // namespace

expected<int> export_harbor_tasks(const cli::invocation& in, const exported_runs& runs) {
  exports::licence_gate gate{runs.sources};
  KM_TRY(gate.check(runs.sources));
  KM_TRY(prepare_folder(in));
  std::vector<std::string> written, forbidden;
  for (size_t i = 0; i < runs.opened.size(); ++i) {
    const auto& run = runs.opened[i];
    std::map<std::string, harbor_task> tasks;
    KM_TRY(collect(run, tasks));
    auto roots = roots_of(run);
    KM_TRY(roots);
    for (auto& [id, x] : tasks) {
      if (!gate.of_task(runs.sources[i], id).allowed) {
        forbidden.push_back(id);
        continue;
      }
      auto name = id;
      std::replace(name.begin(), name.end(), '/', '_');
      if (std::find(written.begin(), written.end(), name) != written.end()) continue;
      auto directory = in.value("--out") + "/" + name;
      KM_TRY(make_directories(directory));
      KM_TRY(write_task(x, run, *roots, directory));
      written.push_back(name);
    }
  }
  if (in.json)
    cli::print_json({{"form", "harbor-tasks"},
                     {"directory", in.value("--out")},
                     {"tasks", written},
                     {"forbidden_by_licence", forbidden}});
  else
    cli::print(fmt::format("wrote {}: {} tasks\n", in.value("--out"), written.size()));
  if (!in.json && !forbidden.empty())
    cli::print(fmt::format("left out: {} tasks that their licences forbid to pass on\n",
                           forbidden.size()));
  return 0;
}

} // namespace kernelmill::commands
