#include "gpu/torch/impossible_time.hpp"

#include <fmt/format.h>

#include "gpu/referee/device/device.hpp"

namespace kernelmill {

void find_impossible_time(double seconds, const must_move& moved, const device& gpu,
                          evaluation_record& into) {
  auto& timing = into.timing;
  timing.roofline_seconds = least_seconds(moved, gpu.memory_bytes_per_second());
  if (seconds >= timing.roofline_seconds) return;
  into.findings.push_back(
      {"impossible_speed", severity::critical,
       fmt::format("{:.6f} ms for {:.0f} bytes that must be read and written, {:.0f} of them of "
                   "parameters; this GPU's memory needs {:.6f} ms",
                   seconds * 1e3, moved.bytes + moved.weight_bytes, moved.weight_bytes,
                   timing.roofline_seconds * 1e3)});
}

} // namespace kernelmill
