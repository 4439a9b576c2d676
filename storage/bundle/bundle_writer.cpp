#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <unordered_set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "storage/bundle/bundle_file.hpp"
#include "storage/bundle/packed_stream.hpp"
#include "storage/bundle/signed_list.hpp"
#include "storage/bundle/tar.hpp"

namespace kernelmill::bundles {

namespace {

constexpr size_t copy_bytes = size_t{1} << 20;

std::string folder_of(const std::string& path) {
  auto slash = path.find_last_of('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// A file as the archive holds it: header, bytes, zeros to the end of its block.
template <class Put>
expected<void> put_file(const std::string& path, std::string_view bytes, const Put& put) {
  auto header = header_of({path, bytes.size()});
  KM_TRY(put(std::string_view{header.data(), header.size()}));
  KM_TRY(put(bytes));
  static constexpr char zeros[tar_block] = {};
  return put(std::string_view{zeros, padding_of(bytes.size())});
}

} // namespace

struct bundle_writer::state {
  std::string path;
  descriptor body;     ///< without a name: it is gone whenever this process is
  std::string staging; ///< of a folder, which gets its name at the end; else empty
  std::vector<listed_file> files;
  std::unordered_set<std::string> seen;
  uint64_t bytes = 0;

  ~state() {
    std::error_code ignored;
    if (!staging.empty()) std::filesystem::remove_all(staging, ignored);
  }

  /// Without a sync of its own: all files of a folder are synced together.
  expected<void> put_loose(const std::string& name, std::string_view bytes) const {
    auto place = staging + "/" + name;
    std::error_code code;
    std::filesystem::create_directories(folder_of(place), code);
    if (code) return tl::unexpected<error>{file_error(code.value(), "write", path)};
    descriptor file{::open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (!file) return tl::unexpected<error>{file_error(errno, "write", path)};
    return write_all(file.get(), bytes, path);
  }

  expected<void> commit_folder() {
    descriptor folder{::open(staging.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!folder || ::syncfs(folder.get()) != 0)
      return tl::unexpected<error>{file_error(errno, "write", path)};
    // It takes the place of nothing, or of an empty folder.
    if (::rename(staging.c_str(), path.c_str()) != 0) {
      auto code = errno;
      KM_TRY(check_free_folder(path));
      return tl::unexpected<error>{file_error(code, "write", path)};
    }
    staging.clear();
    return sync_directory(folder_of(path));
  }

  expected<void> copy_body(packer& to) {
    if (::lseek(body.get(), 0, SEEK_SET) != 0)
      return tl::unexpected<error>{file_error(errno, "read", path)};
    std::string part(copy_bytes, '\0');
    for (;;) {
      auto n = read_retrying(body.get(), part.data(), part.size());
      if (n < 0) return tl::unexpected<error>{file_error(errno, "read", path)};
      if (n == 0) return {};
      KM_TRY(to.append({part.data(), static_cast<size_t>(n)}));
    }
  }
};

bundle_writer::bundle_writer(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

bundle_writer::bundle_writer(bundle_writer&&) noexcept = default;
bundle_writer::~bundle_writer() = default;

expected<bundle_writer> bundle_writer::create(const std::string& path) {
  auto x = std::make_unique<state>();
  x->path = path;
  auto pattern = folder_of(path) + "/.kernelmill-bundle-XXXXXX";
  x->body = descriptor{::mkostemp(pattern.data(), O_CLOEXEC)};
  if (!x->body) return tl::unexpected<error>{file_error(errno, "write", path)};
  ::unlink(pattern.c_str());
  return bundle_writer{std::move(x)};
}

expected<bundle_writer> bundle_writer::create_folder(const std::string& path) {
  auto x = std::make_unique<state>();
  x->path = path;
  while (x->path.size() > 1 && x->path.ends_with('/')) x->path.pop_back();
  KM_TRY(check_free_folder(x->path));
  KM_TRY(make_directories(folder_of(x->path)));
  auto pattern = folder_of(x->path) + "/.kernelmill-bundle-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    return tl::unexpected<error>{file_error(errno, "write", path)};
  x->staging = pattern;
  ::chmod(pattern.c_str(), 0755); // mkdtemp's is for its maker alone
  return bundle_writer{std::move(x)};
}

expected<void> bundle_writer::add(const std::string& path, std::string_view bytes) {
  auto& x = *state_;
  if (auto why = wrong_path(path); !why.empty() || bytes.size() > largest_file ||
                                   path == list_path || path == signature_path ||
                                   !x.seen.insert(path).second)
    return infrastructure_error("internal",
                                "failed to put '" + path + "' into a bundle: " +
                                    (why.empty() ? "it is there or too large" : std::string{why}));
  x.files.push_back({path, bytes.size(), sha256_hex(bytes)});
  x.bytes += bytes.size();
  if (!x.staging.empty()) return x.put_loose(path, bytes);
  return put_file(path, bytes,
                  [&](std::string_view part) { return write_all(x.body.get(), part, x.path); });
}

expected<std::string> bundle_writer::finish(const nlohmann::ordered_json& facts, evp_pkey_st* key) {
  auto& x = *state_;
  auto list = list_text(facts, x.files);
  auto digest = sha256_hex(list);
  std::string signature;
  if (key) {
    auto text = signature_text(*key, digest);
    KM_TRY(text);
    signature = std::move(*text);
  }
  if (!x.staging.empty()) {
    KM_TRY(x.put_loose(list_path, list));
    if (key) KM_TRY(x.put_loose(signature_path, signature));
    KM_TRY(x.commit_folder());
    return digest;
  }
  auto file = atomic_file::create(x.path);
  KM_TRY(file);
  packer to{*file};
  auto put = [&](std::string_view part) { return to.append(part); };
  KM_TRY(put_file(list_path, list, put));
  if (key) KM_TRY(put_file(signature_path, signature, put));
  KM_TRY(x.copy_body(to));
  KM_TRY(to.append(std::string(2 * tar_block, '\0')));
  KM_TRY(to.finish());
  KM_TRY(file->commit());
  return digest;
}

uint64_t bundle_writer::bytes() const noexcept {
  return state_->bytes;
}

const std::vector<listed_file>& bundle_writer::files() const noexcept {
  return state_->files;
}

} // namespace kernelmill::bundles
