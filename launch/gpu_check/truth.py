"""Speedups and times of verdicts beside what a plain process measures: for `device` CUDA events around calls that were queued
behind a delay, for `call` the host's clock around calls back to back; each call on a set of buffers of its own, more than the
caches hold. The plain process sits before the verdicts and after them, for calls that launches limit follow the host: off is what
lies outside both. Events around a single call are printed beside: they have some 2 µs of launching in them, and more where the
flush before them leaves lines that are written back meanwhile."""

import json
import os
import subprocess
import sys
import time
from typing import NamedTuple, Optional

from gpu_check import common, truth_native, truth_problems
from gpu_check.common import OUT, environment, note_tried, promise, say, verdicts_of, write_task

LONG_MS = 0.05          # calls of so much and more
WITHIN = (0.03, 0.06)   # of those, of shorter ones
COPIES_WITHIN = 0.02
CLOCKS = ("device", "call")
SHARES = {"torch": 5, "native": 3, "device": 2}  # of the time, where that is limited; what one leaves goes to the next


class Range(NamedTuple):
    """What sittings of the plain process say: calls that launches limit are now fast, now slow, as the host is."""

    low: float
    middle: float
    high: float

    def off(self, value):
        """How far a value lies outside, relative to the nearer end."""
        return value / self.low - 1 if value < self.low else max(0.0, value / self.high - 1)


def range_of(values):
    return Range(min(values), sum(values) / len(values), max(values))


class Known(NamedTuple):
    """By one clock, milliseconds."""

    candidate: Range
    reference: Range
    ratio: Range

    @staticmethod
    def of(candidate, reference):
        """Of one sitting."""
        return Known(*(range_of([x]) for x in (candidate, reference, reference / candidate)))


def backend():
    return getattr(common.options, "backend", None) or "cuda"


def write_problems():
    """Tasks below OUT. Returns rows {problem, module, file, model, class, task}; the module `model` is the problem's own."""
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


def plain_times(rows):
    """{(problem, module): what truth_timer prints of it} of one plain process."""
    jobs = OUT / "truth.jobs.ndjson"
    jobs.write_text("".join(json.dumps(x) + "\n" for x in rows))
    answers = OUT / "truth.plain.ndjson"
    python = os.environ.get("KERNELMILL_PYTHON") or sys.executable
    with answers.open("w") as into:
        try:
            done = subprocess.run([python, "-m", "gpu_check.truth_timer", jobs, backend()], stdout=into, stderr=subprocess.PIPE,
                                  text=True, timeout=min(400, common.part().left()),
                                  env=environment(first_gpu=True) | {"PYTHONPATH": str(common.HERE.parent)})
            if done.returncode:
                say(done.stderr[-1500:])
        except subprocess.TimeoutExpired:
            say("        the plain process did not end in time")
    result = {}
    whole = [line for line in answers.read_text().splitlines() if line.endswith("}")]  # the last may be cut when time is over
    for x in map(json.loads, whole):
        if "error" in x:
            say(f"        {x['problem']}: {x['error']}")
        else:
            result[x["problem"], x["module"]] = x
    return result


def known_by(clock, name, sittings) -> Optional[Known]:
    """What sittings say of a module by one clock."""
    problem, module = name.split()
    both = [(x[problem, module], x[problem, "model"]) for x in sittings if (problem, module) in x and (problem, "model") in x]
    if not both or both[0][0][f"{clock}_ms"] is None:
        return None
    return Known(range_of([x[f"{clock}_ms"] for x, _ in both]), range_of([x[f"{clock}_ms"] for _, x in both]),
                 range_of([x[f"{clock}_ratio"] for x, _ in both]))


def pair(verdict, clock):
    """(candidate ms, reference ms) of a verdict by a clock, or None."""
    timing = verdict.get("timing") or {}
    found = timing.get(f"{clock}_ms")
    if not timing.get("measured"):
        return None
    if not found:  # a lane that has one clock
        return (timing["candidate_ms"], timing["reference_ms"]) if timing.get("clock_asked") == clock == "call" else None
    return found["candidate"], found["reference"]


def depends_on_contents(verdict):
    """Whether the speedup is that of a kind of contents on which the candidate is slower than on the problem's own."""
    return "depends_on_contents" in common.reasons(verdict)


def limit_of(ms):
    return WITHIN[0] if ms >= LONG_MS else WITHIN[1]


def ms(value):
    return f"{value:9.4f}" if value else "        -"


class Findings:
    """What was off, by what was compared: (how far, what it may be, words)."""

    def __init__(self, name):
        self.name, self.found, self.missing, self.other_contents = name, {}, [], []

    def add(self, kind, off, most, words):
        self.found.setdefault(kind, []).append((abs(off), most, words))

    def compare(self, clock, verdict, truth, words):
        """One verdict and what is Known by one clock. Returns a line for people."""
        ours, speedup = pair(verdict, clock), (verdict.get("timing") or {}).get("speedup") or {}
        most = limit_of(min(truth.candidate.middle, truth.reference.middle))
        line = (f"{words:44} {clock:6} {ms(truth.reference.middle)} {ms(truth.candidate.middle)} {truth.ratio.middle:7.3f} "
                f"[{truth.ratio.low:.3f}, {truth.ratio.high:.3f}] ")
        if not ours:
            self.missing.append(words)
            return line + f"{verdict.get('outcome')}: {(verdict.get('error') or {}).get('message') or 'no time by this clock'}"[:110]
        for side, own, true in (("candidate", ours[0], truth.candidate), ("reference", ours[1], truth.reference)):
            self.add(f"{clock}: times", true.off(own), limit_of(true.middle), f"{words} {side}")
        ratio = ours[1] / ours[0]
        off = truth.ratio.off(ratio)
        self.add(f"{clock}: ratio of the two times", off, most, words)
        paid = verdict["timing"].get("clock_asked") == clock and speedup.get("estimate")
        text = f"{ms(ours[1])} {ms(ours[0])} {ratio:7.3f} {off * 100:+6.1f} %"
        if paid:
            by_speedup = truth.ratio.off(paid)
            if depends_on_contents(verdict):
                self.other_contents.append(words)  # of which events know nothing
            else:
                self.add(f"{clock}: speedup that is paid", by_speedup, most, words)
            text += f"  paid {paid:6.3f} [{speedup['low']:.3f}, {speedup['high']:.3f}] {by_speedup * 100:+6.1f} %"
            if words.split()[1] == "copy":
                self.add(f"{clock}: copies", paid - 1, COPIES_WITHIN, words)
        return line + text

    def promise(self):
        for kind, all_found in sorted(self.found.items()):
            within = [off <= most for off, most, _ in all_found]
            worst = max(all_found)
            bounds = ("within 2 % of one" if kind.endswith("copies")
                      else f"within {WITHIN[0] * 100:.0f} % of the truth ({WITHIN[1] * 100:.0f} % below {LONG_MS * 1e3:.0f} µs)")
            note_tried(len(within), sum(within))
            promise(all(within), f"truth, {self.name}, {kind}: {sum(within)} of {len(within)} {bounds}; worst "
                    f"{worst[0] * 100:.1f} %: {worst[2]}")
        if self.other_contents:
            say(f"        paid for contents on which it is slower: {', '.join(self.other_contents)}")
        if self.missing:
            promise(False, f"truth, {self.name}: no time of {len(self.missing)}: {', '.join(sorted(set(self.missing)))[:300]}")


TITLE = (f"{'problem and module':44} {'clock':6} {'true ref':>9} {'true cand':>9} {'ratio':>7} {'sittings':>14} {'our ref':>9} {'our cand':>9} "
         f"{'ratio':>7} {'off':>8}")


def by_turns(candidates):
    """{clock: candidates}. Every verdict has the times by both clocks, so each candidate is judged once: where no clock is named,
    those of every other task by the one, and the rest by the other."""
    named = common.options.clocks
    if named:
        return {clock: candidates for clock in named}
    tasks = list(dict.fromkeys(x[1] for x in candidates))
    return {clock: [x for x in candidates if tasks.index(x[1]) % 2 == i] for i, clock in enumerate(CLOCKS)}


def judged(name, candidates, flags, until):
    """[(clock that was asked for, verdict)] of all candidates."""
    result, turns = [], by_turns(candidates)
    for number, (clock, mine) in enumerate(turns.items()):
        seconds = max(0, until - time.monotonic()) / (len(turns) - number)
        count = len(result)
        for verdict in verdicts_of(f"truth-{name}-{clock}", mine, options=[*flags, "--clock", clock],
                                   seconds=seconds, backend=backend(), first_gpu=True):
            common.note_honest(verdict)
            if isinstance(verdict.get("timing"), dict):
                verdict["timing"]["clock_asked"] = clock
            result.append((clock, verdict))
        if len(result) - count < len(mine):
            say(f"        asked for the clock `{clock}`: {len(result) - count} of {len(mine)} judged in {seconds:.0f} s")
    return result


def compare_all(findings, verdicts, known):
    """`known` by clock and name of a candidate gives a Known or None."""
    for asked in CLOCKS:
        if not any(clock == asked for clock, _ in verdicts):
            continue
        say(f"\n        asked for the clock `{asked}`, ms\n{TITLE}")
        for verdict in (x for clock, x in verdicts if clock == asked):
            for clock in CLOCKS:
                if truth := known(clock, verdict["name"]):
                    say(findings.compare(clock, verdict, truth, verdict["name"]))
    findings.promise()


def check_torch_truth(until):
    """The plain process sits before the verdicts and after them."""
    root, rows = write_problems()
    began = time.monotonic()
    sittings = [plain_times(rows)]
    sitting = time.monotonic() - began
    truth_native.say_alone([(x["device_ms"], x["alone_ms"]) for x in sittings[0].values()])
    candidates = [(f"{x['problem']} {x['module']}", x["task"], x["file"], "torch") for x in rows
                  if x["module"] != "model" and (x["problem"], x["module"]) in sittings[0]]
    verdicts = judged("torch", candidates, ["--root", root, "--language", "any"], until - sitting)
    sittings.append(plain_times(rows))
    compare_all(Findings("torch"), verdicts, lambda clock, name: known_by(clock, name, sittings))


def check_truth():
    wanted = [x for x in SHARES if x in (common.options.contracts or SHARES) and (x == "torch" or backend() == "cuda")]
    for number, contract in enumerate(wanted):
        left = min(common.part().left() - 10, 10**6)
        share = left * SHARES[contract] / sum(SHARES[x] for x in wanted[number:])
        until = time.monotonic() + share
        if contract == "torch":
            check_torch_truth(until)
        else:
            truth, candidates = truth_native.prepare(contract, share)
            verdicts = judged(contract, candidates, [], until)
            compare_all(Findings(contract), verdicts,
                        lambda clock, name: clock in truth[name] and Known.of(*truth[name][clock]))
