#pragma once

// Rows of the CSV that profilers write.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

using csv_row = std::vector<std::string>;

/// Fields may be quoted; a quote within is doubled. A row is one line: no profiler writes line
/// breaks into a field. At most 4096 fields.
csv_row csv_fields(std::string_view line);

/// "1,234.5" and "1.5e+06"; nothing of "n/a", "nan" or an empty field.
std::optional<double> csv_number(std::string_view text);

} // namespace kernelmill
