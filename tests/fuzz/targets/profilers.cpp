// What profilers and disassemblers print of a candidate, which the candidate can shape: names of
// kernels, lines between the tool's own, numbers.

#include <cmath>

#include "gpu/inspect/listing.hpp"
#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/ncu_command.hpp"
#include "gpu/profiler/ncu_report.hpp"
#include "gpu/profiler/profile_result.hpp"
#include "gpu/profiler/sanitizer_report.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

void read_ncu(std::string_view bytes) {
  auto report = read_ncu_report(bytes);
  promise(report.kernels.size() <= 256, "at most 256 kernels are kept");
  promise(report.kernels.empty() != (report.problem == ncu_problem::none),
          "there are kernels, or a reason why not");
  std::vector<kernel_metrics> kernels;
  for (const auto& x : report.kernels) {
    promise(x.metrics.kernel.size() <= 512, "names are cut");
    for (const auto& row : metric_table())
      if (auto value = x.metrics.values[row.id])
        promise(std::isfinite(*value), "values are finite");
    for (const auto& card : read_cards(x.metrics.values)) {
      promise(card.confidence > 0 && card.confidence <= 1, "a confidence is a share");
      promise(!card.evidence.empty(), "a card has evidence");
    }
    kernels.push_back(x.metrics);
  }
  read_all(*profile_result({}, kernels, {}, 0).open());
  (void)ncu_metrics(metric_pack::full, read_metric_names(bytes));
}

void read_sanitizer(std::string_view bytes) {
  auto report = read_sanitizer_report(bytes);
  promise(report.findings.size() <= 64, "at most 64 findings are kept");
  for (const auto& x : report.findings) {
    promise(!x.words.empty() && x.words.size() <= 400, "a finding has the tool's words, cut");
    promise(x.others.size() <= 8, "at most 8 other places are kept");
    promise(!x.hint.empty(), "a finding has a hint");
  }
}

void read_listings(std::string_view bytes) {
  auto ptx = read_ptx(bytes, "kernel.cu"), sass = read_sass(bytes, "kernel.cu");
  size_t lines = 0, rows = 0;
  for (const auto* list : {&ptx, &sass})
    for (const auto& x : *list) {
      lines += x.lines.size();
      size_t counted = 0;
      for (const auto& [name, count] : instruction_mix(x)) counted += count;
      promise(counted <= x.lines.size(), "an instruction is of one class");
    }
  for (const auto& view : side_by_side(bytes, ptx, sass))
    for (const auto& row : view.rows) rows += row.ptx.size() + row.sass.size();
  promise(rows <= lines, "no instruction is shown twice");
}

} // namespace

void profilers(std::string_view bytes) {
  read_ncu(bytes);
  read_sanitizer(bytes);
  read_listings(bytes);
}

} // namespace kernelmill::fuzz
