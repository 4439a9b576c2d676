"""Client of `kernelmill serve`. Python's standard library is all that it needs.

from kernelmill import serve

with serve(backend="cpu") as client:
    result = client.evaluate("native/row_sum", open("kernel.cpp").read())
    print(result.reward, result.outcome)
"""

from .asynchronous import AsyncClient
from .client import (
    Busy,
    Candidate,
    Client,
    Evaluation,
    Fenced,
    Kernel,
    KernelmillError,
    LeaseLost,
    NotFound,
    RequestError,
    Task,
    Unauthorized,
    Unavailable,
)
from .environment import Environment, MachineFault, Step
from .program import find_program
from .records import Run, export, export_rows, runs
from .rollouts import Batch, Group, Rollouts
from .seat import Inexact, Seat
from .server import serve

__all__ = [
    "AsyncClient",
    "Batch",
    "Busy",
    "Candidate",
    "Client",
    "Environment",
    "Evaluation",
    "Fenced",
    "Group",
    "Inexact",
    "Kernel",
    "KernelmillError",
    "LeaseLost",
    "MachineFault",
    "NotFound",
    "RequestError",
    "Rollouts",
    "Run",
    "Seat",
    "Step",
    "Task",
    "Unauthorized",
    "Unavailable",
    "export",
    "export_rows",
    "find_program",
    "runs",
    "serve",
]
