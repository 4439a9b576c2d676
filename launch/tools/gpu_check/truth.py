"""Speedups and times of verdicts beside what plain processes measure: for `device` CUDA events around calls that were
queued behind a delay, for `call` the host's clock around calls back to back; each call on a set of buffers of its own,
more than the caches hold. Plain processes sit before the verdicts and after them, for each has other pages of memory,
and calls that launches limit follow the host: off is what lies outside all that they say. Events around a single call
are printed beside: they have some 2 µs of launching in them, and more where the flush before them leaves lines that are
written back meanwhile."""

import json
import os
import subprocess
import sys
import time

from gpu_check import common, truth_native, truth_problems
from gpu_check.common import OUT, VERDICTS, environment, name_of_repeated, repeated, say, verdicts_of, write_task
from gpu_check.truth_findings import TITLE, Findings, known_by, launches_limit, slower_host

CLOCKS = ("device", "call")
# Seconds that contracts usually take, by which they share the part's; what one leaves goes to the next.
USUALLY = {"torch": 360, "native": 180, "device": 180}
SITTING_S = 400  # at most


def backend():
    return getattr(common.options, "backend", None) or "cuda"


def write_problems():
    """Tasks below OUT. Returns rows {problem, module, file, model, class, task};
    the module `model` is the problem's own."""
    root, rows = OUT / "truth_tasks", []
    wanted = common.options.modules
    for name in truth_problems.chosen(common.options.problems):
        text, modules = truth_problems.text_of(name, small=backend() == "cpu")
        task = write_task(root, name, text)
        model = str(root / task / "problem.py")
        rows.append({"problem": name, "module": "model", "file": model, "model": model, "class": "Model", "task": task})
        for module, source in modules.items():
            if (wanted and module not in wanted) or (module == "triton" and backend() == "cpu"):
                continue
            file = OUT / "truth_modules" / f"{name}.{module}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(source)
            rows.append(rows[-1] | {"module": module, "file": str(file), "class": "ModelNew"})
    return root, rows


def plain_times(rows, number, seconds):
    """The sitting of one plain process: what truth_timer prints of the rows."""
    jobs, answers = OUT / "truth.jobs.ndjson", OUT / f"truth.plain.torch.{number}.ndjson"
    jobs.write_text("".join(json.dumps(x) + "\n" for x in rows))
    python = os.environ.get("KERNELMILL_PYTHON") or sys.executable
    with answers.open("w") as into:
        try:
            done = subprocess.run(
                [python, "-m", "gpu_check.truth_timer", jobs, backend()],
                stdout=into,
                stderr=subprocess.PIPE,
                text=True,
                timeout=max(1, min(SITTING_S, seconds)),
                env=environment(first_gpu=True) | {"PYTHONPATH": str(common.HERE.parent)},
            )
            if done.returncode:
                say(done.stderr[-1500:])
        except subprocess.TimeoutExpired:
            say("        the plain process did not end in time")
    # The last line may be cut when time is over.
    return sitting_of([json.loads(line) for line in answers.read_text().splitlines() if line.endswith("}")])


def sitting_of(answers):
    models = {x["problem"]: x for x in answers if x.get("module") == "model"}
    result = {}
    for x in answers:
        if "error" in x:
            say(f"        {x['problem']}: {x['error']}")
        elif model := models.get(x["problem"]):
            result[f"{x['problem']} {x['module']}"] = (
                {"alone_ms": x["alone_ms"]}
                | {
                    clock: None
                    if x[f"{clock}_ms"] is None
                    else (x[f"{clock}_ms"], model[f"{clock}_ms"], x[f"{clock}_ratio"])
                    for clock in CLOCKS
                }
                | (
                    {"host": (x["host_ms"], model["host_ms"], model["host_ms"] / x["host_ms"])}
                    if x.get("host_ms")
                    else {}
                )
            )
    return result


def by_turns(candidates):
    """{clock: candidates}. Every verdict has the times by both clocks, so each candidate is judged once: where no clock
    is named, those of every other task by the one, and the rest by the other."""
    named = common.options.clocks
    if named:
        return {clock: candidates for clock in named}
    tasks = list(dict.fromkeys(x[1] for x in candidates))
    return {clock: [x for x in candidates if tasks.index(x[1]) % 2 == i] for i, clock in enumerate(CLOCKS)}


def judged(name, turns, flags, until):
    """[(clock that was asked for, verdict)] of {clock: candidates}."""
    result = []
    for number, (clock, mine) in enumerate(turns.items()):
        seconds = max(0, until - time.monotonic()) / (len(turns) - number)
        count = len(result)
        for verdict in verdicts_of(
            f"truth-{name}-{clock}",
            mine,
            options=[*flags, "--clock", clock],
            seconds=seconds,
            backend=backend(),
            first_gpu=True,
        ):
            common.note_honest(verdict)
            if isinstance(verdict.get("timing"), dict):
                verdict["timing"]["clock_asked"] = clock
            result.append((clock, verdict))
        if len(result) - count < len(mine):
            say(
                f"        asked for the clock `{clock}`: {len(result) - count} of {len(mine)} judged in {seconds:.0f} s"
            )
    return result


def compared(name, verdicts, sittings):
    """Findings, and lines for people by the clock that was asked for."""
    findings, slower, lines = Findings(name), slower_host(sittings), {}
    for clock, verdict in verdicts:
        if truth := known_by(clock, verdict["name"], sittings):
            limited = clock == "call" and launches_limit(
                truth,
                *(known_by(x, verdict["name"], sittings) for x in ("device", "host")),
                slower.get(verdict["name"].split()[0], 1.0),
            )
            lines.setdefault(clock, []).append(findings.compare(clock, verdict, truth, verdict["name"], limited))
    return findings, lines


def compare_all(name, verdicts, sittings, asked):
    if slower := slower_host(sittings):
        say(
            f"        the host queued the calls of a problem {min(slower.values()):.2f} to "
            f"{max(slower.values()):.2f} times slower in one plain process "
            "than in another"
        )
    findings, lines = compared(name, verdicts, sittings)
    for clock in CLOCKS:
        if clock in lines:
            say(f"\n        asked for the clock `{clock}`, ms\n{TITLE}")
            say("\n".join(lines[clock]))
    findings.promise(len({x["name"] for _, x in verdicts}), asked)


LEAST_AGAIN_S = 5  # for verdicts of what is off


def judge_off_again(name, verdicts, sittings, turns, flags, until):
    """Judges modules that are off two more times; the middle of all their verdicts counts. Returns the new verdicts,
    which are in `verdicts` as well."""
    off = compared(name, verdicts, sittings)[0].off_modules()
    if not off or until - time.monotonic() < LEAST_AGAIN_S:
        return []
    say(f"        judged again, for they are off: {', '.join(sorted(off))}")
    more = {clock: repeated([x for x in some if x[0] in off], VERDICTS - 1) for clock, some in turns.items()}
    again = judged(f"{name}-again-{len(verdicts)}", more, flags, until)
    for _, verdict in again:
        verdict["name"] = name_of_repeated(verdict["name"])
    verdicts += again
    return again


def check_torch_truth(until):
    """The plain process sits before the verdicts and after them, then with the problems of which there are any. A
    verdict takes seconds, so a module has one, three if it is off, and five if the middle of these is."""
    root, rows = write_problems()
    began = time.monotonic()
    first = plain_times(rows, 1, (until - began) / 2)
    took = time.monotonic() - began
    truth_native.say_alone(first)
    candidates = [
        (f"{x['problem']} {x['module']}", x["task"], x["file"], "torch") for x in rows if x["module"] != "model"
    ]
    known = [x for x in candidates if x[0] in first]
    flags = ["--root", root, "--language", "any"]

    def sit(number, verdicts):
        problems = {x["name"].split()[0] for _, x in verdicts}
        return plain_times([x for x in rows if x["problem"] in problems], number, until - time.monotonic())

    turns = by_turns(known)
    verdicts = judged("torch", turns, flags, until - took)
    sittings = [first, sit(2, verdicts) if verdicts else {}]
    left = until - time.monotonic()
    if again := judge_off_again("torch", verdicts, sittings, turns, flags, until - min(took, left / 2)):
        sittings.append(sit(3, again))  # the host's pace has changed meanwhile, which launches follow
        judge_off_again("torch", verdicts, sittings, turns, flags, until)
    compare_all("torch", verdicts, sittings, len(candidates))


def check_compiled_truth(contract, until):
    """The plain process sits two times before the verdicts and once after them, each time a new one. A module has three
    verdicts, and five if their middle is off; what plain processes say is not asked for again then, for that could only
    widen it."""
    rows, libraries = truth_native.prepare(contract)
    began = time.monotonic()
    sit = lambda number, some, end: truth_native.sit(contract, number, some, libraries, end)
    sittings = [sit(1, rows, began + (until - began) / 3)]
    now = time.monotonic()
    known = [x for x in rows if sittings[0].get(x[0])]
    truth_native.say_unknown(rows, sittings[0])
    before, after = truth_native.spare_for(
        until - now, len(known), now - began
    )  # verdicts after the first have what is left
    sittings.append(sit(2, known, now + before))
    verdicts = judged(contract, by_turns(repeated(known)), [], until - after)
    for _, verdict in verdicts:
        verdict["name"] = name_of_repeated(verdict["name"])
    names = {x["name"] for _, x in verdicts}
    # Backwards, so that two that are cut short do not lack the same modules.
    sittings.append(sit(3, [x for x in known[::-1] if x[0] in names], until))
    judge_off_again(contract, verdicts, sittings, by_turns(known), [], until)
    compare_all(contract, verdicts, sittings, len(rows))


def check_truth():
    wanted = [
        x for x in USUALLY if x in (common.options.contracts or USUALLY) and (x == "torch" or backend() == "cuda")
    ]
    for number, contract in enumerate(wanted):
        left = min(common.part().left() - 10, 10**6)
        until = time.monotonic() + common.share_of(left, USUALLY, wanted[number:])
        if contract == "torch":
            check_torch_truth(until)
        else:
            check_compiled_truth(contract, until)
