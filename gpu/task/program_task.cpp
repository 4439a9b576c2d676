#include "gpu/task/program_task.hpp"

#include <algorithm>
#include <filesystem>

#include "gpu/task/task_files.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t most_path = 200;
constexpr size_t most_files = 48; // of a folder: each is a descriptor of the build's sandbox
constexpr uint64_t most_file_bytes = uint64_t{4} << 20;
constexpr uint64_t most_folder_bytes = uint64_t{16} << 20;
constexpr size_t most_command = 8192;
constexpr size_t most_names = 64;
constexpr uint32_t longest_timeout_s = 3600;

// The keys of one object of task.json, with errors that name them.
class keys {
public:
  keys(const json& value, const std::string& file, std::string place)
      : value_(value), file_(file), place_(std::move(place)) {}

  tl::unexpected<error> bad(const std::string& name, const std::string& cause,
                            std::string hint = {}) const {
    return configuration_error("bad_task",
                               "failed to read " + file_ + ": " + place_ +
                                   (name.empty() ? "" : "." + name) + " " + cause,
                               std::move(hint));
  }

  expected<void> allow(const std::vector<std::string>& known) const {
    if (!value_.is_object()) return bad({}, "must be an object");
    for (const auto& [name, unused] : value_.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        return bad(name, "does not exist", suggestion(name, known));
    return {};
  }

  bool has(const char* name) const { return value_.contains(name) && !value_.at(name).is_null(); }
  const json& at(const char* name) const { return value_.at(name); }
  keys below(const char* name) const { return {at(name), file_, place_ + "." + name}; }

  expected<void> text(const char* name, std::string& into, size_t most) const {
    if (!has(name)) return {};
    if (!at(name).is_string()) return bad(name, "must be a string");
    into = at(name).get<std::string>();
    if (into.size() > most) return bad(name, "has more than " + std::to_string(most) + " bytes");
    if (into.find('\0') != into.npos) return bad(name, "holds a NUL byte");
    return {};
  }

  expected<void> texts(const char* name, std::vector<std::string>& into) const {
    if (!has(name)) return {};
    const auto& list = at(name);
    if (!list.is_array() || list.size() > most_names)
      return bad(name, "must be a list of at most " + std::to_string(most_names) + " strings");
    for (const auto& x : list) {
      if (!x.is_string() || x.get<std::string>().empty() || x.get<std::string>().size() > most_path)
        return bad(name, "must hold strings of 1 to 200 bytes");
      into.push_back(x.get<std::string>());
    }
    return {};
  }

  expected<void> flag(const char* name, bool& into) const {
    if (!has(name)) return {};
    if (!at(name).is_boolean()) return bad(name, "must be true or false");
    into = at(name).get<bool>();
    return {};
  }

private:
  const json& value_;
  const std::string& file_;
  std::string place_;
};

// "12.8", "9.0", "10"
bool is_version(const std::string& x) {
  return !x.empty() && x.size() <= 8 && x.front() != '.' && x.back() != '.' &&
         std::count(x.begin(), x.end(), '.') <= 1 &&
         std::all_of(x.begin(), x.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

expected<void> read_timing(const keys& from, program_timing& x) {
  KM_TRY(from.allow({"mode", "include", "exclude", "clock"}));
  std::string mode = "process";
  KM_TRY(from.text("mode", mode, most_path));
  auto found = std::find(program_clocks().begin(), program_clocks().end(), mode);
  if (found == program_clocks().end())
    return from.bad("mode", "is \"" + mode + "\", which does not exist",
                    suggestion(mode, program_clocks()));
  x.mode = static_cast<program_clock>(found - program_clocks().begin());
  KM_TRY(from.texts("include", x.include));
  KM_TRY(from.texts("exclude", x.exclude));
  std::string clock = "kernel";
  KM_TRY(from.text("clock", clock, most_path));
  if (clock != "kernel" && clock != "wall")
    return from.bad("clock", "must be \"kernel\" or \"wall\"");
  x.wall = clock == "wall";
  if (x.wall && x.mode != program_clock::region)
    return from.bad("clock", "is \"wall\", which belongs to the mode \"region\"");
  bool named = x.mode == program_clock::kernels || x.mode == program_clock::region;
  if (!named && !(x.include.empty() && x.exclude.empty()))
    return from.bad("include", "and exclude belong to the modes \"kernels\" and \"region\"");
  return {};
}

expected<void> read_needs(const keys& from, program_needs& x) {
  KM_TRY(from.allow({"toolkit", "compute_capability", "datacenter_gpu"}));
  for (auto [name, into] :
       {std::pair{"toolkit", &x.toolkit}, std::pair{"compute_capability", &x.compute_capability}}) {
    KM_TRY(from.text(name, *into, most_path));
    if (!into->empty() && !is_version(*into))
      return from.bad(name, "must be a version in a string, as \"12.8\"");
  }
  return from.flag("datacenter_gpu", x.datacenter_gpu);
}

expected<void> read_references(const keys& from, program_references& x) {
  KM_TRY(from.allow({"any", "all"}));
  KM_TRY(from.texts("any", x.any));
  return from.texts("all", x.all);
}

// A GPU's time can be taken of a GPU alone.
expected<void> check_clock(const keys& from, const task& x) {
  auto mode = x.program.timing.mode;
  if (!x.names("cpu") || mode == program_clock::process || mode == program_clock::custom) return {};
  return from.bad("timing.mode",
                  "is \"" + std::string{to_string(mode)} +
                      "\", and backends names cpu, which has no such clock",
                  "use \"process\" or \"custom\", or leave cpu out of backends");
}

} // namespace

const std::vector<std::string>& program_clocks() {
  static const std::vector<std::string> known{"process", "kernels", "region", "gpu", "custom"};
  return known;
}

std::string_view to_string(program_clock x) {
  return program_clocks()[static_cast<size_t>(x)];
}

bool is_program_path(std::string_view path) {
  if (path.empty() || path.size() > most_path) return false;
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"._-+"}.find(c) != std::string_view::npos;
  };
  for (const auto& part : split(path, '/'))
    if (part.empty() || part == "." || part == ".." || part.front() == '-' ||
        !std::all_of(part.begin(), part.end(), plain))
      return false;
  return true;
}

std::string starter_of(const program_task& x) {
  for (const auto& file : x.context)
    if (file.path == x.answer_file) return file.text;
  return {};
}

std::vector<std::string> writable_files(const program_task& x) {
  std::vector<std::string> result{x.answer_file};
  auto add = [&](const std::string& path) {
    if (std::find(result.begin(), result.end(), path) == result.end()) result.push_back(path);
  };
  for (const auto& file : x.baseline) add(file.path);
  for (const auto& path : x.editable) add(path);
  return result;
}

expected<void> read_program(const json& document, const std::string& file, task& x) {
  if (!document.contains("program"))
    return configuration_error("bad_task", "failed to read " + file + ": program is missing",
                               "docs/reference/program-contract.md lists its keys");
  keys from{document.at("program"), file, "program"};
  KM_TRY(from.allow({"suite_id", "group", "build", "test", "benchmark", "timing", "timeout_s",
                     "needs", "references", "answer_file", "editable"}));
  auto& p = x.program;
  for (auto [name, into] : {std::pair{"suite_id", &p.suite_id}, std::pair{"group", &p.group},
                            std::pair{"answer_file", &p.answer_file}})
    KM_TRY(from.text(name, *into, most_path));
  for (auto [name, into] : {std::pair{"build", &p.build}, std::pair{"test", &p.test},
                            std::pair{"benchmark", &p.benchmark}})
    KM_TRY(from.text(name, *into, most_command));
  if (p.test.empty()) return from.bad("test", "is missing");
  if (!is_program_path(p.answer_file))
    return from.bad("answer_file",
                    p.answer_file.empty() ? "is missing" : "must be a relative path");
  KM_TRY(from.texts("editable", p.editable));
  if (from.has("timing")) KM_TRY(read_timing(from.below("timing"), p.timing));
  if (from.has("needs")) KM_TRY(read_needs(from.below("needs"), p.needs));
  if (from.has("references")) KM_TRY(read_references(from.below("references"), p.references));
  if (from.has("timeout_s")) {
    const auto& seconds = from.at("timeout_s");
    if (!seconds.is_number() || !(seconds.get<double>() >= 1) ||
        seconds.get<double>() > longest_timeout_s)
      return from.bad("timeout_s", "must be a number from 1 to 3600");
    p.timeout_s = static_cast<uint32_t>(seconds.get<double>());
  }
  if (x.names("hip"))
    return configuration_error("bad_task",
                               "failed to read " + file +
                                   ": backends names hip, and programs are "
                                   "judged on cpu and cuda",
                               "leave hip out of backends");
  return check_clock(from, x);
}

namespace {

tl::unexpected<error> bad_folder(const task& x, const std::string& folder,
                                 const std::string& cause) {
  return configuration_error("bad_task",
                             "failed to read " + x.directory + "/" + folder + ": " + cause,
                             "docs/reference/program-contract.md says what the folder may hold");
}

// The files of one folder, in the order of their paths; what is part of the digest.
expected<std::vector<program_file>> read_folder(const task& x, const std::string& folder,
                                                std::string& defining) {
  std::vector<program_file> result;
  auto root = fs::path{x.directory} / folder;
  if (!is_in_folder(x.directory, folder)) return result;
  std::error_code problem;
  if (!fs::is_directory(fs::symlink_status(root, problem)))
    return bad_folder(x, folder, "it is no folder");
  std::vector<std::string> paths;
  fs::recursive_directory_iterator entries{root, problem};
  for (auto end = fs::recursive_directory_iterator{}; !problem && entries != end;
       entries.increment(problem)) {
    std::error_code ignored;
    if (fs::is_directory(entries->symlink_status(ignored))) continue;
    paths.push_back(entries->path().lexically_relative(root).generic_string());
    if (paths.size() > most_files)
      return bad_folder(x, folder, "it has more than " + std::to_string(most_files) + " files");
    if (!is_program_path(paths.back()))
      return bad_folder(x, folder,
                        "the path \"" + paths.back() +
                            "\" has other characters than letters, digits and ._-+");
  }
  if (problem) return bad_folder(x, folder, problem.message());
  std::sort(paths.begin(), paths.end());
  uint64_t total = 0;
  for (const auto& path : paths) {
    auto name = folder + "/" + path;
    auto text = read_in_folder(x.directory, name, most_file_bytes);
    KM_TRY(text);
    total += text->size();
    if (total > most_folder_bytes) return bad_folder(x, folder, "it has more than 16 MiB");
    defining += name + ":" + std::to_string(text->size()) + "\n" + *text;
    result.push_back({path, std::move(*text)});
  }
  return result;
}

const program_file* find_file(const std::vector<program_file>& files, const std::string& path) {
  auto found = std::find_if(files.begin(), files.end(),
                            [&](const program_file& y) { return y.path == path; });
  return found == files.end() ? nullptr : &*found;
}

} // namespace

expected<void> read_program_folders(task& x, std::string& defining) {
  auto& p = x.program;
  for (auto [folder, into] : {std::pair{"context", &p.context}, std::pair{"tests", &p.tests},
                              std::pair{"baseline", &p.baseline}}) {
    auto files = read_folder(x, folder, defining);
    KM_TRY(files);
    *into = std::move(*files);
  }
  if (p.baseline.empty())
    return bad_folder(x, "baseline", "it has no file, and its time defines speedup 1");
  for (const auto& path : writable_files(p))
    if (find_file(p.tests, path) != nullptr)
      return bad_folder(x, "tests", path + " is a file that answers may write");
  for (const auto& file : p.tests)
    if (find_file(p.context, file.path) != nullptr)
      return bad_folder(x, "tests", file.path + " is in context/, too");
  for (const auto& path : p.editable)
    if (find_file(p.context, path) == nullptr)
      return bad_folder(x, "context", "it has no " + path + ", which program.editable names");
  return {};
}

} // namespace kernelmill
