#include "storage/bundle/tar.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace kernelmill::bundles {

namespace {

// Offsets of POSIX.1-1988's ustar header.
constexpr size_t mode_at = 100, owner_at = 108, group_at = 116, size_at = 124, time_at = 136,
                 sum_at = 148, type_at = 156, magic_at = 257, prefix_at = 345;

void put_octal(tar_header& to, size_t at, size_t digits, uint64_t x) {
  for (size_t i = digits; i-- > 0; x >>= 3) to[at + i] = static_cast<char>('0' + (x & 7));
}

std::optional<uint64_t> octal(std::string_view text) {
  uint64_t result = 0;
  for (char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    result = result * 8 + static_cast<uint64_t>(c - '0');
  }
  return result;
}

tl::unexpected<error> bad(std::string why) {
  return configuration_error("bad_bundle", "failed to read the bundle: " + std::move(why),
                             "ask for the bundle again; this one was changed or is none");
}

/// A path as an error may quote it: no byte of it reaches a terminal as a command.
std::string quoted_path(std::string_view path) {
  std::string result = "'";
  for (char c : path) result += c >= 0x20 && c < 0x7f ? c : '?';
  return result + "'";
}

const char* name_of_type(char type) {
  switch (type) {
    case '1': return "a hard link";
    case '2': return "a symbolic link";
    case '3':
    case '4': return "a device";
    case '5': return "a folder";
    case '6': return "a pipe";
    default: return "no plain file";
  }
}

} // namespace

std::string_view wrong_path(std::string_view path) noexcept {
  if (path.empty()) return "it is empty";
  if (path.size() > longest_path) return "it is longer than 99 bytes";
  if (path.front() == '/') return "it is absolute";
  for (char c : path)
    if (c <= 0x20 || c >= 0x7f || c == '\\') return "it holds a byte that no path of a bundle has";
  for (size_t at = 0; at <= path.size();) {
    auto end = std::min(path.find('/', at), path.size());
    auto part = path.substr(at, end - at);
    if (part.empty()) return "it has an empty part";
    if (part == "." || part == "..") return "it leaves its folder";
    at = end + 1;
  }
  return {};
}

tar_header header_of(const tar_entry& x) {
  tar_header result{};
  std::memcpy(result.data(), x.path.data(), std::min(x.path.size(), longest_path));
  put_octal(result, mode_at, 7, 0644);
  put_octal(result, owner_at, 7, 0);
  put_octal(result, group_at, 7, 0);
  put_octal(result, size_at, 11, x.size);
  put_octal(result, time_at, 11, 0);
  result[type_at] = '0';
  std::memcpy(result.data() + magic_at, "ustar\00000", 8);
  std::memset(result.data() + sum_at, ' ', 8);
  uint64_t sum = 0;
  for (char c : result) sum += static_cast<unsigned char>(c);
  put_octal(result, sum_at, 6, sum);
  result[sum_at + 6] = '\0';
  return result;
}

bool is_zero(std::string_view bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\0'; });
}

expected<tar_entry> read_header(std::string_view block) {
  if (block.size() != tar_block) return bad("it ends within a header");
  tar_entry result;
  auto name = block.substr(0, mode_at);
  result.path = std::string{name.substr(0, name.find('\0'))};
  auto quoted = quoted_path(result.path);
  if (block.substr(magic_at, 5) != "ustar") return bad("its header of " + quoted + " is damaged");
  if (block[type_at] != '0') return bad(quoted + " is " + name_of_type(block[type_at]));
  if (block[prefix_at] != '\0') return bad("the path that begins with " + quoted + " is too long");
  if (auto why = wrong_path(result.path); !why.empty())
    return bad("the path " + quoted + " is refused: " + std::string{why});
  auto size = octal(block.substr(size_at, 11));
  if (!size || *size > largest_file) return bad("the size of " + quoted + " is damaged");
  result.size = *size;
  auto own = header_of(result);
  if (std::memcmp(own.data(), block.data(), tar_block) != 0)
    return bad("its header of " + quoted + " is damaged");
  return result;
}

} // namespace kernelmill::bundles
