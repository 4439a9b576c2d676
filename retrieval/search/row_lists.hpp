#pragma once

// Rows in lists by the nearest of some centres, for an index of more rows than one scan should
// read. A search reads the lists of the centres nearest to its query. How many, is measured: as few
// as find 99 of 100 of the rows that a scan of all finds. Where that would be a quarter of all
// lists, as on rows that lie everywhere, there are no lists.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

/// Up to this many rows all are scanned: 20 ms at 768 floats.
inline constexpr size_t most_scanned_rows = 1'000'000;

inline constexpr double least_list_recall = 0.99;

struct row_lists {
  std::vector<float> centres;
  std::vector<uint32_t> list_of; ///< of each row, from the first on
  uint32_t probes = 0;           ///< lists that a search reads; 0: there are no lists
};

/// `count` centres of `rows` (FAISS's k-means).
expected<std::vector<float>> centres_of(const std::vector<float>& rows, size_t dimension,
                                        size_t count);

} // namespace kernelmill
