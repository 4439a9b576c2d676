#include "gpu/profiler/trace_cells.hpp"

namespace kernelmill {

std::optional<uint64_t> count_in(const sqlite_rows& rows, int column) {
  auto x = rows.integer(column);
  if (!x || *x < 0 || *x > (int64_t{1} << 40)) return std::nullopt;
  return static_cast<uint64_t>(*x);
}

std::optional<trace_interval> interval_in(const sqlite_rows& rows) {
  auto start = rows.integer(0), end = rows.integer(1);
  if (!start || !end) return std::nullopt;
  return trace_interval{*start, *end};
}

std::optional<extent> extent_in(const sqlite_rows& rows, int column) {
  auto x = count_in(rows, column), y = count_in(rows, column + 1), z = count_in(rows, column + 2);
  if (!x || !y || !z) return std::nullopt;
  return extent{*x, *y, *z};
}

std::optional<extent> workgroups(const std::optional<extent>& items,
                                 const std::optional<extent>& group) {
  if (!items || !group) return std::nullopt;
  extent result{};
  for (size_t i = 0; i < result.size(); ++i) {
    if ((*group)[i] == 0) return std::nullopt;
    result[i] = (*items)[i] / (*group)[i] + ((*items)[i] % (*group)[i] > 0);
  }
  return result;
}

} // namespace kernelmill
