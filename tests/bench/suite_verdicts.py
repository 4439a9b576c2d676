#!/usr/bin/env python3
"""Runs the same answers through `kernelmill judge` and through the harnesses of GPU MODE and robust-kbench.

Of each problem an honest answer is judged, which should pass, and the same answer spoiled, which should not. GPU MODE's
harness is its eval.py in the mode `test`; robust-kbench's is its cuda_correct.py.

    tests/bench/suite_verdicts.py --gpu-mode reference-kernels --robust-kbench robust-kbench --out verdicts.ndjson

Each verdict is a line of --out as soon as it is known; a call with the same --out judges what is missing. The last
lines are a table and counts. Exit code 1: not all are equal. --native of robust-kbench's problems are answered by the
suite's own .cu files, the others in Python.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

from sol import word_of
from suite_answers import KINDS, SUITES, answers_to, batch_of, problems_of
from suite_harnesses import HARNESSES, Clock

PROBLEMS = {  # the first ones that are imported
    "gpu-mode": "pmpp_v2/*,helion/*",
    "robust-kbench": "mnist_l*,*,kernelbench/level_1/task_19",
}
NO_VERDICT = ("task", "configuration", "infrastructure")  # classes of errors that tell nothing of an answer
SHOWN = 110  # characters of a side's words in the table
WORDS = ("equal", "different", "no verdict", "not judged")
LINE = threading.Lock()


class Verdicts:
    """What each side said of each answer: in memory and, line by line, in a file."""

    def __init__(self, path: pathlib.Path | None):
        self.path, self.of = path, {}
        if path and path.exists():
            for line in path.read_text().splitlines():
                with contextlib.suppress(json.JSONDecodeError):  # the last line of a killed call
                    x = json.loads(line)
                    self.of[x["side"], x["answer"]] = x

    def add(self, side: str, answer: str, word: str, says: str, seconds: float) -> None:
        x = {"side": side, "answer": answer, "word": word, "says": " ".join(says.split())[:2000]}
        x["seconds"] = round(seconds, 2)
        with LINE:
            self.of[side, answer] = x
            print(f"{seconds:6.1f} s  {side:7}{answer}: {word}", file=sys.stderr, flush=True)
            if self.path:
                with self.path.open("a") as file:
                    file.write(json.dumps(x) + "\n")

    def missing(self, side: str, answers: list) -> list:
        return [x for x in answers if (side, x.name) not in self.of]


# -- ours ---------------------------------------------------------------------------------------------------


def import_suite(options, suite: str, checkout: pathlib.Path, tasks: pathlib.Path) -> list[str]:
    words = [options.kernelmill, "task", "import", suite, checkout, "--to", tasks, "--json"]
    words += ["--shapes", options.shapes] if options.shapes else []
    done = subprocess.run([str(x) for x in words], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"suite_verdicts.py: the import of {checkout} failed: {done.stderr[-2000:]}")
    document = json.loads(done.stdout)
    print(f"{suite}: {document['imported']} imported, left out: {document['reasons']}", flush=True)
    return [x["id"] for x in document["tasks"]]


def judge(options, clock: Clock, verdicts: Verdicts, answers: list, tasks: pathlib.Path, scratch: pathlib.Path) -> None:
    """All answers in one call of `kernelmill judge`."""
    (scratch / "batch.ndjson").write_text(batch_of(answers))
    command = [options.kernelmill, "judge", scratch / "batch.ndjson", "--root", tasks, "--python", options.python]
    command += ["--backend", options.backend, "--torch-mode", options.mode]
    command += [] if options.timing else ["--no-timing"]
    begun = time.monotonic()
    with (scratch / "judge.log").open("w") as log:
        process = clock.start(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            for line in process.stdout:
                x = json.loads(line)
                fault = x.get("error") or {}
                word = "no verdict" if fault.get("class") in NO_VERDICT else word_of(x)
                verdicts.add("ours", x["name"], word, fault.get("message") or "", time.monotonic() - begun)
        except BaseException:
            process.terminate()
            raise
        finally:
            code = process.wait()
            clock.ended(process)
    if code and clock.left() > 0:
        print(f"kernelmill judge: exit code {code}: {(scratch / 'judge.log').read_text()[-2000:]}", file=sys.stderr)


# -- theirs ----------------------------------------------------------------------------------------------


def ask_harness(options, clock: Clock, verdicts: Verdicts, answer, scratch: pathlib.Path) -> None:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        try:
            word, why = HARNESSES[answer.problem.suite](options, clock, answer, pathlib.Path(folder))
        except TimeoutError:
            if clock.left() <= 1:
                return  # not judged
            word, why = "no verdict", f"none within {options.limit:.0f} s"
    if clock.left() > 0:
        verdicts.add("theirs", answer.name, word, why, time.monotonic() - begun)


# -- the table ----------------------------------------------------------------------------------------------


def table(verdicts: Verdicts, answers: list) -> int:
    rows, counts = [], {}
    for x in answers:
        ours, theirs = (verdicts.of.get((side, x.name)) for side in ("ours", "theirs"))
        count = counts.setdefault((x.problem.suite, x.kind), dict.fromkeys(WORDS, 0))
        if not ours or not theirs:
            word = "not judged"
        elif "no verdict" in (ours["word"], theirs["word"]):
            word = "no verdict"
        else:
            word = "equal" if passed(ours) is passed(theirs) else "different"
        count[word] += 1
        said = [f"{side}: {y['says'][:SHOWN]}" for side, y in (("ours", ours), ("theirs", theirs)) if y and y["says"]]
        why = " | ".join(said) if word != "equal" else ""
        words = [y["word"] if y else "-" for y in (ours, theirs)]
        what = [f"{x.problem.suite} {x.problem.name}", f"{x.kind} {x.file.suffix}"]
        rows.append([*what, *words, f"{word}: {why}" if why else word])
    heads = ["problem", "answer", "ours", "theirs", "equal, or why not"]
    widths = [max(len(r[i]) for r in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *sorted(rows, key=lambda x: x[0])]:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    for (suite, kind), count in counts.items():
        print(f"{suite} {kind}: " + ", ".join(f"{n} {word}" for word, n in count.items()))
    total = {word: sum(x[word] for x in counts.values()) for word in WORDS}
    print(f"{len(answers)} answers: " + ", ".join(f"{n} {word}" for word, n in total.items()))
    return 0 if total["equal"] == len(answers) else 1


def passed(verdict: dict) -> bool:
    return verdict["word"].startswith("pass")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    path = lambda x: pathlib.Path(x).resolve()  # noqa: E731
    program = pathlib.Path(os.environ.get("KERNELMILL_BIN_DIR", "build/bin")) / "kernelmill"
    add = parser.add_argument
    for suite in SUITES:
        add(f"--{suite}", type=path, help="a checkout; without it the suite is left out")
        add(f"--{suite}-problems", metavar="GLOBS", default=PROBLEMS[suite], help="with commas; default: %(default)s")
    add("--count", type=int, default=12, help="problems of a suite; default: %(default)s")
    add("--answers", type=lambda x: x.split(","), default=["honest", "element"], help=f"some of {','.join(KINDS)}")
    add("--native", type=int, default=2, help="problems of robust-kbench with .cu answers; default: %(default)s")
    add("--shapes", type=int, default=3, help="of a task, judged by ours; 0: the import's own; default: %(default)s")
    add("--trials", type=int, default=5, help="of robust-kbench's harness; default: %(default)s, which is its own")
    add("--kernelmill", type=path, default=program)
    add("--python", default=sys.executable, help="an interpreter that has torch")
    add("--harness-python", help="the one for the suites' harnesses; default: --python")
    add("--backend", default="cuda", choices=("cpu", "cuda"), help="ours; the harnesses need CUDA")
    add("--mode", default="honest", help="of `kernelmill judge --torch-mode`")
    add("--timing", action="store_true", help="ours also times, before theirs begin")
    add("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="answers that harnesses judge at a time")
    add("--all-configurations", action="store_true", help="in robust-kbench's harness, not the single one alone")
    add("--limit", type=float, default=150, help="seconds for an answer in a harness; default: %(default)s")
    add("--seconds", type=float, default=math.inf, help="for all; what is not judged by then is left out")
    add("--out", type=path, help="file of verdicts, one a line")
    add("--only", choices=("ours", "theirs"), help="asks one side alone")
    return parser.parse_args()


def main() -> int:
    options = parse()
    options.harness_python = options.harness_python or options.python
    clock, verdicts = Clock(options.seconds), Verdicts(options.out)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        scratch, tasks, groups = pathlib.Path(place), pathlib.Path(place) / "tasks", []
        for suite in SUITES:
            if checkout := getattr(options, suite.replace("-", "_")):
                globs = getattr(options, suite.replace("-", "_") + "_problems").split(",")
                ids = import_suite(options, suite, checkout, tasks)
                native = options.native
                for x in problems_of(suite, checkout, ids, globs, options.count):
                    groups.append(answers_to(x, options.answers, checkout, tasks, scratch / "answers", native > 0))
                    native -= groups[-1][0].file.suffix == ".cu"
        answers = [x for kind in zip(*groups, strict=True) for x in kind]  # the honest ones first
        alarm = threading.Timer(min(max(0.0, clock.left()), threading.TIMEOUT_MAX), clock.stop)
        alarm.daemon = True
        alarm.start()
        slowest_first = sorted(answers, key=lambda x: x.file.suffix != ".cu")
        sides = ("ours", "theirs") if options.timing else ("theirs", "ours")  # a side that times is alone
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            try:
                for side in sides if not options.only else [options.only]:
                    missing = verdicts.missing(side, slowest_first)
                    if side == "ours" and missing:
                        judge(options, clock, verdicts, missing, tasks, scratch)
                    elif side == "theirs":
                        for x in missing:
                            pool.submit(ask_harness, options, clock, verdicts, x, scratch)
                pool.shutdown()
            except (KeyboardInterrupt, SystemExit, TimeoutError):
                clock.stop()
                pool.shutdown(cancel_futures=True)
        alarm.cancel()
        return table(verdicts, answers)


if __name__ == "__main__":
    sys.exit(main())
