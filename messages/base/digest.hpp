#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace kernelmill {

using sha256_digest = std::array<unsigned char, 32>;

sha256_digest sha256(std::string_view bytes);

/// Returns 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

/// The same of bytes that come in pieces.
class sha256_stream {
public:
  sha256_stream();
  void add(std::string_view bytes);
  std::string hex(); ///< of all; once

private:
  struct free_context {
    void operator()(void* x) const;
  };
  std::unique_ptr<void, free_context> context_;
};

std::string to_hex(const unsigned char* bytes, size_t size);

} // namespace kernelmill
