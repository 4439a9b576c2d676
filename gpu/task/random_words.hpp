#pragma once

// The hash behind all contents, for the host and, as text that NVRTC compiles, for a GPU: so it
// includes nothing.

#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
#define KERNELMILL_HOST_DEVICE __device__
#else
#define KERNELMILL_HOST_DEVICE
#endif

namespace kernelmill {

// Two multiply-xorshift rounds with a key before and between: each bit of the result depends on
// each bit of the counter, in 32-bit lanes that AVX2 and AVX-512 have.
KERNELMILL_HOST_DEVICE inline unsigned mix(unsigned counter, unsigned k0, unsigned k1) {
  unsigned x = counter * 0x9e3779b1u ^ k0;
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= (x >> 15) ^ k1;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

// 24 bits, so that every value is exact in fp32: [0, 1).
KERNELMILL_HOST_DEVICE inline float unit(unsigned word) {
  return static_cast<float>(static_cast<int>(word >> 8)) * 0x1p-24f;
}

} // namespace kernelmill
