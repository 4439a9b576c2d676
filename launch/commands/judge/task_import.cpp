// `kernelmill task import`: problems of other people's benchmarks, as tasks of this user.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/config/paths.hpp"
#include "launch/import/suites.hpp"
#include "launch/import/task_writer.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

constexpr size_t most_shown = 20;

expected<std::string> source_of(const invocation& in, const suite_row& suite) {
  if (in.has("PATH")) return in.value("PATH");
  const char* variable = *suite.variable == '\0' ? nullptr : std::getenv(suite.variable);
  if (variable != nullptr && *variable != '\0') return std::string{variable};
  return configuration_error(
      "usage", fmt::format("failed to find {}: no PATH was given", suite.name),
      fmt::format("give {}{}", suite.path,
                  *suite.variable == '\0' ? "" : fmt::format(", or set {}", suite.variable)));
}

expected<std::string> destination_of(const invocation& in) {
  auto root = in.has("--to") ? in.value("--to") : user_tasks_root();
  if (root.empty())
    return configuration_error("usage", "failed to find a folder for tasks: HOME is not set",
                               "give --to DIR");
  std::error_code code;
  return std::filesystem::absolute(root, code).lexically_normal().string();
}

// Options that only some suites have. One that this suite does not have is refused.
expected<suite_options> options_of(const invocation& in, const suite_row& suite) {
  suite_options result;
  for (const auto& other : suites())
    for (const auto& name : other.options)
      if (in.has(name)) result[name] = in.value(name);
  for (const auto& [name, unused] : result)
    if (std::find(suite.options.begin(), suite.options.end(), name) == suite.options.end())
      return configuration_error("usage",
                                 fmt::format("failed to import {}: it has no {}", suite.name, name),
                                 "`kernelmill task import --help` says which suite has which");
  return result;
}

using outcome_counts = std::map<import_outcome, size_t>;
using reason_counts = std::map<std::string, size_t>;

reason_counts reasons_of(const suite_reading& reading) {
  reason_counts result;
  for (const auto& x : reading.refused) ++result[x.reason];
  return result;
}

std::string summary(const outcome_counts& counts, const std::string& root) {
  auto count = [&](import_outcome x) { return counts.contains(x) ? counts.at(x) : 0; };
  auto made = count(import_outcome::imported);
  auto text = fmt::format("{} imported, {} unchanged", counted(made, "task"),
                          count(import_outcome::unchanged));
  if (auto n = count(import_outcome::replaced); n > 0) text += fmt::format(", {} replaced", n);
  text += ": " + root + "\n";
  if (auto n = count(import_outcome::kept); n > 0)
    text +=
        fmt::format("{} differ from what is there and were left alone; --force replaces them\n", n);
  return text;
}

/// The tasks of a suite that is no longer than a page.
std::string tasks_text(const suite_reading& reading) {
  if (reading.tasks.size() > most_shown) return {};
  std::string result;
  for (const auto& x : reading.tasks)
    result += cli::clean("  " + x.id + (x.note.empty() ? "" : ": " + x.note)) + "\n";
  return result;
}

void tell_refused(const suite_reading& reading) {
  if (reading.refused.empty()) return;
  for (size_t i = 0; i < std::min(most_shown, reading.refused.size()); ++i)
    cli::talk(cli::clean(
        fmt::format("left out {}: {}", reading.refused[i].place, reading.refused[i].cause)));
  if (reading.refused.size() > most_shown) cli::talk("... and others; --json lists all");
  std::string counted;
  for (const auto& [reason, n] : reasons_of(reading))
    counted += fmt::format("{}{} ({})", counted.empty() ? "" : ", ", reason, n);
  cli::talk(fmt::format("{} left out: {}", reading.refused.size(), counted));
}

nlohmann::ordered_json document_of(const suite_reading& reading, const outcome_counts& counts,
                                   const std::string& root) {
  nlohmann::ordered_json document = {{"root", root}};
  for (auto one : {import_outcome::imported, import_outcome::unchanged, import_outcome::replaced,
                   import_outcome::kept})
    document[to_string(one)] = counts.contains(one) ? counts.at(one) : 0;
  document["left_out"] = reading.refused.size();
  document["reasons"] = nlohmann::ordered_json::object();
  for (const auto& [reason, n] : reasons_of(reading)) document["reasons"][reason] = n;
  document["refused"] = nlohmann::ordered_json::array();
  for (const auto& x : reading.refused)
    document["refused"].push_back({{"place", x.place}, {"reason", x.reason}, {"cause", x.cause}});
  return document;
}

expected<int> task_import(const invocation& in) {
  const auto& suite = suite_of(in.value("SUITE"));
  auto source = source_of(in, suite);
  KM_TRY(source);
  auto root = destination_of(in);
  KM_TRY(root);
  auto options = options_of(in, suite);
  KM_TRY(options);
  cli::show_activity("reading " + *source);
  auto reading = suite.read(*source, *options);
  KM_TRY(reading);
  if (reading->tasks.empty()) {
    if (!in.json) tell_refused(*reading);
    return configuration_error(
        "bad_problem",
        fmt::format("failed to import from {}: {}", *source,
                    reading->refused.empty()
                        ? "it has no such problem"
                        : reading->refused.front().place + ": " + reading->refused.front().cause));
  }
  auto writer = task_writer::open(*root);
  KM_TRY(writer);
  outcome_counts counts;
  auto tasks = nlohmann::ordered_json::array();
  for (const auto& x : reading->tasks) {
    auto outcome = writer->write(x.id, x.files, in.has("--force"));
    KM_TRY(outcome);
    ++counts[*outcome];
    tasks.push_back({{"id", x.id}, {"outcome", to_string(*outcome)}});
    if (!x.note.empty()) tasks.back()["note"] = x.note;
    if (*outcome == import_outcome::kept && !in.json) cli::talk("kept " + x.id);
  }
  if (in.json) {
    auto document = document_of(*reading, counts, *root);
    document["tasks"] = tasks;
    cli::print_json(document);
  } else {
    tell_refused(*reading);
    cli::print(summary(counts, *root) + tasks_text(*reading));
  }
  return counts.contains(import_outcome::kept) ? cli::exit_conflict : cli::exit_ok;
}

std::vector<std::string> suite_names() {
  std::vector<std::string> result;
  for (const auto& x : suites()) result.emplace_back(x.name);
  return result;
}

std::string path_words() {
  std::string result = "What the suite's owner has.";
  for (const auto& x : suites()) {
    result += fmt::format(" {}: {}", x.name, x.path);
    if (*x.variable != '\0') result += fmt::format(" (default: ${})", x.variable);
    result += ".";
  }
  return result;
}

} // namespace

cli::command task_import_row() {
  std::string names;
  for (const auto& x : suite_names()) names += (names.empty() ? "" : ", ") + x;
  return {
      "task import",
      "Imports a benchmark's problems as tasks.",
      "kernelmill task import kernelbench ~/KernelBench\n"
      "kernelmill task import kernelbench problems.jsonl --level 1\n"
      "kernelmill task import multikernelbench ~/MultiKernelBench\n"
      "kernelmill task import model net.py\n"
      "kernelmill task import robust-kbench ~/robust-kbench\n"
      "kernelmill task import gpu-mode ~/reference-kernels",
      "Tasks are written to $XDG_DATA_HOME/kernelmill/tasks (~/.local/share/kernelmill/tasks), "
      "where every command\n"
      "finds them. Each task is written atomically. A second import changes nothing. Problems that "
      "cannot be taken are\n"
      "left out, counted by reason. Exit code 4 when existing tasks differ and were not replaced.",
      {{"SUITE", "Benchmark: " + names + ".", true, false, nothing, suite_names()},
       {"PATH", path_words(), false, false, completes::file, {}}},
      {{"--to", "DIR", "Folder to write tasks to.", "", false, {}, completes::directory},
       {"--level", "N", "kernelbench: imports only this level.", "", false, {}, nothing},
       {"--models",
        "DIR",
        "kernelbench: folder with MODEL/config.json, such as gpt2/config.json, for problems that "
        "load a model. Parameters are drawn, not loaded.",
        "",
        false,
        {},
        completes::directory},
       {"--shapes",
        "N",
        "multikernelbench, robust-kbench, gpu-mode: most shapes of a task, spread over those of "
        "the suite. Default: 8.",
        "",
        false,
        {},
        nothing},
       {"--precision", "TYPE",
        "kernelbench: type of all floating tensors; own: each keeps the type that the problem "
        "gives it. "
        "Default: own "
        "for a problem that names another type than float32, else fp32.",
        "", false, torch_precisions(), nothing},
       {"--release",
        "NAME",
        "compute-eval: imports only this release; of a list without a metadata.json: its release. "
        "Default of such a list: internal.",
        "",
        false,
        {},
        nothing},
       {"--group",
        "NAME",
        "compute-eval: imports only this group, such as cccl.",
        "",
        false,
        {},
        nothing},
       {"--difficulty",
        "NAME",
        "compute-eval: imports only problems of this difficulty.",
        "",
        false,
        {},
        nothing},
       {"--problem",
        "ID",
        "compute-eval: imports only this problem, such as CUDA/31.",
        "",
        false,
        {},
        nothing},
       {"--definition",
        "GLOB",
        "sol, flashinfer: imports only definitions of such names.",
        "",
        false,
        {},
        nothing},
       {"--op",
        "KIND",
        "sol, flashinfer: imports only definitions of this op_type.",
        "",
        false,
        {},
        nothing},
       {"--workloads",
        "N",
        "sol, flashinfer: keeps the first N workloads of each definition.",
        "",
        false,
        {},
        nothing},
       {"--first",
        "UUID",
        "sol, flashinfer: the workload that is the problem's own shape, where a definition has it. "
        "Default: the first.",
        "",
        false,
        {},
        nothing},
       {"--blobs",
        "DIR",
        "sol, flashinfer: folder below which files of safetensors are looked for, besides PATH and "
        "$FLASHINFER_TRACE_DIR.",
        "",
        false,
        {},
        completes::directory},
       {"--entry",
        "NAME",
        "model: the function that makes the model, or the model. Default: model.",
        "",
        false,
        {},
        nothing},
       {"--share",
        "PERCENT",
        "model: of its time, from which a submodule is a task, 1 to 100. Default: 10.",
        "",
        false,
        {},
        nothing},
       {"--python",
        "PATH",
        "model: the Python that has torch and runs the file. Default: $KERNELMILL_PYTHON, then "
        "python3.",
        "",
        false,
        {},
        completes::file},
       flag("--force", "Replaces existing tasks that differ.")},
      task_import};
}

} // namespace kernelmill::commands
