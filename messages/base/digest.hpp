#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace kernelmill {

using sha256_digest = std::array<unsigned char, 32>;

sha256_digest sha256(std::string_view bytes);

/// Returns 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

std::string to_hex(const unsigned char* bytes, size_t size);

} // namespace kernelmill
