#pragma once

// What a build has found out, and how it becomes a BuildResult.

#include <initializer_list>
#include <string>
#include <vector>

#include "gpu/toolchain/compiler_run.hpp"
#include "gpu/toolchain/diagnostics.hpp"
#include "messages/build.capnp.h"
#include "messages/message.hpp"

namespace kernelmill {

/// The most bytes of a result's log.
inline constexpr size_t most_log = 16 << 10;

struct build_findings {
  error fault{fault_class::none, {}, {}, {}};
  std::string library_sha256;
  std::string log;
  std::vector<diagnostic> diagnostics;
  std::vector<kernel_resources> kernels;
  double seconds = 0;
  bool repeatable = true; // false: a busy machine may be the cause
};

/// The source of a request in the form that compilers and Python take.
std::string source_of(wire::BuildRequest::Reader request);

/// In five characters, for a message.
std::string seconds_text(double seconds);

error candidate_fault(std::string category, std::string message, std::string hint);

bool contains_any(const std::string& text, std::initializer_list<const char*> words);

/// Why a compiler failed. Of signals g++ reports in words; NVRTC works in the process that dies.
error fault_of_compiler(const compiler_outcome& x, const std::vector<diagnostic>& diagnostics,
                        int deadline_ms);

Message<wire::BuildResult> to_message(const build_findings& x, const std::string& library_path,
                                      const std::string& identity, const std::string& architecture);

} // namespace kernelmill
