#pragma once

// What NVRTC includes for <hip/hip_runtime.h>: the names of device code alone, since the contract
// device has no host code.

#include "../../kernelmill_hip_device.h"
