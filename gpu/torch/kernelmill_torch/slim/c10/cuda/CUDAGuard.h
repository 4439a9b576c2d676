#pragma once
#include <kernelmill/slim_cuda.h>
