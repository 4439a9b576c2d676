#pragma once

// Traces as SQLite databases: what `nsys export --type sqlite` and `rocprofv3 --output-format
// rocpd` write.

#include <string>

#include "gpu/profiler/sqlite_file.hpp"
#include "gpu/profiler/trace_report.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// Reads either. An error where the file is damaged, is of another program, or takes more work than
/// `budget`; a problem of the report where it was read and has no kernels.
expected<trace_report> read_trace_database(const std::string& path, sqlite_budget budget = {});

/// INTERNAL: of a database that has nsys' tables.
trace_report read_nsys(sqlite_file& file);

/// INTERNAL: of a database that has rocpd's views.
trace_report read_rocpd(sqlite_file& file);

} // namespace kernelmill
