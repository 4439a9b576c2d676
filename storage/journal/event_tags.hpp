#pragma once

// The tags of TensorBoard's files: a line of metrics.jsonl under the names that users of kernel_rl
// know.

#include "storage/journal/event_file.hpp"
#include "storage/journal/projections.hpp"

namespace kernelmill {

/// Where a group is named that a step is of: steps count groups in the order in which they ended.
inline constexpr const char* group_tag = "Batch/Group";

/// The event of a group that ended as number `step`, of `groups` in all; 0: unknown. `line` is
/// its group_metrics().
event_values group_event(const nlohmann::ordered_json& line, const group_values& values,
                         int64_t step, size_t groups);

} // namespace kernelmill
