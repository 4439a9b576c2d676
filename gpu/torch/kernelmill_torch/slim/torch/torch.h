#pragma once
#include <kernelmill/slim_torch.h>
