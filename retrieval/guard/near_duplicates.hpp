#pragma once

// Finds, among many codes, one that a code nearly repeats, without comparing it with each.
//
// A code is a set of shingles (retrieval/guard/leak_guard.hpp). Its signature has the least of each
// of 128 hashes of them: two signatures agree in a place with the probability that is the
// resemblance of their sets. Signatures are cut into 32 bands of 4 places; codes that share a band
// are candidates, and the exact comparison of the leak guard decides. Of two codes with a
// resemblance of 0.7 a share of 0.9998 has a band in common; of 0.5, still 0.87. A short code
// within a much longer one is often not found so.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "retrieval/guard/leak_guard.hpp"

namespace kernelmill {

inline constexpr size_t signature_hashes = 128;
using code_signature = std::array<uint32_t, signature_hashes>;

code_signature signature_of(const shingle_set& code);

/// Of code in C++ or in Python: comments of both kinds do not count, nor does layout.
shingle_set shingles_of_code(std::string_view code);

class near_duplicates {
public:
  /// `most_bytes` bounds what is kept; a code that does not fit is counted and forgotten.
  explicit near_duplicates(size_t most_bytes = size_t{512} << 20) : most_bytes_(most_bytes) {}

  /// Of equal codes the first stays.
  void add(shingle_set code, std::string name);

  /// The name of a code that this one nearly repeats: of several the first that was added.
  std::optional<std::string> find(const shingle_set& code) const;

  size_t size() const { return codes_.size(); }
  uint64_t dropped() const { return dropped_; }

private:
  static constexpr size_t bands = 32, rows = signature_hashes / bands;

  struct known {
    shingle_set code;
    std::string name;
  };

  static std::array<uint64_t, bands> bands_of(const code_signature& x);

  size_t most_bytes_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
  std::vector<known> codes_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_band_;
};

} // namespace kernelmill
