#include "gpu/examine/memory_checks.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gpu/examine/kept_reports.hpp"
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
  bool keeps_reports = false;
  bool complete = false;
  std::vector<kept_report> reports;
  std::vector<one_finding> findings;
  std::vector<std::string> problems;

  void keep_report(const std::string& check, const std::string& report) {
    if (keeps_reports) reports.push_back({check + ".txt", kept_text(report)});
  }

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
    case memory_fault::use_after_free: return "memory_use_after_free";
    case memory_fault::undefined: return "memory_undefined";
    default: return "memory_out_of_bounds";
  }
}

// Kernels of torch's own are no accesses of the candidate's. Who names a kernel so is not found.
bool is_of_torch(const sanitizer_finding& x) {
  return x.at.kernel.find("at::") != std::string::npos;
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
  if (x.at.offset.empty() && x.at.line > 0)
    result += fmt::format(" at {}:{}", x.at.file, x.at.line);
  if (!x.thread.empty()) result += ", thread " + x.thread;
  if (!x.hint.empty()) result += "; " + x.hint;
  return printable(std::move(result));
}

// Errors first: a kernel has as many warnings as it likes, and they are to hide none.
void keep(one_finding x, std::vector<one_finding>& into) {
  auto at = into.end();
  if (x.severity != wire::Severity::INFO)
    at = std::find_if(into.begin(), into.end(),
                      [](auto& known) { return known.severity == wire::Severity::INFO; });
  into.insert(at, std::move(x));
  if (into.size() > most_findings) into.pop_back();
}

void take_report(const std::string& check, const sanitizer_report& report, bool has_torch,
                 found_memory& into) {
  for (const auto& x : report.findings) {
    // Calls of ours that fail, and what we leave behind, are no accesses of the candidate's.
    if (x.family == memory_fault::api_error || x.family == memory_fault::leak) continue;
    if (has_torch && is_of_torch(x)) continue;
    keep({rule_of(x.family), x.is_warning ? wire::Severity::INFO : wire::Severity::WARNING,
          evidence_of(check, x)},
         into.findings);
  }
}

// Why a check cannot be relied on that found nothing; empty: it can.
std::string problem_of(const sanitizer_examination& x) {
  if (x.run.timed_out) return "it did not end in time (evaluation.sanitize_ms)";
  if (x.report.problem == sanitizer_problem::not_supported && x.report.words.empty())
    return "this GPU is not supported";
  if (x.report.problem == sanitizer_problem::not_supported)
    return "it does not run on this machine: " + x.report.words;
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

expected<lone_files> files_of(const memory_checker& by, const task& what,
                              wire::EvaluateRequest::Reader request, double until) {
  auto artifact = read_judged(request);
  KM_TRY(artifact);
  auto left = std::max(0.0, until - now_seconds());
  return lay_out_candidate(by.walls, by.python, what, *artifact, static_cast<int>(left * 1e3) + 1);
}

void run_checks(const memory_checker& by, const lone_files& files, bool has_torch, double until,
                found_memory& into) {
  auto options = by.options;
  for (std::string check : checks) {
    double left = until - now_seconds();
    if (left <= 0) return into.problems.push_back(check + ": no time is left");
    options.limit_ms = static_cast<int>(left * 1e3) + 1;
    auto found = examine_by_sanitizer(by.walls, options, by.sanitizer, check, files);
    if (!found) {
      into.problems.push_back(check + ": " + found.error().message);
      continue;
    }
    into.keep_report(check, found->run.report);
    take_report(check, found->report, has_torch, into);
    if (into.has_error()) return;
    if (auto problem = problem_of(*found); !problem.empty())
      into.problems.push_back(check + ": " + problem);
  }
  into.complete = into.problems.empty();
}

// The source is built again for each check. What a CPU cannot check at all leaves the rest
// complete.
void run_host_checks(const memory_checker& by, const task& what, const std::string& source,
                     double until, found_memory& into) {
  auto options = by.options;
  for (auto check : host_checks) {
    std::string name{to_string(check)};
    double left = until - now_seconds();
    if (left <= 0) return into.problems.push_back(name + ": no time is left");
    options.limit_ms = static_cast<int>(left * 1e3) + 1;
    auto found = examine_on_host(by.walls, options, by.compiler, what, source, check);
    if (!found) {
      into.problems.push_back(name + ": " + found.error().message);
      continue;
    }
    into.keep_report(name, found->run.report);
    take_report(name, found->report, false, into);
    if (into.has_error()) return;
    if (auto problem = problem_of(*found); !problem.empty())
      into.problems.push_back(name + ": " + problem);
  }
  into.complete = into.problems.empty();
  into.problems.emplace_back(no_initcheck);
}

found_memory check_memory_on_host(const memory_checker& by, const task& what,
                                  wire::EvaluateRequest::Reader request, double until) {
  found_memory result;
  result.keeps_reports = request.getReports();
  std::string source = request.getSource();
  if (what.contract != contract_kind::native || source.empty())
    result.problems.emplace_back("on a CPU sanitizers look at the contract native alone");
  else
    run_host_checks(by, what, source, until, result);
  return result;
}

// Nobody waits much longer than the request's deadline, which an evaluation may have passed.
double end_of(wire::EvaluateRequest::Reader request, double begun) {
  double until = now_seconds() + request.getSanitizeMs() * 1e-3;
  if (request.getDeadlineMs() == 0) return until;
  return std::min(until, begun + request.getDeadlineMs() * 1e-3);
}

found_memory check_memory(const memory_checker& by, const task& what,
                          wire::EvaluateRequest::Reader request, double begun) {
  if (what.terms.backend == "cpu")
    return check_memory_on_host(by, what, request, end_of(request, begun));
  found_memory result;
  result.keeps_reports = request.getReports();
  if (by.sanitizer.empty()) {
    result.problems.emplace_back("there is no compute-sanitizer on the machine that judged");
    return result;
  }
  double until = end_of(request, begun);
  if (auto files = files_of(by, what, request, until))
    run_checks(by, *files, what.contract == contract_kind::torch, until, result);
  else
    result.problems.push_back(files.error().message);
  return result;
}

} // namespace

expected<std::string> read_judged(wire::EvaluateRequest::Reader request) {
  std::string path = request.getLibraryPath();
  auto artifact = read_whole(path);
  std::string digest = request.getLibrarySha256();
  if (!artifact || (!digest.empty() && sha256_hex(*artifact) != digest))
    return infrastructure_error("library_lost", "failed to read " + path);
  return std::move(*artifact);
}

Message<wire::EvaluateResult> with_memory_checks(const memory_checker& by, const task& what,
                                                 wire::EvaluateRequest::Reader request,
                                                 const Message<wire::EvaluateResult>& judged,
                                                 double begun) {
  auto before = judged.open();
  if (!is_wanted(request, *before)) return judged;
  double started = now_seconds();
  auto found = check_memory(by, what, request, begun);
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
  add_reports(out, found.reports);
  add_span(out, "sanitize", seconds);
  return Message<wire::EvaluateResult>{*builder};
}

} // namespace kernelmill
