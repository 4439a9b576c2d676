#pragma once

// What the host of a virtual machine takes from it: whatever runs here is slower by it, and no
// process here is to blame.

#include <optional>
#include <string>

namespace kernelmill {

/// Seconds of all processors since the machine began.
struct processor_time {
  double worked = 0;
  double stolen = 0; ///< in which there was work, and the host let somebody else have the processor
};

/// Now; nothing where the system does not say.
std::optional<processor_time> processor_time_now();

/// From the text of /proc/stat.
std::optional<processor_time> processor_time_in(const std::string& stat);

/// Of the time for which processors had work, the part that was stolen, in percent; 0 where nobody
/// says.
double stolen_percent(const std::optional<processor_time>& from,
                      const std::optional<processor_time>& until);

} // namespace kernelmill
