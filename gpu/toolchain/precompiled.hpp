#pragma once

// The standard headers that kernels use, precompiled once for each compiler and cache. It costs
// about 60 MB and a compile of 2 s, and saves 0.4 s of each build that includes one of them. A
// build that includes none is faster without (loading it costs 40 ms).

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/sandbox/sandbox.hpp"

namespace kernelmill {

/// True when `source` includes a header that is dear to parse, and does nothing before its last
/// #include that could give a header another meaning (a macro, a pragma).
bool wants_precompiled_headers(std::string_view source);

/// The header text that is precompiled.
extern const std::string_view precompiled_header_text;

/// Thread safety: any number of threads.
class precompiled_headers {
public:
  /// `key` names compiler and flags. `compile` are compiler and flags, without input and output.
  precompiled_headers(sandbox& walls, std::string directory, std::string key,
                      std::vector<std::string> compile);

  /// The directory to mount at mount_point; empty when it cannot be made, which only costs time.
  /// The first caller builds it, others wait.
  std::string find_or_build();

  /// Other text than precompiled_header_text, for a compiler that needs other files of the machine.
  void replace_text(std::string text, std::vector<bind_mount> mounts);

  static constexpr const char* mount_point = "/kernelmill-headers";
  static constexpr const char* header_path = "/kernelmill-headers/kernelmill.hpp";

private:
  bool is_whole(const std::string& place) const;
  bool build(const std::string& place);

  sandbox& walls_;
  std::string directory_;
  std::string key_;
  std::vector<std::string> compile_;
  std::string text_{precompiled_header_text};
  std::vector<bind_mount> mounts_;
  std::mutex mutex_;
  bool tried_ = false;
  std::string found_;
};

} // namespace kernelmill
