#include "gpu/toolchain/build_findings.hpp"

#include <algorithm>
#include <csignal>

#include "messages/base/source_text.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

constexpr double least_share = 0.25; // of a core, that a compiler must have had

std::string first_error(const std::vector<diagnostic>& list) {
  for (auto& x : list)
    if (x.severity == "error") {
      if (x.file.empty()) return x.message;
      return x.file + ":" + std::to_string(x.line) + ": " + x.message;
    }
  return "the compiler ended without a message";
}

// A compiler that a source keeps waiting for something else is no fault of the machine.
bool lacked_a_core(const compiler_outcome& x) {
  return x.timed_out && (x.cores.wants_more || x.cores.stopped) &&
         x.cores.seconds < least_share * x.seconds;
}

} // namespace

std::string source_of(wire::BuildRequest::Reader request) {
  return normal_source(std::string_view{request.getSource().begin(), request.getSource().size()});
}

std::string seconds_text(double seconds) {
  return std::to_string(seconds).substr(0, 5) + " s";
}

error candidate_fault(std::string category, std::string message, std::string hint) {
  return {fault_class::candidate, std::move(category), std::move(message), std::move(hint)};
}

bool contains_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](auto* x) { return text.find(x) != text.npos; });
}

error fault_of_compiler(const compiler_outcome& x, const std::vector<diagnostic>& diagnostics,
                        int deadline_ms) {
  int signal = x.status.signal;
  if (lacked_a_core(x))
    return {fault_class::infrastructure, "machine_busy",
            "failed to compile the kernel: of " + seconds_text(x.seconds) +
                " the compiler had a core for " + seconds_text(x.cores.seconds),
            "run less beside the compilers, or raise `compile.deadline_ms`"};
  if (x.killed)
    return {fault_class::infrastructure, "compiler_killed",
            "failed to compile the kernel: something outside its sandbox ended the compiler",
            "does the machine have memory left? its kernel log says whom it ended"};
  if (x.timed_out || signal == SIGXCPU || contains_any(x.text, {"CPU time limit exceeded"}))
    return candidate_fault("compile_timeout",
                           "failed to compile the kernel: the compiler was still busy after " +
                               seconds_text(deadline_ms / 1000.0),
                           "use fewer or smaller templates, macros and constant expressions");
  if (x.out_of_memory ||
      contains_any(x.text, {"virtual memory exhausted", "out of memory", "Cannot allocate memory",
                            "memory exhausted", "Killed signal", "signal 9", "SIGKILL"}))
    return candidate_fault("compile_memory",
                           "failed to compile the kernel: the compiler ran out of memory",
                           "use fewer or smaller templates, macros and constant tables");
  if (signal == SIGXFSZ ||
      contains_any(x.text, {"File size limit exceeded", "No space left on device"}))
    return candidate_fault("compile_error",
                           "failed to compile the kernel: the library would be too large",
                           "compute large tables at run time");
  if (x.flooded)
    return candidate_fault("compile_error",
                           "failed to compile the kernel: the compiler printed more than 16 MiB",
                           "correct the errors in the compiler's log");
  return candidate_fault("compile_error",
                         "failed to compile the kernel: " + first_error(diagnostics),
                         "correct the errors in the compiler's log");
}

Message<wire::BuildResult> to_message(const build_findings& x, const std::string& library_path,
                                      const std::string& identity,
                                      const std::string& architecture) {
  return build<wire::BuildResult>([&](wire::BuildResult::Builder out) {
    bool compiled = x.fault.cls == fault_class::none;
    out.setCompiled(compiled);
    out.setLibraryPath(compiled ? library_path : "");
    out.setLibrarySha256(x.library_sha256);
    auto list = out.initDiagnostics(static_cast<unsigned>(x.diagnostics.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      auto& from = x.diagnostics[i];
      list[i].setFile(from.file);
      list[i].setLine(from.line);
      list[i].setColumn(from.column);
      list[i].setSeverity(from.severity);
      list[i].setMessage(from.message);
    }
    auto kernels = out.initKernels(static_cast<unsigned>(x.kernels.size()));
    for (unsigned i = 0; i < kernels.size(); ++i) {
      kernels[i].setName(x.kernels[i].name);
      kernels[i].setRegisters(x.kernels[i].registers);
      kernels[i].setSpillStores(x.kernels[i].spill_stores);
      kernels[i].setSpillLoads(x.kernels[i].spill_loads);
      kernels[i].setStackFrame(x.kernels[i].stack_frame);
      kernels[i].setSharedBytes(x.kernels[i].shared_bytes);
      kernels[i].setOccupancy(register_occupancy(x.kernels[i].registers, architecture));
    }
    out.setLog(x.log);
    out.setSeconds(x.seconds);
    out.setToolchain(identity);
    set_fault(out.initFault(), x.fault);
  });
}

} // namespace kernelmill
