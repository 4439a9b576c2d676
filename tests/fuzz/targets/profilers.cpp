// What profilers and disassemblers print of a candidate, which the candidate can shape: names of
// kernels, lines between the tool's own, numbers.

#include <cmath>

#include "gpu/inspect/code_quality.hpp"
#include "gpu/inspect/listing.hpp"
#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/host_sanitizer_report.hpp"
#include "gpu/profiler/ncu_command.hpp"
#include "gpu/profiler/ncu_report.hpp"
#include "gpu/profiler/profile_result.hpp"
#include "gpu/profiler/rocm_smi.hpp"
#include "gpu/profiler/rocprof_csv.hpp"
#include "gpu/profiler/sanitizer_report.hpp"
#include "gpu/profiler/trace_database.hpp"
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

void check_findings(const sanitizer_report& report) {
  promise(report.findings.size() <= 64, "at most 64 findings are kept");
  for (const auto& x : report.findings) {
    promise(!x.words.empty() && x.words.size() <= 400, "a finding has the tool's words, cut");
    promise(x.others.size() <= 8, "at most 8 other places are kept");
    promise(!x.hint.empty(), "a finding has a hint");
  }
}

void check_quality(const kernel_listing& listing) {
  auto x = quality_of(listing);
  for (const auto& one : x.accesses)
    promise(one.instructions > 0 && one.wide_share() >= 0 && one.wide_share() <= 1,
            "a share is of what there is");
  for (const auto& one : x.kinds) {
    uint32_t told = 0;
    for (const auto& line : one.lines) told += line.instructions;
    promise(told <= one.instructions && one.instructions <= x.instructions,
            "lines have no more than there is");
  }
  if (!x.loops) return;
  for (const auto& one : *x.loops) {
    promise(one.depth >= 1 && one.instructions <= x.instructions, "a loop is a part of its kernel");
    promise(one.first_line <= one.last_line, "lines are in order");
  }
}

void read_listings(std::string_view bytes) {
  auto ptx = read_ptx(bytes, "kernel.cu"), sass = read_sass(bytes, "kernel.cu"),
       gcn = read_gcn(bytes, "kernel.hip");
  (void)read_gcn_resources(bytes);
  auto instructions = sass;
  add_live_registers(bytes, sass);
  promise(sass.size() == instructions.size(), "live registers add no kernel");
  size_t lines = 0, rows = 0;
  for (const auto* list : {&ptx, &sass, &gcn})
    for (const auto& x : *list) {
      lines += x.lines.size();
      size_t counted = 0;
      for (const auto& [name, count] : instruction_mix(x)) counted += count;
      promise(counted <= x.lines.size(), "an instruction is of one class");
      check_quality(x);
    }
  for (const auto& view : side_by_side(bytes, ptx, sass, gcn))
    for (const auto& row : view.rows) {
      rows += row.ptx.size() + row.sass.size() + row.gcn.size();
      promise(row.sass.size() == row.sass_live.size(), "each instruction has its count");
    }
  promise(rows <= lines, "no instruction is shown twice");
}

void check_trace(const trace_report& report) {
  promise(report.kernels.size() <= 256 && report.devices.size() <= 64 &&
              report.copies.size() <= 64 && report.readings.size() <= 64,
          "lists are cut");
  promise((report.problem == trace_problem::none) ==
              (!report.kernels.empty() || !report.readings.empty()),
          "there are kernels or GPUs, or a reason why not");
  promise(report.problem == trace_problem::none || !report.words.empty(), "a problem has words");
  for (const auto& x : report.kernels) {
    promise(!x.kernel.empty() && x.kernel.size() <= 512, "names are cut");
    promise(x.calls > 0, "a kernel was launched");
    if (x.times)
      promise(x.times->min_ns <= x.times->median_ns && x.times->median_ns <= x.times->max_ns &&
                  x.times->max_ns <= x.times->total_ns,
              "times are in order");
    for (const auto& one : x.counters)
      promise(one.dispatches > 0 && std::isfinite(one.mean), "counters are finite");
    (void)read_cards(values_of(x, report.gpu));
  }
  for (const auto& x : report.devices) {
    promise(x.busy_ns + x.launch_gap_ns <= x.span_ns, "a GPU is busy or idle");
    promise(x.overlap_ns <= x.copy_ns && x.overlap_ns <= x.kernel_ns, "an overlap is of both");
    (void)read_cards(values_of(x));
  }
}

void read_traces(std::string_view bytes) {
  check_trace(read_rocprof_csv(bytes));
  check_trace(read_rocm_smi(bytes));
  (void)is_rocprof_csv(bytes);
  (void)is_rocm_smi(bytes);
  if (!is_sqlite(bytes)) return;
  // SQLite opens by name, so a memory file does not do.
  auto path = scratch_folder() + "/trace.sqlite";
  write_file(path, bytes);
  auto report = read_trace_database(path, {1'000'000, 5});
  check(report);
  if (report) check_trace(*report);
}

} // namespace

void profilers(std::string_view bytes) {
  read_traces(bytes);
  read_ncu(bytes);
  check_findings(read_sanitizer_report(bytes));
  check_findings(read_host_sanitizer_report(bytes, "the calls are over"));
  read_listings(bytes);
}

} // namespace kernelmill::fuzz
