#pragma once

// Builds one extension in the sandbox, as torch.utils.cpp_extension would: each source into an
// object, all at once, and the objects into a library whose undefined symbols are those of the
// interpreter and of torch.

#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <set>
#include <string>
#include <vector>

#include "gpu/python/python_files.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/toolchain/build_attribution.hpp"
#include "gpu/toolchain/build_findings.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/precompiled.hpp"
#include "gpu/toolchain/torch_request.hpp"

namespace kernelmill {

/// What a machine builds torch extensions with.
struct torch_compilers {
  python_facts python;
  compiler_facts host;         ///< g++
  compiler_facts device;       ///< nvcc; `compile` is empty on the backend cpu
  std::string architecture;    ///< "sm_90"
  std::string cache_directory; ///< for precompiled headers
  std::string slim_headers;    ///< the folder of ours that stands before torch's; empty: not used
  uint64_t memory_bytes = 0;
  unsigned parallel = 2; ///< compilers at once, over all builds

  bool cuda() const { return !device.compile.empty(); }
};

/// One compiled extension, or why there is none (fault of `findings`).
struct built_extension {
  build_findings findings;
  std::string library;
  unsigned with_full_headers = 0;         ///< sources for which the slim headers did not do
  std::optional<build_evidence> evidence; ///< of the compiler that failed
  bool failed_in_headers = false;         ///< one is missing, or an error stands below one
};

/// Thread safety: any number of threads.
class torch_extension_builder {
public:
  torch_extension_builder(sandbox& walls, torch_compilers compilers);

  /// `deadline_ms` is for each run of a compiler; with torch's own headers three times that.
  /// A failure that a machine can cause is held against control().
  built_extension build(const extension_request& request, int deadline_ms);

  /// Builds an extension of ours, with the slim headers or torch's own. Fails with class
  /// infrastructure, and names the package that is missing.
  expected<void> control(bool with_cuda, bool slim_allowed, int deadline_ms);

  /// The PTX ("-ptx") or the cubin ("-cubin") of one CUDA source with a table of lines, for looking
  /// at.
  expected<compiler_outcome> list(const extension_request& request, size_t index, const char* kind,
                                  int deadline_ms);

private:
  struct unit_result;

  built_extension build_once(const extension_request& request, int deadline_ms, bool slim_allowed);
  unit_result compile_unit(const extension_request& request, size_t index, int deadline_ms,
                           bool slim_allowed);
  expected<compiler_outcome> compile(const extension_request& request, size_t index,
                                     int deadline_ms, bool slim,
                                     const std::vector<std::string>& product = {"-c"});
  std::vector<std::string> host_command(const extension_request& request, bool slim) const;
  std::vector<std::string> device_command(const extension_request& request, bool slim) const;
  std::vector<std::string> include_flags(bool slim) const;
  std::vector<std::string> library_folders() const;
  std::vector<unit_result> compile_all(const extension_request& request, int deadline_ms,
                                       bool slim_allowed);
  expected<compiler_outcome> link(const extension_request& request,
                                  const std::vector<unit_result>& units, int deadline_ms);
  std::string host_headers(const std::vector<std::string>& command);
  std::vector<bind_mount> mounts() const;

  sandbox& walls_;
  torch_compilers compilers_;
  std::counting_semaphore<> slots_;
  std::mutex mutex_; // guards the next two
  std::set<std::string> seen_flags_;
  std::vector<std::pair<std::string, std::unique_ptr<precompiled_headers>>> headers_;
};

} // namespace kernelmill
