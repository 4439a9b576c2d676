"""Client of `kernelmill serve`. Python's standard library is all that it needs.

    from kernelmill import serve

    with serve(backend="cpu") as client:
        result = client.evaluate("native/row_sum", open("kernel.cpp").read())
        print(result.reward, result.outcome)
"""

from .client import (Busy, Candidate, Client, Evaluation, KernelmillError, NotFound, RequestError,
                     Task, Unauthorized, Unavailable)
from .environment import Environment, MachineFault, Step
from .server import serve

__all__ = ["Busy", "Candidate", "Client", "Environment", "Evaluation", "KernelmillError",
           "MachineFault", "NotFound", "RequestError", "Step", "Task", "Unauthorized",
           "Unavailable", "serve"]
