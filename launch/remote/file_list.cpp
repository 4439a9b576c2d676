#include "launch/remote/file_list.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/remote/frames.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_fields.hpp"

namespace kernelmill::remote {

namespace {

namespace fs = std::filesystem;

constexpr size_t most_path = 1024;
constexpr size_t most_name = 200;
constexpr uint64_t most_size = uint64_t{1} << 40;

tl::unexpected<error> unreadable(const std::string& file, const std::string& why) {
  return configuration_error("missing_file", "failed to read " + file + ": " + why,
                             "name a file or a folder that can be read");
}

expected<file_entry> read_entry(const nlohmann::json& x) {
  if (!x.is_object()) return broken_rules("an entry of its list of files is no object");
  file_entry result{text_in(x, "path"), count_in(x, "size", most_size + 1), text_in(x, "sha256"),
                    flag_in(x, "executable", false)};
  if (!safe_path(result.path)) return broken_rules("a path of its list of files is not allowed");
  if (!is_sha256(result.sha256)) return broken_rules("a file of its list has no hash");
  if (result.size > most_size) return broken_rules("a file of its list has no size");
  return result;
}

// Sorted, a file stands before what would lie in it, with only names such as "a-b" between.
bool has_file_as_folder(const std::set<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& x) {
    auto next = paths.lower_bound(x + "/");
    return next != paths.end() && next->starts_with(x + "/");
  });
}

} // namespace

bool safe_path(std::string_view path) {
  if (path.empty() || path.size() > most_path) return false;
  for (unsigned char c : path)
    if (c < 0x20 || c == 0x7f || c == '\\') return false;
  while (true) {
    auto part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == ".." || part.size() > most_name) return false;
    if (part.size() == path.size()) return true;
    path.remove_prefix(part.size() + 1);
  }
}

bool lies_in(std::string_view path, std::string_view root) {
  return path == root ||
         (path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/');
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

nlohmann::json to_json(const std::vector<file_entry>& files) {
  auto result = nlohmann::json::array();
  for (const auto& x : files)
    result.push_back(
        {{"path", x.path}, {"size", x.size}, {"sha256", x.sha256}, {"executable", x.executable}});
  return result;
}

expected<std::vector<file_entry>> read_files(const std::string& text) {
  if (nests_deeper(text, 4)) return broken_rules("its list of files nests too deep");
  auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) return broken_rules("its list of files is none");
  if (list.size() > most_files) return broken_rules("its list of files is too long");
  std::vector<file_entry> result;
  std::set<std::string> paths;
  for (const auto& x : list) {
    auto entry = read_entry(x);
    KM_TRY(entry);
    if (!paths.insert(entry->path).second)
      return broken_rules("a path of its list of files comes twice");
    result.push_back(std::move(*entry));
  }
  if (has_file_as_folder(paths))
    return broken_rules("a path of its list of files is a file and a folder");
  return result;
}

expected<file_entry> describe_file(const std::string& file, std::string path) {
  descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info {};
  if (!in || ::fstat(in.get(), &info) != 0) return unreadable(file, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return unreadable(file, "it is not a regular file");
  file_entry result{std::move(path), 0, {}, (info.st_mode & S_IXUSR) != 0};
  sha256_stream hash;
  std::string part(most_piece, '\0');
  for (ssize_t n; (n = read_retrying(in.get(), part.data(), part.size())) != 0;) {
    if (n < 0) return unreadable(file, std::strerror(errno));
    hash.add({part.data(), static_cast<size_t>(n)});
    result.size += static_cast<uint64_t>(n);
  }
  result.sha256 = hash.hex();
  return result;
}

expected<folder_files> list_folder(const std::string& folder, const std::string& prefix) {
  std::error_code code;
  auto root = fs::canonical(folder, code);
  if (code) return unreadable(folder, code.message());
  std::vector<std::string> names;
  folder_files result;
  auto walk = fs::recursive_directory_iterator{root, code};
  for (; !code && walk != fs::recursive_directory_iterator{}; walk.increment(code)) {
    std::error_code problem;
    if (walk->is_directory(problem) && !walk->is_symlink(problem)) continue;
    auto target = fs::canonical(walk->path(), problem);
    auto name = walk->path().lexically_relative(root).string();
    if (problem || !fs::is_regular_file(target, problem) ||
        !lies_in(target.string(), root.string()) || !safe_path(name))
      ++result.left_out;
    else
      names.push_back(std::move(name));
    if (names.size() > most_files) return unreadable(folder, "it has too many files");
  }
  if (code) return unreadable(folder, code.message());
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    auto source = (root / name).string();
    auto entry = describe_file(source, prefix + "/" + name);
    KM_TRY(entry);
    result.files.push_back(std::move(*entry));
    result.sources.push_back(std::move(source));
  }
  return result;
}

} // namespace kernelmill::remote
