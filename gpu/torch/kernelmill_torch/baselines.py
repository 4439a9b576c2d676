"""What candidates are timed beside: the problem's own model, as it is or behind torch.compile, or another module that solves it.

It runs in a process like a candidate's. torch.compile works there before anybody is timed, and what it leaves is kept by its
contents: the next such process loads it. A model that it refuses is timed as it is, and the verdict says why."""

import contextlib
import hashlib
import json
import os
import time
from dataclasses import dataclass
from typing import Any, Optional

import torch

from kernelmill_torch import compare, native
from kernelmill_torch.compiled import MODES
from kernelmill_torch.faults import Fault
from kernelmill_torch.pool import Pool
from kernelmill_torch.processes import Process

EAGER = "eager"
SHARE_TO_COMPILE = 0.6  # of what is left of an evaluation
LEAST_SECONDS = 20.0
FOLDER_BYTES = 8 << 30  # of files that are kept; those that were used longest ago go
PRECISION_NOTE = "torch.compile's results are not the model's"


@dataclass
class Wish:
    """What is to be timed beside candidates."""

    kind: str = EAGER
    artifact: int = -1  # of another module, as a candidate's; a descriptor
    digest: str = ""  # of that
    entry: str = ""  # that the task lets modules define, see entry.py

    @property
    def is_module(self) -> bool:
        return self.artifact >= 0

    def close(self) -> None:
        if self.artifact >= 0:
            os.close(self.artifact)
        self.artifact = -1


class Kept:
    """What torch.compile left, one file a key. Without a folder nothing is kept."""

    folder = ""

    @classmethod
    def path(cls, key: str) -> str:
        return os.path.join(cls.folder, key + ".tar")

    @classmethod
    def open(cls, key: str) -> Optional[int]:
        if not cls.folder:
            return None
        try:
            fd = os.open(cls.path(key), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.utime(cls.path(key))
        return fd

    @classmethod
    def put(cls, key: str, fd: int) -> None:
        """A folder that cannot be written to keeps nothing."""
        if not cls.folder:
            return
        part = cls.path(key) + f".{os.getpid()}"
        try:
            os.makedirs(cls.folder, exist_ok=True)
            with open(part, "wb") as file:
                os.lseek(fd, 0, os.SEEK_SET)
                while data := os.read(fd, 1 << 20):
                    file.write(data)
            os.replace(part, cls.path(key))
            cls.make_room()
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(part)

    @classmethod
    def make_room(cls) -> None:
        found = sorted((x for x in os.scandir(cls.folder) if x.name.endswith(".tar")), key=lambda x: x.stat().st_mtime)
        total = sum(x.stat().st_size for x in found)
        for x in found:
            if total <= FOLDER_BYTES:
                break
            total -= x.stat().st_size
            os.unlink(x.path)


class Baseline:
    """Of one bench: which one is wished for, which one it became, and its process."""

    refused: dict[str, str] = {}  # by key, why torch.compile does not serve; of all benches

    def __init__(self, bench: Any):
        self.bench, self.wish, self.note, self.used = bench, Wish(), "", EAGER
        self.until = 0.0  # when the evaluation that needs it ends

    def use(self, wish: Wish) -> None:
        """From now on; a process of another one ends. The wish's descriptor stays the caller's."""
        if (wish.kind, wish.digest) != (self.wish.kind, self.wish.digest):
            self.bench.close_baseline()
        self.wish = wish

    def start(self, pool: Pool, seed: int, seconds: float) -> Process:
        """Raises Fault."""
        self.used, self.note = self.wish.kind, ""
        if self.wish.is_module:
            return self.begin(pool, seed, seconds, self.wish.artifact, "ModelNew")
        if self.wish.kind in MODES:
            key = self.key()
            process = None if key in self.refused else self.compile(pool, seed, key)
            if process is not None:
                return process
            self.used, self.note = EAGER, self.refused[key]
        return self.own(pool, seed, seconds)

    def own(self, pool: Pool, seed: int, seconds: float, mode: str = "", kept: int = -1) -> Process:
        """The problem's own model. Raises Fault."""
        with open(self.bench.problem.path, "rb") as source:
            return self.begin(pool, seed, seconds, source.fileno(), "Model", mode, kept)

    def begin(
        self, pool: Pool, seed: int, seconds: float, source: int, name: str, mode: str = "", kept: int = -1
    ) -> Process:
        bench = self.bench
        process = pool.take("the problem's own model" if name == "Model" else "the baseline")
        try:
            message = {"op": "load", "class": name, "float32": bench.float32}
            if name != "Model":
                message["entry"] = self.wish.entry
            process.ask(message, seconds, (source,))
            bench.attach(process, bench.own_arena, name, seed, bench.place, seconds, mode, kept)
        except Fault:
            process.close()
            raise
        return process

    # -- torch.compile ------------------------------------------------------------------------------

    def compile(self, pool: Pool, seed: int, key: str) -> Optional[Process]:
        """None where torch.compile refuses the model; `refused` says why then. Raises Fault of the infrastructure."""
        seconds = max(LEAST_SECONDS, SHARE_TO_COMPILE * (self.until - time.monotonic()))
        kept, process = Kept.open(key), None
        try:
            process = self.own(pool, seed, seconds, MODES[self.wish.kind], -1 if kept is None else kept)
            self.call_first(process, seed, seconds)
            self.look_at(process, key, kept is None)
            return process
        except Fault as e:
            if process is not None:
                process.close()
            if e.cls != "candidate":
                raise
            self.refused[key] = f"torch.compile refuses the model: {first_line(e.message)}"
            return None
        finally:
            if kept is not None:
                os.close(kept)

    def call_first(self, process: Process, seed: int, seconds: float) -> None:
        """The call in which it compiles, and whether its result is the model's. Raises Fault, a candidate's where it is not."""
        bench = self.bench
        drawn = bench.draw([0])
        process.arena.fill(drawn)
        process.arena.poison(1)
        bench.synchronize()
        bench.make_room()
        process.place = process.arena.place
        process.row(1, seconds)
        if bench.is_random:
            return
        bench.problem.build(seed, bench.place)
        truth = bench.problem.truth(bench.draw([0])[0], 0)
        # A compiler may sum in another order and fuse; a tenfold of what is allowed to candidates is none of that.
        rules = [compare.Rule(10 * x.absolute, 10 * x.relative) for x in compare.honest_rules(truth, "tf32", False)]
        outputs = process.arena.sets[0].outputs
        if compare.count_bad(list(zip(outputs, truth.want, rules))):
            raise Fault("candidate", "wrong_result", PRECISION_NOTE)

    def look_at(self, process: Process, key: str, is_new: bool) -> None:
        """Raises Fault, a candidate's where nothing was compiled."""
        into = native.memory_file("kernelmill-compiled", 0)
        try:
            said = process.ask({"op": "compiled"}, LEAST_SECONDS, (into,))
            if is_new and said.get("kept"):
                Kept.put(key, into)
        finally:
            os.close(into)
        graphs, breaks = said.get("graphs"), said.get("breaks")
        if isinstance(graphs, int) and graphs > 1:
            told = f": {breaks[0]}" if isinstance(breaks, list) and breaks else ""
            self.note = f"torch.compile made {graphs} graphs of the model{told}"[:300]

    def key(self) -> str:
        """Of what the compiler makes of the problem here."""
        bench = self.bench
        parts: list[Any] = [
            self.wish.kind,
            bench.problem.text,
            bench.problem.constants,
            str(bench.problem.dtype),
            bench.problem.mutates,
            bench.float32,
            torch.__version__,
            triton_version(),
            device_name(bench.device),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0][:200]


def triton_version() -> str:
    try:
        import importlib.metadata

        return importlib.metadata.version("triton")
    except Exception:
        return ""


def device_name(device: str) -> str:
    if device == "cuda":
        return f"{torch.cuda.get_device_name(0)} {torch.cuda.get_device_capability(0)} {torch.version.cuda}"
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        return next((line for line in file if line.startswith("model name")), "cpu") + str(torch.get_num_threads())
    return "cpu"
