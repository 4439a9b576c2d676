#pragma once

// AMD's header layer includes this header of CUDA's, which some toolkits are installed without. Its
// functions are in the run-time library.

#include <cuda_runtime_api.h>

extern "C" {
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
}
