#include "launch/import/sol/data_set.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "launch/import/sol/task.hpp"
#include "messages/base/digest.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill::sol {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t most_file = uint64_t{8} << 20;    // of JSON
constexpr uint64_t most_stored = uint64_t{64} << 20; // of safetensors, of one task
constexpr size_t most_entries = 200'000;
constexpr int deepest_folder = 12;

constexpr const char* what_is_read =
    "give a folder with definition.json and workload.jsonl, a tree of them, or a data set with "
    "definitions/ and workloads/";

/// Where one problem's files lie.
struct found_problem {
  std::string folder;     ///< that its files are read below
  std::string definition; ///< below it
  std::string workloads;  ///< below it; empty: there are none
  std::string group;      ///< part of the id: "L1", "rmsnorm"
};

struct choice {
  std::string definition = "*";
  std::string kind;
  std::string first;
  size_t workloads = 1000;
  std::vector<std::string> blobs; ///< folders below which files of safetensors are looked for
};

// -- finding --------------------------------------------------------------------------------------

// A part of an id: other characters become "_".
std::string as_folder(const std::string& name) {
  std::string result;
  for (unsigned char c : name)
    result += (c < 128 && std::isalnum(c)) || c == '_' || c == '-' || c == '+' || c == '.'
                  ? static_cast<char>(c)
                  : '_';
  if (!result.empty() && result.front() == '.') result.front() = '_';
  return result.substr(0, 120);
}

std::string below(const fs::path& file, const fs::path& folder) {
  return file.lexically_relative(folder).generic_string();
}

// Folders that are links are not entered: they may lead anywhere, and back.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code code;
  fs::recursive_directory_iterator entries{folder, fs::directory_options::skip_permission_denied,
                                           code};
  size_t seen = 0;
  for (; !code && entries != fs::recursive_directory_iterator{}; entries.increment(code)) {
    if (++seen > most_entries) break;
    if (entries.depth() > deepest_folder || entries->path().filename().string().starts_with(".")) {
      entries.disable_recursion_pending();
      continue;
    }
    auto extension = entries->path().extension();
    if (extension == ".json" || extension == ".jsonl") result.push_back(entries->path());
  }
  std::sort(result.begin(), result.end());
  return result;
}

// "definitions/rmsnorm/x.json" -> the data set's root, if the path has such a folder.
fs::path root_of_data_set(const fs::path& file) {
  for (auto folder = file.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "definitions") return folder.parent_path();
  return {};
}

std::vector<found_problem> find_problems(const fs::path& path) {
  std::vector<found_problem> result;
  auto files = files_below(path);
  std::map<std::pair<std::string, std::string>, std::string> workloads; // by root and name
  for (const auto& file : files)
    for (auto folder = file.parent_path(); folder.has_relative_path();
         folder = folder.parent_path())
      if (folder.filename() == "workloads" && file.extension() == ".jsonl")
        workloads[{folder.parent_path().string(), file.stem().string()}] =
            below(file, folder.parent_path());
  for (const auto& file : files) {
    auto folder = file.parent_path();
    if (file.filename() == "definition.json") {
      auto lines = folder / "workload.jsonl";
      bool has = std::binary_search(files.begin(), files.end(), lines);
      result.push_back({folder.string(), "definition.json", has ? "workload.jsonl" : "",
                        as_folder(folder.parent_path().filename().string())});
    } else if (auto root = root_of_data_set(file); !root.empty() && file.extension() == ".json") {
      auto lines = workloads.find({root.string(), file.stem().string()});
      auto group = folder.filename() == "definitions" ? std::string{} : folder.filename().string();
      result.push_back({root.string(), below(file, root),
                        lines == workloads.end() ? "" : lines->second, as_folder(group)});
    }
  }
  return result;
}

// -- safetensors ----------------------------------------------------------------------------------

// A file below one of the folders; parts of the path that the folder has itself are left out.
expected<std::string> read_stored(const std::string& path, const std::vector<std::string>& roots) {
  auto fail = [&](const std::string& cause) {
    return configuration_error("bad_problem", path + " " + cause);
  };
  fs::path whole{path};
  if (whole.is_absolute()) return fail("is no path below the data set");
  for (const auto& part : whole)
    if (part == "..") return fail("leads out of the data set");
  for (const auto& root : roots)
    for (auto first = whole.begin(); first != whole.end(); ++first) {
      fs::path rest;
      for (auto part = first; part != whole.end(); ++part) rest /= *part;
      std::error_code code;
      if (!fs::exists(fs::path{root} / rest, code)) continue;
      return read_in_folder(root, rest.string(), most_stored);
    }
  return fail("is not there");
}

// Gives a workload's files the names that they have in the task's folder, and reads them.
struct file_store {
  const std::vector<std::string>& roots;
  std::map<std::string, std::string> files; // by name
  uint64_t bytes = 0;

  // The cause for which a workload is left out; empty: none.
  std::pair<const char*, std::string> take(const definition& of, workload& x) {
    auto axes = axes_at(of, x);
    if (!axes) return {"malformed", axes.error().message};
    std::map<std::string, std::string> added;
    for (const auto& tensor : of.inputs) {
      auto found = x.inputs.find(tensor.name);
      if (found == x.inputs.end() || found->second.kind != input_kind::file) continue;
      auto& input = found->second;
      auto text = read_stored(input.path, roots);
      if (!text) return {"safetensors missing", text.error().message};
      auto sizes = sizes_of(tensor, *axes);
      if (auto wrong = wrong_in_safetensors(*text, input.key, tensor.type, sizes); !wrong.empty())
        return {wrong.find("LFS") != wrong.npos ? "safetensors missing" : "safetensors unusable",
                input.path + ": " + wrong};
      input.path = sha256_hex(*text).substr(0, 16) + ".safetensors";
      if (!files.contains(input.path)) added[input.path] = std::move(*text);
    }
    uint64_t more = 0;
    for (const auto& [unused, text] : added) more += text.size();
    if (bytes + more > most_stored)
      return {"safetensors too large", "the task's files would have more than 64 MiB"};
    bytes += more;
    files.merge(added);
    return {};
  }
};

// -- reading --------------------------------------------------------------------------------------

struct reader {
  family suite;
  choice wanted;
  suite_reading result;
  std::set<std::string> ids;

  void refuse(const std::string& place, const char* reason, const std::string& cause) {
    result.refused.push_back({place, reason, cause});
  }

  std::vector<workload> workloads_of(const found_problem& from, const definition& of) {
    std::vector<workload> all;
    auto place = from.folder + "/" + from.workloads;
    auto text = read_in_folder(from.folder, from.workloads, most_file);
    if (!text) {
      refuse(place, "malformed", text.error().message);
      return all;
    }
    std::istringstream lines{*text};
    std::string line;
    for (size_t number = 1; std::getline(lines, line); ++number) {
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      auto where = place + ", line " + std::to_string(number);
      auto x = read_workload(line, where, suite, of);
      if (x)
        all.push_back(std::move(*x));
      else
        refuse(where, "malformed", x.error().message);
    }
    auto first =
        std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.name == wanted.first; });
    if (first != all.end()) std::rotate(all.begin(), first, first + 1);
    if (all.size() > wanted.workloads) all.resize(wanted.workloads);
    return all;
  }

  void read(const found_problem& from) {
    auto place = from.folder + "/" + from.definition;
    auto text = read_in_folder(from.folder, from.definition, most_file);
    if (!text) return refuse(place, "malformed", text.error().message);
    auto beside = from.definition == "definition.json" && is_in_folder(from.folder, "reference.py")
                      ? read_in_folder(from.folder, "reference.py", most_file)
                      : expected<std::string>{std::string{}};
    auto what = read_definition(*text, place, beside.value_or(""));
    if (!what) return refuse(place, "malformed", what.error().message);
    if (::fnmatch(wanted.definition.c_str(), what->name.c_str(), 0) != 0) return;
    if (!wanted.kind.empty() && what->kind != wanted.kind) return;
    if (from.workloads.empty()) return refuse(place, "no workloads", "it has no workloads");
    problem x;
    x.what = std::move(*what);
    auto group = from.group.empty() ? as_folder(x.what.kind) : from.group;
    x.id = std::string{suite == family::sol ? "sol-execbench" : "flashinfer-trace"} + "/" +
           (group.empty() ? "other" : group) + "/" + as_folder(x.what.name);
    if (!ids.insert(x.id).second)
      return refuse(place, "named twice", "another problem has the id " + x.id);
    auto roots = wanted.blobs;
    roots.insert(roots.begin(), from.folder);
    file_store store{roots, {}, 0};
    for (auto& one : workloads_of(from, x.what)) {
      auto [reason, cause] = store.take(x.what, one);
      if (cause.empty())
        x.workloads.push_back(std::move(one));
      else
        refuse(one.place, reason, cause);
    }
    for (const auto& [name, content] : store.files) x.files.push_back({name, content});
    if (x.workloads.empty()) return refuse(place, "no workloads", "none of its workloads is left");
    auto task = task_of(x, suite, result.refused);
    if (!task)
      return refuse(place, x.what.kind == "sampling" ? "drawn by chance" : "malformed",
                    task.error().message);
    result.tasks.push_back(std::move(*task));
  }
};

std::string option_of(const suite_options& options, const char* name) {
  auto found = options.find(name);
  return found == options.end() ? std::string{} : found->second;
}

} // namespace

expected<suite_reading> read_data_set(const std::string& path, const suite_options& options,
                                      family suite) {
  std::error_code code;
  auto folder = fs::absolute(path, code).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  if (folder.filename() == "definition.json") folder = folder.parent_path();
  if (!fs::is_directory(folder, code))
    return configuration_error("missing_file", "failed to read " + path + ": it is no folder",
                               what_is_read);
  reader x{suite, {}, {}, {}};
  if (auto glob = option_of(options, "--definition"); !glob.empty()) x.wanted.definition = glob;
  x.wanted.kind = option_of(options, "--op");
  x.wanted.first = option_of(options, "--first");
  if (auto text = option_of(options, "--workloads"); !text.empty()) {
    if (text.size() > 4 || text.find_first_not_of("0123456789") != text.npos || std::stoi(text) < 1)
      return configuration_error("usage", "failed to read --workloads: it is no number from 1");
    x.wanted.workloads = std::stoul(text);
  }
  if (auto blobs = option_of(options, "--blobs"); !blobs.empty()) x.wanted.blobs.push_back(blobs);
  const char* variable = std::getenv("FLASHINFER_TRACE_DIR");
  if (variable != nullptr && *variable != '\0') x.wanted.blobs.emplace_back(variable);
  x.wanted.blobs.push_back(folder.string());
  auto problems = find_problems(folder);
  if (problems.empty())
    return configuration_error(
        "missing_file", "failed to find problems in " + path + ": there is no definition.json",
        what_is_read);
  for (const auto& one : problems) x.read(one);
  return std::move(x.result);
}

expected<suite_reading> read_sol(const std::string& path, const suite_options& options) {
  return read_data_set(path, options, family::sol);
}

expected<suite_reading> read_flashinfer(const std::string& path, const suite_options& options) {
  return read_data_set(path, options, family::flashinfer);
}

} // namespace kernelmill::sol
