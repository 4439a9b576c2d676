"""Tells the recorder what a problem's model is made of and called with.

    python init_inputs.py PROBLEM.py OUTPUT [SEED]

The problem is trusted, but its text must not be read by candidates: this is a process of its own.
OUTPUT gets, by torch.save, {"init": what get_init_inputs() returns,
                             "inputs": what get_inputs() returns, or None where that fails,
                             "inputs_problem": how, or ""}
with {"shape", "strides", "dtype"} in place of each tensor of the inputs: they are made without memory, in no time.
With a SEED the inputs are drawn and are themselves.
On an error it stays empty and the exit code is 1.
"""

import importlib.util
import io
import sys


def told(x):
    """A tensor's form; any other value as it is."""
    import torch

    if not isinstance(x, torch.Tensor):
        return x
    return {"shape": list(x.shape), "strides": list(x.stride()), "dtype": str(x.dtype).replace("torch.", "")}


def inputs_of(module):
    """The inputs, or None and why: torch 1.13 has no such context, and some problems look at values."""
    import torch

    try:
        with torch.device("meta"):
            return [told(x) for x in module.get_inputs()], ""
    except Exception as problem:
        return None, f"{type(problem).__name__}: {problem}"[:500]


def main() -> int:
    path, output, *seed = sys.argv[1:]
    import torch

    torch.manual_seed(int(seed[0]) if seed else 0)
    spec = importlib.util.spec_from_file_location("kernelmill_problem", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    inputs, problem = (list(module.get_inputs()), "") if seed else inputs_of(module)
    values = {"init": list(module.get_init_inputs()), "inputs": inputs, "inputs_problem": problem}
    data = io.BytesIO()
    torch.save(values, data)
    with open(output, "wb") as file:
        file.write(data.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
