#pragma once

// Hashes that are the same on every machine and in every version, so that what is drawn by them
// replays. Not for identity: that is sha256 (digest.hpp).

#include <cstdint>
#include <string_view>

namespace kernelmill {

constexpr uint64_t hash_start = 0xcbf29ce484222325;

/// FNV-1a.
constexpr uint64_t hash_of(std::string_view text, uint64_t x = hash_start) noexcept {
  for (unsigned char c : text) x = (x ^ c) * 0x100000001b3;
  return x;
}

/// Mixes numbers into one that is spread evenly: the finalizer of splitmix64 after each.
constexpr uint64_t mix(uint64_t a, uint64_t b, uint64_t c = 0) noexcept {
  uint64_t x = 0x9e3779b97f4a7c15;
  for (auto word : {a, b, c}) {
    x += word;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
  }
  return x;
}

} // namespace kernelmill
