#pragma once

// INTERNAL to gpu/profiler: cells of a tool's database as what a launch is made of. A cell of
// another type, or a number that cannot be, is nothing.

#include "gpu/profiler/sqlite_file.hpp"
#include "gpu/profiler/trace_builder.hpp"

namespace kernelmill {

std::optional<uint64_t> count_in(const sqlite_rows& rows, int column);

/// Of the columns 0 and 1.
std::optional<trace_interval> interval_in(const sqlite_rows& rows);

/// Of three columns.
std::optional<extent> extent_in(const sqlite_rows& rows, int column);

/// AMD's tools tell a grid in work-items; grids are compared by blocks.
std::optional<extent> workgroups(const std::optional<extent>& items,
                                 const std::optional<extent>& group);

} // namespace kernelmill
