// The words of compilers, assemblers and linkers about a candidate, which the candidate can shape:
// file names, symbols, #error, #pragma message.

#include "gpu/toolchain/build_findings.hpp"
#include "gpu/toolchain/diagnostics.hpp"
#include "messages/base/utf8.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

void compiler(std::string_view bytes) {
  std::string text{bytes};
  auto found = parse_diagnostics(text);
  promise(found.size() <= 100, "at most 100 diagnostics are kept");
  auto rest = text;
  auto cuda = take_kernel_resources(rest); // ends the last line
  promise(rest.size() <= text.size() + 1, "taking lines out makes a text no longer");
  auto hip = take_hip_kernel_resources(rest);
  for (const auto* kernels : {&cuda, &hip})
    for (const auto& x : *kernels)
      for (auto architecture : {"sm_90", "sm_61", "gfx90a", ""})
        promise(register_occupancy(x.registers, architecture) <= 1, "a share is at most 1");
  constexpr size_t limit = 1000;
  auto log = clean_log(text, limit);
  promise(is_utf8(log), "a log is UTF-8");
  promise(log.size() <= limit + 200, "a log is cut at its limit, and says so");
  promise(log.find('\x1b') == log.npos && log.find('\0') == log.npos, "a log has no control bytes");
  // Whose fault it is must not depend on what the text says alone; here only that it is judged.
  for (int how = 0; how < 6; ++how) {
    compiler_outcome x;
    x.status.code = how == 0 ? 0 : 1;
    x.timed_out = how == 2;
    x.out_of_memory = how == 3;
    x.flooded = how == 4;
    x.killed = how == 5;
    x.text = text;
    auto fault = fault_of_compiler(x, found, 1000);
    promise(fault.cls != fault_class::none || how == 0, "who failed has a fault");
  }
  build_findings findings;
  findings.log = std::move(log);
  findings.diagnostics = std::move(found);
  findings.kernels = std::move(cuda);
  read_all(*to_message(findings, "/path", "identity", "sm_90").open());
}

} // namespace kernelmill::fuzz
