"""Tells the recorder what a problem's model is made of and called with.

    python init_inputs.py PROBLEM.py OUTPUT

The problem is trusted, but its text must not be read by candidates: this is a process of its own.
OUTPUT gets, by torch.save, {"init": what get_init_inputs() returns,
                             "inputs": what get_inputs() returns, or None where that needs values}
with {"shape", "strides", "dtype"} in place of each tensor of the inputs: they are made without memory, in no time.
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
    import torch

    try:
        with torch.device("meta"):
            return [told(x) for x in module.get_inputs()]
    except Exception:  # torch 1.13 has no such context; some problems look at values
        return None


def main() -> int:
    problem, output = sys.argv[1:3]
    import torch

    torch.manual_seed(0)
    spec = importlib.util.spec_from_file_location("kernelmill_problem", problem)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = {"init": list(module.get_init_inputs()), "inputs": inputs_of(module)}
    data = io.BytesIO()
    torch.save(values, data)
    with open(output, "wb") as file:
        file.write(data.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
