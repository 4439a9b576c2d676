#include "gpu/torch/torch_shapes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "messages/base/json_fields.hpp"
#include "messages/shapes.hpp"

namespace kernelmill {

namespace {

constexpr const char* for_all_shapes =
    "the module must hold for every shape that the task names, and for hidden ones";

bool is_critical(const finding& x) {
  return x.level == severity::critical;
}

std::vector<finding> placed(std::vector<finding> found, const judged_shape& at) {
  if (at.variant != nullptr)
    for (auto& x : found) x.evidence = at_shape(at.label()) + x.evidence;
  return found;
}

// What a candidate says of itself, or brings about, at a hidden shape may tell that shape. What the
// machine or the task is at fault for is told to users alone.
error fault_at(const shape_result& x) {
  auto fault = x.record.fault;
  if (fault.cls == fault_class::none || x.at.variant == nullptr) return fault;
  if (fault.cls != fault_class::candidate)
    fault.message = at_shape(visible_shape(x.at.variant->name)) + fault.message;
  else if (x.at.is_hidden())
    fault.message = at_shape(x.at.label()) + "it fails there (" + fault.category +
                    "), and is right at the problem's own shape";
  else
    fault.message = at_shape(x.at.label() + " (" + x.inputs + ")") + fault.message;
  if (fault.cls == fault_class::candidate) fault.hint = for_all_shapes;
  return fault;
}

// The record of a candidate that is right until the last of the shapes.
evaluation_record failed_at(const shape_result& last, evaluation_record whole) {
  const auto& x = last.record;
  whole.fault = fault_at(last);
  whole.correct = x.correct;
  whole.found_right = x.found_right;
  // Of the shapes before it nothing is left but their trials: what was seen there when it was timed
  // is not to be told by a process that was not sealed yet.
  whole.findings = placed(x.findings, last.at);
  whole.timing = {};
  whole.timing.note = "not timed: it is not right at " + last.at.label();
  if (last.at.is_hidden()) {
    whole.sealed = true;
  } else {
    whole.sealed = x.sealed;
    whole.output = x.output;
  }
  return whole;
}

void add_findings(std::vector<finding> more, std::vector<finding>& to) {
  for (auto& x : more)
    if (std::none_of(to.begin(), to.end(), [&](const finding& y) { return y.rule == x.rule; }))
      to.push_back(std::move(x));
}

void add_spans(const std::vector<span>& more, std::vector<span>& to) {
  for (const auto& x : more) {
    auto known =
        std::find_if(to.begin(), to.end(), [&](const span& y) { return y.name == x.name; });
    if (known != to.end())
      known->seconds += x.seconds;
    else
      to.push_back(x);
  }
}

// A share of own kernels holds at every shape that is timed.
void keep_the_least(const std::vector<counter>& more, std::vector<counter>& of) {
  for (const auto& x : more)
    for (auto& y : of)
      if (y.name == x.name) y.value = std::min(y.value, x.value);
}

// Of numbers above 0; else 0.
class geometric_mean {
public:
  void add(double x) {
    sum_ += std::log(x);
    ++count_;
  }
  double value() const { return count_ > 0 ? std::exp(sum_ / count_) : 0; }

private:
  double sum_ = 0;
  double count_ = 0;
};

template <class Field>
double mean_of(const std::vector<const timing_record*>& all, Field field) {
  geometric_mean result;
  for (const auto* x : all) result.add(field(*x));
  return result.value();
}

// Errors of the shapes' logarithms are independent: each was measured by batches of its own.
speedup_interval mean_speedup(const std::vector<const timing_record*>& all) {
  double below = 0, above = 0;
  for (const auto* x : all) {
    const auto& s = x->speedup;
    below += std::pow(std::log(s.estimate) - std::log(s.low), 2);
    above += std::pow(std::log(s.high) - std::log(s.estimate), 2);
  }
  auto count = static_cast<double>(all.size());
  speedup_interval result;
  result.estimate = mean_of(all, [](const timing_record& x) { return x.speedup.estimate; });
  result.low = result.estimate * std::exp(-std::sqrt(below) / count);
  result.high = result.estimate * std::exp(std::sqrt(above) / count);
  return result;
}

both_seconds mean_seconds(const std::vector<const timing_record*>& all,
                          both_seconds timing_record::*which) {
  return {mean_of(all, [&](const timing_record& x) { return (x.*which).candidate; }),
          mean_of(all, [&](const timing_record& x) { return (x.*which).reference; })};
}

timing_record untimed_at(const std::vector<const shape_result*>& timed) {
  const shape_result* first = nullptr;
  auto why = untimed::no;
  for (const auto* x : timed) {
    const auto& timing = x->record.timing;
    if (timing.measured) continue;
    if (first == nullptr) first = x;
    if (timing.why_not == untimed::candidate || why == untimed::no) why = timing.why_not;
  }
  auto result = first->record.timing;
  if (first->at.variant != nullptr) result.note = at_shape(first->at.label()) + result.note;
  result.why_not = why;
  return result;
}

// What torch.compile refuses at one shape is timed as it is there. The estimate of the model as it
// is needs all shapes.
void note_baselines(const std::vector<const shape_result*>& timed, timing_record& into) {
  bool is_estimated = true;
  geometric_mean eager;
  into.baseline_note.clear();
  for (const auto* x : timed) {
    const auto& one = x->record.timing;
    if (one.baseline_name != "eager") into.baseline_name = one.baseline_name;
    double seconds = one.baseline_name == "eager" ? one.reference_seconds : one.eager_seconds;
    is_estimated = is_estimated && seconds > 0;
    if (seconds > 0) eager.add(seconds);
    if (!one.baseline_note.empty())
      into.baseline_note +=
          (into.baseline_note.empty() ? "" : "; ") + x->at.label() + ": " + one.baseline_note;
  }
  into.eager_seconds = is_estimated && into.baseline_name != "eager" ? eager.value() : 0;
}

// JSON has no infinity; null stands for it.
double error_of(const nlohmann::json& x, const char* name) {
  auto found = x.find(name);
  return found != x.end() && found->is_null() ? std::numeric_limits<double>::infinity()
                                              : number_in(x, name);
}

} // namespace

std::string judged_shape::label() const {
  if (variant == nullptr) return std::string{base_shape};
  return is_hidden() ? hidden_shape(hidden_number) : visible_shape(variant->name);
}

std::vector<judged_shape> shapes_of(const torch_problem& x, bool timed) {
  std::vector<judged_shape> result{{nullptr, 0, timed}};
  size_t number = 0;
  for (bool hidden : {false, true})
    for (const auto& one : x.variants)
      if (one.hidden == hidden) result.push_back({&one, hidden ? ++number : 0, timed && one.timed});
  return result;
}

bool shape_result::is_right() const {
  return record.correct && record.fault.cls == fault_class::none &&
         std::none_of(record.findings.begin(), record.findings.end(), is_critical);
}

timing_record mean_of_shapes(const std::vector<shape_result>& all) {
  std::vector<const shape_result*> timed;
  std::vector<const timing_record*> times;
  for (const auto& x : all) {
    if (!x.at.timed) continue;
    timed.push_back(&x);
    times.push_back(&x.record.timing);
  }
  auto result = *times.front();
  if (timed.size() == 1) return result;
  if (std::any_of(times.begin(), times.end(), [](const auto* x) { return !x->measured; }))
    return untimed_at(timed);
  result.candidate_seconds =
      mean_of(times, [](const timing_record& x) { return x.candidate_seconds; });
  result.reference_seconds =
      mean_of(times, [](const timing_record& x) { return x.reference_seconds; });
  result.roofline_seconds =
      mean_of(times, [](const timing_record& x) { return x.roofline_seconds; });
  result.speedup = mean_speedup(times);
  note_baselines(timed, result);
  result.by_call = mean_seconds(times, &timing_record::by_call);
  result.by_device = mean_seconds(times, &timing_record::by_device);
  result.samples = 0;
  result.pairs.clear(); // each is of one shape, and the mean of none
  std::string each;
  for (size_t i = 0; i < timed.size(); ++i) {
    const auto& x = *times[i];
    result.samples += x.samples;
    each += fmt::format("{}{} {:.3f} [{:.3f}, {:.3f}]", each.empty() ? "" : ", ",
                        timed[i]->at.label(), x.speedup.estimate, x.speedup.low, x.speedup.high);
    result.kinds.push_back({timed[i]->at.label(), x.candidate_seconds, x.reference_seconds,
                            x.samples, x.speedup.low, x.speedup.high});
  }
  result.note = each + (result.note.empty() ? "" : "; " + result.note);
  return result;
}

evaluation_record together(const std::vector<shape_result>& all, size_t planned) {
  auto result = all.front().record;
  result.case_count *= static_cast<uint32_t>(planned);
  for (size_t i = 1; i < all.size(); ++i) {
    const auto& x = all[i].record;
    add_spans(x.spans, result.spans);
    if (!all[i].is_right()) return failed_at(all[i], std::move(result));
    result.deterministic = result.deterministic && x.deterministic;
    result.sealed = result.sealed || x.sealed;
    add_findings(placed(x.findings, all[i].at), result.findings);
    keep_the_least(x.counters, result.counters);
  }
  if (all.front().at.timed && all.front().is_right()) result.timing = mean_of_shapes(all);
  return result;
}

std::string timed_at(const std::vector<shape_result>& all) {
  auto timed = std::count_if(all.begin(), all.end(), [](const auto& x) { return x.at.timed; });
  const auto& own = all.front().inputs;
  if (timed < 2) return own;
  return fmt::format("{} and {} more {}, geometric means", own, timed - 1,
                     timed == 2 ? "shape" : "shapes");
}

void write_trials(const std::vector<shape_result>& all, wire::EvaluateResult::Builder out) {
  size_t count = 0;
  for (const auto& x : all) count += x.trials.size();
  auto cases = out.initCases(static_cast<unsigned>(count));
  unsigned i = 0;
  for (const auto& one : all) {
    auto label = one.at.variant != nullptr ? one.at.label() + ": " : std::string{};
    for (const auto& x : one.trials) {
      auto into = cases[i++];
      auto bad = number_in(x, "bad");
      into.setName(label + text_in(x, "name"));
      into.setShape(one.inputs);
      into.setHidden(one.at.is_hidden() || flag_in(x, "hidden", false));
      into.setDistribution(text_in(x, "distribution"));
      into.setMaxError(error_of(x, "max_error"));
      into.setBound(error_of(x, "bound"));
      into.setPass(flag_in(x, "pass", false));
      into.setBadCount(bad > 0 && bad < 1e15 ? static_cast<uint64_t>(bad) : 0);
      into.setFirstBad(text_in(x, "first_bad"));
    }
  }
}

} // namespace kernelmill
