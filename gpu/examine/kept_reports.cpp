#include "gpu/examine/kept_reports.hpp"

#include <algorithm>

#include "gpu/referee/clock.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_kept_bytes = 256 << 10; // of one report
constexpr double most_ncu_seconds = 60;

kept_report no_ncu_report(const std::string& why) {
  return {"ncu.txt", kept_text("no report of ncu: " + why + "\n")};
}

kept_report run_ncu(const memory_checker& by, const task& what,
                    wire::EvaluateRequest::Reader request, double until) {
  if (by.ncu.empty()) return no_ncu_report("it is not on the machine that judged");
  auto options = by.options;
  auto left_ms = [&] { return static_cast<int>((until - now_seconds()) * 1e3); };
  if (left_ms() < 1) return no_ncu_report("no time is left");
  auto artifact = read_judged(request);
  if (!artifact) return no_ncu_report(artifact.error().message);
  auto calls = profiled_calls(what);
  auto files =
      lay_out_profiled(by.walls, by.python, what, *artifact, calls, std::max(1, left_ms()));
  if (!files) return no_ncu_report(files.error().message);
  options.limit_ms = std::max(1, left_ms());
  auto found = examine_by_ncu(by.walls, options, {by.ncu, metric_pack::full, {}}, calls, *files);
  if (!found) return no_ncu_report(found.error().message);
  if (found->run.timed_out && found->report.kernels.empty())
    return no_ncu_report("it did not end in time");
  if (found->report.problem != ncu_problem::none)
    return no_ncu_report(std::string{to_string(found->report.problem)} + ": " +
                         found->report.words + "\n" + found->run.said);
  return {"ncu.csv", kept_text(found->run.report)};
}

} // namespace

std::string kept_text(std::string_view report) {
  std::string result{report.substr(0, most_kept_bytes)};
  for (char& c : result)
    if (c != '\n' && c != '\t' && (c < ' ' || c > '~')) c = '?';
  return result;
}

void add_reports(wire::EvaluateResult::Builder out, const std::vector<kept_report>& more) {
  if (more.empty()) return;
  auto memory = out.getMemory();
  auto known = memory.disownReports();
  auto before = known.get();
  auto list = memory.initReports(before.size() + static_cast<unsigned>(more.size()));
  for (unsigned i = 0; i < before.size(); ++i) {
    list[i].adoptName(before[i].disownName());
    list[i].adoptText(before[i].disownText());
  }
  for (unsigned i = 0; i < more.size(); ++i) {
    list[before.size() + i].setName(more[i].name);
    list[before.size() + i].setText(more[i].text);
  }
}

void add_span(wire::EvaluateResult::Builder out, const char* name, double seconds) {
  auto known = out.disownSpans();
  auto before = known.getReader();
  auto list = out.initSpans(before.size() + 1);
  for (unsigned i = 0; i < before.size(); ++i) list.setWithCaveats(i, before[i]);
  auto last = list[before.size()];
  last.setName(name);
  last.setValue(seconds);
  if (before.size() > 0) last.setUnit(before[0].getUnit());
  out.setSeconds(out.getSeconds() + seconds);
}

Message<wire::EvaluateResult> with_ncu_report(const memory_checker& by, const task& what,
                                              wire::EvaluateRequest::Reader request,
                                              const Message<wire::EvaluateResult>& judged,
                                              double begun) {
  auto before = judged.open();
  bool wanted = request.getReports() && !request.getProfile() && what.terms.backend != "cpu";
  if (!wanted || !is_acceptable(*before)) return judged;
  double started = now_seconds();
  double until = started + most_ncu_seconds;
  if (auto ms = request.getDeadlineMs(); ms > 0) until = std::min(until, begun + ms * 1e-3);
  auto report = run_ncu(by, what, request, until);
  scratch_builder builder;
  builder->setRoot(*before);
  auto out = builder->getRoot<wire::EvaluateResult>();
  add_reports(out, {std::move(report)});
  add_span(out, "ncu", now_seconds() - started);
  return Message<wire::EvaluateResult>{*builder};
}

} // namespace kernelmill
