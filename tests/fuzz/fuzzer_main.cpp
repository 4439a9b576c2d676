// One target as libFuzzer runs it.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  kernelmill::fuzz::KERNELMILL_FUZZ_TARGET({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
