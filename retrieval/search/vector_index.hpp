#pragma once

// Exact search by inner product over rows of floats. Exact, because a store's verified kernels
// are tens of thousands of rows at most, where a scan takes milliseconds, and because a graph
// index misses neighbours exactly where rows are many and alike.
//
// Not thread safe: its owner lets one caller in at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

struct neighbour {
  size_t row = 0;
  float score = 0;
};

class vector_index {
public:
  explicit vector_index(size_t dimension);
  vector_index(vector_index&&) noexcept;
  vector_index& operator=(vector_index&&) noexcept;
  ~vector_index();

  size_t dimension() const;
  size_t size() const;

  /// Appends `rows`, which holds a multiple of dimension() floats.
  expected<void> add(const std::vector<float>& rows);

  /// Returns the `count` rows nearest to `query`, best first, equal scores by row number.
  expected<std::vector<neighbour>> search(const std::vector<float>& query, size_t count) const;

  /// Writes the rows to a file in FAISS's own format.
  expected<void> save(const std::string& path) const;

  /// Reads what save wrote. The caller has checked that the file is the one that was written.
  static expected<vector_index> load(const std::string& path);

private:
  struct implementation;
  explicit vector_index(std::unique_ptr<implementation> x);
  std::unique_ptr<implementation> impl_;
};

} // namespace kernelmill
