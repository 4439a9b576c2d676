#pragma once

// Every number of the timing of candidates by batches: threat or need, rule, value. What a figure
// was measured on stands behind it.

#include <cstddef>

namespace kernelmill::timing {

// -- how long, and how many batches -------------------------------------------------------------

/// Seconds of a batch of many calls. Longer ones are known no better: what is subtracted varies as
/// the batch grows (H200: 6 us at 2 ms, 12 us at 8 ms).
inline constexpr double batch_seconds = 2.5e-3;

/// Batches of the baseline before a candidate is there: that warm it up, of how many calls its time
/// is looked for, and of one call and of many from which its overhead comes.
inline constexpr size_t warming_batches = 2;
inline constexpr unsigned trial_calls = 8;
inline constexpr size_t calibrating_batches = 6;

/// Seconds for which such a calibration holds: heat and other programs change it.
inline constexpr double calibration_holds = 60;

/// A candidate that is much faster than the baseline has longer batches, of so many times as many
/// calls at most: the baseline's take so much longer.
inline constexpr unsigned most_longer = 3;

/// Batches with the task's own inputs, at least and at most. Four narrow an interval to 1 % at 0.3
/// % of noise, which is that of batches of 2 ms (H200).
struct batch_counts {
  size_t least = 4;
  size_t most = 9;
};

/// Input patterns that share a batch. One of four that takes 1.2 times as long makes it 5 % longer.
inline constexpr size_t patterns_a_batch = 4;

/// Batches of one call: merged launches, overlap between calls and work in a second context gain
/// nothing there. More where a call is short, because each is known to some microseconds only.
struct singles_rule {
  double longest; ///< seconds of a call
  size_t batches;
};
inline constexpr singles_rule single_batches[] = {{50e-6, 32}, {200e-6, 16}, {1e9, 8}};

/// Batches whose calls are kept apart: who gives each call a stream of its own has them run side by
/// side. What the baseline's calls take more there is the order's own cost (H200: 8 us a call);
/// what a candidate's take more beyond that is charged from this share and these seconds on.
inline constexpr size_t apart_batches = 2;
inline constexpr double apart_share = 0.1;
inline constexpr double apart_floor = 1e-6;
inline constexpr double most_apart_cost =
    12e-6; ///< that a candidate which slows the baseline gains

/// A batch that lost its core, or beside which a context was made, is taken again so often. What is
/// disturbed still counts for nothing.
inline constexpr int most_retakes = 7;

// -- what is believed ---------------------------------------------------------------------------

/// The baseline counts at most so many times its least time before the candidate was there: a
/// candidate that slows it gains no more.
inline constexpr double believed_slowdown = 1.05;

/// Of the time until outputs were seen a candidate pays this share at least, whatever is
/// subtracted; of a single call, which is much shorter than that, these seconds.
inline constexpr double least_share = 0.2;
inline constexpr double shortest_call = 1e-6;

/// What a batch takes besides calls may have grown by so much since the baseline was calibrated.
inline constexpr double overhead_slack = 10e-6; ///< seconds
inline constexpr double overhead_growth = 1.05;

/// Seconds by which inputs may come later than in the baseline's batch of the pair, or than nearly
/// all of its batches before the candidate was there.
inline constexpr double fill_slack = 30e-6;

/// Of single and nominal batches and of those kept apart, at least this share must count: a
/// candidate that had others disturbed would be without their limit.
inline constexpr double least_counting = 0.5;

/// A growth of the overhead beyond this, a second of calls, is noise: an H200 has 0.008.
inline constexpr double most_growth = 0.03;

// -- what is paid -------------------------------------------------------------------------------

/// Error of a single call besides that of its mean: outside clocks agree to 1 to 2 us (H200).
inline constexpr double single_error = 1e-6; ///< seconds
inline constexpr double single_standard_errors = 2;

/// Below this nothing is paid that single calls do not show by themselves.
inline constexpr double shortest_forgiven = 20e-6; ///< seconds of a call

/// A batch of several patterns that is slower than the task's own by so much, and by three standard
/// errors, is taken apart; a pattern that is slower alone by as much is paid alone.
inline constexpr double slower_batch = 0.02;
inline constexpr double slower_pattern = 0.03;
inline constexpr double standard_errors = 3;

/// A speedup holds for batches of several patterns, too, beyond so many standard errors of theirs:
/// of four batches 0.7 % on a GPU.
inline constexpr double mixed_standard_errors = 2;

/// What the times of a machine differ by.
struct machine_noise {
  /// Deviation of a pair's logarithm that hides a slow pattern, at most: a candidate chooses its
  /// own.
  double most_deviation = 0.007;

  /// Batches of a pattern of its own before it is paid alone.
  size_t confirming_batches = 3;

  /// Deviation of the logarithm of a speedup between processes that run the same code: their memory
  /// lies elsewhere (copies of the baselines, H200).
  double of_processes = 0.008;

  /// The same in seconds of a call, however long that takes.
  double of_calls = 0;
};

// -- on a CPU -----------------------------------------------------------------------------------

/// Seconds of a batch, and its calls at most; batches with the task's own inputs. Each call needs
/// fresh contents, a truth and flushes, 1 ms, so that a call of 0.1 ms costs ten times that. A
/// batch of two differs from the next by 4 %. Four calls a batch took twice the slot's time and
/// made no interval narrower, because a wild call costs its whole batch.
inline constexpr double host_batch_seconds = 20e-3;
inline constexpr unsigned most_host_calls = 2;
inline constexpr batch_counts host_nominal{8, 40};

/// Rounds of mixed batches, each with one call on every pattern. One batch in twenty is wild, and
/// of three that one would be paid.
inline constexpr size_t host_rounds = 2;

/// The same of Python modules: of large tensors the contents of a call, and its check, take fifty
/// times as long as the call, so that longer batches cost more than they tell.
inline constexpr double module_batch_seconds = 5e-3;
inline constexpr batch_counts module_nominal{8, 16};

/// Seconds of both sides' calls after which a batch ends that has each of its patterns: a slow
/// candidate would keep the slot for minutes.
inline constexpr double longest_host_batch = 0.25;

/// Seconds of calls that batches behind the plan's may take: a candidate that is slow on a pattern
/// would keep the slot. Where they are spent one batch of that pattern is enough to be paid for.
inline constexpr double most_more_host_seconds = 1;

/// Pairs of calls that warm up.
inline constexpr size_t host_warming_calls = 2;

/// Tries for each call of a batch: on a busy machine one waits for a core.
inline constexpr size_t tries_a_host_call = 3;

/// Processor time of a process that should have stood still, by that of its calls. A stopped one
/// takes none.
inline constexpr double most_idle_share = 0.01;

/// What two processes of the same code differ by is where their pages lie, and so which lines of
/// the caches they share: 246 of 256 intervals of sixteen kernels of 35 to 180 us held their
/// kernel's median on two quiet cores.
inline constexpr machine_noise host_noise{0.02, 6, 0.015, 0.8e-6};

/// Batches of modules are 0.1 s apart, and their calls use all cores: two shared cores changed
/// their pace by a factor of two in between, for a copy of the baseline as for the baseline.
inline constexpr machine_noise module_noise{0.1, 3, 0.03, 0.8e-6};

} // namespace kernelmill::timing
