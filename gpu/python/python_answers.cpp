#include "gpu/python/python_answers.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/files.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

/// Whether nobody else can put something else there.
bool is_ours(const fs::path& path) {
  struct stat x {};
  return ::lstat(path.c_str(), &x) == 0 && x.st_uid == ::geteuid() && (x.st_mode & 0022) == 0 &&
         !S_ISLNK(x.st_mode);
}

fs::path folder() {
  fs::path result;
  if (auto* x = std::getenv("XDG_CACHE_HOME"); x != nullptr && *x == '/')
    result = x;
  else if (auto* home = std::getenv("HOME"); home != nullptr && *home == '/')
    result = fs::path{home} / ".cache";
  return result.empty() ? result : result / "kernelmill" / "python";
}

fs::path file_of(const std::string& interpreter) {
  auto name = interpreter;
  for (auto& c : name)
    if (c == '/') c = '%';
  auto in = folder();
  return in.empty() || name.size() > 200 ? fs::path{} : in / (name + ".json");
}

/// A file is known by the time of its last change and its size; [path, ns, bytes], and 0 and -1
/// where it is missing.
bool is_unchanged(const nlohmann::json& file) {
  struct stat x {};
  bool there = ::stat(file.at(0).get<std::string>().c_str(), &x) == 0;
  auto changed = there ? int64_t{x.st_mtim.tv_sec} * 1'000'000'000 + x.st_mtim.tv_nsec : 0;
  auto size = there ? int64_t{x.st_size} : -1;
  return file.at(1).get<int64_t>() == changed && file.at(2).get<int64_t>() == size;
}

} // namespace

std::string kept_answer(const std::string& interpreter) {
  auto path = file_of(interpreter);
  if (path.empty() || !is_ours(path) || !is_ours(path.parent_path())) return {};
  auto text = read_whole(path.string()).value_or("");
  auto answer = nlohmann::json::parse(text, nullptr, false);
  try {
    const auto& files = answer.at("depends");
    if (files.empty()) return {};
    for (const auto& file : files)
      if (!is_unchanged(file)) return {};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return text;
}

void keep_answer(const std::string& interpreter, const std::string& text) {
  auto path = file_of(interpreter);
  if (path.empty()) return;
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  fs::permissions(path.parent_path(), fs::perms::owner_all, failed);
  if (!is_ours(path.parent_path())) return;
  auto unfinished = path.string() + "." + std::to_string(::getpid());
  std::ofstream file{unfinished};
  fs::permissions(unfinished, fs::perms::owner_read | fs::perms::owner_write, failed);
  if ((file << text).flush())
    fs::rename(unfinished, path, failed);
  else
    fs::remove(unfinished, failed);
}

} // namespace kernelmill
