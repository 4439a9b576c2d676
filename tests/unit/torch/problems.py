"""Problems of one input and one output, for tests. REQUIRES: torch."""

import os
import tempfile

from kernelmill_torch.problem import Problem

PROBLEM = """
import torch
import torch.nn as nn
import torch.nn.functional as F
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        BUILD
    def forward(self, x):
        return CALL
def get_inputs():
    return [INPUT]
"""


def problem(call, given="torch.rand(64, 256)", build="pass", precision="fp32", mutates=()):
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "problem.py"), "w") as file:
            file.write(PROBLEM.replace("CALL", call).replace("INPUT", given).replace("BUILD", build))
        result = Problem(directory, "cpu", precision, mutates)
    result.layout("cpu")
    return result
