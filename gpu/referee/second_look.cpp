#include "gpu/referee/second_look.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "gpu/referee/candidate_faults.hpp"

namespace kernelmill {

namespace {

constexpr std::array<std::string_view, 5> rests_on_timing{"background_work", "impossible_speed",
                                                          "ran_while_stopped"};

bool is_doubtful(const finding& x) {
  return x.level == severity::critical &&
         std::find(rests_on_timing.begin(), rests_on_timing.end(), x.rule) != rests_on_timing.end();
}

bool is_certain(const finding& x) {
  return x.level == severity::critical && !is_doubtful(x);
}

bool is_warning(const finding& x) {
  return x.level == severity::warning;
}

bool any(const evaluation_record& x, bool (*of)(const finding&)) {
  return std::any_of(x.findings.begin(), x.findings.end(), of);
}

bool was_disturbed(const evaluation_record& x) {
  return x.fault.category == disturbance;
}

// By nobody in reach of the candidate, which is not to be its loss.
bool was_lost(const evaluation_record& x) {
  if (x.wrong_baseline && x.fault.cls == fault_class::configuration) return true;
  return x.fault.cls == fault_class::infrastructure && is_end_by_others(x.fault);
}

// A finding may have ended the evaluation; its fault then says no more than the finding.
bool is_open(const error& x) {
  return x.cls == fault_class::none || x.category == disturbance || x.category == "integrity";
}

bool shares_a_rule(const evaluation_record& a, const evaluation_record& b) {
  return std::any_of(a.findings.begin(), a.findings.end(), [&](const finding& x) {
    return is_doubtful(x) &&
           std::any_of(b.findings.begin(), b.findings.end(),
                       [&](const finding& y) { return is_doubtful(y) && y.rule == x.rule; });
  });
}

std::string doubts_of(const evaluation_record& x) {
  std::string result;
  for (const auto& found : x.findings)
    if (is_doubtful(found)) result += (result.empty() ? "" : ", ") + found.rule;
  return result.empty() ? x.fault.category : result;
}

void demote(evaluation_record& x) {
  for (auto& found : x.findings)
    if (is_doubtful(found)) found.level = severity::info;
}

// Few blocks have a wide interval, so no more than the middle of it is held against the second.
void pay_no_more_than(const speedup_interval& seen, timing_record& timing) {
  auto& paid = timing.speedup;
  if (!timing.measured || seen.estimate >= paid.low) return;
  paid.low = paid.estimate = seen.estimate;
  timing.note += "; rewarded no more than the first measurement showed until it ended";
}

// Who provokes a doubt when it finds itself slow shall not have two tries.
void pay_the_slower(const evaluation_record& first, evaluation_record& second) {
  if (first.timing.until_ended && !was_lost(first))
    pay_no_more_than(*first.timing.until_ended, second.timing);
  if (!first.timing.measured || !second.timing.measured ||
      first.timing.speedup.low >= second.timing.speedup.low)
    return;
  second.timing = first.timing;
  std::erase_if(second.findings, is_warning);
  std::copy_if(first.findings.begin(), first.findings.end(), std::back_inserter(second.findings),
               is_warning);
}

} // namespace

bool wants_second_look(const evaluation_record& x) {
  if (any(x, is_certain)) return false;
  return was_lost(x) || (is_open(x.fault) && (any(x, is_doubtful) || was_disturbed(x)));
}

evaluation_record doubted(evaluation_record x) {
  if (was_lost(x)) return x;
  if (was_disturbed(x) && !x.found_right) return x;
  x.timing.measured = false;
  x.timing.note = "not timed: " + doubts_of(x) + " was found, and not confirmed";
  demote(x);
  x.fault = {fault_class::none, {}, {}, {}};
  x.correct = x.found_right;
  return x;
}

evaluation_record confirmed(const evaluation_record& first, evaluation_record second) {
  if (any(second, is_certain) || shares_a_rule(first, second) || was_lost(second)) return second;
  if (was_disturbed(second))
    return was_disturbed(first) ? std::move(second) : doubted(std::move(second));
  if (any(second, is_doubtful)) return doubted(std::move(second));
  if (second.fault.cls == fault_class::none) {
    pay_the_slower(first, second);
    second.timing.note += "; " + doubts_of(first) + " of a first measurement was not found again";
  }
  return second;
}

} // namespace kernelmill
