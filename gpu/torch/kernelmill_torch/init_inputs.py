"""Tells the recorder what a problem's model is made of and called with.

    python init_inputs.py PROBLEM.py OUTPUT [SEED | VARIANTS]

The problem is trusted, but its text must not be read by candidates: this is a process of its own.
OUTPUT gets, by torch.save, {"init": what get_init_inputs() returns,
                             "inputs": what get_inputs() returns, or None where that fails,
                             "inputs_problem": how, or ""}
with {"shape", "strides", "dtype"} in place of each tensor of the inputs: they are made without memory, in no time.
With a SEED the inputs are drawn and are themselves. VARIANTS is a JSON list of other constants: "variants" is a list of the same for
these. What is hidden from policies must not be among them: a candidate is built with all of this.
On an error it stays empty and the exit code is 1.
"""

import importlib.util
import io
import json
import os
import sys

if __name__ == "__main__":
    sys.path[0:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from kernelmill_torch import variants  # noqa: E402


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


def values_of(module, is_drawn=False):
    inputs, problem = (list(module.get_inputs()), "") if is_drawn else inputs_of(module)
    return {"init": list(module.get_init_inputs()), "inputs": inputs, "inputs_problem": problem}


def main() -> int:
    path, output, *rest = sys.argv[1:]
    import torch

    others = json.loads(rest[0]) if rest and rest[0].startswith("[") else []
    is_drawn = bool(rest) and not others
    torch.manual_seed(int(rest[0]) if is_drawn else 0)
    spec = importlib.util.spec_from_file_location("kernelmill_problem", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = values_of(module, is_drawn)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    values["variants"] = [values_of(variants.varied(module, text, path, x)) for x in others]
    data = io.BytesIO()
    torch.save(values, data)
    with open(output, "wb") as file:
        file.write(data.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
