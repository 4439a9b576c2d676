// rocprofv3 --output-format rocpd. The views hide what differs between versions of the tables, such
// as the suffix of their names; columns are taken by name, since versions of the views differ, too.
// Written by the views of rocprofiler-sdk's source/share/rocprofiler-sdk-rocpd (schema 3, ROCm 7.0
// to 7.13).

#include "gpu/profiler/trace_builder.hpp"
#include "gpu/profiler/trace_cells.hpp"
#include "gpu/profiler/trace_database.hpp"

namespace kernelmill {

namespace {

// The number of an agent has had two names.
int64_t agent_of(const sqlite_rows& rows, int column) {
  auto x = rows.integer(column);
  return x ? *x : rows.integer(column + 1).value_or(0);
}

void take_dispatches(sqlite_file& file, trace_builder& builder) {
  auto rows = file.select("kernels", {"start", "end", "agent_absolute_index", "agent_abs_index",
                                      "name", "grid_x", "grid_y", "grid_z", "workgroup_x",
                                      "workgroup_y", "workgroup_z", "lds_size", "arch_vgpr_count"});
  while (!builder.full() && rows.next()) {
    launch_shape shape;
    shape.block = extent_in(rows, 8);
    shape.grid = workgroups(extent_in(rows, 5), shape.block);
    shape.shared = count_in(rows, 11);
    shape.registers = count_in(rows, 12);
    builder.add_launch(builder.kernel_number(rows.text(4, longest_traced_name)), agent_of(rows, 2),
                       interval_in(rows), shape);
  }
}

// A copy is the destination's, or the source's where the destination is the host: that one has the
// engine which copies.
void take_rocpd_copies(sqlite_file& file, trace_builder& builder) {
  if (file.columns("memory_copies").empty()) return;
  auto rows =
      file.select("memory_copies", {"start", "end", "dst_agent_absolute_index",
                                    "dst_agent_abs_index", "src_agent_absolute_index",
                                    "src_agent_abs_index", "dst_agent_type", "name", "size"});
  while (!builder.full() && rows.next()) {
    bool to_host = rows.text(6, 10) == "CPU";
    builder.add_copy(rows.text(7, 120), agent_of(rows, to_host ? 4 : 2), interval_in(rows),
                     count_in(rows, 8));
  }
}

// Of counters the views were renamed: counters_collection (ROCm 7.0, 7.1), kernel_pmc_events since.
void take_counters(sqlite_file& file, trace_builder& builder) {
  auto take = [&](std::string_view view, std::vector<std::string_view> names) {
    auto rows = file.select(view, names);
    for (size_t i = 0; i < 2'000'000 && rows.next(); ++i) {
      auto value = rows.number(3);
      if (!value) {
        builder.skip_row();
        continue;
      }
      builder.add_counter(builder.kernel_number(rows.text(0, longest_traced_name)),
                          agent_of(rows, 4), rows.integer(1).value_or(0), rows.text(2, 120),
                          *value);
    }
  };
  if (!file.columns("kernel_pmc_events").empty())
    take("kernel_pmc_events", {"name", "dispatch_id", "pmc_name", "pmc_value",
                               "agent_absolute_index", "agent_abs_index"});
  else if (!file.columns("counters_collection").empty())
    take("counters_collection", {"kernel_name", "dispatch_id", "counter_name", "value",
                                 "agent_absolute_index", "agent_abs_index"});
}

std::string rocpd_version(sqlite_file& file) {
  if (file.columns("rocpd_metadata").empty()) return {};
  auto rows = file.select("rocpd_metadata", {"tag", "value"});
  for (int i = 0; i < 1000 && rows.next(); ++i)
    if (rows.text(0, 80) == "schema_version") return rows.text(1, 40);
  return {};
}

} // namespace

trace_report read_rocpd(sqlite_file& file) {
  trace_builder builder{trace_tool::rocpd};
  builder.set_version(rocpd_version(file));
  bool has_kernels = !file.columns("kernels").empty();
  if (has_kernels) take_dispatches(file, builder);
  take_rocpd_copies(file, builder);
  take_counters(file, builder);
  auto result = std::move(builder).finish();
  if (result.problem == trace_problem::no_kernels)
    result.words = has_kernels ? "the view `kernels` has no dispatch with times"
                               : "there is no view `kernels`";
  return result;
}

} // namespace kernelmill
