"""Reads what the calls of a process returned, where it lies, while that process is stopped: nobody who could still work
takes part. A process only says where; a lie harms itself alone."""

import ctypes
import mmap
import os
from array import array
from typing import Any, Optional

import torch

from kernelmill_torch import native
from kernelmill_torch.buffers import BufferSet, DeviceBytes, Layout, SharedMemory, TensorSpec

NAME_BYTES = 64  # of an allocation that another process opens
MOST_ALLOCATIONS = 1024
MOST_DIGITS = 20  # of an address
LARGEST_GAPS = 4  # times the bytes of an output that it may stretch over


# -- in the process ---------------------------------------------------------------------------------


def where(x: torch.Tensor) -> tuple[int, ...]:
    """Address and strides; no address where the elements are not those in memory."""
    return (0 if x.is_neg() else x.data_ptr(), *x.stride())


def tell(told: memoryview, returned: list, tensor: type = torch.Tensor) -> None:
    """Writes down where results lie, in time that is the calls'. Of what is none there is no address: who copies it says why."""
    try:
        numbers = array(
            "q", [n for out in returned for x in ((out,) if type(out) is tensor else out) for n in where(x)]
        )
        told[: len(numbers)] = numbers
    except Exception:
        told[:] = array("q", bytes(told.nbytes))


def name_of(lib, address: int) -> Optional[str]:
    """What another process opens the allocation by that holds an address: its base and its name, as text; None where it
    cannot."""
    base, size, name = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.create_string_buffer(NAME_BYTES)
    if lib.km_gpu_name(address, ctypes.byref(base), ctypes.byref(size), name) != 0:
        return None
    return f"{base.value}:{name.raw.hex()}"


# -- in the referee ---------------------------------------------------------------------------------


class Allocation:
    """One allocation of the process, mapped here; or, without a `place`, memory that is ours."""

    def __init__(self, base: int, memory: torch.Tensor, place: int = 0):
        self.base, self.memory, self.place = base, memory, place

    def holds(self, address: int, size: int) -> bool:
        return self.base <= address and address + size <= self.base + self.memory.numel()


def base_of(name: Any) -> Optional[int]:
    """What a process says an allocation begins at; None where that is no number."""
    text = name.partition(":")[0] if isinstance(name, str) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


class Reach:
    """What the referee reaches of one process. REQUIRES: close(), and nobody uses what take() returned after that."""

    def __init__(self, lib, device: str, layout: Layout):
        self.lib, self.device, self.layout = lib, device, layout
        self.words = sum(1 + len(x.shape) for x in layout.outputs)  # that a call tells
        size = max(1, layout.sets * self.words) * 8
        self.fd = native.memory_file("kernelmill-told", size)
        self.told = memoryview(mmap.mmap(self.fd, size)).cast("q")
        self.latest: tuple[list[int], list[BufferSet]] = ([], [])  # what was told, and where that was
        self.shared: Optional[Allocation] = None
        self.allocations: list[Allocation] = []
        self.is_shared = False  # whether outputs of the latest row lay in the shared buffers
        self.unknown: list[int] = []  # addresses of the latest row in no allocation that is known
        self.hopeless: set[int] = set()  # those that cannot be opened
        self.has_moved = False  # once
        self.is_fleeting = False  # whether an address means another allocation in each row
        self.memory_fd = -1

    def share(self, at: Any, memory: SharedMemory) -> None:
        """The process says that it has the shared buffers at an address."""
        if isinstance(at, int):
            self.shared = Allocation(at, memory.bytes)

    def take(self, number: int, count: int) -> Optional[list[BufferSet]]:
        """The outputs of the first sets, without inputs; None where not all are within reach. With a GPU they are the memory
        of the process itself. REQUIRES: it is stopped, and `number` is its number out here."""
        numbers = self.told[: count * self.words].tolist()
        if numbers == self.latest[0]:
            return self.latest[1]
        self.unknown, result, at, self.is_shared = [], [], 0, False
        for _ in range(count):
            outputs = []
            for spec in self.layout.outputs:
                address, *stride = numbers[at : at + 1 + len(spec.shape)]
                at += 1 + len(spec.shape)
                outputs.append(self._tensor(number, spec, address, tuple(stride)))
            result.append(BufferSet([], outputs))
        if any(x is None for one in result for x in one.outputs):
            return None
        if self.device == "cuda":
            self.latest = numbers, result
        return result

    def _tensor(self, number: int, spec: TensorSpec, address: int, stride: tuple[int, ...]) -> Optional[torch.Tensor]:
        if not spec.count:
            return torch.empty(spec.shape, dtype=spec.dtype, device=self.device)
        width = spec.bytes // spec.count
        if address <= 0 or address % width or min(stride, default=0) < 0:
            return None
        size = (1 + sum((n - 1) * s for n, s in zip(spec.shape, stride))) * width
        if size > LARGEST_GAPS * spec.bytes:
            return None
        memory = self._stretch(number, address, size)
        if memory is None or memory.data_ptr() % width:  # where it says that its memory begins need not be true
            return None
        return memory.view(spec.dtype).as_strided(spec.shape, stride)

    def _stretch(self, number: int, address: int, size: int) -> Optional[torch.Tensor]:
        if self.shared is not None and self.shared.holds(address, size):
            self.is_shared = True
            return self.shared.memory[address - self.shared.base :][:size]
        if self.device == "cpu":
            return self._read(number, address, size)
        for one in self.allocations:
            if one.holds(address, size):
                return one.memory[address - one.base :][:size]
        self.unknown.append(address)
        return None

    def _read(self, number: int, address: int, size: int) -> Optional[torch.Tensor]:
        """Bytes of a process's memory, by the kernel."""
        memory = torch.empty(size, dtype=torch.uint8)
        into, done = memoryview(memory.numpy()), 0
        try:
            if self.memory_fd < 0:
                self.memory_fd = os.open(f"/proc/{number}/mem", os.O_RDONLY | os.O_CLOEXEC)
            while done < size:
                got = os.preadv(self.memory_fd, [into[done:]], address + done)
                if got <= 0:
                    return None
                done += got
        except (OSError, OverflowError):
            return None
        return memory

    def moved(self) -> bool:
        """Whether what take() found may be what lay there before, where it was not right: of a process that frees memory and
        has other memory there later, what was mapped once is out of date. Then everything is mapped anew: now, and if that
        happens again, in each row."""
        if not self.allocations or self.is_fleeting:
            return False
        self.is_fleeting, self.has_moved = self.has_moved, True
        self.forget()
        return True

    def may_learn(self) -> bool:
        """Whether the latest row's outputs may be within reach once their allocations are known."""
        return bool(self.unknown) and not self.hopeless.intersection(self.unknown)

    def learn(self, names: Any, others: Any = None) -> None:
        """Maps the allocations of unknown addresses, by the names that the process gave, and others that it has."""
        names = names if isinstance(names, list) else []
        for address, name in zip(self.unknown, names + [None] * len(self.unknown)):
            if any(x.holds(address, 1) for x in self.allocations):
                continue
            found = self._open(name) if len(self.allocations) < MOST_ALLOCATIONS else None
            if found is None:
                self.hopeless.add(address)
            else:
                self.allocations.append(found)
        known = {x.base for x in self.allocations}
        for name in others if isinstance(others, list) else []:
            if len(self.allocations) >= MOST_ALLOCATIONS or base_of(name) in known:
                continue
            if (found := self._open(name)) is not None:
                self.allocations.append(found)
                known.add(found.base)

    def _open(self, text: Any) -> Optional[Allocation]:
        try:
            base, name = text.split(":")
            number, handle = base_of(text), bytes.fromhex(name)
        except (AttributeError, ValueError):
            return None
        if number is None:
            return None
        size = ctypes.c_size_t()
        if len(handle) != NAME_BYTES or not (place := self.lib.km_gpu_open(handle, ctypes.byref(size))):
            return None
        return Allocation(number, torch.as_tensor(DeviceBytes(place, size.value), device="cuda"), place)

    def forget(self) -> None:
        """Unmaps all allocations. REQUIRES: nobody uses what take() returned."""
        self.latest = ([], [])
        if self.allocations:
            torch.cuda.synchronize()
        for one in self.allocations:
            one.memory = None
            self.lib.km_gpu_close(one.place)
        self.allocations, self.hopeless = [], set()  # what could not be opened may be freed meanwhile, too

    def close(self) -> None:
        self.forget()
        self.shared = None
        for fd in (self.fd, self.memory_fd):
            if fd >= 0:
                os.close(fd)
        self.fd = self.memory_fd = -1
