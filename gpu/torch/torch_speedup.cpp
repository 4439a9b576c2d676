#include "gpu/torch/torch_speedup.hpp"

#include <cmath>

#include <fmt/format.h>

#include "gpu/referee/device/device.hpp"
#include "gpu/referee/doubts.hpp"
#include "gpu/referee/paid_kinds.hpp"

namespace kernelmill {

namespace {

void tell_slowest(const torch_blocks& blocks, const paid_speedup& paid, evaluation_record& into) {
  note_apart(into, blocks.apart(), paid.candidate_seconds);
  for (const auto& [name, seconds] : blocks.seen())
    into.conditions.push_back({name, seconds * 1e3, "ms"});
  if (!paid.slowest) return;
  std::string times;
  for (const auto& x : into.timing.kinds)
    times += fmt::format("{}{} {:.4f} ms for {:.4f}", times.empty() ? "" : ", ", x.name,
                         x.candidate_seconds * 1e3, x.reference_seconds * 1e3);
  into.findings.push_back(
      {"depends_on_contents", severity::warning,
       fmt::format("{:.2f} times slower on contents {} than on others, which is what is paid: {}",
                   paid.times_slower, *paid.slowest, times)});
}

} // namespace

void write_speedup(const torch_blocks& blocks, evaluation_record& into) {
  auto kinds = blocks.without_fixed();
  auto paid = pay_settled(kinds);
  auto& timing = into.timing;
  if (!std::isfinite(paid.speedup.estimate) || !std::isfinite(paid.speedup.low)) {
    timing.note = "not measured: what a row takes besides its calls differs by more than they take";
    return;
  }
  timing.measured = true;
  for (const auto& x : kinds) timing.baseline.blocks += x.blocks.size();
  timing.baseline.behind = paid.candidate_seconds / paid.reference_seconds;
  timing.baseline.half_width = baseline_half_width(kinds);
  timing.reference_seconds = paid.reference_seconds;
  timing.candidate_seconds = paid.candidate_seconds;
  timing.speedup = paid.speedup;
  blocks.write(timing);
  tell_slowest(blocks, paid, into);
  timing.by_call = {timing.candidate_seconds, timing.reference_seconds};
}

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
