"""Memory that the referee shares with another process, and how several sets of inputs and outputs lie in it."""

import ctypes
import mmap
import os
from dataclasses import dataclass, field
from typing import Any, Optional

import torch

from kernelmill_torch import native

# Tensors lie where allocators put them, large ones at the beginning of a page of the GPU: elsewhere a kernel may be faster or slower by
# several percent (at multiples of 512 bytes 7 %, of 3072 bytes 5 %, on an H200).
ALIGNMENT = 1024
LARGE, LARGE_ALIGNMENT = 8 << 20, 2 << 20
PLACES = 0, 1, 3, 4, 7, 9, 12, 13  # where the first set may begin, in units of a layout


def extent_of(x: torch.Tensor) -> int:
    """Elements from a tensor's first to its last in memory, gaps included."""
    return 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride())) if x.numel() else 0


@dataclass
class TensorSpec:
    """One tensor: its shape, strides (in elements), dtype."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @staticmethod
    def of(x: torch.Tensor) -> "TensorSpec":
        """That of a tensor; one whose elements overlap or leave gaps becomes contiguous."""
        dense = extent_of(x) == x.numel()
        return TensorSpec(tuple(x.shape), tuple(x.stride() if dense else x.contiguous().stride()), x.dtype)

    @property
    def count(self) -> int:
        result = 1
        for n in self.shape:
            result *= n
        return result

    @property
    def bytes(self) -> int:
        return self.count * torch.empty((), dtype=self.dtype).element_size()

    def to_json(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "stride": list(self.stride), "dtype": str(self.dtype)[6:]}

    @staticmethod
    def from_json(x: dict[str, Any]) -> "TensorSpec":
        return TensorSpec(tuple(x["shape"]), tuple(x["stride"]), getattr(torch, x["dtype"]))

    def text(self) -> str:
        return f"{str(self.dtype)[6:]}[{', '.join(map(str, self.shape))}]"


def alignment_of(x: TensorSpec) -> int:
    return LARGE_ALIGNMENT if x.bytes >= LARGE else ALIGNMENT


def aligned(at: int, unit: int) -> int:
    return (at + unit - 1) // unit * unit


@dataclass
class Layout:
    """Where each tensor of each set lies. `constants` are inputs that are no tensors, by position."""

    inputs: list[Optional[TensorSpec]]
    outputs: list[TensorSpec]
    constants: list[Any] = field(default_factory=list)
    sets: int = 1

    @property
    def specs(self) -> list[TensorSpec]:
        return [x for x in self.inputs if x is not None] + self.outputs

    @property
    def unit(self) -> int:
        """What the address of a set is a multiple of."""
        return max(map(alignment_of, self.specs), default=ALIGNMENT)

    @property
    def starts(self) -> list[int]:
        """Where each of the specs begins in a set, and where the next set does."""
        result, end = [], 0
        for x in self.specs:
            result.append(aligned(end, alignment_of(x)))
            end = result[-1] + x.bytes
        return [*result, aligned(max(end, 1), self.unit)]

    @property
    def set_bytes(self) -> int:
        return self.starts[-1]

    @property
    def places(self) -> list[int]:
        """Where the first set may begin."""
        return [x * self.unit for x in PLACES]

    def left_to_write(self, cache: int, calls: int) -> int:
        """Bytes of a cache that so many calls, one after the other, leave there to be written back: the share of outputs in what a
        call moves, and no more than theirs have."""
        outputs = sum(x.bytes for x in self.outputs)
        return min(cache * outputs // max(1, sum(x.bytes for x in self.specs)), calls * outputs)

    def to_json(self) -> dict[str, Any]:
        return {
            "inputs": [x.to_json() if x else None for x in self.inputs],
            "constants": self.constants,
            "outputs": [x.to_json() for x in self.outputs],
            "sets": self.sets,
        }

    @staticmethod
    def from_json(x: dict[str, Any]) -> "Layout":
        return Layout(
            [TensorSpec.from_json(i) if i else None for i in x["inputs"]],
            [TensorSpec.from_json(o) for o in x["outputs"]],
            x["constants"],
            x["sets"],
        )


class DeviceBytes:
    """Lends a stretch of a GPU's memory to torch."""

    def __init__(self, address: int, size: int):
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
            "strides": None,
            "version": 3,
        }


class SharedMemory:
    """One stretch of memory as a uint8 tensor, and the descriptor by which another process maps it."""

    def __init__(self, lib, device: str, capacity: int, fd: int, address: int, mapping):
        self._lib, self.device, self.capacity, self.fd = lib, device, capacity, fd
        self._address, self._mapping = address, mapping
        if device == "cuda":
            self.bytes = torch.as_tensor(DeviceBytes(address, capacity), device="cuda")
        else:
            self.bytes = torch.frombuffer(mapping, dtype=torch.uint8)

    @staticmethod
    def create(lib, device: str, size: int) -> "SharedMemory":
        """Raises MemoryError when there is not so much."""
        if device == "cpu":
            fd = native.memory_file("kernelmill-buffers", size)
            return SharedMemory(lib, device, size, fd, 0, mmap.mmap(fd, size))
        capacity, fd = ctypes.c_size_t(), ctypes.c_int()
        address = lib.km_gpu_create(size, ctypes.byref(capacity), ctypes.byref(fd))
        if not address:
            raise MemoryError(lib.km_gpu_problem().decode())
        return SharedMemory(lib, device, capacity.value, fd.value, address, None)

    @staticmethod
    def attach(lib, device: str, fd: int, capacity: int) -> "SharedMemory":
        """Maps what a descriptor names."""
        if device == "cpu":
            mapping = mmap.mmap(fd, capacity)
            os.close(fd)
            return SharedMemory(lib, device, capacity, -1, 0, mapping)
        address = lib.km_gpu_import(fd, capacity)
        if not address:
            raise MemoryError(lib.km_gpu_problem().decode())
        return SharedMemory(lib, device, capacity, -1, address, None)

    def clear(self) -> None:
        """Nothing is left of what was written there."""
        if self._mapping is not None:
            self._mapping.madvise(mmap.MADV_REMOVE)  # gives the pages back, so that it takes no time and no memory
        else:
            self.bytes.zero_()

    def close(self) -> None:
        """Gives the memory back once nobody maps it. REQUIRES: no tensor of it is used any more."""
        self.bytes = None
        if self.fd >= 0:
            os.close(self.fd)
        if self._address:
            self._lib.km_gpu_unmap(self._address, self.capacity)
        self._mapping = None


@dataclass
class BufferSet:
    """The tensors of one call: `inputs` holds constants where the problem has no tensor."""

    inputs: list[Any]
    outputs: list[torch.Tensor]


def places_of(memory: torch.Tensor, layout: Layout) -> list[list[BufferSet]]:
    """The sets of a layout for each of the places where the first may begin."""
    return [sets_of(memory[at:], layout, layout.sets) for at in layout.places]


def sets_of(memory: torch.Tensor, layout: Layout, count: int) -> list[BufferSet]:
    """The first sets of a layout as tensors on memory (uint8) that holds them one after the other."""
    *starts, size = layout.starts

    def tensor(spec: TensorSpec, at: int) -> torch.Tensor:
        flat = memory[at : at + spec.bytes].view(spec.dtype)
        return flat.as_strided(spec.shape, spec.stride) if spec.count else flat.reshape(spec.shape)

    result = []
    for number in range(count):
        tensors = iter([tensor(spec, number * size + at) for spec, at in zip(layout.specs, starts)])
        inputs = [next(tensors) if spec else layout.constants[i] for i, spec in enumerate(layout.inputs)]
        result.append(BufferSet(inputs, list(tensors)))
    return result
