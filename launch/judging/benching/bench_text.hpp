#pragma once

// A bench for people and as JSON.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/judging/benching/bench_rows.hpp"

namespace kernelmill::benching {

/// A table with a row for each shape.
std::string table_text(const std::vector<bench_row>& rows, size_t width);

/// Says of fewer than three evaluations that they are too few for an interval; else nothing.
std::string few_text(const std::vector<bench_row>& rows, size_t evaluations);

/// Times of candidate and baseline as bars of at most `width` columns, all on one axis, which is
/// logarithmic where they differ by more than a factor of 50. What is shaded is the 95 % interval.
/// Empty where nothing was timed.
std::string bars_text(const std::vector<bench_row>& rows, size_t width);

nlohmann::ordered_json row_json(const bench_row& x);

} // namespace kernelmill::benching
