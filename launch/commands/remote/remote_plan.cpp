#include "launch/commands/remote/remote_plan.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "launch/commands/tasks_root.hpp"
#include "launch/config/paths.hpp"
#include "launch/import/suite_solutions.hpp"
#include "launch/judging/candidate_line.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::commands {

namespace {

namespace fs = std::filesystem;

constexpr const char* sent = ".sent"; // files whose path here has no place there
constexpr const char* left = ".left"; // the same of what the command leaves
constexpr const char* own_tasks = ".data/kernelmill/tasks"; // launch/remote/supervisor.cpp

std::string base_of(const std::string& path) {
  auto name = fs::path{path}.lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  return name.filename().string();
}

std::string as_typed(const std::string& path) {
  auto x = fs::path{path}.lexically_normal().string();
  while (x.size() > 1 && x.ends_with('/')) x.pop_back();
  return x;
}

expected<std::string> read_stdin() {
  std::string text{std::istreambuf_iterator<char>{std::cin}, {}};
  if (std::cin.bad())
    return configuration_error("missing_file", "failed to read stdin", "give a file");
  return text;
}

bool is_below(const std::string& path, const std::string& folder) {
  return !folder.empty() && remote::lies_in(fs::path{path}.lexically_normal().string(),
                                            fs::path{folder}.lexically_normal().string());
}

} // namespace

expected<void> check_new_folder(const std::string& folder) {
  std::error_code code;
  if (!fs::exists(folder, code) || (fs::is_directory(folder, code) && fs::is_empty(folder, code)))
    return {};
  return configuration_error("directory_not_empty",
                             "failed to use " + folder + ": it is not a new or empty folder",
                             "name another one");
}

bool remote_plan::is_taken(const std::string& far) const {
  using remote::lies_in;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const auto& x) { return lies_in(x.far, far) || lies_in(far, x.far); }) ||
         std::any_of(places.begin(), places.end(),
                     [&](const auto& x) { return lies_in(x.far, far) || lies_in(far, x.far); });
}

// A path that was typed stays as it is, so that messages say what the user knows.
std::string remote_plan::send_file(const std::string& file) {
  auto far = as_typed(file);
  for (const auto& x : inputs)
    if (x.far == far && x.source == file) return far;
  if (!remote::safe_path(far) || is_taken(far))
    far = std::string{sent} + "/" + std::to_string(inputs.size()) + "/" + base_of(file);
  inputs.push_back({far, file});
  return far;
}

expected<void> remote_plan::send_folder(const std::string& folder, const std::string& far) {
  auto found = remote::list_folder(folder, far);
  KM_TRY(found);
  for (size_t i = 0; i < found->files.size(); ++i)
    inputs.push_back({found->files[i].path, found->sources[i]});
  return {};
}

std::string remote_plan::fetch(const std::string& path) {
  auto far = as_typed(path);
  if (!remote::safe_path(far) || is_taken(far))
    far = std::string{left} + "/" + std::to_string(places.size()) + "/" + base_of(path);
  std::error_code code;
  places.push_back({far, as_typed(fs::absolute(path, code).string())});
  return far;
}

std::vector<std::string> words_of(const invocation& in, const cli::command& row,
                                  const std::map<std::string, std::string>& paths,
                                  const std::set<std::string>& without) {
  std::vector<std::string> result;
  for (const auto* options : {&row.options, &cli::common_options()})
    for (const auto& x : *options) {
      if (!in.was_typed(x.name) || x.name == "--on" || without.contains(x.name)) continue;
      auto path = paths.find(x.name);
      if (x.value.empty())
        result.push_back(x.name);
      else
        for (const auto& value : in.list(x.name))
          result.push_back(x.name + "=" + (path == paths.end() ? value : path->second));
    }
  return result;
}

expected<std::string> send_tasks(remote_plan& to, const std::string& root,
                                 const std::vector<task_ptr>& chosen) {
  std::set<std::string> seen;
  auto far = root.empty() ? std::string{own_tasks} : std::string{sent} + "/tasks";
  for (const auto& x : chosen) {
    bool shipped = root.empty() && is_below(x->directory, default_tasks_root());
    if (!shipped && seen.insert(x->id).second)
      KM_TRY(to.send_folder(x->directory, far + "/" + x->id));
  }
  return root.empty() ? std::string{} : far;
}

expected<remote_plan> plan_candidate(const invocation& in, const cli::command& row) {
  remote_plan result;
  std::map<std::string, std::string> paths;
  auto file = in.value("FILE");
  if (file == "-") {
    auto text = read_stdin();
    KM_TRY(text);
    result.order.input = std::string{sent} + "/stdin";
    result.inputs.push_back({result.order.input, {}, std::move(*text)});
  } else {
    file = result.send_file(file);
  }
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto what = choose_task(*roots, in.value("--task"));
  KM_TRY(what);
  auto root = send_tasks(result, in.value("--root"), {*what});
  KM_TRY(root);
  if (!root->empty()) paths["--root"] = *root;
  if (in.was_typed("--bundle")) {
    KM_TRY(check_new_folder(in.value("--bundle")));
    paths["--bundle"] = result.fetch(in.value("--bundle"));
  }
  if (in.was_typed("--svg")) paths["--svg"] = result.fetch(in.value("--svg"));
  result.order.words = {row.name};
  auto options = words_of(in, row, paths);
  result.order.words.insert(result.order.words.end(), options.begin(), options.end());
  result.order.words.push_back(file);
  return result;
}

namespace {

// `judge --suite`: the suite's file as it is, with the tasks that its answers are for.
expected<remote_plan> plan_answers(const invocation& in, const cli::command& row) {
  remote_plan result;
  auto path = in.value("BATCH");
  const auto* suite = find_suite_solutions(in.value("--suite"));
  std::error_code code;
  if (suite == nullptr || !fs::is_regular_file(path, code))
    return configuration_error("usage", "failed to send " + path + ": it is no file of a suite",
                               "run the command on that host, without --on");
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto answers = suite->read(path, {*roots, in.value("--release")});
  KM_TRY(answers);
  std::vector<task_ptr> tasks;
  std::set<std::string> ids;
  for (const auto& x : *answers) {
    if (!ids.insert(x.task).second) continue;
    auto what = choose_task(*roots, x.task);
    KM_TRY(what);
    tasks.push_back(std::move(*what));
  }
  auto far = result.send_file(path);
  std::map<std::string, std::string> paths;
  auto root = send_tasks(result, in.value("--root"), tasks);
  KM_TRY(root);
  if (!root->empty()) paths["--root"] = *root;
  if (in.was_typed("--graded")) paths["--graded"] = result.fetch(in.value("--graded"));
  result.order.words = {row.name};
  auto options = words_of(in, row, paths);
  result.order.words.insert(result.order.words.end(), options.begin(), options.end());
  result.order.words.push_back(far);
  return result;
}

} // namespace

// A line that cannot be read here is sent as it is: the command says what is wrong with it.
expected<remote_plan> plan_batch(const invocation& in, const cli::command& row) {
  if (in.was_typed("--suite")) return plan_answers(in, row);
  remote_plan result;
  auto path = in.value("BATCH");
  auto text = read_whole(path);
  if (!text)
    return configuration_error("missing_file",
                               "failed to read " + path + ": it is not a readable file",
                               "name a file with one candidate a line, as NDJSON");
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto folder = fs::path{path}.parent_path();
  auto far_batch =
      remote::safe_path(as_typed(path)) ? as_typed(path) : std::string{sent} + "/" + base_of(path);
  auto far_folder = fs::path{far_batch}.parent_path();
  std::vector<task_ptr> tasks;
  std::set<std::string> ids;
  std::string lines;
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string line{next_line(rest)};
    if (auto x = read_candidate_line(line)) {
      auto source = (folder / x->file).string();
      std::error_code code;
      if (fs::is_regular_file(source, code)) {
        auto document = nlohmann::ordered_json::parse(line, nullptr, false);
        auto far = result.send_file(source);
        document["file"] = fs::path{far}.lexically_relative(far_folder.empty() ? "." : far_folder);
        if (!document.contains("name")) document["name"] = x->name;
        line = document.dump();
      }
      if (ids.insert(x->task).second)
        if (auto what = choose_task(*roots, x->task)) tasks.push_back(std::move(*what));
    }
    lines += line + "\n";
  }
  result.inputs.push_back({far_batch, {}, std::move(lines)});
  auto root = send_tasks(result, in.value("--root"), tasks);
  KM_TRY(root);
  result.order.words = {row.name};
  auto options = words_of(in, row,
                          root->empty() ? std::map<std::string, std::string>{}
                                        : std::map<std::string, std::string>{{"--root", *root}});
  result.order.words.insert(result.order.words.end(), options.begin(), options.end());
  result.order.words.push_back(far_batch);
  return result;
}

} // namespace kernelmill::commands
