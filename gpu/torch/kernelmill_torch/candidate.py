"""The process of one candidate, or of a problem's own model (the baseline). Forked from the warm process.

From the moment that a module is loaded, everything here is hostile: no number and no word of this process is
believed. It can only move bytes into the buffers that it shares with the referee."""

import contextlib
import ctypes
import importlib.util
import mmap
import os
import socket
import sys
import time
import traceback
import warnings
from typing import Any, Callable, Optional, Sequence

import torch

from kernelmill_torch import artifact, buffers, channel, compiled, counted, entry, native, reach, triton_ahead
from kernelmill_torch.faults import lacks_memory

MOST_TEXT = 4000
DIRECTORY = "/tmp/candidate"
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)
LARGEST_FROM_HEAP = 32 << 20  # that mallopt takes
# What a task's precision makes of all that floats; None: each tensor keeps its own type.
PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "own": None}
TRITON_FILES: dict[str, str] = {}  # what the warm process built of Triton's own


NOT_APART = "the GPU refused an order that keeps calls apart: is the capture of a stream left open?"


class Refused(Exception):
    """What is wrong with a candidate, by category."""

    def __init__(self, category: str, message: str):
        super().__init__(message)
        self.category = category


def describe(problem: BaseException, category: str) -> dict[str, str]:
    """The words of an error message: last frames of the candidate's own file."""
    if isinstance(problem, Refused):
        return {"category": problem.category, "message": str(problem)[:MOST_TEXT], "trace": ""}
    text = str(problem)
    if isinstance(problem, artifact.ExtensionNotBuilt):
        category = "extension_not_built"
    # Without NVML, which no sandbox shows, torch fails to say how much memory there was.
    if lacks_memory(problem) or "out of memory" in text.lower() or "nvmlInit" in text:
        category = "out_of_memory"
    frames = [x for x in traceback.extract_tb(problem.__traceback__) if x.filename.startswith(DIRECTORY)]
    trace = "".join(traceback.format_list(frames[-6:])).replace(DIRECTORY + "/", "")
    line = f" (line {frames[-1].lineno})" if frames else ""
    if isinstance(problem, SyntaxError) and problem.lineno:
        line = f" (line {problem.lineno})"
    return {
        "category": category,
        "message": f"{type(problem).__name__}: {text}{line}"[:MOST_TEXT],
        "trace": trace[-MOST_TEXT:],
    }


def import_module(found: artifact.Artifact):
    """Imports the candidate's module, with its extensions at hand instead of being built."""
    os.makedirs(DIRECTORY, exist_ok=True)
    triton_ahead.put_files(TRITON_FILES)
    triton_ahead.put_files(found.triton_files)
    os.environ.update(
        HOME="/tmp", TRITON_CACHE_DIR=triton_ahead.DIRECTORY, TORCH_EXTENSIONS_DIR="/tmp/extensions", TMPDIR="/tmp"
    )
    path = DIRECTORY + "/candidate.py"
    with open(path, "wb") as file:
        file.write(found.source)
    artifact.offer_extensions(found, DIRECTORY)
    spec = importlib.util.spec_from_file_location(artifact.MODULE_NAME, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[artifact.MODULE_NAME] = module
    spec.loader.exec_module(module)
    entry.adopt(module, found.entry)
    return module


def make_model(module, message: dict[str, Any], init_fd: int, device: str):
    """Builds the model with the parameters that the seed gives, made in the `place` that the problem's own were."""
    with os.fdopen(init_fd, "rb") as file:
        inputs = torch.load(file, **({"weights_only": False} if torch.__version__ >= "1.13" else {}))
    seed_everything(message["seed"])
    with made_in(message["place"]):
        model = getattr(module, message["class"])(*inputs)
    if not isinstance(model, torch.nn.Module):
        raise Refused("init_error", f"{message['class']} is no torch.nn.Module")
    dtype = getattr(torch, message["dtype"])
    model = model.to(device) if dtype == torch.float32 else model.to(device=device, dtype=dtype)
    return model


def fingerprints(model: torch.nn.Module) -> list[int]:
    """One number for each parameter, buffer and other tensor of a model, sorted; the order of a tensor's elements does
    not change it."""
    found = [*model.parameters(), *model.buffers()]
    found += [x for module in model.modules() for x in vars(module).values() if isinstance(x, torch.Tensor)]
    sums = []
    for x in found:
        words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
        x = x.detach()
        x = x.to(torch.uint8) if x.dtype == torch.bool else x.contiguous().reshape(-1).view(words)
        sums.append(x.sum(dtype=torch.int64))
    return sorted(torch.stack(sums).tolist()) if sums else []


def use_float32(arithmetic: str) -> None:
    """ "ieee": sums and products of float32 are those; "tf32": matrix units may round what they multiply; "": as torch has it, which
    is IEEE but in convolutions and recurrent layers."""
    if arithmetic:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arithmetic == "tf32"
    else:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True


def made_in(place: str):
    """New tensors come to life in a place, "cpu" or "cuda", where this torch can be told so (2.0)."""
    can = place != "cpu" and hasattr(torch.device, "__enter__")
    return torch.device(place) if can else contextlib.nullcontext()


def seed_everything(seed: int) -> None:
    """Seeds every generator that a problem or a model may draw from."""
    import random

    random.seed(seed)
    # torch.manual_seed draws the same and takes 0.3 ms, most of it to note where it was called for devices that are not there.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    try:
        import numpy

        numpy.random.seed(seed % 2**32)
    except ImportError:
        pass


def output_checker(layout: buffers.Layout, device: str) -> Callable[[Any], list[torch.Tensor]]:
    """Returns a function that takes what forward returned and gives its tensors, or raises Refused."""
    tensor = torch.Tensor
    specs = [(x.shape, x.dtype) for x in layout.outputs]
    several = len(specs) != 1

    def refuse(out) -> Refused:
        if several and not isinstance(out, (tuple, list)):
            return Refused("wrong_type", f"forward must return {len(specs)} tensors, not {type(out).__name__}")
        items = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(items) != len(specs):
            return Refused("wrong_type", f"forward must return {len(specs)} tensors, not {len(items)}")
        for i, (x, (shape, dtype)) in enumerate(zip(items, specs)):
            name = f"output {i}" if several else "the output"
            if type(x) is not tensor or x.__dict__:
                return Refused("wrong_type", f"{name} must be a plain torch.Tensor, not {type(x).__name__}")
            if tuple(x.shape) != shape:
                return Refused("wrong_shape", f"{name} has shape {list(x.shape)}, wanted {list(shape)}")
            if x.dtype is not dtype:
                return Refused("wrong_dtype", f"{name} is {x.dtype}, wanted {dtype}")
        return Refused("wrong_type", "the output must be on the device of the inputs")

    def check(out) -> list[torch.Tensor]:
        if not several and type(out) is not tensor and isinstance(out, (tuple, list)) and len(out) == 1:
            out = out[0]
        items = out if several else (out,)
        if several and (not isinstance(out, (tuple, list)) or len(out) != len(specs)):
            raise refuse(out)
        for x, (shape, dtype) in zip(items, specs):
            if (
                type(x) is not tensor
                or x.__dict__
                or x.shape != shape
                or x.dtype is not dtype
                or x.device.type != device
            ):
                raise refuse(out)
        return items

    return check


def plain(
    out: Any, tensor: type = torch.Tensor, kinds: tuple[type, ...] = (tuple, list), make: type = tuple, is_a=isinstance
) -> Any:
    """What forward returned; of a class derived from tuples or lists what it holds now, and not what it makes when it is read."""
    kind = type(out)
    if kind is tensor or kind in kinds or not is_a(out, kinds):
        return out
    return make(out)


def calling_on_copies(model: Callable, places: Sequence[int], clone: Callable = torch.Tensor.clone) -> Callable:
    """The model where it writes to no input; else what calls it on copies of the inputs at these places, and returns them behind its
    own outputs. Both sides of a comparison pay for the copies. `clone` is the one of before a candidate was loaded."""
    if not places:
        return model

    def call(*inputs):
        given = list(inputs)
        for i in places:
            given[i] = clone(given[i])
        out = model(*given)
        own = [] if out is None else list(out) if isinstance(out, (tuple, list)) else [out]
        return own + [given[i] for i in places]

    return call


def copier() -> Callable[[Any], Any]:
    """Returns a function that gives what forward returned in new memory."""
    tensor, clone = torch.Tensor, torch.Tensor.clone
    return lambda out: clone(out) if type(out) is tensor else [clone(x) for x in out]


class Serving:
    """The loop of commands. State lives here and in closures that a candidate has no name for."""

    def __init__(self, lib, sock: socket.socket, page: int, device: str):
        self.lib, self.sock, self.page, self.device = lib, sock, page, device
        self.module = self.model = self.layout = None
        self.number = 0  # of the latest command of the page
        self.places: list[list[buffers.BufferSet]] = []  # the same sets, each time elsewhere
        self.returned: list = []  # of the latest calls, kept until they are copied
        # Taken before anything is loaded that could replace them.
        self.sync = torch._C._cuda_synchronize if device == "cuda" else (lambda: None)
        # What the GPU is given later begins when all is over that it was given before, whatever streams they use.
        self.fence = lib.km_gpu_fence if device == "cuda" else (lambda: 0)
        self.copy_ = torch.Tensor.copy_
        self.keep: Callable[[Any], Any] = plain  # or copies of it
        self.told: Optional[memoryview] = None  # where outputs lie, for the referee
        self.batches = 0  # that were begun
        self.began = 0.0  # the latest, on a CPU
        self.into_arena = False  # whether outputs are copied there, as a part of a batch

    def clocked(self) -> None:
        """Answers commands of the page until told to leave it."""
        lib, page, copy_, sync, fence, places, told = (
            self.lib,
            self.page,
            self.copy_,
            self.sync,
            self.fence,
            self.places,
            self.told,
        )
        wait, done, tell = lib.km_page_wait, lib.km_page_done, reach.tell
        model, keep = self.model, self.keep
        check = output_checker(self.layout, self.device) if self.layout else None
        number = self.number
        fence()  # it makes what it needs the first time
        while True:
            number = wait(page, number)
            command = lib.km_page_command(page)
            first, count = lib.km_page_first(page), lib.km_page_count(page)
            sets = places[lib.km_page_place(page)] if places else []
            status = 0
            try:
                if command == native.CALL:
                    self.returned = []
                    if seed := lib.km_page_seed(page):
                        seed_everything(seed)
                    for one in sets[first : first + count]:
                        self.returned.append(keep(model(*one.inputs)))
                    tell(told, self.returned)
                    sync()
                elif command == native.BATCH or command == native.BATCH_NOW:
                    self.returned = []
                    self.batches += 1
                    self.begin_batch(command == native.BATCH)
                    if seed := lib.km_page_seed(page):
                        seed_everything(seed)
                    for one in sets[:count]:
                        out = keep(model(*one.inputs))
                        if self.into_arena:  # before the next call, which may write to where this one did
                            for into, x in zip(one.outputs, check(out)):
                                copy_(into, x)
                            out = x = None
                        else:
                            self.returned.append(out)
                        if first and fence() != 0:  # calls are kept apart
                            raise Refused("device_error", NOT_APART)
                    out = None
                    if not self.into_arena:
                        tell(told, self.returned)
                    self.end_batch(command == native.BATCH)
                elif command == native.FINISH:
                    sync()
                    lib.km_batch_note()
                elif command == native.WARM:
                    for _ in range(count):
                        self.returned = []  # whose memory the next one has
                        self.returned = [keep(model(*sets[first].inputs))]
                    sync()
                elif command == native.WAKE:
                    sync()
                elif command == native.COPY:
                    for one, out in zip(sets[first : first + count], self.returned):
                        for into, x in zip(one.outputs, check(out)):
                            copy_(into, x)
                    out = x = None  # else the next call would find its memory in use, and take other memory
                    sync()
            except BaseException as problem:
                status = 1
                words = describe(problem, "runtime_error")
            self.number = number
            done(page, number, status)
            if status:
                channel.send(self.sock, {"error": words})
            if command == native.LEAVE or status:
                return

    def segments(self) -> list[Optional[str]]:
        """Names of all that torch has from the GPU: results of later calls lie there, too."""
        if self.device != "cuda":
            return []
        with contextlib.suppress(Exception):
            found = torch.cuda.memory_snapshot()[: reach.MOST_ALLOCATIONS]
            return [reach.name_of(self.lib, x["address"]) for x in found]
        return []

    def begin_batch(self, is_queued: bool) -> None:
        """What the GPU is given from now on waits until the referee releases it, where it is queued."""
        if self.device == "cpu":
            self.began = time.monotonic()
            return
        if self.lib.km_batch_begin(self.page, self.batches if is_queued else 0) != 0:
            raise Refused("no_gate", "the GPU cannot wait for a word of host memory")
        if self.fence() != 0:  # streams that do not wait for the default stream wait, too
            raise Refused("device_error", NOT_APART)

    def end_batch(self, is_queued: bool) -> None:
        if self.device == "cpu":
            self.lib.km_batch_tell(self.page, time.monotonic() - self.began)
            return
        if self.fence() != 0 or self.lib.km_batch_end(self.batches) != 0:
            raise Refused("device_error", NOT_APART)
        if not is_queued:
            self.sync()
            self.lib.km_batch_note()

    def answer(self, message: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """One message of the socket. What it raises is the candidate's fault, by the category in hand."""
        op = message["op"]
        if op == "load":
            use_float32(message.get("float32", ""))
            found = artifact.read(descriptors[0])
            found.entry = message.get("entry") or found.entry  # of a baseline its build knows
            self.module = import_module(found)
            if not hasattr(self.module, message["class"]):
                words = entry.wanted(found.entry) if found.entry else f"no class {message['class']}"
                raise Refused("missing_model", f"the module defines {words}")
        elif op == "build":
            made = self.model = make_model(self.module, message, descriptors[0], self.device)
            if mode := message.get("compile"):
                self.model = compiled.compile_model(made, mode, descriptors[1] if len(descriptors) > 1 else -1)
            self.model = calling_on_copies(self.model, message.get("mutates", ()))
            with contextlib.suppress(Exception):
                return {"fingerprints": fingerprints(made)}
        elif op == "buffers":
            self.layout = buffers.Layout.from_json(message["layout"])
            self.told = memoryview(mmap.mmap(descriptors[1], 0)).cast("q")
            memory = buffers.SharedMemory.attach(self.lib, self.device, descriptors[0], message["capacity"])
            self.places = buffers.places_of(memory.bytes, self.layout)
            return {"at": memory.bytes.data_ptr()}
        elif op == "export":
            return {
                "allocations": [reach.name_of(self.lib, x) for x in message["addresses"]],
                "others": self.segments(),
            }
        elif op == "compiled":
            return compiled.facts(descriptors[0])
        elif op == "copy":
            self.keep = copier() if message["into"] == "new" else plain
            self.into_arena = message["into"] == "arena"
        elif op == "seed":
            seed_everything(message["seed"])
        elif op == "page":
            with torch.no_grad():
                self.clocked()
        elif op == "profile":
            if message["over"]:
                return {"kernels": counted.stop()}
            counted.start()
        return {}


CATEGORIES = {"load": "import_error", "build": "init_error", "profile": "runtime_error"}


def keep_freed_memory() -> None:
    """Blocks come from the heap, and what is freed stays there. Else malloc gives outputs back to the kernel or keeps them,
    as it went before, and one of two processes that run the same code takes thousands of page faults a call."""
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, LARGEST_FROM_HEAP)
    libc.mallopt(M_TRIM_THRESHOLD, -1)


def serve(lib, sock: socket.socket, page_fd: int, device: str) -> None:
    """Runs until the socket closes."""
    sys.stdout.reconfigure(line_buffering=True)  # it is killed in the end, not closed
    os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)  # for the warm process alone
    warnings.filterwarnings("ignore", message="Can't initialize NVML")  # which no sandbox shows
    if device == "cuda":
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
    else:
        keep_freed_memory()
    page = lib.km_page_map(page_fd)
    os.close(page_fd)
    state = Serving(lib, sock, page, device)
    channel.send(sock, {"up": True})
    while True:
        try:
            message, descriptors = channel.receive(sock)
        except channel.Closed:
            return
        if message["op"] == "page":
            channel.send(sock, {"ok": True})
            state.answer(message, descriptors)
            continue
        try:
            reply = {"ok": True, **state.answer(message, descriptors)}
        except BaseException as problem:
            reply = {"error": describe(problem, CATEGORIES.get(message["op"], "runtime_error"))}
        channel.send(sock, reply)
