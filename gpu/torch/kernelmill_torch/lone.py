"""Calls a candidate's forward with nobody beside it, so that a tool of the toolkit can look at its kernels.

    python lone.py PRECISION [DEVICE [CALLS]]

Runs in the sandbox, around it compute-sanitizer or ncu. Of several calls the last is marked for a profiler: those
before it compile, tune and wake the GPU. Descriptor 3 is the artifact of the build, descriptor 4 what
init_inputs.py wrote of the problem with a seed; PRECISION is "fp32", "fp16", "bf16" or "own", by which each tensor
keeps its type; DEVICE is "cuda" where nothing is said. Exit code 0: it was called.
The candidate is in this very process: what it leaves is believed where it speaks against it, and nowhere else.
"""

import os
import sys
import traceback

if __name__ == "__main__":
    sys.path[0:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import torch  # noqa: E402

from kernelmill_torch import artifact, candidate  # noqa: E402

ARTIFACT, INPUTS = 3, 4


def call(precision: str, device: str = "cuda", calls: str = "1") -> None:
    """Builds the model with the problem's arguments and calls it so often."""
    dtype = candidate.PRECISIONS[precision]
    with os.fdopen(INPUTS, "rb") as file:
        given = torch.load(file, weights_only=False)
    module = candidate.import_module(artifact.read(ARTIFACT))
    model = module.ModelNew(*given["init"]).to(device=device, dtype=dtype)
    inputs = [
        x.to(device, dtype if dtype and x.is_floating_point() else x.dtype) if isinstance(x, torch.Tensor) else x
        for x in given["inputs"]
    ]
    marked = device == "cuda" and int(calls) > 1
    with torch.no_grad():
        for _ in range(int(calls) - 1):
            model(*inputs)
        if marked:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        model(*inputs)
    if device == "cuda":
        torch.cuda.synchronize()
    if marked:
        torch.cuda.profiler.stop()


def main() -> None:
    code = 0
    try:
        call(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # neither its threads nor its exit handlers are waited for


if __name__ == "__main__":
    main()
