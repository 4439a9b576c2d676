#pragma once

// One evaluation: a library in, measured facts out. Correctness first, visible cases before
// hidden ones and small before large; then, if all is right, time. A profile has counters alone.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/referee/candidate_pool.hpp"
#include "gpu/referee/machine.hpp"
#include "gpu/referee/prepared_task.hpp"
#include "gpu/timing/timing_statistics.hpp"
#include "messages/defaults.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

struct case_record {
  const task_case* which = nullptr;
  std::string distribution;
  comparison result;
  bool pass = false;
};

enum class severity : unsigned char { info, warning, critical };

struct finding {
  std::string rule;
  severity level = severity::critical;
  std::string evidence;
};

/// Medians of calls on one kind of contents.
struct kind_time {
  std::string name;
  double candidate_seconds = 0;
  double reference_seconds = 0;
  uint32_t calls = 0;
  double speedup_low = 0; ///< of a shape, its interval; 0: not known
  double speedup_high = 0;
};

/// Seconds of a call on either side; 0: not measured.
struct both_seconds {
  double candidate = 0;
  double reference = 0;
};

/// What was seen of the baseline while a candidate was timed. The candidate stands still meanwhile,
/// so that nothing here is of its choosing but how many calls there were, and `behind`.
struct baseline_record {
  uint32_t calls = 0;
  uint32_t disturbed = 0; ///< calls that had to wait for a core
  size_t blocks = 0;
  double half_width = 0; ///< of the interval that its times alone have, relative
  double behind = 0;     ///< the candidate's median call by the baseline's, disturbed or not
};

/// Whose doing it is that a right candidate has no time; as wire::NotTimed.
enum class untimed : unsigned char { no, machine, candidate };

struct timing_record {
  bool measured = false;
  untimed why_not = untimed::no;
  baseline_record baseline;
  std::string clock = "outside";
  double candidate_seconds = 0;
  double reference_seconds = 0;
  speedup_interval speedup;
  uint32_t samples = 0;
  double overhead_seconds = 0;
  double roofline_seconds = 0;
  both_seconds by_call;   ///< back to back, launches included
  both_seconds by_device; ///< the GPU's work alone
  std::vector<kind_time> kinds;
  std::vector<both_seconds> pairs; ///< that the interval was made of, in order; may be none
  std::string note;
  std::string baseline_name; ///< empty: the task's own; else as of wire::Timing
  std::string baseline_note;
  double eager_seconds = 0; ///< estimated beside another baseline; 0: it was not
  /// What the blocks showed, two or more, before a finding ended the timing.
  std::optional<speedup_interval> until_ended;
};

struct counter {
  std::string name;
  double value = 0;
  std::string unit;
};

/// A part of the time for which an evaluation held its slot.
struct span {
  std::string name;
  double seconds;
};

/// Of a call: what it was made on, by the record's seed, and the share of its bounds that it may
/// use.
struct call_contents {
  task_case which;
  uint64_t call = 0;
  double share = 1;
};

struct evaluation_record {
  bool correct = false;
  bool found_right = false; ///< every case passed, whatever was found when it was timed
  bool deterministic = true;
  std::vector<case_record> cases;
  std::vector<finding> findings;
  timing_record timing;
  std::vector<counter> counters;
  std::vector<std::string> missing; ///< counters that could not be read, and why
  std::vector<counter> conditions;  ///< of GPU and machine while it was judged
  std::vector<span> spans;          ///< in order
  std::string output;               ///< printed until it was sealed
  bool sealed = false;              ///< a hidden case or a timed row began
  uint32_t case_count = 0;          ///< of the task; `cases` holds those that ran
  secret_seed seed{};
  std::optional<call_contents> wrong_baseline; ///< on which the baseline was wrong
  error fault{fault_class::none, {}, {}, {}};
};

/// Which of two times of a call is paid.
enum class paid_clock : unsigned char { call, device };

struct evaluation_options {
  double half_width = 0.03; ///< of the interval, relative, that ends the timing
  bool timed = true;
  bool visible_only = false; ///< hidden cases are not run, and nothing is timed
  paid_clock clock = paid_clock::device;
  bool profiled = false; ///< calls are counted; no case is run, and nothing is found right
  bool seeded = false;   ///< `seed` replays an evaluation; else one is drawn
  secret_seed seed{};
  double deadline = 0; ///< by now_seconds()
};

/// The clock that a request wants paid; "device" unless it says "call".
paid_clock clock_of(wire::TimingPolicy::Reader policy);

/// Adds what the GPU's clocks, heat and power are now, and a note where they slow it down.
void note_conditions(const device& gpu, evaluation_record& record);

/// What outlives single evaluations.
struct referee_parts {
  prepared_tasks& tasks;
  candidate_pool& pool;
  machine& hardware;
  device* gpu = nullptr; ///< of a GPU slot
  /// How often a candidate is called on the same contents of a case, to compare what comes out.
  unsigned determinism_runs = defaults::determinism_runs;
  /// A library that is timed in place of the tasks' own baselines; empty: none is.
  std::string named_baseline;
};

/// Runs the whole sequence on an open library.
evaluation_record evaluate_library(referee_parts parts, prepared_task& prepared, int library,
                                   const evaluation_options& options);

/// The same on what a build of the contract `device` made.
/// REQUIRES: a GPU slot.
evaluation_record evaluate_program(referee_parts parts, prepared_task& prepared,
                                   const std::string& artifact, const evaluation_options& options);

/// Reads the request, finds task and library, and answers; every fault is part of the answer.
Message<wire::EvaluateResult> evaluate_request(referee_parts parts,
                                               wire::EvaluateRequest::Reader request);

} // namespace kernelmill
