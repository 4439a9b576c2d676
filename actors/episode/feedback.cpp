#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "actors/episode/clean_text.hpp"
#include "actors/episode/prompt.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr size_t max_message_text = 1000;
constexpr size_t max_line_text = 400;
constexpr size_t max_log_text = 2000;
constexpr size_t max_output_text = 300;
constexpr unsigned max_diagnostics = 8;
constexpr unsigned max_named_cases = 6;
constexpr std::string_view quote_mark = "| "; // before each line in somebody else's words
constexpr std::string_view cut_mark = "\n[the rest is left out]\n";

std::string_view view(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

template <class... Args>
void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

struct hint {
  std::string_view category;
  std::string_view text;
};

constexpr std::array<hint, 31> hints{{
    {"format_error",
     "Think inside <think> and </think>, then write one complete program between <KERNEL> and "
     "</KERNEL>, in capitals, and nothing else."},
    {"compile_error",
     "Repair the first error that the compiler names; later ones often follow from it. Check that "
     "every header is included and that the declaration is the one that the task asks for."},
    {"compile_timeout",
     "The compiler took too long. Use fewer templates and constant expressions, and smaller "
     "unrolled loops."},
    {"compile_memory",
     "The compiler ran out of memory. Use fewer templates, smaller tables and shorter unrolled "
     "loops."},
    {"load_failed",
     "The library was built but could not be loaded. Define every function that you call, and do "
     "nothing before the function is called."},
    {"missing_symbol",
     "Define the function exactly as the task declares it, with extern \"C\" and not static."},
    {"crashed",
     "Check every index against the shape: loops over blocks must stop at the end of rows whose "
     "length is no multiple of the block, and size 1 must work. Write outputs only."},
    {"exited", "Return from the function; never end the process."},
    {"timed_out",
     "Check that every loop ends for every shape and that no lock waits for ever, or write "
     "something of a lower order of cost."},
    {"out_of_memory", "Allocate less, or nothing: work in place, in blocks, or on the stack."},
    {"output_flood", "Print nothing: what a kernel prints is never read as a result."},
    {"wrong_result",
     "Compute the failing case by hand. Check tails of blocks, the first and last element, ties, "
     "initial values, and that every element of each output is written on every call in at least "
     "32-bit precision."},
    {"not_deterministic",
     "Look for a race between threads, memory that is read before it is written, and state that "
     "is kept from one call to the next."},
    {"integrity",
     "Do all of the work in each call, from that call's inputs, and finish before returning. Write "
     "to the outputs only, and keep nothing between calls that depends on the contents."},
    {"diagnosis_wrong",
     "Choose another label: ask which one cause would explain most of the time that is lost."},
    {"slower",
     "The kernel is right; now make it faster than the baseline. Read memory in order, let the "
     "compiler use vector registers, and touch each element as few times as possible."},
    {"success",
     "The kernel is right and faster than the baseline. Make it faster still, and keep it right."},
    {"untimed",
     "The kernel is right; how fast it is was not measured. Make it fast, and keep it right."},
    {"not_timed",
     "The kernel is right, but its calls were too few or too uneven to be timed, so no speed is "
     "paid. Make it fast, let every call take the same time, and use no more threads than there "
     "are cores."},
    {"import_error",
     "The module raised an exception when it was imported. Repair what the traceback names; import "
     "only what the machine has."},
    {"missing_model", "Define a class ModelNew at the module's level, an nn.Module."},
    {"init_error",
     "ModelNew could not be constructed. Take the arguments that get_init_inputs() gives, in their "
     "order."},
    {"runtime_error",
     "forward raised an exception. Take the arguments that get_inputs() gives, and check shapes, "
     "types and launch sizes."},
    {"wrong_shape", "Return tensors of the shapes that Model returns, in their order."},
    {"wrong_dtype", "Return tensors of the types that Model returns."},
    {"wrong_type", "Return plain tensors, or a tuple of them, as Model does."},
    {"extension_not_built",
     "Call load_inline or load at the module's level or in __init__, always with the same "
     "arguments: what is first asked for in forward was not built."},
    {"wrong_language",
     "Write the kernels in the language that the task asks for; operators of the framework alone "
     "are not enough."},
    {"disturbed_referee",
     "Use no more memory, threads and time than the function needs, and leave nothing behind."},
    {"unchanged",
     "This is what the prompt showed, but for comments and spaces, so its speed is not paid. Write "
     "a kernel of your own."},
    {"infrastructure",
     "Nothing is known to be wrong with your kernel. Send it again, or a better one."},
}};

// What is said of a finding whose evidence may carry what a hidden case or a timed row showed.
constexpr std::array<hint, 23> rules{{
    {"background_work", "work went on between the calls, when nothing was asked for"},
    {"clocks_disagree", "two clocks measured different times"},
    {"decoy_kernel", "kernels of the wanted language do too little of the work"},
    {"degenerate_problem", "an answer that knows nothing of the inputs would have passed"},
    {"depends_on_contents", "the time depends on the contents, and the slowest kind is paid"},
    {"early_return", "the GPU was still at work when the call was said to be done"},
    {"framework_fallback", "no kernel of the wanted language does any of the work"},
    {"impossible_speed", "no honest kernel is as fast as this on this machine"},
    {"input_overwrite", "an input was changed"},
    {"late_write", "outputs changed after the call was said to be done"},
    {"left_its_core", "it left the core on which it is timed"},
    {"not_deterministic", "the same inputs gave different results"},
    {"bits_vary", "the same inputs gave other bits, within the bound"},
    {"out_of_bounds_write", "bytes beside an output were written"},
    {"no_profile", "which kernels run could not be listed"},
    {"output_is_input", "an output is memory of the inputs, where the model writes a new tensor"},
    {"outputs_out_of_reach", "outputs lie where they have to be fetched, which counts as time"},
    {"ran_while_stopped", "it worked while it was told to stand still"},
    {"slows_baseline", "the baseline is slower after it than before it: that is not paid"},
    {"unasked_work", "outputs that no call was given were written"},
    {"unchanged", "the code is what was shown, but for comments and spaces"},
    {"unfinished_work", "the GPU was still at work when the call was said to be done"},
    {"wrong_when_timed", "right in all cases, but wrong when it was timed"},
}};

std::string_view meaning_of(std::string_view rule) {
  for (const auto& x : rules)
    if (x.category == rule) return x.text;
  return "what was seen is not shown";
}

std::string_view hint_of(std::string_view category) {
  for (const auto& x : hints)
    if (x.category == category) return x.text;
  return {};
}

class feedback {
public:
  feedback(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict)
      : facts_(facts), verdict_(verdict), evaluation_(facts.getEvaluation()) {
    out_.reserve(2048);
  }

  std::string text(size_t limit) {
    write_body();
    auto tail = last_line();
    if (tail.size() >= limit) return std::string{utf8_prefix(tail, limit)};
    if (out_.size() + tail.size() > limit) {
      auto room = limit - tail.size();
      auto mark = cut_mark.size() <= room ? cut_mark : std::string_view{};
      out_.resize(utf8_prefix(out_, room - mark.size()).size());
      out_ += mark;
    }
    return std::move(out_) + tail;
  }

private:
  bool left_out() const { return verdict_.getOutcome() == wire::Outcome::INFRASTRUCTURE; }

  void write_body() {
    put(out_, "Turn {} of {}: ", facts_.getTurn() + 1, facts_.getMaxTurns());
    if (left_out()) {
      // What broke here is none of the policy's business, and might teach it about this machine.
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
    write_fault();
    write_findings();
    write_timing();
    write_profile();
  }

  void write_gates() {
    out_ += "Gates:";
    char separator = ' ';
    for (auto gate : verdict_.getGates()) {
      put(out_, "{}{} {}", separator == ' ' ? " " : ", ", view(gate.getName()),
          word(gate.getStatus()));
      separator = ',';
    }
    out_ += '\n';
  }

  static std::string_view word(wire::GateStatus x) {
    switch (x) {
      case wire::GateStatus::PASS: return "pass";
      case wire::GateStatus::FAIL: return "FAIL";
      case wire::GateStatus::NOT_RUN: return "not run";
      case wire::GateStatus::BLOCKED: return "blocked";
    }
    return "unknown";
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

  // From the first hidden case or timed row on, words and numbers of a candidate may carry what it
  // saw there.
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

  // The messages of the stages that have no lines of their own above.
  void write_fault() {
    auto fault = verdict_.getFault();
    auto category = view(fault.getCategory());
    bool told = category == "wrong_result" || category == "format_error" || category == "integrity";
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
    for (auto x : verdict_.getFindings()) {
      if (x.getSeverity() == wire::Severity::INFO) continue;
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

  void write_profile() {
    auto card = facts_.getProfile().getCard();
    if (!facts_.getProfile().getAvailable() || card.getBottleneck().size() == 0) return;
    out_ += "Profile: limited by ";
    append_clean(out_, view(card.getBottleneck()), 80);
    put(out_, " (confidence {:.2g})\n", card.getConfidence());
    unsigned shown = 0;
    for (auto x : card.getEvidence())
      if (shown++ < 4) line("Profile: ", view(x));
    shown = 0;
    for (auto x : card.getNextActions())
      if (shown++ < 3) line("Profile suggests: ", view(x));
  }

  std::string last_line() const {
    auto category = view(verdict_.getCategory());
    // Accepted, but nothing is known of its speed, for no reason of the kernel's.
    bool unasked = category == "success" && !evaluation_.getTiming().getMeasured();
    if (unasked || verdict_.getUnpaid()) category = "untimed";
    auto text = hint_of(left_out() ? std::string_view{"infrastructure"} : category);
    if (text.empty()) text = hint_of("format_error");
    std::string result{"Next: "};
    result += text;
    if (facts_.getVerb() == "diagnose") result += " Name your diagnosis again, too.";
    return result += " Answer with the complete program.\n";
  }

  wire::TurnFacts::Reader facts_;
  wire::Verdict::Reader verdict_;
  wire::EvaluateResult::Reader evaluation_;
  std::string out_;
};

} // namespace

std::string feedback_text(wire::TurnFacts::Reader facts, wire::Verdict::Reader verdict,
                          size_t limit) {
  return feedback{facts, verdict}.text(limit);
}

} // namespace kernelmill
