"""How much of the GPU's time a candidate's own kernels have, as its process counts them in a row of calls after all else."""

from typing import Any

from kernelmill_torch import counted, kernels, native
from kernelmill_torch.faults import Fault
from kernelmill_torch.judgement import Judgement
from kernelmill_torch.problem import BadProblem
from kernelmill_torch.processes import OWN_FAULTS

# The least share that the candidate's own kernels must have, where a language is asked for.
LEAST_SHARE = {2: 0.05, 3: 0.05, 4: 0.05}  # several operators, of which some may stay the framework's
LEAST_SHARE_ELSEWHERE = 0.5
# What may end the count. The answer was right until then, and stays so.
FAILURES = (Fault, BadProblem, RuntimeError, MemoryError, KeyError, TypeError, ValueError, OverflowError)


def measure(x: Judgement, source: str, language: str, level: int) -> dict[str, Any]:
    """What the reply says of it. The rest is findings."""
    is_asked = language in kernels.LANGUAGES
    try:
        calls = prepare(x)
        if not make_calls(x, calls):
            # Who fails only while somebody counts has something to hide. Memory, time and CUPTI may fail by our doing.
            rule, severity = ("decoy_kernel", "critical") if is_asked else ("no_profile", "warning")
            x.find(rule, severity, "it raised an error in the calls whose kernels are counted")
            return {}
        profile = listed(x)
        share = kernels.own_share(profile, kernels.own_kernels(source, language), language)
    except FAILURES as e:
        x.find("no_profile", "warning", f"the kernels of the candidate could not be listed: {e}")
        return {}
    longest = [[name[:120], us] for name, us in profile[:8]]
    least = LEAST_SHARE.get(level, LEAST_SHARE_ELSEWHERE)
    if is_asked and share < least:
        rule = "framework_fallback" if share == 0 else "decoy_kernel"
        told = ", ".join(f"{name[:60]} {us:.0f} us" for name, us in longest[:3])
        x.find(
            rule,
            "critical",
            f"{share:.1%} of the GPU's time is in the candidate's own kernels; {least:.0%} is the least that counts. The longest: {told}",
        )
    return {"kernel_share": share, "kernels": longest}


def prepare(x: Judgement) -> int:
    """Puts fresh contents where it looks, and lets it count from now on. Returns for how many calls. Raises FAILURES."""
    bench, process = x.bench, x.process
    if not process.alive():  # it was ended where a block was out of time, and another may have its number
        raise process.ended()
    process.stop()
    calls = min(counted.CALLS, bench.layout.sets)
    process.arena.move()
    process.arena.fill(bench.draw([x.number("counted", i) for i in range(calls)]))
    bench.synchronize()  # indices of which a part is there would be none
    bench.make_room()
    process.place = process.arena.place
    process.ask({"op": "copy", "into": ""}, x.left())  # which a framework's kernel may make
    process.ask({"op": "profile", "over": False}, x.left())
    return calls


def make_calls(x: Judgement, calls: int) -> bool:
    """False where it says that it fails in them. Where it says that memory lacks they are made again, beside what can be given back.
    Raises Fault."""
    for is_last in (False, True):
        left = x.left()
        try:
            x.process.call(native.CALL, 0, calls, left)
            return True
        except Fault as e:
            if e.category not in OWN_FAULTS:
                raise
            if e.category != "out_of_memory":
                return False
            if is_last or not x.process.alive():
                raise
        x.bench.release()
    return False


def listed(x: Judgement) -> list[tuple[str, float]]:
    """[(name, microseconds)] as it says. Raises FAILURES: where CUPTI is missing, or is another's, torch lists nothing and says no more."""
    said = x.process.ask({"op": "profile", "over": True}, x.left())["kernels"]
    profile = [(str(name)[: counted.MOST_CHARACTERS], float(us)) for name, us in said[: counted.MOST_KERNELS]]
    if not all(0 <= us < 1e12 for _, us in profile):
        raise ValueError("no numbers")
    if not profile:
        raise ValueError("nobody saw any")
    return profile
