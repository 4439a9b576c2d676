// What tools leave of a candidate: single timings, sanitizers, traces, listings and reports.

#include <set>

#include <fmt/format.h>

#include "launch/analysis/bundle/documents.hpp"
#include "messages/json.hpp"

namespace kernelmill::bundles {

namespace {

std::string word_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

/// As many digits as the record has.
json of_float(float x) {
  if (!(x > 0)) return nullptr;
  return json::parse(fmt::format("{:.7g}", x), nullptr, false);
}

json raw_timings(wire::Timing::Reader x) {
  if (!x.getMeasured()) return not_run("the candidate was not timed");
  if (x.getPairs().size() == 0)
    return not_run("the record has no single measurements: it is older than they are, or its time "
                   "is the mean of several shapes");
  auto pairs = json::array();
  for (auto one : x.getPairs())
    pairs.push_back({{"candidate_ms", of_float(one.getCandidateMs())},
                     {"baseline_ms", of_float(one.getReferenceMs())}});
  return document_of({{"status", "completed"},
                      {"timer", word_of(x.getClock())},
                      {"timing_method", "paired_interleaved"},
                      {"benchmark_scope", word_of(x.getShape())},
                      {"timings_are", "milliseconds of a call, of the pairs that the interval was "
                                      "made of, in order; of more than 256 every so many"},
                      {"timings", std::move(pairs)}});
}

json memory_summary(const turn_material& x) {
  if (x.tools.sanitizer.is_object()) return document_of(x.tools.sanitizer);
  auto evaluation = x.record.getFacts().getEvaluation();
  if (!evaluation.hasMemory()) return not_run("no sanitizer was run");
  auto memory = evaluation.getMemory();
  auto findings = json::array(), problems = json::array();
  bool clean = true;
  for (auto f : memory.getFindings()) {
    auto severity = f.getSeverity();
    clean = clean && severity == wire::Severity::INFO; // of which the tool is not sure itself
    findings.push_back({{"rule", word_of(f.getRule())},
                        {"severity", enum_name(capnp::DynamicEnum{std::move(severity)})},
                        {"evidence", word_of(f.getEvidence())}});
  }
  for (auto problem : memory.getProblems()) problems.push_back(word_of(problem));
  return document_of({{"status", memory.getComplete() ? "completed" : "incomplete"},
                      {"clean", clean},
                      {"findings", std::move(findings)},
                      {"problems", std::move(problems)}});
}

expected<void> put_listings(const tool_words& tools, const std::string& folder,
                            const file_put& put) {
  auto none = not_run("a store keeps no listings; `kernelmill inspect` makes them of the code");
  for (const auto* name : {"source_map_summary", "tri_view", "source_ptx_sass_map"}) {
    bool there = tools.listings.is_object() && tools.listings.contains(name);
    KM_TRY(put_json(put, folder + "build/" + name + ".json",
                    there ? document_of(tools.listings[name]) : none));
  }
  for (const auto& [name, text] : tools.texts) KM_TRY(put(folder + "build/" + name, text));
  return {};
}

/// A name as a file of a bundle may have it: tools name reports after kernels.
std::string file_name(const std::string& x) {
  std::string result;
  for (char c : x.substr(0, 32)) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-' || (c == '.' && !result.empty());
    result += plain ? c : '_';
  }
  return result.empty() ? "_" : result;
}

expected<void> put_reports(const std::vector<tool_report>& reports, const std::string& folder,
                           const file_put& put) {
  std::set<std::string> taken;
  for (const auto& x : reports) {
    auto path = "reports/" + file_name(x.tool) + "/" + file_name(x.name);
    for (auto whole = path; !taken.insert(path).second;)
      path = fmt::format("{}.{}", whole, taken.size());
    KM_TRY(put(folder + path, x.text));
  }
  return {};
}

} // namespace

expected<void> put_tools(const turn_material& x, const std::string& folder, const file_put& put) {
  KM_TRY(put_json(put, folder + "perf/raw_timings.json",
                  raw_timings(x.record.getFacts().getEvaluation().getTiming())));
  KM_TRY(put_json(put, folder + "sanitize/memcheck_summary.json", memory_summary(x)));
  KM_TRY(put_json(put, folder + "traces/system/summary.json",
                  x.tools.trace.is_object() ? document_of(x.tools.trace)
                                            : not_run("no system trace was taken")));
  KM_TRY(put_listings(x.tools, folder, put));
  if (!x.tools.output.is_null())
    KM_TRY(put_json(put, folder + "command/output.json", x.tools.output));
  return put_reports(x.reports, folder, put);
}

} // namespace kernelmill::bundles
