#pragma once

// What a build of the contract `device` makes: the source, whose launch lines the referee reads
// again, and the cubin.

#include <optional>
#include <string>

namespace kernelmill {

struct device_artifact {
  std::string source;
  std::string cubin;
};

/// Exit code of kernelmill-nvrtc when it could not compile at all, which no source is to blame for.
inline constexpr int nvrtc_unusable = 3;

inline constexpr char device_artifact_magic[] = "kernelmill-device-1\n";

inline std::string pack_device_artifact(const device_artifact& x) {
  return device_artifact_magic + std::to_string(x.source.size()) + "\n" + x.source + x.cubin;
}

/// Nothing when the bytes are no artifact.
inline std::optional<device_artifact> unpack_device_artifact(const std::string& bytes) {
  const std::string magic = device_artifact_magic;
  auto end = bytes.find('\n', magic.size());
  if (bytes.compare(0, magic.size(), magic) != 0 || end == bytes.npos || end == magic.size() ||
      end > magic.size() + 9)
    return std::nullopt;
  size_t size = 0;
  for (size_t i = magic.size(); i < end; ++i) {
    if (bytes[i] < '0' || bytes[i] > '9') return std::nullopt;
    size = size * 10 + static_cast<size_t>(bytes[i] - '0');
  }
  if (size > bytes.size() - end - 1) return std::nullopt;
  return device_artifact{bytes.substr(end + 1, size), bytes.substr(end + 1 + size)};
}

} // namespace kernelmill
