#include "gpu/torch/torch_speedup.hpp"

#include <cmath>

#include <fmt/format.h>

#include "gpu/referee/device/device.hpp"
#include "gpu/referee/doubts.hpp"
#include "gpu/referee/paid_kinds.hpp"

namespace kernelmill {

namespace {

// Standard deviations in seconds of a call between processes that run the same code: on one core,
// of which their memory lies elsewhere, and on any, of which some are beside busy ones.
constexpr double process_spread = 0.7e-6;
constexpr double core_spread = 10e-6;
constexpr double device_spread = 0.15e-6; // of the GPU's work alone
// Standard errors by which a call may be longer than it seems, before anybody is accused.
constexpr double least_time_errors = 2;

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

void write_speedup(const torch_blocks& blocks, capnp::Text::Reader clock, const device* gpu,
                   evaluation_record& into) {
  auto kinds = blocks.without_fixed();
  auto paid = pay_settled(kinds);
  paid.speedup.low =
      std::min(paid.speedup.low, pay_settled(blocks.without_fixed(true)).speedup.low);
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
  (blocks.clock() == "device" ? timing.by_device : timing.by_call) = {timing.candidate_seconds,
                                                                      timing.reference_seconds};
  if (clock != blocks.clock() && gpu != nullptr)
    timing.note += "; timed with launches: its calls cannot be queued ahead";
  if (gpu == nullptr) return;
  auto spread = blocks.clock() == "device" ? device_spread
                : blocks.one_core()        ? process_spread
                                           : core_spread;
  // What is taken from both alike changes the ratio by what their inverses differ by.
  auto by_fixed = blocks.fixed_error() / timing.candidate_seconds -
                  blocks.fixed_error() / timing.reference_seconds;
  timing.speedup = widened(timing.speedup, std::hypot(spread / timing.reference_seconds,
                                                      spread / timing.candidate_seconds, by_fixed));
  note_conditions(*gpu, into);
}

void find_impossible_speed(const torch_blocks& blocks, const must_move& moved, const device& gpu,
                           evaluation_record& into) {
  auto& timing = into.timing;
  double error = least_time_errors * blocks.fixed_error();
  // Nobody is accused by what is taken from its rows and not proven to be none of its calls'.
  double paid =
      std::max(timing.candidate_seconds, pay_settled(blocks.without_fixed(true)).candidate_seconds);
  double own = blocks.proven_own_seconds();
  double seconds =
      shortest_known({paid + error, own > 0 ? own + error : 0, timing.by_device.candidate});
  find_impossible_time(seconds, moved, gpu, into);
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
