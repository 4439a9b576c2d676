#pragma once

// Exact search by inner product over rows of floats. A query reads every row as bytes
// (retrieval/search/byte_rows.hpp) and the floats of those rows alone that may be among the best by
// what rounding can have changed: the answer is the one of a scan over the floats, at a quarter of
// its memory traffic. A graph index would miss neighbours exactly where rows are many and alike,
// and would have to be built. Beyond a million rows a file has lists
// (retrieval/search/row_lists.hpp) where they are good enough; rows that are added to it are
// scanned.
//
// Rows that are added stay where they are: adding costs the same however many there are. A file is
// mapped, not read. Searches may run in several threads at once while no row is added.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "messages/error.hpp"
#include "retrieval/search/row_lists.hpp"

namespace kernelmill {

struct neighbour {
  size_t row = 0;
  float score = 0;
};

/// What is added to the scores of rows, so that a search ranks them by the sum.
struct row_lift {
  std::function<float(size_t row)> of; ///< empty: nothing; minus infinity leaves the row out
  float most = 0;                      ///< the most that `of` answers: other rows are not asked for
  size_t first = 0, last = SIZE_MAX;   ///< rows before `first`, and from `last` on, are not read
};

class vector_index {
public:
  explicit vector_index(size_t dimension);
  vector_index(vector_index&&) noexcept;
  vector_index& operator=(vector_index&&) noexcept;
  ~vector_index();

  size_t dimension() const;
  size_t size() const;

  /// Appends `rows`, which holds a multiple of dimension() finite floats.
  expected<void> add(const std::vector<float>& rows);

  /// Returns the `count` rows nearest to `query`, best first, equal scores by row number.
  expected<std::vector<neighbour>> search(const std::vector<float>& query, size_t count,
                                          const row_lift& lift = {}) const;

  /// The same for several queries, one after the other in `queries`. They share one pass over the
  /// rows.
  expected<std::vector<std::vector<neighbour>>>
  search_all(const std::vector<float>& queries, size_t count, const row_lift& lift = {}) const;

  /// The score of one row, without lift. REQUIRES: query.size() == dimension(), row < size().
  float score(const std::vector<float>& query, size_t row) const;

  /// Writes the rows to a file and returns its digest. Of more than `most_scanned` it makes lists.
  expected<std::string> save(const std::string& path,
                             size_t most_scanned = most_scanned_rows) const;

  /// Lists that a search reads, and of how many; 0 and 0: it reads all rows.
  std::pair<size_t, size_t> lists() const;

  /// Maps what save wrote, and checks all of it against the digest. Another process may replace the
  /// file meanwhile, but must not write in it.
  static expected<vector_index> load(const std::string& path, const std::string& digest);

private:
  struct implementation;
  explicit vector_index(std::unique_ptr<implementation> x);
  std::unique_ptr<implementation> impl_;
};

} // namespace kernelmill
