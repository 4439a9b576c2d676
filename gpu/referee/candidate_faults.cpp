#include "gpu/referee/candidate_faults.hpp"

#include <fmt/format.h>

namespace kernelmill {

error out_of_memory_fault(uint64_t limit_bytes, bool on_gpu) {
  return {fault_class::candidate, "out_of_memory",
          fmt::format("the candidate wanted more than {} MiB of {}memory", limit_bytes >> 20,
                      on_gpu ? "the host's " : ""),
          "allocate no more than the size of the data"};
}

error device_fault(const std::string& said) {
  auto holds = [&](const char* text) { return said.find(text) != said.npos; };
  if (holds("OUT_OF_MEMORY"))
    return {fault_class::candidate, "out_of_memory",
            "the candidate wanted more of the GPU's memory than was free: failed to " + said,
            "allocate no more than the size of the data"};
  bool address = holds("ILLEGAL_ADDRESS") || holds("MISALIGNED");
  return {fault_class::candidate, address ? "illegal_access" : "device_error",
          "the candidate lost the GPU: failed to " + said,
          address ? "check every index against the shape, and that no host memory is used"
                  : "check launch sizes, asserts and traps"};
}

} // namespace kernelmill
