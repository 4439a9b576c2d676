#include "gpu/examine/code_checks.hpp"

#include <algorithm>
#include <vector>

#include "gpu/referee/clock.hpp"
#include "messages/base/digest.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

namespace {

constexpr double longest_code_build = 20; // seconds
constexpr size_t most_known = 64;         // sources

struct code_counter {
  std::string name;
  double value;
};

struct code_counters {
  std::vector<code_counter> found;
  std::vector<std::string> missing;
};

double value_of(const compiled_code& x, const std::string& counter) {
  if (counter == "code_instructions") return x.instructions;
  if (counter == "code_vector_instructions") return x.vector_instructions;
  if (counter == "code_divisions") return x.divisions;
  return counter == "code_calls" ? x.calls : x.branches;
}

class counting {
public:
  counting(code_checker& by, const task& what, const std::string& source, double until)
      : by_(by), what_(what), source_(source), until_(until) {}

  code_counters run() {
    if (what_.verb == "reformulate") compare();
    auto names = code_counters_of(what_);
    if (!names.empty()) count(names);
    return std::move(result_);
  }

private:
  expected<compiled_code> compiled(code_build how, const std::string& source,
                                   const std::string& function) {
    auto key = sha256_hex(function + (how == code_build::plain ? " plain " : " judged ") + source);
    if (auto found = by_.known.find(key); found != by_.known.end()) return found->second;
    double left = std::min(longest_code_build, until_ - now_seconds());
    if (left <= 0) return infrastructure_error("timeout", "no time is left");
    auto code = compile_code(by_.walls, by_.compilers, how, source, function,
                             static_cast<int>(left * 1e3) + 1);
    KM_TRY(code);
    if (by_.known.size() >= most_known) by_.known.clear();
    return by_.known[key] = std::move(*code);
  }

  expected<compiled_code> noted(const char* whose, expected<compiled_code> code) {
    if (!code)
      result_.missing.push_back(std::string{"code of the "} + whose + ": " + code.error().message);
    return code;
  }

  // Of the candidate all functions: how it calls its code is its own affair. What its source does
  // to the comparison must not free it of that: it is taken for a copy.
  void compare() {
    auto starter = noted("starter", compiled(code_build::plain, what_.starter, what_.function));
    if (!starter) return;
    auto candidate = noted("candidate", compiled(code_build::plain, source_, {}));
    if (!candidate && candidate.error().cls != fault_class::candidate) return;
    result_.found.push_back(
        {"starter_code_kept", candidate ? kept_share(*starter, *candidate) : 1.0});
  }

  void count(const std::vector<std::string>& names) {
    auto starter = noted("starter", compiled(code_build::as_judged, what_.starter, what_.function));
    if (!starter) return;
    auto candidate = noted("candidate", compiled(code_build::as_judged, source_, what_.function));
    if (!candidate && candidate.error().cls != fault_class::candidate) return;
    for (const auto& name : names) {
      auto before = value_of(*starter, name);
      result_.found.push_back({name, candidate ? value_of(*candidate, name) : before});
      result_.found.push_back({"starter_" + name, before});
    }
  }

  code_checker& by_;
  const task& what_;
  const std::string& source_;
  double until_;
  code_counters result_;
};

} // namespace

Message<wire::EvaluateResult> with_code_counters(code_checker& by, const task& what,
                                                 const std::string& source,
                                                 const Message<wire::EvaluateResult>& judged,
                                                 double until) {
  auto before = judged.open();
  if (!is_acceptable(*before) || source.empty()) return judged;
  double started = now_seconds();
  auto found = counting{by, what, source, until}.run();
  scratch_builder builder;
  builder->setRoot(*before);
  auto out = builder->getRoot<wire::EvaluateResult>();
  auto known = before->getCounters();
  auto counters = out.initCounters(known.size() + static_cast<unsigned>(found.found.size()));
  for (unsigned i = 0; i < known.size(); ++i) counters.setWithCaveats(i, known[i]);
  for (unsigned i = 0; i < found.found.size(); ++i) {
    counters[known.size() + i].setName(found.found[i].name);
    counters[known.size() + i].setValue(found.found[i].value);
  }
  auto lost = before->getMissing();
  auto missing = out.initMissing(lost.size() + static_cast<unsigned>(found.missing.size()));
  for (unsigned i = 0; i < lost.size(); ++i) missing.set(i, lost[i]);
  for (unsigned i = 0; i < found.missing.size(); ++i)
    missing.set(lost.size() + i, found.missing[i]);
  double seconds = now_seconds() - started;
  auto spans = before->getSpans();
  auto laps = out.initSpans(spans.size() + 1);
  for (unsigned i = 0; i < spans.size(); ++i) laps.setWithCaveats(i, spans[i]);
  laps[spans.size()].setName("code");
  laps[spans.size()].setValue(seconds);
  if (spans.size() > 0) laps[spans.size()].setUnit(spans[0].getUnit());
  out.setSeconds(before->getSeconds() + seconds);
  return Message<wire::EvaluateResult>{*builder};
}

} // namespace kernelmill
