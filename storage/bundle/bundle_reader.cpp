#include <algorithm>
#include <filesystem>
#include <optional>

#include "messages/base/digest.hpp"
#include "storage/bundle/bundle_file.hpp"
#include "storage/bundle/packed_stream.hpp"
#include "storage/bundle/signed_list.hpp"
#include "storage/bundle/tar.hpp"

namespace kernelmill::bundles {

namespace {

constexpr size_t read_at_once = size_t{1} << 20;
constexpr const char* ask_again = "ask for the bundle again; this one was changed or is none";

tl::unexpected<error> misshapen(std::string why) {
  return configuration_error("bad_bundle", "failed to read the bundle: " + std::move(why),
                             ask_again);
}

/// The archive inside of the stream, file by file.
class member_reader {
public:
  explicit member_reader(unpacker from) : from_(std::move(from)) {}

  /// Nothing at the end of the archive. Errors name `due`, the file that should come.
  expected<std::optional<tar_entry>> next(const std::string& due) {
    std::string block;
    KM_TRY(take(block, tar_block, "the header of " + due));
    if (!is_zero(block)) {
      auto entry = read_header(block);
      if (!entry) {
        auto why = entry.error();
        why.message += ", where " + due + " should be";
        return tl::unexpected<error>{std::move(why)};
      }
      return std::optional{std::move(*entry)};
    }
    KM_TRY(take(block, tar_block, "its end"));
    if (!is_zero(block)) return misshapen("there are bytes behind its end");
    KM_TRY(from_.check_end());
    return std::optional<tar_entry>{};
  }

  /// Reads the bytes of the file whose header came last.
  expected<void> read(const tar_entry& x, const std::function<void(std::string_view)>& take_part) {
    std::string part;
    for (uint64_t left = x.size; left > 0; left -= part.size()) {
      KM_TRY(take(part, static_cast<size_t>(std::min<uint64_t>(left, read_at_once)), x.path));
      take_part(part);
    }
    KM_TRY(take(part, padding_of(x.size), x.path));
    if (!is_zero(part)) return misshapen("there are bytes behind " + x.path);
    return {};
  }

private:
  /// Exactly `size` bytes, or the error that names `within`.
  expected<void> take(std::string& to, size_t size, const std::string& within) {
    auto ok = from_.read(to, size);
    if (!ok) {
      auto why = ok.error();
      why.message += ", within " + within;
      return tl::unexpected<error>{std::move(why)};
    }
    if (to.size() != size) return misshapen("it is cut off within " + within);
    return {};
  }

  unpacker from_;
};

/// A file that must stand here, small enough to be held.
expected<std::string> read_named(member_reader& from, const char* path, uint64_t most) {
  auto entry = from.next(path);
  KM_TRY(entry);
  if (!*entry || (*entry)->path != path)
    return misshapen(std::string{"its file "} + path + " is missing");
  if ((*entry)->size > most) return misshapen(std::string{path} + " is too large");
  std::string result;
  KM_TRY(from.read(**entry, [&](std::string_view part) { result += part; }));
  return result;
}

/// Reads one file, hashes it and says what is wrong with it; holds it for `take`.
expected<std::string> read_listed(member_reader& from, const tar_entry& entry,
                                  const listed_file& want, bool hold, std::string& held) {
  sha256_stream hash;
  held.clear();
  KM_TRY(from.read(entry, [&](std::string_view part) {
    hash.add(part);
    if (hold) held += part;
  }));
  return wrong_bytes(want, hash.hex());
}

/// Why the file that came is not the one that is listed here.
std::string not_in_turn(const tar_entry& came, const read_bundle& x, size_t at) {
  for (size_t i = 0; i < x.files.size(); ++i)
    if (x.files[i].path == came.path)
      return i < at ? "there are two files " + came.path
                    : "the file " + x.files[at].path + " is missing";
  return "there is a file that is not listed: " + came.path;
}

expected<void> read_files(member_reader& from, read_bundle& x, const file_taker& take) {
  std::string held;
  for (size_t at = 0;; ++at) {
    auto entry = from.next(at < x.files.size() ? x.files[at].path : "its end");
    KM_TRY(entry);
    if (!*entry && at < x.files.size())
      return misshapen("the file " + x.files[at].path + " is missing");
    if (!*entry) return {};
    if (at == x.files.size() || (*entry)->path != x.files[at].path)
      return misshapen(not_in_turn(**entry, x, at));
    const auto& want = x.files[at];
    if ((*entry)->size != want.size)
      return misshapen(want.path + " has " + std::to_string((*entry)->size) + " bytes, and " +
                       std::to_string(want.size) + " are listed");
    bool hold = take && want.size <= most_held_bytes;
    auto wrong = read_listed(from, **entry, want, hold, held);
    KM_TRY(wrong);
    x.bytes += want.size;
    if (!wrong->empty()) {
      if (x.damaged.size() < named_at_most) x.damaged.push_back(*wrong);
    } else if (take) {
      KM_TRY(take(want, held));
    }
  }
}

} // namespace

expected<read_bundle> read(const std::string& path, const limits& most, evp_pkey_st* trusted,
                           const file_taker& take) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) return read_folder(path, most, trusted, take);
  auto stream = unpacker::open(path);
  KM_TRY(stream);
  member_reader from{std::move(*stream)};
  auto list = read_named(from, list_path, most.list_bytes);
  KM_TRY(list);
  auto result = open_list(*list, most, trusted,
                          [&] { return read_named(from, signature_path, signature_bytes_most); });
  KM_TRY(result);
  auto ok = read_files(from, *result, take);
  // A stream that breaks later than a file that it had changed: both are said.
  if (!ok && !result->damaged.empty()) {
    result->damaged.push_back(ok.error().message);
    return result;
  }
  KM_TRY(ok);
  return result;
}

} // namespace kernelmill::bundles
