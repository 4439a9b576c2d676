"""Which parameters a call of a problem must read, and how long its sums are: seen in the trusted model's own forward.

A parameter counts where a dense operation reads it, where each of some places and each of its blocks changes the output, and where
what it gives is needed in full: a sum of a layer's outputs is a product with the sum of its columns, and two layers without a
function between them are one. Lookups, which read some rows, are no dense operations."""

import contextlib
import re
import time
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelmill_torch.problem import OUT_OF_MEMORY, Problem
from kernelmill_torch.reading import LEAST_BYTES, SEED, bytes_of, cache_bytes, spans_of

SECONDS = 2.0  # for one problem, to see what changes the output
CACHES = 2  # times the last-level cache, which may hold so much from call to call, with registers and shared memory
SHARE = {
    4: 0.75,
    2: 0.6,
    1: 0.6,
}  # by bytes of a number: what random numbers can be packed to without loss. Random float32 has 24 bits
SAMPLE = 1 << 14
DISTINCT = {4: 0.9, 2: 0.02, 1: 0.002}  # of a sample, that are other numbers; else who knows the law need not read them
RATE_READS = 20

MATRIX = {
    "mm": 0,
    "bmm": 0,
    "mv": 0,
    "matmul": 0,
    "linear": 0,
    "mkldnn_linear": 0,
    "addmm": 1,
    "baddbmm": 1,
    "addbmm": 1,
    "addmv": 1,
}  # which
# argument is summed over in its last dimension
CONVOLUTION = re.compile(r"conv(olution|\dd|_transpose\dd|_depthwise\dd)?(_overrideable|_relu)?$")
RECURRENT = re.compile(r"(^|_)(rnn|lstm|gru)(_|$)")
# Elementwise functions that are not linear, and norms: whoever knows their sum does not know what went in.
BENT = frozenset(
    "relu gelu silu sigmoid tanh softplus exp log abs mish hardswish hardsigmoid hardtanh clamp clamp_min clamp_max elu "
    "leaky_relu _softmax _log_softmax pow native_layer_norm native_group_norm".split()
)
# What of an argument comes out in full, and linear.
STRAIGHT = frozenset(
    "add sub mul div neg _to_copy clone copy native_batch_norm cudnn_batch_norm _native_batch_norm_legit "
    "_batch_norm_with_update _native_batch_norm_legit_no_training native_dropout".split()
)


@dataclass
class Operation:
    """A dense operation with parameters: which bytes of which memory it reads."""

    reads: list[tuple[int, int, int]] = field(default_factory=list)  # address of the memory, first byte, bytes
    is_whole: bool = False  # what it gives is needed in full


@dataclass
class Reads:
    """Of one call."""

    operations: list[Operation] = field(default_factory=list)
    terms: float = 0.0  # of the longest sum of a dense operation; 0: not known
    convolves: bool = False

    def bytes_read(self, x: torch.Tensor) -> int:
        """Of a parameter."""
        at, first = place_of(x)
        parts = sorted(
            (max(begin, first), min(begin + size, first + bytes_of(x)))
            for y in self.operations
            if y.is_whole
            for memory, begin, size in y.reads
            if memory == at
        )
        total, end = 0, first
        for begin, stop in parts:
            total += max(0, stop - max(begin, end))
            end = max(end, stop)
        return total

    @property
    def terms_of_weights(self) -> float:
        """Terms of the longest sum where it tells how far honest answers are off; else 0. Convolutions by Winograd's transforms are
        off by ten times as much as sums, and their weights are few."""
        return self.terms if self.operations and not self.convolves else 0.0


def place_of(x: torch.Tensor) -> tuple[int, int]:
    """The address of a tensor's memory, and its first byte there."""
    storage = x.untyped_storage() if hasattr(x, "untyped_storage") else x.storage()  # the first since torch 2.0
    return storage.data_ptr(), x.storage_offset() * x.element_size()


def tensors_in(x: Any) -> Iterator[torch.Tensor]:
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from tensors_in(y)
    elif isinstance(x, dict):
        yield from tensors_in(list(x.values()))


class Watching(TorchDispatchMode):
    """Follows what dense operations give until something that is not linear has it in full. REQUIRES: parameters live."""

    def __init__(self, parameters: Iterable[torch.Tensor]):
        super().__init__()
        self.known = {place_of(x)[0] for x in parameters} - {0}
        self.reads = Reads()
        # By address of its memory: of which operations a tensor is a linear function, and how many numbers it has.
        self.followed: dict[int, tuple[list[Operation], int]] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        name = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        self.take(name, args, [*tensors_in(args), *tensors_in(kwargs or {})], list(tensors_in(result)))
        return result

    def take(self, name: str, args: tuple, given: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        convolves = CONVOLUTION.search(name) is not None
        self.reads.convolves |= convolves
        is_dense = name in MATRIX or convolves or RECURRENT.search(name) is not None
        if is_dense or "attention" in name:
            self.reads.terms = max(self.reads.terms, terms_of(name, args, given))
        operations = self.followed_in(given)
        if is_dense and any(place_of(x)[0] in self.known for x in given):
            own = Operation(
                [(*place_of(x), bytes_of(x)) for x in given if place_of(x)[0] in self.known and is_solid(x)]
            )
            self.reads.operations.append(own)
            own.is_whole = RECURRENT.search(name) is not None
            self.follow(results[:1], [] if operations else [own])  # two in a row are one
        elif name in BENT:
            for x in operations:
                x.is_whole = True
            self.follow(results, [])
        elif name in STRAIGHT:
            self.follow(results[:1], operations if len(operations) == 1 else [])  # a sum of two may be one
        else:
            before = {place_of(x)[0] for x in given}
            self.follow([x for x in results if place_of(x)[0] not in before], [])  # views stay what they were

    def followed_in(self, given: list[torch.Tensor]) -> list[Operation]:
        """Of which operations all that they gave is there."""
        found = [(x, self.followed.get(place_of(x)[0])) for x in given]
        return [*{id(y): y for x, known in found if known and x.numel() >= known[1] for y in known[0]}.values()]

    def follow(self, results: list[torch.Tensor], operations: list[Operation]) -> None:
        for x in results:
            if operations:
                self.followed[place_of(x)[0]] = operations, x.numel()
            else:
                self.followed.pop(place_of(x)[0], None)

    def finish(self, outputs: list[torch.Tensor]) -> Reads:
        for x in self.followed_in(outputs):
            x.is_whole = True
        return self.reads


def import_ahead() -> None:
    """Torch imports what it needs to follow operations when it does so first: 2 to 7 s, that no verdict is to wait for."""
    with contextlib.suppress(Exception), Watching([]):  # where it cannot, reads_of() knows nothing either
        torch.zeros(1).add(1)


def is_solid(x: torch.Tensor) -> bool:
    """Whether a tensor is all of the bytes between its first and its last."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
    return x.numel() == span


def terms_of(name: str, args: tuple, given: list[torch.Tensor]) -> float:
    """Numbers that are added for one of the results."""
    if name in MATRIX:
        return float(args[MATRIX[name]].shape[-1])
    if RECURRENT.search(name):
        return float(max((x.shape[-1] for x in given if x.dim() > 1), default=0))
    if "attention" in name:
        return float(max(given[0].shape[-1], given[1].shape[-2]))
    weight = args[1]
    is_transposed = "transpose" in name or len(args) > 6 and args[6] is True
    return weight.numel() / max(1, weight.shape[1 if is_transposed else 0])


def parameters_of(problem: Problem) -> list[torch.Tensor]:
    model = problem.models[problem.dtype]
    return [x.data for x in [*model.parameters(), *model.buffers()]]


def reads_of(problem: Problem) -> Reads:
    """What one call reads; nothing is known of a model that cannot be watched. REQUIRES: the models are built."""
    inputs = problem.draw(SEED)
    watching = Watching(parameters_of(problem))
    try:
        with watching:
            outputs = problem.run(inputs)
        return watching.finish(outputs)
    except OUT_OF_MEMORY:
        raise
    except Exception:  # of whatever kind a compiled or scripted part has
        return Reads()


def least_bytes(problem: Problem, reads: Reads) -> float:
    """Of parameters, that every call must get from memory."""
    read = [(x, reads.bytes_read(x)) for x in parameters_of(problem)]
    read = [(x, size) for x, size in read if size >= LEAST_BYTES and x.is_contiguous() and x.is_floating_point()]
    cache = CACHES * cache_bytes(problem.device)
    if problem.is_random or sum(size for _, size in read) <= cache:
        return 0.0
    inputs, end = problem.draw(SEED), time.monotonic() + SECONDS
    right = problem.run(inputs)
    if not all(map(torch.equal, right, problem.run(inputs))):
        return 0.0  # nothing can be said of bits that vary
    total = share = 0.0
    for x, size in read:
        flat = x.view(-1)
        sample = flat[torch.randint(0, flat.numel(), (SAMPLE,), device=x.device)]
        is_drawn = (
            sample.unique().numel() > DISTINCT[x.element_size()] * SAMPLE if x.element_size() in DISTINCT else False
        )
        if is_drawn and matters(problem, flat, inputs, right, end):
            total += size * float((sample != 0).float().mean())
            share = max(share, SHARE[x.element_size()])
    return max(0.0, total - cache) * share


def matters(problem: Problem, flat: torch.Tensor, inputs: list[Any], right: list[torch.Tensor], end: float) -> bool:
    """Whether each of some places of a parameter, and each of its blocks, changes the output. False where there is no time."""
    scale = float(flat[:SAMPLE].float().square().mean().sqrt()) or 1.0
    return all(
        time.monotonic() < end and any(changes(problem, flat, inputs, span, sign * scale, right) for sign in (1, -1))
        for span in spans_of(flat.numel())
    )


def changes(
    problem: Problem,
    flat: torch.Tensor,
    inputs: list[Any],
    span: tuple[int, int],
    scale: float,
    right: list[torch.Tensor],
) -> bool:
    part = flat[span[0] : span[0] + span[1]]
    kept = part.clone()
    try:
        if span[1] == 1:
            part.fill_(1024 * scale)
        else:
            part.mul_(8 if scale > 0 else -8).add_(scale)
        return any(not torch.equal(a, b) for a, b in zip(problem.run(inputs), right))
    finally:
        part.copy_(kept)


def read_rate(problem: Problem) -> float:
    """Bytes a second that this GPU's memory gives when the largest parameter is read whole; 0 where nobody knows."""
    known = [x for x in parameters_of(problem) if x.is_contiguous() and x.is_floating_point()]
    largest: Optional[torch.Tensor] = max(known, key=bytes_of, default=None)
    if problem.device != "cuda" or largest is None or bytes_of(largest) < CACHES * cache_bytes(problem.device):
        return 0.0
    flat, best = largest.view(-1), 0.0
    for _ in range(RATE_READS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        flat.sum()
        after.record()
        after.synchronize()
        best = max(best, bytes_of(flat) / (before.elapsed_time(after) * 1e-3))
    return best
