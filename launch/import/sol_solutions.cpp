// Solutions of SOL-ExecBench and flashinfer-trace, as candidates of the tasks that were imported.

#include <algorithm>
#include <filesystem>

#include "launch/import/sol/solution.hpp"
#include "launch/import/suite_solutions.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

constexpr size_t most_solutions = 10'000;

tl::unexpected<error> bad_answer(const std::string& file, const std::string& cause) {
  return configuration_error("bad_batch", "failed to read " + file + ": " + cause,
                             "`kernelmill task import` imports the suite's problems");
}

// One file, or all of a folder and those below it.
std::vector<std::string> solution_files(const std::string& path) {
  std::error_code code;
  if (!fs::is_directory(path, code)) return {path};
  std::vector<std::string> result;
  for (fs::recursive_directory_iterator entry{path, code}, end; !code && entry != end;
       entry.increment(code)) {
    if (entry->path().filename().string().starts_with(".")) entry.disable_recursion_pending();
    bool is_one = entry->path().extension() == ".json" && entry->is_regular_file(code);
    if (is_one && result.size() < most_solutions) result.push_back(entry->path().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

// Ids of the family's tasks that end with a definition's name.
std::vector<std::string> tasks_of_definition(const std::vector<std::string>& ids,
                                             const std::string& definition) {
  std::string folder;
  for (unsigned char c : definition)
    folder += (c < 128 && std::isalnum(c)) || c == '_' || c == '-' || c == '+' || c == '.'
                  ? static_cast<char>(c)
                  : '_';
  std::vector<std::string> result;
  for (const auto& id : ids)
    if ((id.starts_with("sol-execbench/") || id.starts_with("flashinfer-trace/")) &&
        id.ends_with("/" + folder))
      result.push_back(id);
  return result;
}

} // namespace

expected<std::vector<suite_candidate>> read_sol_solutions(const std::string& path,
                                                          const solution_place& where) {
  auto ids = list_tasks(where.roots);
  KM_TRY(ids);
  std::vector<suite_candidate> result;
  std::string untaken;
  for (const auto& file : solution_files(path)) {
    auto text = read_whole(file);
    if (!text)
      return configuration_error("missing_file", "failed to read " + file, "name a solution.json");
    auto definition = sol::definition_of_solution(*text, file);
    if (!definition) return bad_answer(file, definition.error().message);
    auto tasks = tasks_of_definition(*ids, *definition);
    if (tasks.empty()) {
      untaken = "no task of the definition " + *definition + " was imported";
      continue;
    }
    if (tasks.size() > 1)
      return bad_answer(file, "both " + tasks[0] + " and " + tasks[1] + " are of the definition " +
                                  *definition + "; keep one, or name --root");
    auto what = load_task(where.roots, tasks.front());
    KM_TRY(what);
    suite_candidate x;
    x.task = tasks.front();
    x.name = file;
    if (auto module = sol::module_for_task((*what)->directory, *text, file))
      x.source = std::move(*module);
    else
      x.refused = module.error().message;
    result.push_back(std::move(x));
  }
  if (result.empty()) return bad_answer(path, untaken.empty() ? "it holds no solution" : untaken);
  return result;
}

expected<std::string> sol_results(const std::string&, std::span<const graded_candidate>) {
  return configuration_error("usage", "failed to write --graded: there is no such form of sol",
                             "a run's turns as traces: `kernelmill export RUN --form sol`");
}

} // namespace kernelmill
