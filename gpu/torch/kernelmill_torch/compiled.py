"""The problem's own model behind torch.compile, in the process of a baseline, and what the compiler left there.

What it left is one tar file, so that the next process of the same problem loads it in place of compiling. It is made and
read behind the walls of such a process; the referee keeps its bytes and reads none of them."""

import os
import tarfile
import tempfile
from typing import Any

DIRECTORIES = ("/tmp/inductor", "/tmp/triton")  # absolute paths are in them: the same places in each process
MOST_BYTES = 256 << 20
# CUDA graphs give every result in one place again and again, so that those of a batch could not be looked at.
MODES = {"compile": "default", "compile_max_autotune": "max-autotune-no-cudagraphs"}


class NotCompiled(RuntimeError):
    """torch.compile is missing, or compiled nothing of a model."""


def compile_model(model, mode: str, kept: int) -> Any:
    """The compiled model; its first call compiles. `kept`: descriptor of what facts() wrote in another process, or below 0. Raises
    NotCompiled."""
    import torch

    if not hasattr(torch, "compile"):
        raise NotCompiled(f"torch {torch.__version__} has no torch.compile; it came with 2.0")
    os.environ.update(TORCHINDUCTOR_CACHE_DIR=DIRECTORIES[0], TORCHINDUCTOR_FX_GRAPH_CACHE="1")
    import torch._inductor.config

    # Workers of a pool would still be there while a candidate is timed.
    torch._inductor.config.compile_threads = 1
    if hasattr(torch._inductor.config, "fx_graph_cache"):
        torch._inductor.config.fx_graph_cache = True
    if kept >= 0:
        unpack(kept)
    return torch.compile(model, mode=mode, dynamic=False)


def facts(into: int) -> dict[str, Any]:
    """After the first calls: how many graphs there are, and why there are several. Writes the compiler's files to the descriptor
    `into`, where they are not too large. Raises NotCompiled where the model runs as it is."""
    from torch._dynamo.utils import counters

    graphs = int(counters["stats"].get("unique_graphs", 0))
    if graphs == 0:
        raise NotCompiled("torch.compile found no graph in the model")
    breaks = [str(x).strip().splitlines()[0][:200] for x in counters["graph_break"]]
    return {"graphs": graphs, "breaks": breaks[:4], "kept": pack(into)}


def pack(into: int) -> bool:
    """Whether the files were written; those of locks are left out."""
    with tempfile.TemporaryFile(dir="/tmp") as whole:
        with tarfile.open(fileobj=whole, mode="w") as tar:
            for directory in DIRECTORIES:
                if os.path.isdir(directory):
                    tar.add(directory, filter=lambda x: None if x.name.endswith(".lock") else x)
        size = whole.tell()
        if size > MOST_BYTES:
            return False
        whole.seek(0)
        while part := whole.read(1 << 20):
            os.write(into, part)
    return True


def unpack(kept: int) -> None:
    """Puts files where they were. What is damaged is compiled anew."""
    try:
        with os.fdopen(os.dup(kept), "rb") as file:
            file.seek(0)
            with tarfile.open(fileobj=file) as tar:
                tar.extractall("/")
    except (OSError, tarfile.TarError):
        pass
