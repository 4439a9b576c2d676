#include "gpu/toolchain/build_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

// How many entries may come between two looks at the size of the cache.
constexpr unsigned evict_every = 128;

// An entry that was used this recently may be on its way to an evaluation.
constexpr auto in_use = std::chrono::minutes{10};

// Those of a compiler that is gone are never asked for again.
constexpr auto headers_live = std::chrono::hours{24 * 30};

constexpr size_t digest_size = 64;

// Fails when somebody else owns the directory: it may be in /tmp.
bool make_private(const fs::path& directory) {
  std::error_code failed;
  fs::create_directories(directory.parent_path(), failed);
  ::mkdir(directory.c_str(), 0700);
  struct stat x {};
  return ::lstat(directory.c_str(), &x) == 0 && S_ISDIR(x.st_mode) && x.st_uid == ::geteuid() &&
         (x.st_mode & 0022) == 0 && ::access(directory.c_str(), W_OK) == 0;
}

// Whoever owns the directory above can put another in its place.
bool is_trusted(const fs::path& directory) {
  struct stat x {};
  return ::lstat(directory.c_str(), &x) == 0 && (x.st_uid == ::geteuid() || x.st_uid == 0) &&
         ((x.st_mode & 0022) == 0 || (x.st_mode & S_ISVTX) != 0);
}

} // namespace

std::string default_cache_directory() {
  std::vector<fs::path> places;
  if (auto* x = std::getenv("XDG_CACHE_HOME"); x && *x == '/') places.emplace_back(x);
  if (auto* x = std::getenv("HOME"); x && *x == '/') places.push_back(fs::path{x} / ".cache");
  for (auto& x : places)
    if (make_private(x / "kernelmill")) return x / "kernelmill/build";
  return "/tmp/kernelmill-" + std::to_string(::geteuid()) + "/build";
}

expected<void> write_atomically(const std::string& path, std::string_view bytes, unsigned mode) {
  auto fail = [&](const char* verb) -> expected<void> {
    return infrastructure_error("cache_unwritable",
                                std::string{"failed to "} + verb + " " + path + ": " +
                                    std::strerror(errno),
                                "is the disk full? XDG_CACHE_HOME names another place");
  };
  auto temporary = path + ".XXXXXX";
  descriptor file{::mkostemp(temporary.data(), O_CLOEXEC)};
  if (!file) return fail("create");
  for (size_t done = 0; done < bytes.size();) {
    auto n = write_retrying(file.get(), bytes.data() + done, bytes.size() - done);
    if (n <= 0) {
      auto result = fail("write");
      ::unlink(temporary.c_str());
      return result;
    }
    done += static_cast<size_t>(n);
  }
  ::fchmod(file.get(), mode);
  if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
  auto result = fail("rename");
  ::unlink(temporary.c_str());
  return result;
}

build_cache::build_cache(std::string directory, uint64_t most_bytes)
    : directory_(std::move(directory)), most_bytes_(most_bytes) {
  // nop
}

expected<void> build_cache::prepare() {
  if (make_private(directory_) && is_trusted(fs::path{directory_}.parent_path())) return {};
  return infrastructure_error("cache_unwritable",
                              "failed to use " + directory_ +
                                  " as a cache: it must be a directory that this user owns and "
                                  "no other user can write",
                              "XDG_CACHE_HOME names another place");
}

std::string build_cache::path(const std::string& key, const char* extension) const {
  return directory_ + "/" + key.substr(0, 2) + "/" + key + extension;
}

std::string build_cache::library_path(const std::string& key) const {
  return path(key, ".so");
}

std::optional<Message<wire::BuildResult>> build_cache::find(const std::string& key) {
  auto stored = read_whole(path(key, ".words"));
  if (!stored || stored->size() < digest_size) return {};
  auto words = std::string_view{*stored}.substr(digest_size);
  if (sha256_hex(words) != std::string_view{*stored}.substr(0, digest_size)) return {};
  auto result = Message<wire::BuildResult>::from_bytes(words.data(), words.size());
  if (!result) return {};
  auto view = result->open();
  if (view->getCompiled()) {
    auto library = read_whole(library_path(key));
    if (!library || sha256_hex(*library) != view->getLibrarySha256().cStr()) return {};
  }
  for (auto* x : {".words", ".so"}) ::utimensat(AT_FDCWD, path(key, x).c_str(), nullptr, 0);
  capnp::MallocMessageBuilder copy;
  copy.setRoot(*view);
  auto root = copy.getRoot<wire::BuildResult>();
  root.setCached(true);
  // The cache may have been moved since.
  if (view->getCompiled()) root.setLibraryPath(library_path(key));
  return Message<wire::BuildResult>{copy};
}

expected<std::string> build_cache::store_library(const std::string& key, int source) {
  auto bytes = read_whole(source);
  if (!bytes)
    return infrastructure_error("cache_unwritable", "failed to read the library that was built");
  auto target = library_path(key);
  ::mkdir(fs::path{target}.parent_path().c_str(), 0700);
  KM_TRY(write_atomically(target, *bytes, 0444));
  return sha256_hex(*bytes);
}

void build_cache::store_result(const std::string& key, const Message<wire::BuildResult>& result) {
  std::string_view words{result.data(), result.size()};
  auto target = path(key, ".words");
  ::mkdir(fs::path{target}.parent_path().c_str(), 0700);
  if (!write_atomically(target, sha256_hex(words).append(words), 0444)) return;
  if (++stored_ % evict_every == 0) evict();
}

void build_cache::evict() {
  struct entry {
    fs::file_time_type used;
    uint64_t size;
    fs::path path;
  };
  std::vector<entry> entries;
  uint64_t total = 0;
  std::error_code failed;
  fs::recursive_directory_iterator at{directory_, fs::directory_options::skip_permission_denied,
                                      failed};
  // Other processes evict too: files vanish under way.
  for (; !failed && at != fs::recursive_directory_iterator{}; at.increment(failed)) {
    std::error_code gone;
    // Precompiled headers are dear to build and mounted while in use; unfinished ones have a dot.
    auto name = at->path().filename().string();
    if (name.starts_with("headers-") && name.find('.') == name.npos) {
      auto age = fs::file_time_type::clock::now() - at->last_write_time(gone);
      if (!gone && age < headers_live) at.disable_recursion_pending();
    }
    if (!at->is_regular_file(gone) || gone) continue;
    entry x{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    total += x.size;
    entries.push_back(std::move(x));
  }
  if (total <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.used < b.used; });
  auto now = fs::file_time_type::clock::now();
  for (auto& x : entries) {
    if (total <= most_bytes_ / 10 * 9 || now - x.used < in_use) break;
    std::error_code ignored;
    if (fs::remove(x.path, ignored)) total -= x.size;
  }
}

expected<void> build_once(const std::string& directory, const std::string& key,
                          const std::function<expected<void>()>& build) {
  auto mark = directory + "/probe-" + sha256_hex(key);
  if (read_whole(mark)) return {};
  KM_TRY(build());
  [[maybe_unused]] auto kept = write_atomically(mark, "built", 0444);
  return {};
}

} // namespace kernelmill
