#pragma once

// Files of an index: written with a digest of what they hold, and mapped where they hold just that.

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>

#include "messages/error.hpp"

namespace kernelmill {

/// "index_damaged", with the command that mends it.
tl::unexpected<error> damaged_index_file(const std::string& path, const std::string& cause);

/// Its digest holds all that was written to it.
class digested_file {
public:
  explicit digested_file(const std::string& path);
  void write(const void* bytes, size_t size);

  /// Returns the digest, once.
  expected<std::string> close();

private:
  struct free_state {
    void operator()(void* x) const;
  };
  std::string path_;
  std::ofstream out_;
  std::unique_ptr<void, free_state> state_;
};

struct mapped_file {
  std::shared_ptr<const void> memory; ///< unmapped with its last owner
  const std::byte* bytes = nullptr;
  size_t size = 0;
};

/// Maps a file and checks all of it. Another process may replace it meanwhile, but must not write
/// in it.
expected<mapped_file> map_file(const std::string& path, const std::string& digest);

} // namespace kernelmill
