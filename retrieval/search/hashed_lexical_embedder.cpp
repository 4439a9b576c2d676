#include "retrieval/search/hashed_lexical_embedder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "messages/base/utf8.hpp"
#include "retrieval/search/words.hpp"

namespace kernelmill {

namespace {

// Longer texts are cut: the words that tell a kernel's subject stand near its top.
constexpr size_t max_embedded_bytes = 64 << 10;

constexpr float part_weight = 0.7F;
constexpr float spelling_weight = 0.7F;

// One hash seed for each kind of feature: the word "sum" and the part "sum" are one feature, the
// spelling "sum" is another.
enum feature_kind : uint64_t { word_or_part = 1, spelling = 2 };

/// Features of one text, by hash. Sums run in the order in which a text has its features first, so
/// they round the same way everywhere. Kept between texts: most memory is for the longest.
class feature_table {
public:
  void clear() {
    for (auto place : places_of_features_) places_[place] = 0;
    places_of_features_.clear();
    features_.clear();
  }

  void count(feature_kind kind, std::string_view x, float weight, uint32_t times) {
    auto hash = XXH3_64bits_withSeed(x.data(), x.size(), kind);
    if (2 * features_.size() >= places_.size()) grow();
    auto place = place_of(hash);
    if (places_[place] == 0) {
      features_.push_back({hash, weight, times});
      places_of_features_.push_back(static_cast<uint32_t>(place));
      places_[place] = static_cast<uint32_t>(features_.size());
      return;
    }
    auto& known = features_[places_[place] - 1];
    known.weight = std::max(known.weight, weight);
    known.times += times;
  }

  void add_to(std::vector<double>& sums) const {
    for (const auto& x : features_) {
      auto value = x.weight * weight_of_times(x.times);
      // The low bit is the sign: features that share a coordinate cancel as often as they add up.
      sums[(x.hash >> 1) % sums.size()] += (x.hash & 1) != 0 ? value : -value;
    }
  }

private:
  struct feature {
    uint64_t hash;
    float weight; ///< of its heaviest occurrence
    uint64_t times;
  };

  static double weight_of_times(uint64_t times) {
    static const auto known = [] {
      std::array<double, 256> result{};
      for (size_t i = 1; i < result.size(); ++i) result[i] = 1 + std::log(static_cast<double>(i));
      return result;
    }();
    return times < known.size() ? known[times] : 1 + std::log(static_cast<double>(times));
  }

  /// Where `hash` is, or an empty place for it.
  size_t place_of(uint64_t hash) const {
    auto place = (hash >> 20) & (places_.size() - 1);
    while (places_[place] != 0 && features_[places_[place] - 1].hash != hash)
      place = (place + 1) & (places_.size() - 1);
    return place;
  }

  void grow() {
    places_.assign(std::max<size_t>(4096, 2 * places_.size()), 0);
    for (size_t i = 0; i < features_.size(); ++i) {
      auto place = place_of(features_[i].hash);
      places_[place] = static_cast<uint32_t>(i + 1);
      places_of_features_[i] = static_cast<uint32_t>(place);
    }
  }

  std::vector<feature> features_;
  std::vector<uint32_t> places_; ///< a power of two of them; 0: empty, or a feature's number + 1
  std::vector<uint32_t> places_of_features_;
};

void count_spellings(feature_table& features, std::string_view word, uint32_t times) {
  char framed[max_word_bytes + 2];
  auto size = word.size() + 2;
  framed[0] = '^';
  std::copy(word.begin(), word.end(), framed + 1);
  framed[size - 1] = '$';
  size_t grams = 0;
  for (size_t n = 3; n <= 5; ++n)
    if (size >= n) grams += size - n + 1;
  auto weight = spelling_weight / std::sqrt(static_cast<float>(grams));
  for (size_t n = 3; n <= 5; ++n)
    for (size_t i = 0; i + n <= size; ++i) features.count(spelling, {framed + i, n}, weight, times);
}

/// `features` is empty.
void count_features(std::string_view text, feature_table& features) {
  // Code repeats its words: each is taken apart once.
  struct counted {
    std::string_view run;
    uint32_t times;
  };
  std::vector<counted> runs;
  std::unordered_map<std::string_view, uint32_t> known;
  each_run(text, [&](std::string_view run) {
    if (run.size() < 2 || run.size() > max_word_bytes || is_digit_byte(run.front())) return;
    auto [at, is_new] = known.try_emplace(run, static_cast<uint32_t>(runs.size()));
    if (is_new) runs.push_back({run, 0});
    ++runs[at->second].times;
  });
  std::string folded;
  for (auto [run, times] : runs) {
    if (!fold_word(run, folded)) continue;
    features.count(word_or_part, folded, 1, times);
    each_part(run, [&](size_t begin, size_t size) {
      features.count(word_or_part, std::string_view{folded}.substr(begin, size), part_weight,
                     times);
    });
    count_spellings(features, folded, times);
  }
}

} // namespace

void normalize(float* row, size_t dimension) {
  double sum = 0;
  for (size_t i = 0; i < dimension; ++i) sum += double{row[i]} * row[i];
  if (sum <= 0) return;
  auto scale = 1 / std::sqrt(sum);
  for (size_t i = 0; i < dimension; ++i) row[i] = static_cast<float>(row[i] * scale);
}

std::string hashed_lexical_embedder::identity() const {
  return fmt::format("hashed-lexical/2 dim={}", dimension_);
}

expected<std::vector<float>> hashed_lexical_embedder::embed(const std::vector<std::string>& texts) {
  std::vector<float> rows(texts.size() * dimension_, 0.0F);
  std::vector<double> sums(dimension_);
  feature_table features;
  for (size_t i = 0; i < texts.size(); ++i) {
    features.clear();
    count_features(utf8_prefix(texts[i], max_embedded_bytes), features);
    std::fill(sums.begin(), sums.end(), 0.0);
    features.add_to(sums);
    auto* row = rows.data() + i * dimension_;
    std::transform(sums.begin(), sums.end(), row, [](double x) { return static_cast<float>(x); });
    normalize(row, dimension_);
  }
  return rows;
}

} // namespace kernelmill
