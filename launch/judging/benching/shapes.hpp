#pragma once

// The shapes that a candidate is timed at: those of a task, and others of its scalars.

#include <string>
#include <vector>

#include "gpu/task/task.hpp"

namespace kernelmill::benching {

struct bench_shape {
  std::string name; ///< "timed", a case's name, or empty
  scalar_values scalars;

  bool operator==(const bench_shape&) const = default;
};

inline constexpr size_t most_shapes = 64;

/// Reads shapes with blanks or ';' between: `timed`, `cases` (all that are visible), the name of a
/// visible case, or "rows=128:256,cols=1024": lists are combined, and scalars that are left out are
/// those of the timed shape. Each shape comes once. Errors: "usage".
expected<std::vector<bench_shape>> read_shapes(const task& x, const std::string& text);

/// The task, timed at other scalars: a copy of its folder below `root`, which must not have one
/// yet. A task at its own timed shape is itself. Errors: "usage" for a shape that the task cannot
/// have, such as one of a tensor that is too large.
expected<task_ptr> at_shape(const task_ptr& x, const scalar_values& scalars,
                            const std::string& root);

} // namespace kernelmill::benching
