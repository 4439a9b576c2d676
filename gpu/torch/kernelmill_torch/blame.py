"""Whose fault it was that ended an evaluation. Nothing that a process says once it has loaded a candidate decides that:
where the referee saw what happened but not why, the problem's own model runs in the same place at once afterwards."""

from kernelmill_torch.faults import Fault

# What ends any process when memory, a core, a thread or the GPU is missing: libgomp exits where it gets no thread.
MACHINE_LIKE = frozenset({"crashed", "exited", "out_of_memory", "timed_out"})
# What an exception says then.
MACHINE_WORDS = (
    "can't start new thread",
    "Cannot allocate memory",
    "Input/output error",
    "No space left on device",
    "Resource temporarily unavailable",
    "Too many open files",
)
# Faults of ours of which the referee saw the cause, with no candidate in reach.
SEEN = frozenset({"gpu_stuck", "killed_outside", "time_spent"})
DISTURBANCE = "disturbed_referee"


def wants_control(e: Fault) -> bool:
    """Whether a control has to say whose fault it was; REQUIRES: a candidate was loaded."""
    if e.cls != "candidate":
        return e.category not in SEEN
    return e.category in MACHINE_LIKE or any(x in e.message for x in MACHINE_WORDS)


def blamed(e: Fault, control_works: bool) -> Fault:
    """Whose fault it was, once the control has run without the candidate."""
    accused = e.cls == "candidate"
    if accused == control_works:
        return e
    if accused:
        return Fault(
            "infrastructure",
            "control_failed",
            f"failed to judge a candidate: the problem's own model fails in the same place, too: {e.message[:1000]}",
            "`kernelmill doctor` tries the machine",
        )
    return Fault(
        "candidate",
        DISTURBANCE,
        f"what judges the candidate failed beside it and works without it: {e.message[:1000]}",
        "use no more memory, threads and time than the function needs",
    )
