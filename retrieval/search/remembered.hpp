#pragma once

// What the queries of an index leave behind for later ones.

#include <cstdint>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "retrieval/search/index.hpp"

namespace kernelmill {

struct loaded_index::remembered {
  /// Sets of 10 KB each.
  static constexpr size_t most_shingles = 4096;

  /// Never 0.
  static uint64_t key_of(std::string_view task) { return std::hash<std::string_view>{}(task) | 1; }

  std::shared_mutex guard_mutex;  ///< of the leak guard and of the next two
  std::vector<uint64_t> untaught; ///< of each row: the key of its task; 0: the guard knows it
  std::unordered_set<std::string> taught; ///< tasks of which the guard knows all rows

  std::mutex shingles_mutex;
  std::unordered_map<size_t, std::shared_ptr<const shingle_set>> shingles; ///< by row
};

} // namespace kernelmill
