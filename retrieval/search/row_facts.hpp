#pragma once

// What a search must know of every row that it meets, in few bytes: whether it may be shown, and
// what it is for. A search meets thousands of rows; to read their entries would cost more than all
// else.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kernelmill {

struct row_facts {
  uint16_t family = 0;     ///< 0: none
  uint16_t backend = 0;    ///< 0: for all
  uint16_t written_in = 0; ///< 0: not known
  bool hidden = false;     ///< its task is held out, or a faster one or a retraction took its place
};

/// The facts of all rows, with numbers for names.
class fact_table {
public:
  /// A number that no row has.
  static constexpr uint16_t unknown = UINT16_MAX;

  /// Gives each name a number, an empty one 0. Of more names than numbers the last share one.
  uint16_t number(std::string_view name) {
    if (name.empty()) return 0;
    auto [at, is_new] =
        numbers_.try_emplace(std::string{name}, static_cast<uint16_t>(numbers_.size() + 1));
    if (is_new && numbers_.size() >= unknown) at->second = unknown - 1;
    return at->second;
  }

  /// The number of a name that some row has, or `unknown`.
  uint16_t find(std::string_view name) const {
    if (name.empty()) return 0;
    auto at = numbers_.find(std::string{name});
    return at == numbers_.end() ? unknown : at->second;
  }

  std::vector<row_facts> rows;

private:
  std::unordered_map<std::string, uint16_t> numbers_;
};

} // namespace kernelmill
