#include "gpu/examine/memory_checks.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gpu/referee/clock.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

namespace {

// What wrong results come from most often goes first: time may end before the last.
constexpr std::array checks = {"racecheck", "initcheck", "memcheck", "synccheck"};
constexpr size_t most_findings = 8; // of one candidate: more say no more
constexpr size_t longest_evidence = 400;

struct one_finding {
  const char* rule;
  wire::Severity severity;
  std::string evidence;
};

struct found_memory {
  bool complete = false;
  std::vector<one_finding> findings;
  std::vector<std::string> problems;

  bool has_error() const {
    return std::any_of(findings.begin(), findings.end(),
                       [](auto& x) { return x.severity != wire::Severity::INFO; });
  }
};

const char* rule_of(memory_fault x) {
  switch (x) {
    case memory_fault::race: return "memory_race";
    case memory_fault::uninitialized: return "memory_uninitialized";
    case memory_fault::barrier: return "memory_barrier";
    case memory_fault::misaligned: return "memory_misaligned";
    default: return "memory_out_of_bounds";
  }
}

// Names of kernels are the candidate's.
std::string printable(std::string x) {
  for (char& c : x)
    if (c < ' ' || c > '~') c = '?';
  if (x.size() > longest_evidence) x.resize(longest_evidence);
  return x;
}

std::string evidence_of(const std::string& check, const sanitizer_finding& x) {
  auto result =
      fmt::format("{} in {}: {}", check, x.at.kernel.empty() ? "a kernel" : x.at.kernel, x.words);
  if (!x.at.offset.empty()) result += " at " + x.at.offset;
  if (!x.thread.empty()) result += ", thread " + x.thread;
  if (!x.hint.empty()) result += "; " + x.hint;
  return printable(std::move(result));
}

void take_report(const std::string& check, const sanitizer_report& report, found_memory& into) {
  for (const auto& x : report.findings) {
    // Calls of ours that fail, and what we leave behind, are no accesses of the candidate's.
    if (x.family == memory_fault::api_error || x.family == memory_fault::leak) continue;
    if (into.findings.size() == most_findings) break;
    into.findings.push_back({rule_of(x.family),
                             x.is_warning ? wire::Severity::INFO : wire::Severity::WARNING,
                             evidence_of(check, x)});
  }
}

// Why a check cannot be relied on that found nothing; empty: it can.
std::string problem_of(const sanitizer_examination& x) {
  if (x.run.timed_out) return "it did not end in time (evaluation.sanitize_ms)";
  if (x.report.problem == sanitizer_problem::not_supported) return "this GPU is not supported";
  if (x.report.problem != sanitizer_problem::none) return "it has no report";
  if (x.run.status.code != 0) return "the calls failed";
  if (x.report.errors > 0) return "it counts errors and lists none of a kernel";
  return {};
}

bool is_wanted(wire::EvaluateRequest::Reader request, wire::EvaluateResult::Reader judged) {
  auto cls = judged.getFault().getClass();
  if (request.getSanitize() == "always")
    return cls == wire::FaultClass::NONE || cls == wire::FaultClass::CANDIDATE;
  return request.getSanitize() == "on_accept" && is_acceptable(judged);
}

expected<lone_files> files_of(const task& what, wire::EvaluateRequest::Reader request) {
  std::string path = request.getLibraryPath();
  auto artifact = read_whole(path);
  std::string digest = request.getLibrarySha256();
  if (!artifact || (!digest.empty() && sha256_hex(*artifact) != digest))
    return infrastructure_error("library_lost", "failed to read " + path);
  return lay_out(what, *artifact, shown_cases(what), 1, draw_seed());
}

void run_checks(const memory_checker& by, const lone_files& files, uint32_t limit_ms,
                found_memory& into) {
  auto options = by.options;
  double until = now_seconds() + limit_ms * 1e-3;
  for (std::string check : checks) {
    double left = until - now_seconds();
    if (left <= 0) return into.problems.push_back(check + ": no time is left");
    options.limit_ms = static_cast<int>(left * 1e3) + 1;
    auto found = examine_by_sanitizer(by.walls, options, by.sanitizer, check, files);
    if (!found) {
      into.problems.push_back(check + ": " + found.error().message);
      continue;
    }
    take_report(check, found->report, into);
    if (into.has_error()) return;
    if (auto problem = problem_of(*found); !problem.empty())
      into.problems.push_back(check + ": " + problem);
  }
  into.complete = into.problems.empty();
}

found_memory check_memory(const memory_checker& by, const task& what,
                          wire::EvaluateRequest::Reader request) {
  found_memory result;
  if (by.sanitizer.empty()) {
    result.problems.emplace_back("there is no compute-sanitizer on the machine that judged");
    return result;
  }
  if (auto files = files_of(what, request))
    run_checks(by, *files, request.getSanitizeMs(), result);
  else
    result.problems.push_back(files.error().message);
  return result;
}

} // namespace

Message<wire::EvaluateResult> with_memory_checks(const memory_checker& by, const task& what,
                                                 wire::EvaluateRequest::Reader request,
                                                 const Message<wire::EvaluateResult>& judged) {
  auto before = judged.open();
  if (!is_wanted(request, *before)) return judged;
  double started = now_seconds();
  auto found = check_memory(by, what, request);
  double seconds = now_seconds() - started;
  scratch_builder builder;
  builder->setRoot(*before);
  auto out = builder->getRoot<wire::EvaluateResult>();
  auto memory = out.initMemory();
  memory.setComplete(found.complete);
  auto list = memory.initFindings(static_cast<unsigned>(found.findings.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setRule(found.findings[i].rule);
    list[i].setSeverity(found.findings[i].severity);
    list[i].setEvidence(found.findings[i].evidence);
  }
  auto problems = memory.initProblems(static_cast<unsigned>(found.problems.size()));
  for (unsigned i = 0; i < problems.size(); ++i) problems.set(i, printable(found.problems[i]));
  auto spans = before->getSpans();
  auto laps = out.initSpans(spans.size() + 1);
  for (unsigned i = 0; i < spans.size(); ++i) laps.setWithCaveats(i, spans[i]);
  laps[spans.size()].setName("sanitize");
  laps[spans.size()].setValue(seconds);
  if (spans.size() > 0) laps[spans.size()].setUnit(spans[0].getUnit());
  out.setSeconds(before->getSeconds() + seconds);
  return Message<wire::EvaluateResult>{*builder};
}

} // namespace kernelmill
