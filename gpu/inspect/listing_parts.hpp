#pragma once

// INTERNAL to gpu/inspect: what the readers of listings share.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/inspect/listing.hpp"

namespace kernelmill::listing_parts {

inline constexpr size_t most_kernels = 64;
inline constexpr size_t most_lines = 100'000; // of all kernels together

/// "ld.global.f32 \t%f1" is how nvcc writes it.
std::string with_single_blanks(std::string_view x);

/// The name that C++ has for a symbol.
std::string readable(std::string_view symbol);

/// The number that a text begins with.
std::optional<uint32_t> number_at(std::string_view x);

/// The words of a line, as many as fit; commas are blanks.
std::vector<std::string_view> words_in(std::string_view x, size_t most);

/// The address of a line of SASS: 16 of "/*0010*/  NOP ;".
std::optional<uint32_t> address_at(std::string_view line);

/// What lies between two quotes: the first two, or the last two, where a line has more.
/// `.file 1 "/usr/include" "hip.h" md5 0x16` is of hip.h.
enum class which_quoted : unsigned char { first, last };
std::string_view quoted_in(std::string_view x, which_quoted which);

/// The name of a file without its folders.
std::string_view base_name(std::string_view path);

/// The opcode of an instruction, without its guard: "@P0 BRA" and "@%p1 bra" are branches.
std::string_view opcode_of(std::string_view text);

/// PTX is in small letters, SASS in capitals.
bool is_sass(std::string_view opcode);

/// Instructions of AMD GPUs have underscores where those of PTX have points.
bool is_gcn(std::string_view opcode);

/// Whether a line of a listing is a place, and no instruction.
inline bool is_label(std::string_view x) {
  return x.ends_with(':');
}

class listing_reader {
public:
  explicit listing_reader(std::string_view file) : file_(base_name(file)) {
    // nop
  }

  std::vector<kernel_listing> listings() { return std::move(result_); }

protected:
  void begin_kernel(std::string_view symbol);
  void end_kernel() { open_ = false; }
  void add(std::string_view text, uint32_t address = 0);
  bool is_ours(std::string_view path) const { return base_name(path) == file_; }

  /// REQUIRES: open_.
  kernel_listing& current() { return result_.back(); }

  bool open_ = false;
  uint32_t line_ = 0;

private:
  std::string_view file_;
  std::vector<kernel_listing> result_;
  size_t count_ = 0;
};

} // namespace kernelmill::listing_parts
