#pragma once

// An embedder without a model: two texts are close when they share words, parts of identifiers
// and spellings. Every feature is hashed to a coordinate and a sign, so nothing is trained, no
// vocabulary is kept, and the vector of a text is the same on every machine.
//
//   feature                                            weight
//   word or whole identifier, lower case ("row_sum")   1
//   part of an identifier ("row", "sum", "avx", "512") 0.7, when there is more than one part
//   letters 3 to 5 of "^word$" at every position       0.7 / sqrt(how many the word has)
//
// A feature that occurs n times counts (1 + log n) times its weight: a word that a kernel repeats
// in every line does not drown the rest. Words that carry no subject ("the", "with") and single
// letters are left out. A part counts as the word of the same letters; plurals come near one
// another by their spellings.

#include "retrieval/search/embedder.hpp"

namespace kernelmill {

inline constexpr size_t default_lexical_dimension = 1024;

class hashed_lexical_embedder final : public embedder {
public:
  // REQUIRES: dimension >= 16.
  explicit hashed_lexical_embedder(size_t dimension = default_lexical_dimension)
      : dimension_(dimension) {}

  std::string identity() const override;
  size_t dimension() const override { return dimension_; }
  bool blocking() const override { return false; }
  expected<std::vector<float>> embed(const std::vector<std::string>& texts) override;

private:
  size_t dimension_;
};

} // namespace kernelmill
