#include "actors/episode/verb_checks.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "actors/episode/same_text.hpp"

namespace kernelmill {

namespace {

// Copies with other names, order, comments or unused code keep 0.9 and more of the starter's code;
// what computes the same in another way some 0.3. Texts tell less: a loop that runs the other way
// round is a few words, so that only copies are held for what they are.
constexpr double most_kept_code = 0.75;
constexpr double most_kept_text = 0.95;

struct both_values {
  double candidate = 0;
  double starter = 0;
};

std::optional<double> counter_of(wire::EvaluateResult::Reader x, const std::string& name) {
  for (auto counter : x.getCounters())
    if (counter.getName() == name) return counter.getValue();
  return std::nullopt;
}

// Of the candidate and of what it is held against: its starter, for the time the baseline.
std::optional<both_values> values_of(wire::EvaluateResult::Reader x, const std::string& counter) {
  if (counter == "time") {
    auto timing = x.getTiming();
    if (!timing.getMeasured()) return std::nullopt;
    return both_values{timing.getCandidateMs(), timing.getReferenceMs()};
  }
  auto candidate = counter_of(x, counter);
  auto starter = counter_of(x, "starter_" + counter);
  if (!candidate || !starter) return std::nullopt;
  return both_values{*candidate, *starter};
}

bool is_so(const counter_change& x, const both_values& v) {
  return x.rises ? v.candidate > v.starter && v.candidate >= x.by * v.starter
                 : v.candidate < v.starter && v.candidate * x.by <= v.starter;
}

verb_check measured_check(const counter_change& x, wire::EvaluateResult::Reader evaluation) {
  verb_check result{x.counter, x.hidden, true, {}};
  auto values = values_of(evaluation, x.counter);
  if (!values) {
    result.note = "not measured";
    // Else a kernel that makes itself hard to time would be rid of it.
    result.right =
        x.counter != "time" || evaluation.getTiming().getNotTimed() != wire::NotTimed::CANDIDATE;
    return result;
  }
  result.right = is_so(x, *values);
  result.note = fmt::format("{:.4g}, and {:.4g} before; it {} by {:.3g} or more", values->candidate,
                            values->starter, x.rises ? "rises" : "falls", x.by);
  return result;
}

// "dram_bytes: falls" as {"dram_bytes", "falls"}.
std::pair<std::string, std::string> words_of(const std::string& statement) {
  std::vector<std::string> words;
  bool within = false;
  for (char c : statement) {
    bool is_word =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (is_word && !within) words.emplace_back();
    if (is_word) words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    within = is_word;
  }
  if (words.size() != 2) return {};
  return {words[0], words[1]};
}

verb_check said_check(const counter_change& x, const parsed_completion& said) {
  bool falls = false, rises = false;
  for (const auto& statement : said.evidence) {
    auto [counter, change] = words_of(statement);
    if (counter != x.counter) continue;
    falls = falls || change == "falls";
    rises = rises || change == "rises";
  }
  verb_check result{x.counter, false, x.rises ? rises && !falls : falls && !rises, {}};
  result.note = falls && rises ? "both were said"
                : falls        ? "falls was said"
                : rises        ? "rises was said"
                               : "nothing was said of it";
  return result;
}

// Of machine code where there is a compiler: that sees through all that is only text.
verb_check strategy_check(const task& x, const parsed_completion& said,
                          wire::EvaluateResult::Reader evaluation) {
  if (auto kept = counter_of(evaluation, "starter_code_kept"))
    return {
        "code", false, *kept < most_kept_code,
        fmt::format("{:.0f} % of what the compiler makes of the starter is in it", *kept * 100)};
  if (x.contract != contract_kind::torch) return {"code", false, true, "not compared"};
  if (auto common = text_in_common(x.starter, said.kernel, true))
    return {"text", false, *common < most_kept_text,
            fmt::format("{:.0f} % of its text is the starter's, but for names", *common * 100)};
  return {"text", false, false, "it is too long to be compared"};
}

verb_facts of_reformulation(const task& x, const parsed_completion& said,
                            wire::EvaluateResult::Reader evaluation) {
  verb_facts result;
  result.checks.push_back(strategy_check(x, said, evaluation));
  for (const auto& change : x.strategy) result.checks.push_back(measured_check(change, evaluation));
  for (const auto& check : result.checks)
    if (!check.right)
      result.same_strategy +=
          (result.same_strategy.empty() ? "" : "; ") + check.name + ": " + check.note;
  return result;
}

} // namespace

verb_facts verb_facts_of(const task& x, const parsed_completion& said,
                         wire::EvaluateResult::Reader evaluation) {
  if (x.verb == "reformulate" && !x.starter.empty()) return of_reformulation(x, said, evaluation);
  verb_facts result;
  for (const auto& change : x.evidence)
    result.checks.push_back(change.hidden ? measured_check(change, evaluation)
                                          : said_check(change, said));
  return result;
}

std::vector<std::string> right_statements(const task& x) {
  std::vector<std::string> result;
  for (const auto& change : x.evidence)
    if (!change.hidden) result.push_back(change.text());
  return result;
}

} // namespace kernelmill
