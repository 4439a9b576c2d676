#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "actors/episode/clean_text.hpp"
#include "actors/episode/prompt.hpp"
#include "messages/base/utf8.hpp"
#include "messages/categories.hpp"
#include "messages/gate_words.hpp"
#include "messages/shapes.hpp"

namespace kernelmill {

namespace {

constexpr size_t max_message_text = 1000;
constexpr size_t max_line_text = 400;
constexpr size_t max_log_text = 2000;
constexpr size_t max_output_text = 300;
constexpr size_t max_numbers_text = 800;
constexpr unsigned max_diagnostics = 8;
constexpr unsigned max_named_cases = 6;
constexpr std::string_view quote_mark = "| "; // before each line that a compiler or a kernel wrote
constexpr std::string_view cut_mark = "\n[the rest is left out]\n";

std::string_view view(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

template <class... Args>
void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

// Replaces the advice of the verdict's category.
constexpr std::string_view untimed_advice =
    "The kernel is right; how fast it is was not measured. Make it fast, and keep it right.";
// Of a module that is refused for what it does at another shape than the problem's own.
constexpr std::string_view shapes_advice =
    "Shapes: it is right at the problem's own. A module must hold for every shape that the task "
    "names, and for others that are not shown.\n";
constexpr std::string_view infrastructure_advice =
    "Nothing is known to be wrong with your kernel. Send it again, or a better one.";

// Replaces the evidence of a finding where it may reveal a hidden case or a timed row.
std::string_view meaning_of(std::string_view name) {
  const auto* rule = find_rule(name);
  return rule ? rule->told : "what was seen is not shown";
}

class feedback {
public:
  feedback(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict, profile_words profile)
      : facts_(facts), verdict_(verdict), evaluation_(facts.getEvaluation()), profile_(profile) {
    out_.reserve(2048);
  }

  std::string text(size_t limit) {
    put(out_, "Turn {} of {}: ", facts_.getTurn() + 1, facts_.getMaxTurns());
    write_body();
    return cut(limit, last_line());
  }

  std::string body(size_t limit) {
    write_body();
    return cut(limit, {});
  }

private:
  std::string cut(size_t limit, std::string tail) {
    if (tail.size() >= limit) return std::string{utf8_prefix(tail, limit)};
    if (out_.size() + tail.size() > limit) {
      auto room = limit - tail.size();
      auto mark = cut_mark.size() <= room ? cut_mark : std::string_view{};
      out_.resize(utf8_prefix(out_, room - mark.size()).size());
      out_ += mark;
    }
    return std::move(out_) + tail;
  }

  bool left_out() const { return verdict_.getOutcome() == wire::Outcome::INFRASTRUCTURE; }

  void write_body() {
    if (left_out()) {
      // A fault of this machine does not concern the policy, and might teach it about the machine.
      out_ +=
          "not judged (infrastructure)\nThe evaluation broke down for a reason that has nothing "
          "to do with your answer.\n";
      return;
    }
    out_ += verdict_.getOutcome() == wire::Outcome::ACCEPTED ? "accepted (" : "rejected (";
    append_clean(out_, view(verdict_.getCategory()), 80);
    out_ += ")\n";
    write_gates();
    write_problems();
    write_compiler();
    write_cases();
    write_shapes();
    write_fault();
    write_findings();
    write_timing();
    write_profile();
  }

  void write_gates() {
    out_ += "Gates:";
    char separator = ' ';
    for (auto gate : verdict_.getGates()) {
      put(out_, "{}{} {}", separator == ' ' ? " " : ", ", view(gate.getName()), word(gate));
      separator = ',';
    }
    out_ += '\n';
  }

  // As `show` has it; a failure stands out.
  std::string_view word(wire::Gate::Reader x) const {
    auto result = gate_word(verdict_.getOutcome(), x);
    return result == "fail" ? "FAIL" : result == "not_run" ? "not run" : result;
  }

  // Text that others wrote: every line but the label's own is marked as a quotation, so that none
  // can pass for a line of ours.
  void line(std::string_view label, std::string_view text, size_t limit = max_line_text) {
    out_ += label;
    std::string clean;
    append_clean(clean, text, limit);
    while (clean.ends_with('\n')) clean.pop_back();
    if (label.ends_with('\n')) out_ += quote_mark;
    for (char c : clean) {
      out_ += c;
      if (c == '\n') out_ += quote_mark;
    }
    out_ += '\n';
  }

  // From the first hidden case or timed row on, words and numbers of a candidate may reveal their
  // contents.
  bool sealed() const { return evaluation_.getSealed(); }

  void write_problems() {
    auto parsed = facts_.getParsed();
    for (auto problem : parsed.getProblems())
      line(parsed.getOk() ? "Note: " : "Format: ", view(problem));
  }

  void write_compiler() {
    auto built = facts_.getBuild();
    if (!facts_.getParsed().getOk() || built.getCompiled()) return;
    unsigned shown = 0;
    for (auto severity : {"error", "fatal error", "note"})
      for (auto x : built.getDiagnostics())
        if (shown < max_diagnostics && x.getSeverity() == severity) {
          out_ += shown++ == 0 ? "Compiler:\n" : "";
          append_clean(out_, view(x.getFile()), 80);
          put(out_, ":{}:{}: {}: ", x.getLine(), x.getColumn(), severity);
          line({}, view(x.getMessage()));
        }
    if (shown == 0 && built.getLog().size() > 0)
      line("Compiler:\n", view(built.getLog()), max_log_text);
  }

  void write_cases() {
    auto cases = evaluation_.getCases();
    if (cases.size() == 0) return;
    unsigned right = 0;
    for (auto x : cases) right += x.getPass();
    put(out_, "Cases: {} of {} that were run pass.\n", right, cases.size());
    unsigned named = 0;
    for (auto x : cases) {
      if (x.getPass()) continue;
      if (named == 0)
        write_first_failure(x);
      else if (named < max_named_cases)
        line("Also failing: ", x.getHidden() ? std::string{view(x.getName())} + " (hidden)"
                                             : std::string{view(x.getName())});
      ++named;
    }
  }

  // A policy that saw the numbers of a hidden case could answer that case alone.
  void write_first_failure(wire::CaseResult::Reader x) {
    out_ += "First failing case: ";
    append_clean(out_, view(x.getName()), 80);
    if (x.getHidden()) {
      out_ += " (hidden: its shape, contents and numbers are not shown)\n";
      return;
    }
    out_ += " (";
    append_clean(out_, view(x.getShape()), 120);
    if (x.getDistribution().size() > 0) {
      out_ += ", ";
      append_clean(out_, view(x.getDistribution()), 80);
    }
    out_ += "): ";
    append_clean(out_, view(x.getFirstBad()), max_line_text);
    put(out_,
        "; {} elements are outside their bound; largest error {:.4g} where {:.4g} is allowed\n",
        x.getBadCount(), x.getMaxError(), x.getBound());
  }

  void write_shapes() {
    bool elsewhere = is_at_another_shape(view(evaluation_.getFault().getMessage()));
    for (auto x : evaluation_.getFindings())
      elsewhere = elsewhere || (x.getSeverity() == wire::Severity::CRITICAL &&
                                is_at_another_shape(view(x.getEvidence())));
    if (elsewhere) out_ += shapes_advice;
  }

  // The messages of the stages that have no lines of their own above.
  void write_fault() {
    auto fault = verdict_.getFault();
    auto category = view(fault.getCategory());
    bool told = category == "wrong_result" || category == "format_error" || category == "integrity";
    // Our own words of a kernel with right results: nothing of a hidden case is in them.
    if (category == "diagnosis_wrong" || category == "evidence_wrong" ||
        category == "not_reformulated")
      return line("Cause: ", view(fault.getMessage()), max_message_text);
    if (sealed()) {
      if (fault.getClass() != wire::FaultClass::NONE && !told)
        out_ += "Cause: it ended in a hidden case or while it was timed; no more is shown\n";
      return write_output();
    }
    if (fault.getClass() != wire::FaultClass::NONE && !told)
      line("Cause: ", view(fault.getMessage()), max_message_text);
    // A crash that an integrity finding explains is still worth telling.
    if (category == "integrity" && evaluation_.getFault().getMessage().size() > 0 &&
        evaluation_.getFault().getCategory() != "wrong_result")
      line("Cause: ", view(evaluation_.getFault().getMessage()), max_message_text);
    write_output();
  }

  void write_output() {
    if (evaluation_.getFault().getClass() == wire::FaultClass::NONE ||
        evaluation_.getOutput().size() == 0)
      return;
    line("Before any hidden case it printed, in its own words:\n", view(evaluation_.getOutput()),
         max_output_text);
  }

  void write_findings() {
    auto memory = evaluation_.getMemory();
    if (auto problems = memory.getProblems(); problems.size() > 0 && !memory.getComplete())
      line("Memory, not all was looked at: ", view(problems[0]));
    for (auto x : verdict_.getFindings()) {
      if (x.getSeverity() == wire::Severity::INFO) continue;
      // These findings are of visible cases with contents of their own: there is nothing to hide.
      if (view(x.getRule()).starts_with("memory_")) {
        line("Memory: ", view(x.getEvidence()));
        continue;
      }
      out_ += x.getSeverity() == wire::Severity::CRITICAL ? "Integrity, rejected: "
                                                          : "Integrity, warning: ";
      append_clean(out_, view(x.getRule()), 80);
      if (sealed())
        out_.append(": ").append(meaning_of(view(x.getRule()))) += '\n';
      else
        line(": ", view(x.getEvidence()));
    }
  }

  void write_timing() {
    auto x = evaluation_.getTiming();
    if (!x.getMeasured()) return;
    auto speedup = x.getSpeedup();
    if (write_shape_times(x)) return;
    put(out_,
        "Timing: yours {:.4g} ms, baseline {:.4g} ms, speedup {:.3g}x (95 % interval {:.3g}x to "
        "{:.3g}x, {} calls)",
        x.getCandidateMs(), x.getReferenceMs(), speedup.getEstimate(), speedup.getLow(),
        speedup.getHigh(), x.getSamples());
    if (x.getRooflineMs() > 0)
      put(out_, "; this machine allows no less than {:.4g} ms", x.getRooflineMs());
    if (x.getShape().size() > 0) {
      out_ += "; at ";
      append_clean(out_, view(x.getShape()), 120);
    }
    out_ += '\n';
  }

  // Of several shapes; false where there is one. The times of a hidden one would tell how large it
  // is. Rows of shapes at which the answer is slower come first, and at most so many in all.
  bool write_shape_times(wire::Timing::Reader timing) {
    constexpr size_t most_rows = 16;
    std::vector<std::string> slow, others;
    for (auto x : timing.getKinds()) {
      if (!is_shape(view(x.getName())) || !(x.getCandidateMs() > 0)) continue;
      (is_slower(x) ? slow : others).push_back(shape_row(x));
    }
    auto count = slow.size() + others.size();
    if (count == 0) return false;
    auto speedup = timing.getSpeedup();
    put(out_,
        "Timing: speedup {:.3g}x (95 % interval {:.3g}x to {:.3g}x, {} calls), the geometric mean "
        "of {} shapes\n",
        speedup.getEstimate(), speedup.getLow(), speedup.getHigh(), timing.getSamples(), count);
    if (!slow.empty())
      put(out_, "It is slower than the baseline at {} of {} shapes. Repair these first.\n",
          slow.size(), count);
    slow.insert(slow.end(), others.begin(), others.end());
    for (size_t i = 0; i < std::min(slow.size(), most_rows); ++i) out_ += slow[i];
    if (slow.size() > most_rows)
      put(out_, "{} more shapes are not listed.\n", slow.size() - most_rows);
    return true;
  }

  static double speedup_at(wire::KindTime::Reader x) {
    return x.getReferenceMs() / x.getCandidateMs();
  }

  static bool is_slower(wire::KindTime::Reader x) { return speedup_at(x) < 1; }

  static std::string shape_row(wire::KindTime::Reader x) {
    std::string row = "Timing at ";
    append_clean(row, view(x.getName()), 80);
    row += ": ";
    auto slower = is_slower(x) ? "slower than the baseline" : "faster than the baseline";
    if (is_hidden_shape(view(x.getName()))) return row + slower + "\n"; // times could hold sizes
    put(row, "yours {:.4g} ms, baseline {:.4g} ms, speedup {:.3g}x", x.getCandidateMs(),
        x.getReferenceMs(), speedup_at(x));
    if (x.getSpeedupLow() > 0)
      put(row, " ({:.3g}x to {:.3g}x)", x.getSpeedupLow(), x.getSpeedupHigh());
    return row + ", which is " + slower + "\n";
  }

  void write_profile() {
    auto card = facts_.getProfile().getCard();
    bool known = facts_.getProfile().getAvailable() && card.getBottleneck().size() > 0;
    // A wrong kernel is to be made right before it is made fast.
    if (profile_ == profile_words::none || !known || !evaluation_.getCorrect()) return;
    if (view(card.getBottleneck()) == "unknown") return write_numbers();
    out_ += "Profile: limited by ";
    append_clean(out_, view(card.getBottleneck()), 80);
    put(out_, " (confidence {:.2g})\n", card.getConfidence());
    unsigned shown = 0;
    for (auto x : card.getEvidence())
      if (shown++ < 4) line("Profile: ", view(x));
    shown = 0;
    for (auto x : card.getNextActions())
      if (shown++ < 3) line("Profile suggests: ", view(x));
    write_numbers();
  }

  void write_numbers() {
    if (profile_ != profile_words::numbers) return;
    std::string text;
    for (auto x : facts_.getProfile().getCounters()) {
      if (text.size() >= max_numbers_text) break;
      put(text, "{}{} {:.4g}{}{}", text.empty() ? "" : ", ", view(x.getName()), x.getValue(),
          x.getUnit().size() > 0 ? " " : "", view(x.getUnit()));
    }
    if (!text.empty()) line("Profile numbers: ", text, max_numbers_text);
  }

  std::string last_line() const {
    auto category = view(verdict_.getCategory());
    // Accepted, but its speed is unknown, through no fault of the kernel.
    bool unasked = category == "success" && !evaluation_.getTiming().getMeasured();
    auto text = left_out()                        ? infrastructure_advice
                : unasked || verdict_.getUnpaid() ? untimed_advice
                                                  : advice_of(category);
    if (text.empty()) text = advice_of("format_error");
    std::string result{"Next: "};
    result += text;
    if (facts_.getVerb() == "diagnose")
      result += facts_.getEvidence().size() > 0 ? " Name diagnosis and evidence again, too."
                                                : " Name your diagnosis again, too.";
    return result += " Answer with the complete program.\n";
  }

  wire::TurnFacts::Reader facts_;
  wire::Verdict::Reader verdict_;
  wire::EvaluateResult::Reader evaluation_;
  profile_words profile_;
  std::string out_;
};

} // namespace

std::string feedback_text(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict,
                          size_t limit, profile_words profile) {
  return feedback{facts, verdict, profile}.text(limit);
}

std::string verdict_text(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict, size_t limit,
                         profile_words profile) {
  return feedback{facts, verdict, profile}.body(limit);
}

} // namespace kernelmill
