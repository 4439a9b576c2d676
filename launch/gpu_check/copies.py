"""The same code twice is as fast as itself, and a little more work is found."""

import os
import subprocess

from gpu_check import common
from gpu_check.common import OUT, TORCH_CORPUS, baseline, judge, promise, task_ids


def pairs(name, sources, count):
    candidates = [(f"{name}{i}", *sources[i % len(sources)]) for i in range(count)]
    verdicts, seconds = judge(name, candidates, are_honest=True)
    found = [v["timing"]["speedup"] for v in verdicts.values() if v["timing"]["measured"]]
    return found, seconds


def check_same():
    sources = [(t, baseline(t)) for t in task_ids()]
    count = common.options.copies
    found, seconds = pairs("same", sources, count)
    faster = sum(x["low"] > 1.02 for x in found)
    above = sum(x["low"] > 1 for x in found)
    missed = sum(not x["low"] <= 1 <= x["high"] for x in found)
    promise(len(found) == count and faster <= count / 100,
            f"the same kernel twice: called faster (lower bound above 1.02) in {faster} of "
            f"{len(found)}; lower bound above 1 in {above}, 1 outside the interval in {missed}; "
            f"{seconds:.0f} s")


def check_torch_same():
    """Copies of a problem's own model, some 10 µs of GPU and more of Python each, while nothing else runs and beside as many
    busy processes as there are cores, nice as compilers are."""
    copies = [OUT / f"copy_{i}.py" for i in range(20)]
    for i, copy in enumerate(copies):
        copy.write_text((TORCH_CORPUS / "honest/torch_softmax.py").read_text() + f"# {i}\n")
    for name, load in (("quiet", 0), ("busy", os.cpu_count())):
        busy = [subprocess.Popen(["nice", "-n", "10", "sh", "-c", "while :; do :; done"]) for _ in range(load)]
        try:
            verdicts, seconds = judge(f"torch-same-{name}", [
                (x.name, "torch/row_softmax", x, "torch") for x in copies], are_honest=True, is_busy=load > 0)
        finally:
            for x in busy:
                x.kill()
                x.wait()
        found = sorted((v["timing"]["speedup"] for v in verdicts.values() if v["timing"]["measured"]),
                       key=lambda x: x["estimate"])
        faster = sum(x["low"] > 1 for x in found)
        shown = ", ".join(f"{found[i]['estimate']:.3f}" for i in (0, len(found) // 2, -1)) if found else "nothing"
        # A softmax of 14 µs hangs on contents and on the host; one without a time is judged again in a run.
        promise(len(found) >= 19 and faster <= 1, f"torch: a copy of the model, {name}: called faster in {faster} of "
                f"{len(found)}, {len(verdicts) - len(found)} not timed; least, median and largest estimate {shown}; {seconds:.0f} s")


def check_planted():
    # The baseline with a twentieth more blocks, which sum the first rows once more.
    text = baseline("native/row_sum").read_text()
    body = text.replace("blockIdx.x", "(blockIdx.x % rows)").replace(
        "int cols) {\n  const float* row", "int rows, int cols) {\n  const float* row")
    body = body.replace("<<<rows, 256>>>(x, y, cols)", "<<<rows + rows / 20, 256>>>(x, y, rows, cols)")
    source = OUT / "planted.cu"
    source.write_text(body)
    found, seconds = pairs("planted", [("native/row_sum", source)], 60)
    slower = sum(x["high"] < 1 for x in found)
    middle = sorted(x["estimate"] for x in found)[len(found) // 2] if found else 0
    promise(len(found) == 60 and slower >= 57, f"5 % more work is found in {slower} of {len(found)} "
            f"(median estimate {middle:.3f}); {seconds:.0f} s")
