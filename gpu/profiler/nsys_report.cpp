// nsys export --type sqlite. Columns are taken by name, since versions differ in theirs: written by
// the export's documented schema ("SQLite Schema Reference" of nsys 2021.5 to 2026.1, whose
// META_DATA_EXPORT tells EXPORT_SCHEMA_VERSION up to 3.24).

#include <fmt/format.h>

#include "gpu/profiler/trace_builder.hpp"
#include "gpu/profiler/trace_cells.hpp"
#include "gpu/profiler/trace_database.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view nsys_kernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr std::string_view nsys_strings = "StringIds";

// Names are ids into StringIds. Each is looked up once.
class nsys_names {
public:
  explicit nsys_names(sqlite_file& file)
      : file_(file), has_strings_(file.columns(nsys_strings).contains("value")) {
    // nop
  }

  uint32_t number_of(trace_builder& builder, std::optional<int64_t> id) {
    if (!id) return builder.kernel_number({});
    auto known = numbers_.find(*id);
    if (known != numbers_.end()) return known->second;
    // Ids without end are no program's; each would be a search through a table.
    auto name = numbers_.size() < most_names ? look_up(*id) : std::string{};
    auto number = builder.kernel_number(name.empty() ? fmt::format("(string {})", *id) : name);
    if (numbers_.size() < most_names) numbers_.emplace(*id, number);
    return number;
  }

private:
  static constexpr size_t most_names = 8192;

  std::string look_up(int64_t id) {
    if (!has_strings_) return {};
    auto rows = file_.select(nsys_strings, {"value"}, "id", id);
    return rows.next() ? rows.text(0, longest_traced_name) : std::string{};
  }

  sqlite_file& file_;
  bool has_strings_;
  std::unordered_map<int64_t, uint32_t> numbers_;
};

launch_shape nsys_shape(const sqlite_rows& rows, int column) {
  launch_shape result;
  result.grid = extent_in(rows, column);
  result.block = extent_in(rows, column + 3);
  result.registers = count_in(rows, column + 6);
  result.static_shared = count_in(rows, column + 7);
  result.dynamic_shared = count_in(rows, column + 8);
  if (result.static_shared && result.dynamic_shared)
    result.shared = *result.static_shared + *result.dynamic_shared;
  return result;
}

void take_kernels(sqlite_file& file, trace_builder& builder) {
  nsys_names names{file};
  auto rows = file.select(nsys_kernels,
                          {"start", "end", "deviceId", "demangledName", "shortName", "gridX",
                           "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
                           "staticSharedMemory", "dynamicSharedMemory"});
  while (!builder.full() && rows.next()) {
    auto id = rows.integer(3);
    builder.add_launch(names.number_of(builder, id ? id : rows.integer(4)),
                       rows.integer(2).value_or(0), interval_in(rows), nsys_shape(rows, 5));
  }
}

// ENUM_CUDA_MEMCPY_OPER has the words for copyKind; older exports lack it.
std::map<int64_t, std::string> copy_kinds(sqlite_file& file) {
  std::map<int64_t, std::string> result;
  constexpr std::string_view table = "ENUM_CUDA_MEMCPY_OPER";
  if (file.columns(table).empty()) return result;
  auto rows = file.select(table, {"id", "label"});
  while (result.size() < 64 && rows.next())
    if (auto id = rows.integer(0)) result[*id] = rows.text(1, 80);
  return result;
}

void take_copies(sqlite_file& file, trace_builder& builder) {
  constexpr std::string_view copies = "CUPTI_ACTIVITY_KIND_MEMCPY";
  if (!file.columns(copies).empty()) {
    auto kinds = copy_kinds(file);
    auto rows = file.select(copies, {"start", "end", "deviceId", "copyKind", "bytes"});
    while (!builder.full() && rows.next()) {
      auto kind = kinds.find(rows.integer(3).value_or(-1));
      builder.add_copy(kind == kinds.end() || kind->second.empty() ? "memcpy" : kind->second,
                       rows.integer(2).value_or(0), interval_in(rows), count_in(rows, 4));
    }
  }
  constexpr std::string_view sets = "CUPTI_ACTIVITY_KIND_MEMSET";
  if (file.columns(sets).empty()) return;
  auto rows = file.select(sets, {"start", "end", "deviceId", "bytes"});
  while (!builder.full() && rows.next())
    builder.add_copy("memset", rows.integer(2).value_or(0), interval_in(rows), count_in(rows, 3));
}

std::string nsys_version(sqlite_file& file) {
  constexpr std::string_view table = "META_DATA_EXPORT";
  if (file.columns(table).empty()) return {};
  auto rows = file.select(table, {"name", "value"});
  for (int i = 0; i < 1000 && rows.next(); ++i)
    if (rows.text(0, 80) == "EXPORT_SCHEMA_VERSION") return rows.text(1, 40);
  return {};
}

// Kernels name their GPU by CUDA's number, this table by the system's. Where all GPUs are of one
// kind it does not matter which is which.
trace_gpu nsys_gpu(sqlite_file& file) {
  constexpr std::string_view table = "TARGET_INFO_GPU";
  trace_gpu result;
  if (file.columns(table).empty()) return result;
  auto rows = file.select(table, {"name", "computeMajor", "computeMinor", "smCount"});
  bool first = true;
  for (int i = 0; i < 64 && rows.next(); ++i) {
    trace_gpu one;
    one.name = rows.text(0, 120);
    auto major = rows.integer(1), minor = rows.integer(2), count = rows.integer(3);
    if (major && minor && *major > 0 && *major < 100 && *minor >= 0 && *minor < 10)
      one.architecture = fmt::format("sm_{}{}", *major, *minor);
    if (count && *count > 0 && *count < 10'000) one.multiprocessors = static_cast<uint64_t>(*count);
    if (!first && (one.name != result.name || one.architecture != result.architecture ||
                   one.multiprocessors != result.multiprocessors))
      return {};
    result = std::move(one);
    first = false;
  }
  return result;
}

} // namespace

trace_report read_nsys(sqlite_file& file) {
  trace_builder builder{trace_tool::nsys};
  builder.set_version(nsys_version(file));
  builder.set_gpu(nsys_gpu(file));
  bool has_kernels = !file.columns(nsys_kernels).empty();
  if (has_kernels) take_kernels(file, builder);
  take_copies(file, builder);
  // With --cuda-graph-trace=graph the kernels of a graph have no rows of their own.
  bool has_graphs = !file.columns("CUPTI_ACTIVITY_KIND_GRAPH_TRACE").empty();
  if (has_graphs)
    builder.note("CUDA graphs were traced as a whole, and their kernels are left out: trace with "
                 "--cuda-graph-trace=node");
  auto result = std::move(builder).finish();
  if (result.problem == trace_problem::no_kernels)
    result.words = has_kernels ? "the table CUPTI_ACTIVITY_KIND_KERNEL has no launch with times"
                               : "there is no table CUPTI_ACTIVITY_KIND_KERNEL";
  return result;
}

} // namespace kernelmill
