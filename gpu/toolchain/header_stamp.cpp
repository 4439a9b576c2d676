#include "gpu/toolchain/header_stamp.hpp"

#include <algorithm>
#include <filesystem>

#include <sys/stat.h>

#include "messages/base/digest.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

// Links are followed, for Debian's torch has links for folders: none may lead round for ever.
constexpr int deepest = 20;

void add(std::vector<std::string>& lines, const std::string& path) {
  struct stat x {};
  if (::stat(path.c_str(), &x) != 0 || !S_ISREG(x.st_mode)) return;
  lines.push_back(path + ' ' + std::to_string(x.st_size) + ' ' + std::to_string(x.st_mtim.tv_sec) +
                  '.' + std::to_string(x.st_mtim.tv_nsec));
}

} // namespace

std::string stamp_of(const std::vector<std::string>& places) {
  std::vector<std::string> lines;
  for (const auto& place : places) {
    std::error_code failed;
    auto root = fs::canonical(place, failed);
    if (failed) continue;
    add(lines, root.string());
    constexpr auto how = fs::directory_options::skip_permission_denied |
                         fs::directory_options::follow_directory_symlink;
    fs::recursive_directory_iterator at{root, how, failed};
    for (; !failed && at != fs::recursive_directory_iterator{}; at.increment(failed)) {
      if (at.depth() > deepest) at.disable_recursion_pending();
      std::error_code gone;
      if (!at->is_directory(gone)) add(lines, at->path().string());
    }
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  std::string all;
  for (const auto& x : lines) all += x + '\n';
  return sha256_hex(all);
}

} // namespace kernelmill
