#pragma once

// A tool of the toolkit (ncu, compute-sanitizer) around a candidate, all of it in the sandbox. Of
// the contract `device` the process has no host code of the candidate, so that the report is the
// tool's own word; of the others it is the candidate's, too. What device code prints goes
// elsewhere. Nothing may be timed on the GPU meanwhile; who calls sees to that.

#include <string>
#include <string_view>
#include <vector>

#include "gpu/examine/lone_files.hpp"
#include "gpu/profiler/metrics.hpp"
#include "gpu/profiler/ncu_report.hpp"
#include "gpu/profiler/sanitizer_report.hpp"
#include "gpu/sandbox/sandbox.hpp"

namespace kernelmill {

struct examine_options {
  std::string program;    ///< path of kernelmill-candidate
  std::string gpu_node;   ///< "/dev/nvidia0"
  std::string driver;     ///< path of the driver's library; may be empty
  int limit_ms = 120'000; ///< of all runs of a tool together; then it is killed
  std::vector<int> cpus;  ///< that it may use; empty: those of `walls`
};

struct examination {
  std::string report; ///< at most 16 MiB
  std::string said;   ///< by the tool and the program beside the report, its last 4 KiB; not clean
  exit_status status;
  bool timed_out = false;
  double seconds = 0;
};

/// Runs the tool with these words before the program's own. It writes its report where
/// report_path() says.
expected<examination> examine(sandbox& walls, const examine_options& options,
                              const std::vector<std::string>& tool, const lone_files& files);

std::string report_path();

struct ncu_examination {
  examination run; ///< the latest
  ncu_report report;
  std::vector<std::string> refused; ///< metrics that this ncu does not have
};

/// What ncu is asked for.
struct ncu_wish {
  std::string ncu; ///< its path
  metric_pack pack = metric_pack::quick;
  std::string kernel; ///< a regular expression over demangled names; empty: all
};

/// Profiles the last of `calls` calls; those before it only wake the GPU. Metrics that ncu refuses
/// are left out. Of a library or a module at most 64 launches.
expected<ncu_examination> examine_by_ncu(sandbox& walls, const examine_options& options,
                                         const ncu_wish& wish, unsigned calls,
                                         const lone_files& files);

struct sanitizer_examination {
  examination run;
  sanitizer_report report;
};

/// `check` is memcheck, racecheck, initcheck or synccheck.
expected<sanitizer_examination> examine_by_sanitizer(sandbox& walls, const examine_options& options,
                                                     const std::string& sanitizer,
                                                     const std::string& check,
                                                     const lone_files& files);

/// Takes the metrics that ncu's words name out of a list, and returns them.
std::vector<std::string> take_refused(std::string_view words, std::vector<std::string>& metrics);

} // namespace kernelmill
