// `kernelmill task import`: problems of other people's benchmarks, as tasks of this user.

#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/config/paths.hpp"
#include "launch/import/kernelbench.hpp"
#include "launch/import/task_writer.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

expected<std::string> source_of(const invocation& in) {
  if (in.has("PATH")) return in.value("PATH");
  const char* variable = std::getenv("KERNELBENCH_ROOT");
  if (variable != nullptr && *variable != '\0') return std::string{variable};
  return configuration_error("usage", "failed to find KernelBench: no PATH was given",
                             "give a checkout or its problems.jsonl, or set KERNELBENCH_ROOT");
}

expected<std::string> destination_of(const invocation& in) {
  auto root = in.has("--to") ? in.value("--to") : user_tasks_root();
  if (root.empty())
    return configuration_error("usage", "failed to find a folder for tasks: HOME is not set",
                               "give --to DIR");
  std::error_code code;
  return std::filesystem::absolute(root, code).lexically_normal().string();
}

std::string summary(const std::map<import_outcome, size_t>& counts, const std::string& root) {
  auto count = [&](import_outcome x) { return counts.contains(x) ? counts.at(x) : 0; };
  auto text = fmt::format("{} tasks imported, {} unchanged", count(import_outcome::imported),
                          count(import_outcome::unchanged));
  if (auto n = count(import_outcome::replaced); n > 0) text += fmt::format(", {} replaced", n);
  text += ": " + root + "\n";
  if (auto n = count(import_outcome::kept); n > 0)
    text +=
        fmt::format("{} differ from what is there and were left alone; --force replaces them\n", n);
  return text;
}

expected<int> task_import(const invocation& in) {
  auto source = source_of(in);
  KM_TRY(source);
  auto root = destination_of(in);
  KM_TRY(root);
  int64_t only = 0;
  if (in.has("--level")) {
    auto level = in.integer("--level", 1, 99);
    KM_TRY(level);
    only = *level;
  }
  auto problems = read_kernelbench(*source);
  KM_TRY(problems);
  std::erase_if(*problems, [&](const auto& x) { return only > 0 && x.level != only; });
  if (problems->empty())
    return configuration_error(
        "bad_problem",
        fmt::format("failed to import from {}: it has no problem of level {}", *source, only),
        "leave --level out to import all");
  auto writer = task_writer::open(*root);
  KM_TRY(writer);
  std::map<import_outcome, size_t> counts;
  auto tasks = nlohmann::ordered_json::array();
  for (const auto& x : *problems) {
    auto outcome =
        writer->write(x.id(), task_files_of(x, in.value("--precision")), in.has("--force"));
    KM_TRY(outcome);
    ++counts[*outcome];
    tasks.push_back({{"id", x.id()}, {"outcome", to_string(*outcome)}});
    if (*outcome == import_outcome::kept && !in.json) cli::talk("kept " + x.id());
  }
  if (in.json) {
    nlohmann::ordered_json document = {{"root", *root}};
    for (auto one : {import_outcome::imported, import_outcome::unchanged, import_outcome::replaced,
                     import_outcome::kept})
      document[to_string(one)] = counts.contains(one) ? counts.at(one) : 0;
    document["tasks"] = tasks;
    cli::print_json(document);
  } else {
    cli::print(summary(counts, *root));
  }
  return counts.contains(import_outcome::kept) ? cli::exit_conflict : cli::exit_ok;
}

} // namespace

cli::command task_import_row() {
  return {
      "task import",
      "Imports a benchmark's problems as tasks.",
      "kernelmill task import kernelbench ~/KernelBench\n"
      "kernelmill task import kernelbench problems.jsonl --level 1",
      "Tasks are written to $XDG_DATA_HOME/kernelmill/tasks (~/.local/share/kernelmill/tasks), "
      "where every command\n"
      "finds them. Each task is written atomically. A second import changes nothing. Exit code 4 "
      "when existing tasks\n"
      "differ and were not replaced.",
      {{"SUITE", "Benchmark: kernelbench.", true, false, nothing, {"kernelbench"}},
       {"PATH",
        "Checkout of KernelBench, or its problems.jsonl. Default: $KERNELBENCH_ROOT.",
        false,
        false,
        completes::file,
        {}}},
      {{"--to", "DIR", "Folder to write tasks to.", "", false, {}, completes::directory},
       {"--level", "N", "Imports only this level.", "", false, {}, nothing},
       {"--precision", "TYPE",
        "Type of all floating tensors; own: each keeps the type that the problem gives it. "
        "Default: own "
        "for a problem that names another type than float32, else fp32.",
        "", false, torch_precisions(), nothing},
       flag("--force", "Replaces existing tasks that differ.")},
      task_import};
}

} // namespace kernelmill::commands
