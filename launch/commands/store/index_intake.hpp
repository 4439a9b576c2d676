#pragma once

// What `index build` takes from its sources: filters, licences and repeated kernels in one place,
// with a count of what stays out and why.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/governance/licences.hpp"
#include "launch/cli/command.hpp"
#include "retrieval/corpora/corpus_rows.hpp"

namespace kernelmill::commands {

/// What kernels of runs and corpora are wanted.
struct kernel_filter {
  std::string language;      ///< empty: any
  std::set<uint32_t> levels; ///< of KernelBench's problems; empty: all
  bool with_failures = false;
  double min_speedup = 0; ///< 0: any
  std::string model;      ///< of runs: that wrote them; empty: any
  uint64_t limit = 0;     ///< of each source; 0: none
};

/// The options of a filter. Errors: "usage".
expected<kernel_filter> kernel_filter_of(const cli::invocation& in);
std::vector<cli::option_spec> kernel_filter_options();

struct kept_out {
  uint64_t rows = 0;
  std::string reason; ///< of the first
};

struct source_report {
  std::string from; ///< "kernelbook=FILE", as it was typed
  uint64_t rows = 0;
  uint64_t kept = 0;
  std::map<std::string, kept_out> without; ///< by kind of reason
};

/// Why a licence keeps a kernel out.
struct licence_refusal {
  std::string key; ///< equal for what is counted together
  std::string reason;
  std::string hint;
};

class kernel_intake {
public:
  kernel_intake(kernel_filter filter, const licence_table& licences,
                const std::set<std::string>& accepted)
      : filter_(std::move(filter)), licences_(licences), accepted_(accepted) {}

  /// What comes now is of this source.
  source_report& begin(const std::string& from);

  /// Takes a kernel, or counts why not. Answers false when its source has given enough.
  bool take(corpus_kernel x, const std::optional<licence_refusal>& refused);

  void leave_out(const std::string& key, const std::string& reason);

  /// Whether rows of its source may be trained on: what a prompt shows is learned from.
  std::optional<licence_refusal> refusal_of(const kernel_example& x);

  /// Errors: "licence_forbids", where licences leave nothing of the source.
  expected<void> end() const;

  /// Leaves repeated kernels out. The reports are complete then.
  std::vector<kernel_example> kernels();

  const std::vector<source_report>& reports() const { return reports_; }

private:
  std::optional<licence_refusal> decided(const kernel_example& x) const;
  std::string unwanted(const corpus_kernel& x) const;

  kernel_filter filter_;
  const licence_table& licences_;
  const std::set<std::string>& accepted_;
  std::vector<kernel_example> kernels_;
  std::vector<size_t> sources_; ///< of each kernel its report
  std::vector<source_report> reports_;
  std::optional<licence_refusal> refused_; ///< the first of the source
  std::unordered_set<std::string> ids_;
  std::unordered_map<std::string, std::optional<licence_refusal>> decisions_;
};

} // namespace kernelmill::commands
