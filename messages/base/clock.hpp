#pragma once

#include <chrono>
#include <ctime>
#include <string>

namespace kernelmill {

/// The time of day, as records and snapshots hold it.
inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// "2026-11-24T09:00:00Z".
inline std::string utc_text(std::time_t seconds_since_1970) {
  std::tm parts{};
  ::gmtime_r(&seconds_since_1970, &parts);
  char text[40];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

} // namespace kernelmill
