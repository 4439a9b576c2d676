#include "gpu/profiler/trace_database.hpp"

namespace kernelmill {

namespace {

tl::unexpected<error> unread(const std::string& path, const std::string& why) {
  return configuration_error("bad_report", "failed to read " + path + ": " + why,
                             "write it again, of fewer launches if it takes too long: nsys export "
                             "--type sqlite, or rocprofv3 --output-format rocpd");
}

} // namespace

expected<trace_report> read_trace_database(const std::string& path, sqlite_budget budget) {
  auto file = sqlite_file::open(path, budget);
  KM_TRY(file);
  // Tables of nsys appear when there is something for them: a trace without kernels has these.
  bool of_nsys =
      !file->columns("CUPTI_ACTIVITY_KIND_KERNEL").empty() || !file->columns("StringIds").empty();
  // What rocpd's tables are called ends with a number that differs from run to run; its views do
  // not.
  bool of_rocpd =
      !of_nsys && (!file->columns("kernels").empty() || !file->columns("rocpd_metadata").empty());
  if (!file->trouble().empty()) return unread(path, file->trouble());
  if (!of_nsys && !of_rocpd)
    return unread(path,
                  "this SQLite database has neither nsys' table CUPTI_ACTIVITY_KIND_KERNEL nor "
                  "rocpd's view `kernels`");
  auto result = of_nsys ? read_nsys(*file) : read_rocpd(*file);
  if (!file->trouble().empty()) return unread(path, file->trouble());
  return result;
}

} // namespace kernelmill
