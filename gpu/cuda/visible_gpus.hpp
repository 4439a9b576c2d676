#pragma once

// CUDA_VISIBLE_DEVICES, read as CUDA reads it. Slurm and Kubernetes assign GPUs by it, and NVML,
// which lists the GPUs of a node, does not look at it.
//
// A list has entries with commas between them: all numbers, or all uuids of GPUs, in capitals or
// not, or beginnings of uuids that fit no other. The first entry that names no GPU ends the list,
// so an empty list and "-1" show none; one that names a GPU twice shows none either. The rules were
// seen on a host with two H100s: what the driver counts with each form of list. Numbers count as
// NVML and nvidia-smi do, by PCI bus: CUDA's own with CUDA_DEVICE_ORDER=PCI_BUS_ID, and without it
// wherever all cards are equal.

#include <string_view>
#include <vector>

#include "gpu/cuda/devices.hpp"

namespace kernelmill::cuda {

/// What the list shows of `all`, in the list's order. `list` is null where the variable is unset:
/// all. Fails with "no_gpu" (infrastructure) when it shows none, with "unsupported_gpu"
/// (configuration) when it names a MIG instance.
expected<std::vector<gpu>> visible_gpus(const std::vector<gpu>& all, const char* list);

} // namespace kernelmill::cuda
