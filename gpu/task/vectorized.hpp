#pragma once

// Marks a loop that is compiled for AVX-512, AVX2 and plain x86-64 and chosen when the program
// starts. Sanitizers instrument the resolver, which runs before they are ready, so their builds
// use the plain version.

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KERNELMILL_VECTORIZED                                                                      \
  __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define KERNELMILL_VECTORIZED
#endif
