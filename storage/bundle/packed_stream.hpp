#pragma once

// zstd as a stream of bytes in either direction: one frame, then a skippable frame with the SHA-256
// of that one, since a frame can be changed without changing what it unpacks to. Reading has
// limits: no window beyond 8 MiB, and not more bytes than the reader asks for.

#include <memory>
#include <string>
#include <string_view>

#include "messages/error.hpp"
#include "storage/files.hpp"

namespace kernelmill::bundles {

/// Thread safety: none.
class packer {
public:
  explicit packer(atomic_file& to);
  ~packer();
  expected<void> append(std::string_view bytes);
  expected<void> finish();

private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Thread safety: none.
class unpacker {
public:
  /// Errors: those of the file.
  static expected<unpacker> open(const std::string& path);
  unpacker(unpacker&&) noexcept;
  ~unpacker();

  /// Reads up to `most` bytes into `to`, which it replaces; fewer only at the end. Errors:
  /// "bad_bundle", with the place in the file.
  expected<void> read(std::string& to, size_t most);

  /// Whether the frame and the file end here. REQUIRES: all bytes were read
  expected<void> check_end();

private:
  struct state;
  explicit unpacker(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill::bundles
