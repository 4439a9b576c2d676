"""Compiles a candidate's Triton kernels where no GPU is, so that the slot of a GPU only loads them.

The candidate's forward is called on tensors without memory ("meta") that say they are on a GPU; a launch compiles and
launches nothing. What Triton leaves in its cache directory goes into the artifact. This is the best that can be done
ahead: whatever it misses (a value that decides a shape, a size that differs) Triton compiles in the slot as always.

All of it runs in the sandbox, in the candidate's own process: what it leaves is believed as little as the candidate."""

import base64
import os
import re
import subprocess
import sys
import types
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

DIRECTORY = "/tmp/triton"  # Triton writes absolute paths into its cache: the same place here and in the slot
MOST_BYTES = 32 << 20
WARP_SIZE = 32
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*/[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def warm_up() -> None:
    """Does once, in the process that others are forked from, what costs seconds and depends on no candidate."""
    import torch

    with torch.device("meta"), torch.no_grad():
        torch.nn.Linear(2, 2)(torch.rand(2, 2))  # imports torch's rules for tensors without memory
    read_compiler_key()


def read_compiler_key() -> None:
    """Triton's digest of its own files, some hundred megabytes; it keeps it."""
    try:
        from triton.runtime.cache import triton_key
    except ImportError:
        from triton.compiler.compiler import triton_key
    triton_key()


# -- a GPU that only compiles -----------------------------------------------------------------------


class CompilingDriver:
    """What Triton asks of a driver before a launch."""

    def __init__(self, capability: str, properties: Any) -> None:
        from triton.backends.compiler import GPUTarget

        major, minor = (int(x) for x in capability.split("."))
        self.target = GPUTarget("cuda", major * 10 + minor, WARP_SIZE)
        facts = {
            "max_shared_mem": properties.shared_memory_per_block_optin,
            "max_num_regs": properties.regs_per_multiprocessor,
            "multiprocessor_count": properties.multi_processor_count,
            "warpSize": WARP_SIZE,
            "sm_clock_rate": 1_980_000,
            "mem_clock_rate": 3_201_000,
            "mem_bus_width": 6144,
        }
        self.utils = types.SimpleNamespace(get_device_properties=lambda _device=0: facts)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: Any = None) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self.target

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda


def compile_instead_of_launching(capability: str, properties: Any) -> None:
    """From now on a launch of a Triton kernel compiles it, and its launcher, and returns."""
    import triton
    from triton.runtime import autotuner, build, driver, jit

    os.environ["TRITON_CACHE_DIR"] = DIRECTORY
    driver.set_active(CompilingDriver(capability, properties))
    build_launchers_without_driver(build)
    compile_only = jit.JITFunction.run

    def run(self: Any, *args: Any, grid: Any = None, warmup: bool = True, **kwargs: Any) -> Any:
        kernel = compile_only(self, *args, grid=grid, warmup=True, **kwargs)
        if kernel is not None:
            build_launcher(kernel)
        return kernel

    def run_each(self: Any, *args: Any, **kwargs: Any) -> None:
        self.nargs = dict(zip(self.arg_names, args))
        compiled, problem = False, None
        for config in self.prune_configs(kwargs):
            try:
                self.fn.run(*args, **kwargs, **config.all_kwargs())
                compiled = True
            except Exception as raised:  # a configuration that does not compile is not chosen in the slot either
                problem = raised
        self.nargs = None
        if problem is not None and not compiled:
            raise problem

    jit.JITFunction.run = run
    autotuner.Autotuner.run = run_each
    triton.testing.do_bench = lambda *_args, **_kwargs: 0.0


def build_launcher(kernel: Any) -> None:
    from triton.backends.nvidia.driver import CudaLauncher

    try:
        CudaLauncher(kernel.src, kernel.metadata)
    except Exception:  # then the slot builds it
        pass


def build_launchers_without_driver(build: Any) -> None:
    """Links launchers against a libcuda.so.1 that is only a name: the driver itself may not be here."""
    stub = "/tmp/triton_stub"
    os.makedirs(stub, exist_ok=True)
    compiler = os.environ.get("CC", "cc")
    link = ["-shared", "-Wl,-soname,libcuda.so.1", "-x", "c", "/dev/null", "-o", stub + "/libcuda.so.1"]
    subprocess.run([compiler, *link], check=True)
    os.environ["TRITON_LIBCUDA_PATH"] = stub
    compile_library = build._build

    def compile_launcher(
        name: str,
        src: str,
        srcdir: str,
        _libraries_at: List[str],
        headers_at: List[str],
        _libraries: List[str],
        flags: Optional[List[str]] = None,
    ) -> str:
        named = [*(flags or []), "-L" + stub, "-Wl,--no-as-needed", "-l:libcuda.so.1"]
        return compile_library(name, src, srcdir, [], headers_at, [], named)

    build._build = compile_launcher
    build._load_module_from_path = lambda _name, _path: types.SimpleNamespace(launch=None)


# -- tensors that say they are on a GPU --------------------------------------------------------------


def pretend_tensors(candidate: str) -> None:
    """Tensors without memory tell the code of the file `candidate` that they are on a GPU, and nobody else."""
    import torch

    real = torch.Tensor.device
    shown = torch.device("cuda", 0)

    def device_of(tensor: Any) -> Any:
        with torch._C.DisableTorchFunction():  # else the mode asks the new property again
            return real.__get__(tensor)

    def device(self: Any) -> Any:
        found = device_of(self)
        if found.type == "meta" and sys._getframe(1).f_code.co_filename == candidate:
            return shown
        return found

    torch.Tensor.device = property(device)
    torch.Tensor.is_cuda = property(lambda self: device_of(self).type == "meta")
    torch.Tensor.get_device = lambda self: 0
    stream = types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None, wait_stream=lambda _other: None)
    torch.cuda.current_stream = lambda _device=None: stream
    torch.cuda.device.__init__ = lambda self, _device=None: None
    torch.cuda.device.__enter__ = lambda self: None
    torch.cuda.device.__exit__ = lambda self, *_args: False


def on_meta() -> Any:
    """A context in which what is asked for on a GPU, or nowhere, is made without memory."""
    import contextlib

    import torch
    from torch.overrides import TorchFunctionMode

    def moved(x: Any) -> Any:
        if isinstance(x, torch.device):
            return torch.device("meta") if x.type == "cuda" else x
        return "meta" if isinstance(x, str) and re.fullmatch(r"cuda(:\d+)?", x) else x

    class OnMeta(TorchFunctionMode):
        def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.Tensor.cuda:
                return args[0]
            return function(*(moved(x) for x in args), **{k: moved(v) for k, v in (kwargs or {}).items()})

    stack = contextlib.ExitStack()
    stack.enter_context(torch.device("meta"))
    stack.enter_context(OnMeta())
    stack.enter_context(torch.no_grad())
    return stack


# -- the whole ----------------------------------------------------------------------------------------


def compile_forward(
    calls: Sequence[Tuple[Callable[[], Any], Iterable[Any]]], candidate: str, capability: str, properties: Any
) -> None:
    """Calls forward of each model once, compiling what it launches. Raises what the candidate raises, of models behind the first what
    their forward does."""
    compile_instead_of_launching(capability, properties)
    made = []
    with on_meta():  # torch's own initialisation must not be told of a GPU
        for make_model, inputs in calls:
            try:
                made.append((make_model(), inputs))
            except Exception:
                if not made:
                    raise
    pretend_tensors(candidate)
    with on_meta():
        for model, inputs in made:
            model(*inputs)


def cache_files() -> Dict[str, str]:
    """What is in Triton's cache, by relative path, in base64. Raises ValueError when it is too much."""
    result: Dict[str, str] = {}
    total = 0
    for folder, _, names in os.walk(DIRECTORY):
        for name in names:
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, DIRECTORY)
            if not _NAME.fullmatch(shown) or name.endswith(".lock"):
                continue
            with open(path, "rb") as file:
                data = file.read()
            total += len(data)
            if total > MOST_BYTES:
                raise ValueError(f"Triton's cache has more than {MOST_BYTES >> 20} MiB")
            result[shown] = base64.b64encode(data).decode()
    return result


def put_files(files: Dict[str, str]) -> None:
    """Writes what cache_files() gave where Triton looks for it."""
    for name, text in files.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"a file of Triton's cache has the name {name[:100]!r}")
        path = os.path.join(DIRECTORY, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(text))
