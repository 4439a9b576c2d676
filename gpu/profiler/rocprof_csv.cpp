// Columns are taken by name, in any case, since they have changed: Private_Segment_Size and
// Group_Segment_Size (rocprofiler-sdk 0.5 to 0.6, ROCm 6.2 to 6.4) became Scratch_Size and
// LDS_Block_Size, with registers and streams beside them (1.0, ROCm 7.0); `rocpd convert` writes
// Guid first, and Lds_Block_Size. Agents were numbers and are "Agent 7".

#include "gpu/profiler/rocprof_csv.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "gpu/profiler/csv.hpp"
#include "gpu/profiler/trace_builder.hpp"
#include "gpu/profiler/trace_cells.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

std::string_view csv_line(std::string_view& text) {
  auto line = next_line(text);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The columns of a header, in small letters.
csv_row rocprof_header(std::string_view line) {
  auto result = csv_fields(line.substr(0, 4096));
  for (auto& x : result) x = lowered(trimmed(std::string_view{x}));
  return result;
}

bool is_header_of_dispatches(const csv_row& header) {
  auto has = [&](std::string_view x) {
    return std::find(header.begin(), header.end(), x) != header.end();
  };
  return has("kernel_name") && (has("dispatch_id") || has("queue_id")) &&
         (has("counter_name") || (has("start_timestamp") && has("end_timestamp")));
}

class dispatch_row {
public:
  dispatch_row(const csv_row& header, const csv_row& row) : header_(header), row_(row) {
    // nop
  }

  std::string_view text(std::string_view column) const {
    auto at = std::find(header_.begin(), header_.end(), column);
    if (at == header_.end()) return {};
    return row_[static_cast<size_t>(at - header_.begin())];
  }

  // Timestamps have more digits than a double holds.
  std::optional<int64_t> integer(std::string_view column) const {
    auto x = trimmed(text(column));
    int64_t value = 0;
    auto [end, problem] = std::from_chars(x.data(), x.data() + x.size(), value);
    if (problem != std::errc{} || end != x.data() + x.size()) return std::nullopt;
    return value;
  }

  std::optional<uint64_t> count(std::string_view column, std::string_view other = {}) const {
    auto x = integer(column);
    if (!x && !other.empty()) x = integer(other);
    if (!x || *x < 0 || *x > (int64_t{1} << 40)) return std::nullopt;
    return static_cast<uint64_t>(*x);
  }

  // "Agent 7", "GPU-0" and 7.
  int64_t agent() const {
    auto x = text("agent_id");
    auto digits = x.substr(x.find_last_not_of("0123456789") + 1);
    int64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  std::optional<trace_interval> interval() const {
    auto start = integer("start_timestamp"), end = integer("end_timestamp");
    if (!start || !end) return std::nullopt;
    return trace_interval{*start, *end};
  }

  // Traces tell three dimensions; with counters there is their product alone.
  std::optional<extent> size(const std::string& name) const {
    auto x = count(name + "_x"), y = count(name + "_y"), z = count(name + "_z");
    if (x && y && z) return extent{*x, *y, *z};
    if (auto all = count(name)) return extent{*all, 1, 1};
    return std::nullopt;
  }

  launch_shape shape() const {
    launch_shape result;
    result.block = size("workgroup_size");
    result.grid = workgroups(size("grid_size"), result.block);
    result.registers = count("vgpr_count");
    result.shared = count("lds_block_size", "group_segment_size");
    return result;
  }

private:
  const csv_row& header_;
  const csv_row& row_;
};

} // namespace

bool is_rocprof_csv(std::string_view text) {
  return is_header_of_dispatches(rocprof_header(csv_line(text)));
}

trace_report read_rocprof_csv(std::string_view text) {
  trace_builder builder{trace_tool::rocprofv3};
  auto header = rocprof_header(csv_line(text));
  if (!is_header_of_dispatches(header)) text = {};
  bool counts = std::find(header.begin(), header.end(), "counter_name") != header.end();
  // With several counters a dispatch has several rows.
  std::set<std::pair<int64_t, int64_t>> known;
  while (!text.empty() && !builder.full()) {
    auto line = csv_line(text);
    if (line.empty()) continue;
    auto row = csv_fields(line);
    if (row.size() != header.size()) {
      builder.skip_row();
      continue;
    }
    dispatch_row x{header, row};
    auto value = csv_number(x.text("counter_value"));
    if (counts && !value) {
      builder.skip_row();
      continue;
    }
    auto kernel = builder.kernel_number(x.text("kernel_name"));
    auto dispatch = x.integer("dispatch_id").value_or(0);
    if (counts) builder.add_counter(kernel, x.agent(), dispatch, x.text("counter_name"), *value);
    if (counts && !known.emplace(x.agent(), dispatch).second) continue;
    // Counters were first written without times.
    if (counts && !x.interval())
      builder.add_untimed(kernel, x.shape());
    else
      builder.add_launch(kernel, x.agent(), x.interval(), x.shape());
  }
  auto result = std::move(builder).finish();
  if (result.problem == trace_problem::no_kernels)
    result.words = "there is no row of a dispatch below the header";
  return result;
}

} // namespace kernelmill
