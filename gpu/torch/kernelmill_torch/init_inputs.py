"""Prints what a problem's get_init_inputs() returns, for the recorder.

    python init_inputs.py PROBLEM.py OUTPUT

The problem is trusted, but its text must not be read by candidates: this is a process of its own.
OUTPUT gets the bytes of torch.save; on an error it stays empty and the exit code is 1.
"""

import importlib.util
import io
import sys


def main() -> int:
    problem, output = sys.argv[1:3]
    import torch

    torch.manual_seed(0)
    spec = importlib.util.spec_from_file_location("kernelmill_problem", problem)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = list(module.get_init_inputs())
    data = io.BytesIO()
    torch.save(values, data)
    with open(output, "wb") as file:
        file.write(data.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
