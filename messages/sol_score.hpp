#pragma once

// How near a kernel comes to the fastest that its machine allows.

namespace kernelmill {

/// Whether there is a scale: a roofline is known, and the baseline is slower than it.
inline bool has_sol_scale(double baseline_ms, double roofline_ms) {
  return roofline_ms > 0 && baseline_ms > roofline_ms;
}

/// 1/(1 + (t - t_sol)/(t_b - t_sol)) of a kernel's time, the roofline and the baseline's time: 1 at
/// the roofline, 0.5 at the baseline's time, towards 0 behind it. 0 where there is no scale.
inline double sol_score(double ms, double baseline_ms, double roofline_ms) {
  if (!has_sol_scale(baseline_ms, roofline_ms) || !(ms > 0)) return 0;
  if (ms <= roofline_ms) return 1;
  return 1 / (1 + (ms - roofline_ms) / (baseline_ms - roofline_ms));
}

} // namespace kernelmill
