"""The same code twice is as fast as itself, and a little more work is found."""

import os
import subprocess

from gpu_check import common
from gpu_check.common import OUT, TORCH_CORPUS, baseline, judge, promise, task_ids

ENOUGH = 2 / 3  # of those asked for: what time must leave of them before a promise says anything
FOUND = 0.95  # of those judged
PLANTED = 60
TORCH_COPIES = 20
TOO_LITTLE = 0.9  # an honest copy that is surely paid less has a wrong verdict, as one that is paid more
PAID_TOO_LITTLE = 0.05  # of the copies, at most
TORCH_USUALLY = {"quiet": 75, "busy": 80}  # seconds


def speedups(verdicts):
    return [v["timing"]["speedup"] for v in verdicts.values() if (v.get("timing") or {}).get("measured")]


def is_enough(judged, asked, time_ended):
    """All that were asked for, or most of them when the time ended:
    a verdict that is merely lost is none that was cut."""
    return judged == asked or (time_ended and judged >= ENOUGH * asked)


def how_many(judged, asked, time_ended):
    return f"{judged} of {asked} judged" + (
        "" if judged == asked else " before the time ended" if time_ended else ", the others are lost"
    )


def too_little(found):
    return sum(x["high"] < TOO_LITTLE for x in found)


def few_too_little(found):
    return too_little(found) <= PAID_TOO_LITTLE * max(TORCH_COPIES, len(found))


def same_promise(found, judged, asked, time_ended):
    """Whether it holds, and the words, of the speedups of a kernel over itself."""
    faster, above = (sum(x["low"] > most for x in found) for most in (common.MOST_UNPAID, 1))
    missed = sum(not x["low"] <= 1 <= x["high"] for x in found)
    holds = (
        is_enough(judged, asked, time_ended)
        and len(found) == judged
        and faster <= judged / 100
        and few_too_little(found)
    )
    return holds, (
        f"the same kernel twice: called faster (lower bound above {common.MOST_UNPAID}) in {faster} of "
        f"{len(found)}, surely below "
        f"{TOO_LITTLE} in {too_little(found)}; lower bound above 1 in {above}, 1 outside the interval in {missed}; "
        f"{how_many(judged, asked, time_ended)}"
    )


def planted_promise(found, judged, asked, time_ended):
    slower = sum(x["high"] < 1 for x in found)
    middle = sorted(x["estimate"] for x in found)[len(found) // 2] if found else 0
    return (
        is_enough(judged, asked, time_ended) and slower >= FOUND * judged,
        f"5 % more work is found in {slower} of {judged} (median estimate {middle:.3f}); "
        f"{how_many(judged, asked, time_ended)}",
    )


def torch_promise(found, judged, asked, time_ended):
    found = sorted(found, key=lambda x: x["estimate"])
    faster = sum(x["low"] > 1 for x in found)
    shown = ", ".join(f"{found[i]['estimate']:.3f}" for i in (0, len(found) // 2, -1)) if found else "nothing"
    # A softmax of 14 µs hangs on contents and on the host; one without a time is judged again in a run.
    holds = is_enough(judged, asked, time_ended) and len(found) >= judged - 1 and faster <= 1 and few_too_little(found)
    return holds, (
        f"called faster in {faster} of {len(found)}, surely below {TOO_LITTLE} in {too_little(found)}, "
        f"{judged - len(found)} not "
        f"timed; least, median and largest estimate {shown}; {how_many(judged, asked, time_ended)}"
    )


def judge_copies(name, sources, count):
    return judge(name, [(f"{name}{i}", *sources[i % len(sources)]) for i in range(count)], are_honest=True)


def check_same():
    count = common.options.copies
    verdicts, seconds = judge_copies("same", [(t, baseline(t)) for t in task_ids()], count)
    holds, words = same_promise(speedups(verdicts), len(verdicts), count, common.part().left() <= 0)
    promise(holds, f"{words}; {seconds:.0f} s")


def check_torch_same():
    """Copies of a problem's own model, some 10 µs of GPU and more of Python each, while nothing else runs and beside as
    many busy processes as there are cores, nice as compilers are."""
    copies = [OUT / f"copy_{i}.py" for i in range(TORCH_COPIES)]
    for i, copy in enumerate(copies):
        copy.write_text((TORCH_CORPUS / "honest/torch_softmax.py").read_text() + f"# {i}\n")
    names = list(TORCH_USUALLY)
    for number, name in enumerate(names):
        limit = common.share_of(common.part().left(), TORCH_USUALLY, names[number:])
        load = os.cpu_count() if name == "busy" else 0
        busy = [subprocess.Popen(["nice", "-n", "10", "sh", "-c", "while :; do :; done"]) for _ in range(load)]
        try:
            verdicts, seconds = judge(
                f"torch-same-{name}",
                [(x.name, "torch/row_softmax", x, "torch") for x in copies],
                are_honest=True,
                is_busy=load > 0,
                seconds=limit,
            )
        finally:
            for x in busy:
                x.kill()
                x.wait()
        holds, words = torch_promise(speedups(verdicts), len(verdicts), len(copies), seconds >= limit)
        promise(holds, f"torch: a copy of the model, {name}: {words}; {seconds:.0f} s")


def check_planted():
    # The baseline with a twentieth more blocks, which sum the first rows once more.
    text = baseline("native/row_sum").read_text()
    body = text.replace("blockIdx.x", "(blockIdx.x % rows)").replace(
        "int cols) {\n  const float* row", "int rows, int cols) {\n  const float* row"
    )
    body = body.replace("<<<rows, 256>>>(x, y, cols)", "<<<rows + rows / 20, 256>>>(x, y, rows, cols)")
    source = OUT / "planted.cu"
    source.write_text(body)
    verdicts, seconds = judge_copies("planted", [("native/row_sum", source)], PLANTED)
    holds, words = planted_promise(speedups(verdicts), len(verdicts), PLANTED, common.part().left() <= 0)
    promise(holds, f"{words}; {seconds:.0f} s")
