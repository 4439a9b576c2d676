#pragma once

// What all processors of this machine worked, and what the host of a virtual machine took from
// them: whatever runs here is slower by that, and no process here is to blame.

#include <optional>
#include <string>

namespace kernelmill {

/// Seconds of all processors since the machine began.
struct machine_work {
  double worked = 0;
  double stolen = 0; ///< in which there was work, and the host let somebody else have the processor
};

/// Now; nothing where the system does not say.
std::optional<machine_work> machine_work_now();

/// From the text of /proc/stat.
std::optional<machine_work> machine_work_in(const std::string& stat);

/// Of the time for which processors had work, the part that was stolen, in percent; 0 where nobody
/// says.
double stolen_percent(const std::optional<machine_work>& from,
                      const std::optional<machine_work>& until);

} // namespace kernelmill
