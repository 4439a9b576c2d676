// A bundle as a folder of files, which people look into without unpacking anything.

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "storage/bundle/signed_list.hpp"
#include "storage/bundle/tar.hpp"
#include "storage/files.hpp"

namespace kernelmill::bundles {

namespace {

namespace fs = std::filesystem;

tl::unexpected<error> bad_folder(std::string why) {
  return configuration_error("bad_bundle", "failed to read the bundle: " + std::move(why),
                             "ask for the bundle again; this one was changed or is none");
}

/// Hands the bytes of a plain file to `take_part`. A link in its place is not followed.
expected<void> read_plain(const std::string& folder, const listed_file& want,
                          const std::function<void(std::string_view)>& take_part) {
  auto path = folder + "/" + want.path;
  descriptor file{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  if (!file) return tl::unexpected<error>{file_error(errno, "read", path)};
  std::string part(size_t{1} << 20, '\0');
  uint64_t read = 0;
  for (;;) {
    auto n = read_retrying(file.get(), part.data(), part.size());
    if (n < 0) return tl::unexpected<error>{file_error(errno, "read", path)};
    if (n == 0) break;
    read += static_cast<uint64_t>(n);
    if (read > want.size) break;
    take_part({part.data(), static_cast<size_t>(n)});
  }
  if (read == want.size) return {};
  return bad_folder(want.path + " has another size than the listed one");
}

/// A file that is not listed itself, small enough to be held.
expected<std::string> read_unlisted(const std::string& folder, const char* name, uint64_t most) {
  std::error_code status;
  auto size = fs::file_size(folder + "/" + name, status);
  if (status) return bad_folder(std::string{"its file "} + name + " is missing");
  if (size > most) return bad_folder(std::string{name} + " is too large");
  std::string result;
  KM_TRY(read_plain(folder, {name, size, {}}, [&](std::string_view part) { result += part; }));
  return result;
}

/// Sizes of the plain files in the folder, by path. Anything else than files and folders is
/// refused.
expected<std::map<std::string, uint64_t>> files_in(const std::string& folder) {
  std::map<std::string, uint64_t> result;
  std::error_code code;
  fs::recursive_directory_iterator at{folder, code}, end;
  for (; !code && at != end; at.increment(code)) {
    auto path = at->path().lexically_relative(folder).generic_string();
    auto status = at->symlink_status(code);
    if (code) break;
    if (fs::is_directory(status)) continue;
    if (!fs::is_regular_file(status)) return bad_folder(path + " is no plain file");
    result[path] = at->file_size(code);
  }
  if (code) return tl::unexpected<error>{file_error(code.value(), "read", folder)};
  return result;
}

} // namespace

expected<void> check_free_folder(const std::string& path) {
  std::error_code code;
  auto there = fs::symlink_status(path, code);
  if (!fs::exists(there)) {
    // A command whose work takes minutes asks before it begins.
    auto above = fs::absolute(path, code).parent_path();
    while (!fs::exists(above, code) && above.has_relative_path()) above = above.parent_path();
    if (!fs::is_directory(above, code))
      return tl::unexpected<error>{file_error(ENOTDIR, "write", path)};
    if (::access(above.c_str(), W_OK | X_OK) != 0)
      return tl::unexpected<error>{file_error(errno, "write", path)};
    return {};
  }
  if (fs::is_directory(there) && fs::is_empty(path, code) && !code) return {};
  return configuration_error("directory_not_empty",
                             "failed to write the bundle " + path +
                                 ": something is there that is not an empty folder",
                             "name a new folder");
}

expected<read_bundle> read_folder(const std::string& path, const limits& most, evp_pkey_st* trusted,
                                  const file_taker& take) {
  auto list = read_unlisted(path, list_path, most.list_bytes);
  KM_TRY(list);
  auto result = open_list(*list, most, trusted, [&] {
    return read_unlisted(path, signature_path, signature_bytes_most);
  });
  KM_TRY(result);
  auto there = files_in(path);
  KM_TRY(there);
  there->erase(list_path);
  if (!result->public_key.empty()) there->erase(signature_path);
  std::string held;
  for (const auto& want : result->files) {
    auto found = there->find(want.path);
    if (found == there->end()) return bad_folder("the file " + want.path + " is missing");
    there->erase(found);
    bool hold = take && want.size <= most_held_bytes;
    sha256_stream hash;
    held.clear();
    KM_TRY(read_plain(path, want, [&](std::string_view part) {
      hash.add(part);
      if (hold) held += part;
    }));
    result->bytes += want.size;
    auto wrong = wrong_bytes(want, hash.hex());
    if (wrong.empty() && take) KM_TRY(take(want, held));
    if (!wrong.empty() && result->damaged.size() < named_at_most) result->damaged.push_back(wrong);
  }
  if (!there->empty())
    return bad_folder("there is a file that is not listed: " + there->begin()->first);
  return result;
}

} // namespace kernelmill::bundles
