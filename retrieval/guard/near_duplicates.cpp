#include "retrieval/guard/near_duplicates.hpp"

#include <algorithm>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kernelmill {

namespace {

// Odd multipliers and offsets, the same in every process: a signature may be stored one day.
struct hash_family {
  std::array<uint32_t, signature_hashes> factor{}, offset{};

  hash_family() {
    for (uint32_t i = 0; i < signature_hashes; ++i) {
      auto x = XXH3_64bits_withSeed(&i, sizeof i, 0x6b65726e656c6d69);
      factor[i] = static_cast<uint32_t>(x) | 1;
      offset[i] = static_cast<uint32_t>(x >> 32);
    }
  }
};

const hash_family& family() {
  static const hash_family result;
  return result;
}

/// What a map, a vector and the place in 32 bands cost besides the code itself, about.
constexpr size_t overhead = 4096;

// In Python `#` begins a comment; the leak guard knows those of C++ and takes a line that begins
// with # for one of the preprocessor.
bool reads_as_python(std::string_view code) {
  auto has = [&](std::string_view word) { return code.find(word) != code.npos; };
  return (has("import ") || has("def ")) && (has("):") || has("class ") || has("import torch")) &&
         !has("#include") && !has("extern \"C\"");
}

/// The code without `# ...`, strings kept. A string in three quotes may have such a mark.
std::string without_python_comments(std::string_view code) {
  std::string result;
  result.reserve(code.size());
  std::string_view quote;
  for (size_t i = 0; i < code.size();) {
    if (quote.empty() && code[i] == '#') {
      i = std::min(code.find('\n', i), code.size());
      continue;
    }
    auto mark = code.substr(i, 3);
    bool three = mark == "\"\"\"" || mark == "'''";
    if (quote.empty() && (three || code[i] == '"' || code[i] == '\'')) {
      quote = three ? mark : code.substr(i, 1);
      result += quote;
      i += quote.size();
    } else if (!quote.empty() && code[i] == '\\' && i + 1 < code.size()) {
      result += code.substr(i, 2);
      i += 2;
    } else if (!quote.empty() && code.substr(i, quote.size()) == quote) {
      result += quote;
      i += quote.size();
      quote = {};
    } else {
      if (quote.size() == 1 && code[i] == '\n') quote = {}; // it was none
      result += code[i++];
    }
  }
  return result;
}

} // namespace

code_signature signature_of(const shingle_set& code) {
  code_signature result;
  result.fill(std::numeric_limits<uint32_t>::max());
  const auto& hashes = family();
  for (auto shingle : code) {
    auto x = static_cast<uint32_t>(shingle ^ (shingle >> 32));
    for (size_t i = 0; i < signature_hashes; ++i) {
      // The low bits of a product depend on the low bits of x alone: the high ones are folded in.
      auto h = x * hashes.factor[i] + hashes.offset[i];
      h = (h ^ (h >> 15)) * 0x2c1b3c6dU;
      result[i] = std::min(result[i], h ^ (h >> 16));
    }
  }
  return result;
}

shingle_set shingles_of_code(std::string_view code) {
  if (!reads_as_python(code)) return shingles_of(code);
  return shingles_of(without_python_comments(code));
}

std::array<uint64_t, near_duplicates::bands> near_duplicates::bands_of(const code_signature& x) {
  std::array<uint64_t, bands> result;
  for (size_t band = 0; band < bands; ++band)
    result[band] = XXH3_64bits_withSeed(&x[band * rows], rows * sizeof x[0], band);
  return result;
}

void near_duplicates::add(shingle_set code, std::string name) {
  if (code.empty()) return;
  auto keys = bands_of(signature_of(code));
  if (auto same = by_band_.find(keys[0]); same != by_band_.end())
    for (auto i : same->second)
      if (codes_[i].code == code) return;
  auto size = overhead + code.size() * sizeof code[0] + name.size();
  if (bytes_ + size > most_bytes_) {
    ++dropped_;
    return;
  }
  bytes_ += size;
  auto number = static_cast<uint32_t>(codes_.size());
  code.shrink_to_fit();
  codes_.push_back({std::move(code), std::move(name)});
  for (auto key : keys) by_band_[key].push_back(number);
}

std::optional<std::string> near_duplicates::find(const shingle_set& code) const {
  if (code.empty()) return std::nullopt;
  std::vector<uint32_t> candidates;
  for (auto key : bands_of(signature_of(code)))
    if (auto found = by_band_.find(key); found != by_band_.end())
      candidates.insert(candidates.end(), found->second.begin(), found->second.end());
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (auto i : candidates)
    if (near_duplicate(codes_[i].code, code)) return codes_[i].name;
  return std::nullopt;
}

} // namespace kernelmill
