#pragma once

// The words of g++, nvcc, ptxas, clang, as, and ld, made fit for a reader who knows one file:
// kernel.cpp.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernelmill {

struct diagnostic {
  std::string file; ///< "kernel.cpp", a system header, or empty (linker)
  uint32_t line = 0;
  uint32_t column = 0;
  std::string severity; ///< "error", "warning", "note"
  std::string message;
};

/// Finds errors, warnings and notes, in order; at most 100.
std::vector<diagnostic> parse_diagnostics(const std::string& text);

/// What ptxas says with -v of one kernel, or clang in remarks of kernel-resource-usage.
struct kernel_resources {
  std::string name;          ///< demangled
  uint32_t registers = 0;    ///< a thread; VGPRs on an AMD GPU
  uint32_t spill_stores = 0; ///< bytes a thread
  uint32_t spill_loads = 0;  ///< bytes a thread
  uint32_t stack_frame = 0;  ///< bytes a thread
  uint32_t shared_bytes = 0; ///< static, a block
};

/// The name that C++ has for a symbol. Who names a kernel "_Z1k1PIS_IiiES0_E", with some more of
/// these repetitions, asks for gigabytes: a name that could be long stays as it is.
std::string readable_symbol(std::string_view symbol);

/// Takes the lines of `ptxas -v` out of `text`.
std::vector<kernel_resources> take_kernel_resources(std::string& text);

/// Takes clang's remarks of kernel-resource-usage, and the lines of source that they quote, out of
/// `text`. What clang counts as a spilled register is 4 bytes, stored and loaded once.
std::vector<kernel_resources> take_hip_kernel_resources(std::string& text);

/// Share of a multiprocessor's warps that can live at once when a thread takes so many registers. 0
/// where the limits of the architecture ("sm_90") are not known here.
double register_occupancy(uint32_t registers, const std::string& architecture);

/// Makes the text valid UTF-8 without control characters, takes out the paths of the sandbox, and
/// cuts it after the last whole line within `limit` bytes, saying so.
std::string clean_log(const std::string& text, size_t limit);

} // namespace kernelmill
