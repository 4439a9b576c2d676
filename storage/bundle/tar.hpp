#pragma once

// The one kind of archive that a bundle is: POSIX ustar with plain files alone. A header is a pure
// function of path and size (mode 0644, owner 0, time 0), so the same files give the same bytes,
// and a reader accepts a header only when it would have written it so. Links, devices, folders and
// extensions have no place in it.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace kernelmill::bundles {

inline constexpr size_t tar_block = 512;
inline constexpr size_t longest_path = 99;
inline constexpr uint64_t largest_file = uint64_t{1} << 32;

using tar_header = std::array<char, tar_block>;

struct tar_entry {
  std::string path;
  uint64_t size = 0;
};

/// Why no file of a bundle may have this path, or nothing: it is relative, of plain ASCII, and has
/// neither empty parts nor "." nor "..".
std::string_view wrong_path(std::string_view path) noexcept;

/// REQUIRES: wrong_path(x.path) is empty, and x.size <= largest_file
tar_header header_of(const tar_entry& x);

/// Bytes that fill the last block of a file of this size.
constexpr size_t padding_of(uint64_t size) noexcept {
  return static_cast<size_t>((tar_block - size % tar_block) % tar_block);
}

bool is_zero(std::string_view bytes) noexcept;

/// Errors: "bad_bundle", which names the path where there is one.
expected<tar_entry> read_header(std::string_view block);

} // namespace kernelmill::bundles
