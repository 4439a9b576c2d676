#include "launch/import/tar_gz.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <zlib.h>

namespace kernelmill {

namespace {

constexpr size_t block = 512;
// Of POSIX's ustar header.
constexpr size_t name_bytes = 100, size_at = 124, sum_at = 148, type_at = 156, magic_at = 257;

tl::unexpected<error> bad_archive(const std::string& path, const std::string& cause) {
  return configuration_error("bad_problem", "failed to read " + path + ": " + cause,
                             "fetch the archive again; a suite's packs are .tar.gz files");
}

struct close_gz {
  void operator()(gzFile_s* x) const { gzclose(x); }
};
using open_gz = std::unique_ptr<gzFile_s, close_gz>;

std::optional<uint64_t> octal_of(std::string_view text) {
  auto first = text.find_first_not_of(' ');
  if (first == text.npos) return std::nullopt;
  uint64_t result = 0;
  for (char c : text.substr(first)) {
    if (c == '\0' || c == ' ') break;
    if (c < '0' || c > '7') return std::nullopt;
    result = result * 8 + static_cast<uint64_t>(c - '0');
  }
  return result;
}

bool sum_fits(const std::array<char, block>& header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < block; ++i)
    sum += i >= sum_at && i < sum_at + 8 ? ' ' : static_cast<unsigned char>(header[i]);
  return octal_of({header.data() + sum_at, 8}) == sum;
}

/// The archive as a stream of whole reads.
class gz_stream {
public:
  gz_stream(std::string path, open_gz file, uint64_t most)
      : path_(std::move(path)), file_(std::move(file)), left_(most) {}

  /// Reads exactly `size` bytes; false at the end of the archive, where nothing may be left over.
  expected<bool> read(char* to, size_t size) {
    if (size > left_) return bad_archive(path_, "it unpacks to more than is read of one");
    left_ -= size;
    size_t have = 0;
    while (have < size) {
      auto wanted = static_cast<unsigned>(std::min<size_t>(size - have, size_t{1} << 20));
      int got = gzread(file_.get(), to + have, wanted);
      if (got < 0) return bad_archive(path_, "it is damaged or cut off");
      if (got == 0) break;
      have += static_cast<size_t>(got);
    }
    int state = Z_OK;
    gzerror(file_.get(), &state);
    if (state != Z_OK && state != Z_STREAM_END) return bad_archive(path_, "it is cut off");
    if (have != 0 && have != size) return bad_archive(path_, "it is cut off");
    return have == size && size > 0;
  }

private:
  std::string path_;
  open_gz file_;
  uint64_t left_;
};

struct tar_item {
  std::string name;
  char type = '0';
  uint64_t size = 0;
};

// Nothing at the end of the archive.
expected<std::optional<tar_item>> next_item(gz_stream& from, const std::string& path) {
  std::array<char, block> header{};
  auto more = from.read(header.data(), block);
  KM_TRY(more);
  if (!*more || std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; }))
    return std::optional<tar_item>{};
  auto size = octal_of({header.data() + size_at, 12});
  if (std::string_view{header.data() + magic_at, 5} != "ustar" || !sum_fits(header) || !size)
    return bad_archive(path, "it is no tar, or a header is damaged");
  std::string_view name{header.data(), name_bytes};
  return tar_item{std::string{name.substr(0, name.find('\0'))}, header[type_at], *size};
}

} // namespace

expected<std::map<std::string, std::string>> read_tar_gz(const std::string& path, uint64_t most) {
  open_gz file{gzopen(path.c_str(), "rbe")};
  if (!file)
    return configuration_error("missing_file",
                               "failed to read " + path + ": it is not a readable file",
                               "give the suite's .tar.gz");
  if (gzdirect(file.get()) != 0) return bad_archive(path, "it is not compressed by gzip");
  gz_stream from{path, std::move(file), most};
  std::map<std::string, std::string> result;
  while (true) {
    auto item = next_item(from, path);
    KM_TRY(item);
    if (!*item) return result;
    const auto& [name, type, size] = **item;
    if (size > most) return bad_archive(path, "it unpacks to more than is read of one");
    std::string text(size, '\0');
    std::array<char, block> padding{};
    for (auto [to, bytes] : {std::pair{text.data(), static_cast<size_t>(size)},
                             std::pair{padding.data(), static_cast<size_t>(-size % block)}}) {
      if (bytes == 0) continue;
      auto whole = from.read(to, bytes);
      KM_TRY(whole);
      if (!*whole) return bad_archive(path, "it is cut off");
    }
    if (type == 'x' || type == 'g') {
      if (text.find(" size=") != text.npos)
        return bad_archive(path, "an extended header gives a file's size");
      continue;
    }
    if (type == '5') continue;
    if (type != '0' && type != '\0') return bad_archive(path, "it holds a link or a device");
    if (!result.emplace(name, std::move(text)).second)
      return bad_archive(path, "it holds two files of one name");
  }
}

} // namespace kernelmill
