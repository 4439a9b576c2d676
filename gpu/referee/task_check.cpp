#include "gpu/referee/task_check.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>

#include "gpu/referee/clock.hpp"
#include "gpu/referee/device/truth.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill {

namespace {

constexpr double check_seconds = 60;
// Of a look before candidates are judged: the node waits for a verdict meanwhile. What it does not
// reach is taken for well.
constexpr double look_seconds = 8;
const secret_seed check_seed{0x63, 0x68, 0x65, 0x63, 0x6b}; // fixed: a check must be repeatable

// -- outputs that need no work ----------------------------------------------------------------

taken_output constant(const argument& arg, size_t count, double value) {
  taken_output x;
  if (arg.type == dtype::f32)
    x.f32.assign(count, static_cast<float>(value));
  else
    x.i32.assign(count, static_cast<int32_t>(value));
  return x;
}

double element(const argument& arg, const tensor_contents& t, size_t i) {
  return arg.type == dtype::f32 ? static_cast<double>(t.f32[i]) : static_cast<double>(t.i32[i]);
}

void set(taken_output& x, const argument& arg, size_t i, double value) {
  if (arg.type == dtype::f32)
    x.f32[i] = static_cast<float>(value);
  else
    x.i32[i] = std::isfinite(value)
                   ? static_cast<int32_t>(std::clamp(value, -2147483648.0, 2147483647.0))
                   : 0;
}

taken_output truth_of(const argument& arg, const tensor_contents& t) {
  taken_output x = constant(arg, t.count, 0);
  for (size_t i = 0; i < t.count; ++i)
    set(x, arg, i, arg.type == dtype::f32 ? t.wide[i] : t.want[i]);
  return x;
}

// Keeps 8 or 11 bits of the mantissa, as bf16 and half do.
taken_output rounded(taken_output x, int bits) {
  for (auto& value : x.f32) {
    int exponent = 0;
    double fraction = std::frexp(static_cast<double>(value), &exponent);
    if (std::isfinite(value))
      value = static_cast<float>(
          std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits));
  }
  return x;
}

using producer = std::function<taken_output(const workload&, size_t)>;

struct degenerate {
  std::string name;
  producer produce;
  bool fatal = true;
  bool passes = true;
};

double mean_of(const argument& arg, const tensor_contents& t) {
  double sum = 0;
  for (size_t i = 0; i < t.count; ++i) sum += element(arg, t, i);
  return sum / static_cast<double>(t.count);
}

producer constant_everywhere(double value) {
  return [value](const workload& w, size_t k) {
    return constant(w.spec().arguments[k], w.tensor(k).count, value);
  };
}

producer copy_of_input(size_t j) {
  return [j](const workload& w, size_t k) {
    const auto& arg = w.spec().arguments[k];
    auto x = constant(arg, w.tensor(k).count, 0);
    for (size_t i = 0; i < w.tensor(k).count; ++i)
      set(x, arg, i, element(w.spec().arguments[j], w.tensor(j), i % w.tensor(j).count));
    return x;
  };
}

producer mean_of_input(size_t j) {
  return [j](const workload& w, size_t k) {
    return constant(w.spec().arguments[k], w.tensor(k).count,
                    mean_of(w.spec().arguments[j], w.tensor(j)));
  };
}

taken_output counting(const workload& w, size_t k) {
  const auto& arg = w.spec().arguments[k];
  auto x = constant(arg, w.tensor(k).count, 0);
  for (size_t i = 0; i < w.tensor(k).count; ++i)
    set(x, arg, i, static_cast<double>(i % w.tensor(k).row));
  return x;
}

// An inout that nobody touches holds what it held; an output holds the poison.
taken_output untouched(const workload& w, size_t k) {
  const auto& arg = w.spec().arguments[k];
  const auto& t = w.tensor(k);
  if (arg.role == argument_role::inout) return {t.f32, t.i32};
  taken_output x;
  if (arg.type == dtype::f32)
    x.f32.assign(t.count, std::nanf(""));
  else
    x.i32.assign(t.count, static_cast<int32_t>(poison_i32));
  return x;
}

std::vector<degenerate> degenerates(const task& x) {
  std::vector<degenerate> list{{"all zeros", constant_everywhere(0)},
                               {"all ones", constant_everywhere(1)},
                               {"all minus one", constant_everywhere(-1)},
                               {"untouched memory", untouched},
                               {"0, 1, 2, ... in each row", counting}};
  for (size_t j = 0; j < x.arguments.size(); ++j) {
    if (!is_filled(x.arguments[j])) continue;
    list.push_back({"a copy of " + x.arguments[j].name, copy_of_input(j)});
    list.push_back({"the mean of " + x.arguments[j].name + " everywhere", mean_of_input(j)});
  }
  return list;
}

// -- the check --------------------------------------------------------------------------------

class checker {
public:
  explicit checker(prepared_task& prepared)
      : prepared_(prepared), task_(prepared.spec()), degenerates_(degenerates(task_)) {}

  check_record run(referee_parts parts) {
    check_shape();
    check_baseline(parts);
    check_broken_starter(parts);
    check_right_starter(parts);
    auto work = prepared_.make_workload();
    check_device_truth(work);
    check_cases(work);
    return std::move(record_);
  }

  // Without what an evaluation finds out of the baseline, and of the GPU's reference, by itself.
  check_record look(referee_parts parts) {
    until_ = now_seconds() + look_seconds;
    check_shape();
    check_broken_starter(parts);
    auto work = prepared_.make_workload();
    check_cases(work);
    return std::move(record_);
  }

private:
  void check_cases(workload& work) {
    for (const auto& c : task_.cases) {
      work.select(c);
      for (uint64_t call = 0; call < 2; ++call) {
        if (now_seconds() > until_) return;
        check_contents(work, call);
      }
      check_sensitivity(work);
    }
    report();
  }

  void problem(std::string text) {
    if (told_.insert(text).second) record_.problems.push_back(std::move(text));
  }

  void check_shape() {
    if (std::none_of(task_.cases.begin(), task_.cases.end(),
                     [](const task_case& c) { return c.hidden; }))
      problem("no case is hidden: a candidate can be written for the visible shapes only");
    if (task_.cases.size() < 2) problem("there is only one case");
    double bytes = static_cast<double>(task_.bytes.evaluate(task_.timed.scalars).value_or(0));
    if (bytes > working_set(task_, task_.timed) * 1.001)
      record_.notes.push_back(
          fmt::format("bytes ({:.0f}) is more than all tensors hold at the timed shape", bytes));
  }

  evaluation_record evaluated(referee_parts parts, const std::string& path) {
    descriptor library{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    evaluation_options options;
    options.timed = false;
    options.seeded = true;
    options.seed = check_seed;
    options.deadline = std::min(until_, now_seconds() + check_seconds);
    return evaluate_library(parts, prepared_, library.get(), options);
  }

  bool starter_passes(referee_parts parts) {
    if (prepared_.starter_path().empty()) return false;
    auto result = evaluated(parts, prepared_.starter_path());
    return result.found_right && result.deterministic && result.fault.cls == fault_class::none;
  }

  // One that passes leaves nothing to repair: a copy of it would be an answer.
  void check_broken_starter(referee_parts parts) {
    if (task_.verb == "debug" && starter_passes(parts))
      problem("the starter passes every case, and the verb is debug: there is nothing to repair");
  }

  // Prompts say that it is right.
  void check_right_starter(referee_parts parts) {
    if ((task_.verb == "reformulate" || task_.verb == "diagnose") && !starter_passes(parts))
      problem("the starter fails, and the verb is " + task_.verb + ": it must be right");
  }

  void check_baseline(referee_parts parts) {
    auto result = evaluated(parts, prepared_.baseline_path());
    if (result.fault.cls != fault_class::none)
      problem("the baseline fails: " + result.fault.message);
    for (const auto& c : result.cases)
      if (!c.pass && c.which->hidden)
        problem(fmt::format("the baseline fails hidden case {}: {}", c.which->name,
                            c.result.first_bad));
    for (const auto& x : result.findings)
      if (x.level == severity::critical)
        problem("the baseline breaks a rule: " + x.rule + ": " + x.evidence);
    if (!result.deterministic) record_.notes.push_back("the baseline is not deterministic");
  }

  // On a GPU slot. The baseline has run, so buffers and truth are there unless it said why not.
  void check_device_truth(workload& work) {
    if (prepared_.truth() == nullptr) return;
    auto cause = prepared_.truth()->disagreement(work);
    if (cause) problem("reference.cu disagrees with reference.cpp: " + *cause);
    prepared_.truth_agrees = !cause;
  }

  void check_contents(workload& work, uint64_t call) {
    std::vector<taken_output> before = truth_;
    bool stale_fits = call > 0;
    work.fill(check_seed, call);
    work.find_truth();
    check_truth(work);
    truth_.assign(task_.arguments.size(), {});
    std::vector<taken_output> half = truth_;
    std::vector<taken_output> bfloat = truth_;
    for (size_t k = 0; k < truth_.size(); ++k) {
      if (!is_output(task_.arguments[k])) continue;
      truth_[k] = truth_of(task_.arguments[k], work.tensor(k));
      half[k] = rounded(truth_[k], 11);
      bfloat[k] = rounded(truth_[k], 8);
    }
    if (auto exact = work.check(truth_); !exact.pass())
      problem("the truth itself, rounded to fp32, is outside its bound: " + exact.first_bad +
              "; the scale is too small");
    for (auto& x : degenerates_) {
      if (!x.passes) continue;
      std::vector<taken_output> outputs(task_.arguments.size());
      for (size_t k = 0; k < outputs.size(); ++k)
        if (is_output(task_.arguments[k])) outputs[k] = x.produce(work, k);
      x.passes = work.check(outputs).pass();
    }
    if (stale_fits) stale_passes_ = stale_passes_ && work.check(before).pass();
    half_passes_ = half_passes_ && work.check(half).pass();
    bfloat_passes_ = bfloat_passes_ && work.check(bfloat).pass();
  }

  void check_truth(const workload& work) {
    bool finite_inputs = true;
    for (size_t i = 0; i < task_.arguments.size(); ++i)
      for (float value : work.tensor(i).f32) finite_inputs = finite_inputs && std::isfinite(value);
    const auto& name = work.selected().name;
    for (size_t k = 0; k < task_.arguments.size(); ++k) {
      const auto& arg = task_.arguments[k];
      if (!is_output(arg) || arg.type == dtype::i32) continue;
      const auto& t = work.tensor(k);
      for (size_t i = 0; i < t.count; ++i) {
        if (std::isnan(t.wide[i]))
          problem("the reference gives NaN for " + arg.name + " in case " + name);
        else if (!std::isfinite(t.wide[i]) && finite_inputs)
          problem("the reference gives an infinity for " + arg.name + " in case " + name);
        if (std::isnan(t.scale[i]) || t.scale[i] < 0 ||
            (std::isinf(t.scale[i]) && std::isfinite(t.wide[i])))
          problem("the reference gives a scale for " + arg.name + " in case " + name +
                  " that is negative or not finite");
        else if (t.scale[i] > 0)
          scaled_.insert(k);
      }
    }
  }

  // Each input in turn gets other contents: in some case the truth must change.
  void check_sensitivity(workload& work) {
    for (size_t j = 0; j < task_.arguments.size(); ++j) {
      if (!is_filled(task_.arguments[j]) || sensitive_.count(j) > 0) continue;
      work.fill(check_seed, 0);
      work.find_truth();
      auto before = truths(work);
      work.refill(j, check_seed, 7);
      work.find_truth();
      if (before != truths(work)) sensitive_.insert(j);
    }
  }

  std::vector<std::vector<double>> truths(const workload& work) const {
    std::vector<std::vector<double>> result;
    for (size_t k = 0; k < task_.arguments.size(); ++k) {
      if (!is_output(task_.arguments[k])) continue;
      const auto& t = work.tensor(k);
      if (task_.arguments[k].type == dtype::f32)
        result.push_back(t.wide);
      else
        result.emplace_back(t.want.begin(), t.want.end());
    }
    return result;
  }

  void report() {
    auto cases = fmt::format("all {} cases", task_.cases.size());
    for (const auto& x : degenerates_)
      if (x.passes)
        problem(x.name + " passes " + cases + ": the cases cannot distinguish it from real work");
    if (stale_passes_)
      problem("the output of the call before passes " + cases +
              ": the output does not depend on the contents");
    bool floats = false;
    for (size_t k = 0; k < task_.arguments.size(); ++k) {
      const auto& arg = task_.arguments[k];
      if (is_filled(arg) && sensitive_.count(k) == 0)
        problem("the reference does not depend on input " + arg.name);
      if (!is_output(arg) || arg.type == dtype::i32) continue;
      floats = true;
      if (scaled_.count(k) == 0) problem("the scale of " + arg.name + " is 0 everywhere");
    }
    if (floats && bfloat_passes_)
      problem("the truth rounded to bf16 passes " + cases +
              ": the scale or the tolerance is too large");
    else if (floats && half_passes_)
      record_.notes.push_back("the truth rounded to half precision passes " + cases);
  }

  prepared_task& prepared_;
  const task& task_;
  std::vector<degenerate> degenerates_;
  double until_ = std::numeric_limits<double>::infinity();
  std::vector<taken_output> truth_;
  bool stale_passes_ = true;
  bool half_passes_ = true;
  bool bfloat_passes_ = true;
  std::set<size_t> scaled_;
  std::set<size_t> sensitive_;
  std::set<std::string> told_;
  check_record record_;
};

} // namespace

check_record check_task(referee_parts parts, prepared_task& prepared) {
  return checker{prepared}.run(parts);
}

const std::optional<error>& unfit(referee_parts parts, prepared_task& prepared) {
  if (prepared.is_looked_at) return prepared.unfit;
  prepared.is_looked_at = true;
  auto found = checker{prepared}.look(parts);
  if (!found.problems.empty())
    prepared.unfit =
        error{fault_class::configuration, "unfit_task",
              "failed to judge by task " + prepared.spec().id + ": " + found.problems.front(),
              "`kernelmill task check` says more"};
  return prepared.unfit;
}

Message<wire::CheckResult> check_request(referee_parts parts, wire::CheckRequest::Reader request) {
  double started = now_seconds();
  check_record record;
  if (request.getTaskDir().size() == 0) { // a probe: a GPU that is gone ends this process
    if (parts.gpu != nullptr) {
      parts.gpu->push_out_cache();
      parts.gpu->synchronize();
    }
  } else if (auto prepared = parts.tasks.get(request.getTaskDir(), ""); prepared) {
    record = check_task(parts, **prepared);
  } else {
    record.problems.push_back(render(prepared.error()));
  }
  return check_result(record, now_seconds() - started);
}

Message<wire::CheckResult> check_result(const check_record& record, double seconds) {
  return build<wire::CheckResult>([&](wire::CheckResult::Builder out) {
    out.setOk(record.problems.empty());
    auto problems = out.initProblems(static_cast<unsigned>(record.problems.size()));
    for (unsigned i = 0; i < record.problems.size(); ++i) problems.set(i, record.problems[i]);
    auto notes = out.initNotes(static_cast<unsigned>(record.notes.size()));
    for (unsigned i = 0; i < record.notes.size(); ++i) notes.set(i, record.notes[i]);
    out.setSeconds(seconds);
  });
}

} // namespace kernelmill
