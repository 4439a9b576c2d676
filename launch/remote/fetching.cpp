#include "launch/remote/fetching.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "launch/remote/frames.hpp"
#include "messages/base/descriptor.hpp"
#include "storage/files.hpp"

namespace kernelmill::remote {

namespace {

namespace fs = std::filesystem;

expected<void> check_space(const std::string& folder, uint64_t bytes) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return {};
  auto free = uint64_t{info.f_bavail} * info.f_frsize;
  if (bytes <= free) return {};
  return infrastructure_error(
      "disk_full",
      fmt::format("failed to fetch into {}: {} bytes are to come, {} are free", folder, bytes,
                  free),
      "free space; nothing was lost on the host");
}

tl::unexpected<error> failed(const char* verb, const std::string& path,
                             const std::error_code& code) {
  return tl::unexpected<error>{file_error(code.value(), verb, path)};
}

} // namespace

std::string fetching::staging_of(const fetched_place& x) const {
  fs::path near{x.near};
  return (near.parent_path() / ("." + near.filename().string() + ".kernelmill-" + session_))
      .string();
}

expected<std::vector<wanted_file>> fetching::plan(std::vector<file_entry> files) {
  std::vector<wanted_file> result;
  std::map<std::string, uint64_t> space; // by folder
  for (auto& entry : files) {
    auto place = std::find_if(places_.begin(), places_.end(),
                              [&](const auto& x) { return lies_in(entry.path, x.far); });
    if (place == places_.end()) return broken_rules("it offers a file that was not asked for");
    wanted_file x{std::move(entry), staging_of(*place), 0};
    x.staged += x.entry.path.substr(place->far.size());
    ++files_;
    bytes_ += x.entry.size;
    std::error_code none;
    auto have = fs::file_size(x.staged, none);
    if (!none && have == x.entry.size) {
      auto here = describe_file(x.staged, x.entry.path);
      if (here && here->sha256 == x.entry.sha256) continue;
      have = 0;
    }
    x.have = none || have > x.entry.size ? 0 : have;
    auto parent = fs::path{place->near}.parent_path().string();
    space[parent] += x.entry.size - x.have;
    result.push_back(std::move(x));
  }
  for (const auto& [folder, bytes] : space) {
    KM_TRY(make_directories(folder));
    KM_TRY(check_space(folder, bytes));
  }
  return result;
}

expected<void> fetching::add(wanted_file& x, std::string_view piece, bool last) {
  if (x.have + piece.size() > x.entry.size)
    return broken_rules("a file has more bytes than it said");
  std::error_code code;
  fs::create_directories(fs::path{x.staged}.parent_path(), code);
  descriptor out{::open(x.staged.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                        x.entry.executable ? 0755 : 0644)};
  if (!out || ::ftruncate(out.get(), static_cast<off_t>(x.have)) != 0 ||
      ::lseek(out.get(), 0, SEEK_END) < 0)
    return tl::unexpected<error>{file_error(errno, "write", x.staged)};
  KM_TRY(write_all(out.get(), piece, x.staged));
  x.have += piece.size();
  if (!last) return {};
  auto here = describe_file(x.staged, x.entry.path);
  KM_TRY(here);
  if (here->sha256 == x.entry.sha256 && here->size == x.entry.size) return {};
  fs::remove(x.staged, code);
  return broken_rules("the file " + x.entry.path + " is not what its hash says");
}

void fetching::discard() {
  std::error_code ignored;
  for (const auto& x : places_) fs::remove_all(staging_of(x), ignored);
}

expected<void> fetching::commit() {
  std::error_code code;
  for (const auto& x : places_) {
    auto staging = staging_of(x);
    if (!fs::exists(staging, code)) continue;                     // the command left nothing there
    if (fs::is_directory(staging, code)) ::rmdir(x.near.c_str()); // an empty folder may be there
    fs::rename(staging, x.near, code);
    if (code == std::errc::directory_not_empty || code == std::errc::file_exists ||
        code == std::errc::is_a_directory || code == std::errc::not_a_directory)
      return configuration_error("directory_not_empty",
                                 "failed to put what was fetched to " + x.near +
                                     ": something is there",
                                 "move it away and attach again; it is all in " + staging);
    if (code) return failed("move", x.near, code);
  }
  for (const auto& x : places_) {
    descriptor folder{::open(fs::path{x.near}.parent_path().c_str(), O_RDONLY | O_CLOEXEC)};
    if (folder) ::syncfs(folder.get()); // the host's copy is removed next
  }
  return {};
}

} // namespace kernelmill::remote
