#include "actors/cluster/parcels.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <unistd.h>

#include "gpu/task/task.hpp"
#include "messages/base/digest.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

// Content beyond this number is read and checked again.
constexpr size_t most_checked = 100'000;

constexpr uint64_t most_task_bytes = uint64_t{64} << 20;

tl::unexpected<error> cannot(const char* verb, const std::string& path, const char* category) {
  return infrastructure_error(category, std::string{"failed to "} + verb + " " + path,
                              "look at the file system's space and rights");
}

expected<std::vector<std::pair<std::string, std::string>>> read_folder(const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> result;
  uint64_t total = 0;
  std::error_code code;
  // Not by a range: its ++ throws, and the actor that asked would end.
  fs::recursive_directory_iterator at{folder, code}, end;
  for (; !code && at != end; at.increment(code)) {
    auto path = at->path().string();
    std::error_code unclear;
    bool plain = at->is_regular_file(unclear);
    // A link to nothing is no file. Editors leave such links.
    if (unclear && unclear != std::errc::no_such_file_or_directory)
      return cannot("read", path + ": " + unclear.message(), "io_error");
    if (!plain) continue;
    auto bytes = read_file(path);
    if (!bytes) return cannot("read", path, "io_error");
    total += bytes->size();
    if (total > most_task_bytes)
      return configuration_error("task_too_large",
                                 "failed to send the task in " + folder +
                                     ": its files have more than 64 MiB",
                                 "make the task smaller");
    result.emplace_back(at->path().lexically_relative(folder).string(), std::move(*bytes));
  }
  if (code) return cannot("read", folder + ": " + code.message(), "io_error");
  if (result.empty()) return cannot("read", folder, "io_error");
  return result;
}

// Within the folder, whatever the sender says.
bool is_plain(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.size() > 300) return false;
  for (const auto& part : fs::path{path})
    if (part == ".." || part == "." || part.empty()) return false;
  return path.find('\0') == path.npos;
}

bool is_digest(const std::string& x) {
  return x.size() == 64 && x.find_first_not_of("0123456789abcdef") == x.npos;
}

std::string unique_suffix() {
  static std::atomic<uint64_t> count{0};
  return "." + std::to_string(::getpid()) + "." + std::to_string(count++);
}

bool write_file(const fs::path& path, const void* bytes, size_t size) {
  std::error_code code;
  fs::create_directories(path.parent_path(), code);
  std::ofstream out{path, std::ios::binary};
  out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  return static_cast<bool>(out.flush());
}

tl::unexpected<error> missing(const std::string& what) {
  return infrastructure_error("parcel_missing", "failed to find " + what + " on this node",
                              "the head sends it again");
}

tl::unexpected<error> damaged(const std::string& what) {
  return infrastructure_error("parcel_damaged",
                              "failed to take " + what + ": its content is not what it is named",
                              "is the head of another version?");
}

} // namespace

// -- on the head --------------------------------------------------------------------------------

parcel_packer::parcel_packer(size_t most_remembered) : most_remembered_(most_remembered) {
  // nop
}

expected<Message<wire::Parcel>> parcel_packer::pack(const needs& x) {
  std::lock_guard guard{mutex_};
  std::vector<std::pair<std::string, std::string>> files;
  std::string library;
  if (!x.task_digest.empty() && !sent_.contains(x.task_digest)) {
    auto read = read_folder(x.task_directory);
    KM_TRY(read);
    files = std::move(*read);
    // Checks the digest here, once for each node: else every node would report damaged content.
    auto loaded = load_task_folder(x.task_directory);
    KM_TRY(loaded);
    if ((*loaded)->digest != x.task_digest)
      return configuration_error("task_changed",
                                 "failed to send task " + x.task_id +
                                     ": its files have changed since the run began",
                                 "start a new run, or restore the task's files");
  }
  if (!x.library_sha256.empty() && !sent_.contains(x.library_sha256)) {
    auto read = read_file(x.library_path);
    if (!read) return cannot("read", x.library_path, "io_error");
    library = std::move(*read);
  }
  auto result = build<wire::Parcel>([&](wire::Parcel::Builder b) {
    b.setTaskId(x.task_id);
    b.setTaskDigest(x.task_digest);
    auto list = b.initTaskFiles(static_cast<unsigned>(files.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setPath(files[i].first);
      list[i].setBytes(
          {reinterpret_cast<const kj::byte*>(files[i].second.data()), files[i].second.size()});
    }
    b.setLibrarySha256(x.library_sha256);
    b.setLibrary({reinterpret_cast<const kj::byte*>(library.data()), library.size()});
  });
  if (!files.empty()) remember(x.task_digest);
  if (!library.empty()) remember(x.library_sha256);
  return result;
}

void parcel_packer::forget(const needs& x) {
  std::lock_guard guard{mutex_};
  for (const auto& digest : {x.task_digest, x.library_sha256})
    if (sent_.erase(digest) > 0) std::erase(order_, digest);
}

void parcel_packer::remember(const std::string& digest) {
  if (!sent_.insert(digest).second) return;
  order_.push_back(digest);
  if (order_.size() <= most_remembered_) return;
  sent_.erase(order_.front());
  order_.pop_front();
}

expected<Message<wire::Parcel>> parcel_of_library(const std::string& sha256,
                                                  const std::string& path) {
  return parcel_packer{}.pack({{}, {}, {}, sha256, path});
}

// -- on a node ----------------------------------------------------------------------------------

parcel_shelf::parcel_shelf(std::string directory, uint64_t most_bytes)
    : directory_(std::move(directory)), most_bytes_(most_bytes) {
  // nop
}

bool parcel_shelf::is_checked(const std::string& digest) const {
  std::lock_guard guard{mutex_};
  return checked_.contains(digest);
}

void parcel_shelf::note_checked(const std::string& digest) const {
  std::lock_guard guard{mutex_};
  if (checked_.size() >= most_checked) checked_.clear();
  checked_.insert(digest);
}

bool parcel_shelf::has_library(const std::string& place, const std::string& sha256) const {
  std::error_code code;
  if (!fs::exists(place, code)) return false;
  if (is_checked(sha256)) return true;
  auto bytes = read_file(place);
  if (!bytes || sha256_hex(*bytes) != sha256) return false;
  note_checked(sha256);
  return true;
}

bool parcel_shelf::has_task(const std::string& place, const std::string& digest) const {
  std::error_code code;
  if (!fs::exists(place, code)) return false;
  if (is_checked(digest)) return true;
  auto loaded = load_task_folder(place);
  if (!loaded || (*loaded)->digest != digest) return false;
  note_checked(digest);
  return true;
}

expected<std::string> parcel_shelf::task(wire::Parcel::Reader parcel) const {
  std::string id = parcel.getTaskId(), digest = parcel.getTaskDigest();
  if (!is_digest(digest) || !is_plain(id)) return damaged("the task " + id);
  auto folder = fs::path{directory_} / "tasks" / digest;
  auto place = (folder / id).string();
  if (has_task(place, digest)) return place;
  std::error_code code;
  auto files = parcel.getTaskFiles();
  if (files.size() == 0) return missing("the task " + id);
  auto drawn = folder.string() + unique_suffix();
  for (auto file : files) {
    std::string path = file.getPath();
    if (!is_plain(path)) return damaged("the task " + id);
    auto bytes = file.getBytes();
    if (!write_file(fs::path{drawn} / id / path, bytes.begin(), bytes.size()))
      return cannot("write", drawn, "disk_full");
  }
  auto loaded = load_task_folder((fs::path{drawn} / id).string());
  bool right = loaded && (*loaded)->digest == digest;
  if (right && !has_task(place, digest)) fs::remove_all(folder, code); // torn by a power cut
  if (right) fs::rename(drawn, folder, code);
  if (!right || code) fs::remove_all(drawn, code);
  if (!right) return damaged("the task " + id);
  if (!has_task(place, digest)) return cannot("write", place, "disk_full");
  return place; // another process may have been faster, with the same content
}

expected<std::string> parcel_shelf::library(wire::Parcel::Reader parcel) const {
  std::string sha256 = parcel.getLibrarySha256();
  if (!is_digest(sha256)) return damaged("a library");
  auto place = (fs::path{directory_} / "libraries" / (sha256 + ".so")).string();
  if (has_library(place, sha256)) return place;
  auto bytes = parcel.getLibrary();
  if (bytes.size() == 0) return missing("the library " + sha256.substr(0, 12));
  return keep_library(sha256, bytes.begin(), bytes.size());
}

expected<std::string> parcel_shelf::keep_library(const std::string& sha256, const void* bytes,
                                                 size_t size) const {
  if (sha256_hex({static_cast<const char*>(bytes), size}) != sha256)
    return damaged("the library " + sha256.substr(0, 12));
  auto place = (fs::path{directory_} / "libraries" / (sha256 + ".so")).string();
  if (has_library(place, sha256)) return place;
  std::error_code code;
  auto drawn = place + unique_suffix();
  if (!write_file(drawn, bytes, size)) return cannot("write", drawn, "disk_full");
  fs::permissions(drawn, fs::perms{0444}, code);
  fs::rename(drawn, place, code);
  if (code) return cannot("write", place, "disk_full");
  note_checked(sha256);
  constexpr uint64_t often_enough = 256;
  if (kept_++ % often_enough == 0) make_room();
  return place;
}

// Down to three quarters. What a node misses then is sent to it again.
void parcel_shelf::make_room() const {
  struct kept {
    fs::file_time_type time;
    fs::path path;
    uint64_t size;
  };
  std::vector<kept> all;
  uint64_t total = 0;
  std::error_code code;
  fs::directory_iterator at{fs::path{directory_} / "libraries", code}, end;
  for (; !code && at != end; at.increment(code)) {
    std::error_code gone;
    auto size = at->file_size(gone);
    if (gone) continue; // another process was faster
    all.push_back({at->last_write_time(gone), at->path(), size});
    total += size;
  }
  if (total <= most_bytes_) return;
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.time < b.time; });
  for (const auto& x : all) {
    if (total <= most_bytes_ / 4 * 3) return;
    fs::remove(x.path, code);
    total -= x.size;
  }
}

} // namespace kernelmill
