#include "launch/import/task_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "storage/files.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

tl::unexpected<error> failed(int code, const char* verb, const std::string& path) {
  return tl::unexpected<error>{file_error(code, verb, path)};
}

bool holds(const std::string& folder, const std::vector<task_file>& files) {
  for (const auto& x : files) {
    auto text = read_file(folder + "/" + x.name);
    if (!text || *text != x.text) return false;
  }
  return true;
}

// One folder in the place of another, or of none, in one step.
expected<import_outcome> move_into_place(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
    return import_outcome::imported;
  if (errno == EINVAL && ::rename(from.c_str(), to.c_str()) == 0) // a filesystem without the flag
    return import_outcome::imported;
  if (errno != EEXIST && errno != ENOTEMPTY) return failed(errno, "write", to);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0)
    return import_outcome::replaced;
  if (errno != EINVAL) return failed(errno, "replace", to);
  std::error_code code;
  fs::remove_all(to, code);
  if (::rename(from.c_str(), to.c_str()) != 0) return failed(errno, "replace", to);
  return import_outcome::replaced;
}

} // namespace

const char* to_string(import_outcome x) noexcept {
  switch (x) {
    case import_outcome::imported: return "imported";
    case import_outcome::unchanged: return "unchanged";
    case import_outcome::replaced: return "replaced";
    case import_outcome::kept: return "kept";
  }
  return "?";
}

expected<task_writer> task_writer::open(const std::string& root) {
  KM_TRY(make_directories(root));
  auto staging = root + "/.import-XXXXXX";
  if (::mkdtemp(staging.data()) == nullptr) return failed(errno, "write to", root);
  return task_writer{root, staging};
}

task_writer::~task_writer() {
  std::error_code code;
  if (!staging_.empty()) fs::remove_all(staging_, code);
}

expected<import_outcome> task_writer::write(const std::string& id,
                                            const std::vector<task_file>& files, bool replace) {
  auto place = root_ + "/" + id;
  std::error_code code;
  if (fs::exists(place, code)) {
    if (holds(place, files)) return import_outcome::unchanged;
    if (!replace) return import_outcome::kept;
  }
  auto draft = staging_ + "/task";
  fs::remove_all(draft, code);
  if (!fs::create_directory(draft, code)) return failed(code.value(), "write", draft);
  for (const auto& x : files) {
    auto file = fs::path{draft} / x.name;
    fs::create_directories(file.parent_path(), code);
    if (code) return failed(code.value(), "write", file.string());
    KM_TRY(write_file(file.string(), x.text));
  }
  fs::create_directories(fs::path{place}.parent_path(), code);
  if (code) return failed(code.value(), "write", place);
  return move_into_place(draft, place);
}

} // namespace kernelmill
