#pragma once

// Search by words (BM25): rows that share rare terms with a query come first. It finds what a
// vector blurs: the one kernel that calls `argmin`.
//
// A term is the hash of a word, of a part of an identifier, or of an operator; words and operators
// of the same letters are two terms. A file has the rows of each term one after the other and is
// mapped, not read; rows that are added stay in memory, and both are searched as one.
//
// A search reads a bounded number of rows however common its words are: those of its rarest terms.
// Searches may run in several threads at once while no row is added.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"
#include "retrieval/search/vector_index.hpp"

namespace kernelmill {

/// Of one text or of several; a term that occurs twice is there twice.
using term_list = std::vector<uint64_t>;

/// Adds the words of `text` and the parts of its identifiers.
void add_words(term_list& to, std::string_view text);

/// The term of an operator.
uint64_t operator_term(std::string_view name);

/// A search reads the rarest terms alone, and of these so many as have that many rows together.
inline constexpr size_t most_searched_terms = 64, most_read_rows = 65536;

/// How soon a repeated term counts no more, and how much long texts are held back.
inline constexpr float bm25_saturation = 1.2F, bm25_length_share = 0.75F;

class bm25_index {
public:
  bm25_index();
  bm25_index(bm25_index&&) noexcept;
  bm25_index& operator=(bm25_index&&) noexcept;
  ~bm25_index();

  size_t size() const;

  size_t rows_with(uint64_t term) const;

  /// Appends a row.
  void add(term_list terms);

  /// Returns the `count` best of the rows that have a term of the query and that `keeps` (empty:
  /// all), best first, equal scores by row number. Of a term that a query repeats, once is enough.
  std::vector<neighbour> search(term_list query, size_t count,
                                const std::function<bool(size_t row)>& keeps = {}) const;

  /// Writes all rows to a file and returns its digest.
  expected<std::string> save(const std::string& path) const;

  /// Maps what save wrote, and checks all of it against the digest. Another process may replace the
  /// file meanwhile, but must not write in it.
  static expected<bm25_index> load(const std::string& path, const std::string& digest);

private:
  struct implementation;
  std::unique_ptr<implementation> impl_;
};

} // namespace kernelmill
