#!/usr/bin/env python3
"""Kills, freezes and cuts over fast runs; no acknowledged turn may be lost or doubled.

A run asks a scripted policy server over HTTP through a relay. At random the run or the server is killed with SIGKILL
or frozen, and the connections between them are cut or fall silent. A dead process is started again; a run is
resumed. After each kill of a run its store is checked by `kernelmill fsck` and its traces are read here, without
Kernelmill's code: no line that was there once may be gone or changed, no turn may be missing or there twice, and
each turn that the relay saw the successor of must be in the store. One run in ten is built and evaluated; what its
turns were judged to be must be what an undisturbed run says, or a fault of the machine without a reward.

    chaos.py [--actions N] [--seed N] [--evaluated SHARE] [--evaluated-actions N]

A night's: chaos.py --actions 10000 --evaluated-actions 1000. The folder of a run that broke a promise stays.
Exit code 77: it cannot run here.
"""

import argparse
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import select
import signal
import subprocess
import sys
import time

here = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(here.parent), str(here.parents[1] / "fault")]
from helpers_killed_test import judge, turns_of, write_script  # noqa: E402
from real_processes import SKIP, binary, number, report, scratch_folder, started  # noqa: E402
from relay import Relay  # noqa: E402

ACTIONS = ["kill run", "kill run", "freeze run", "kill server", "freeze server", "cut", "silence"]
PATIENCE = 300  # of the test for one process, far above what it needs
GROUPS, MEMBERS, TURNS = 6, 8, 6
WORDS = {"model": "m", "latency_ms": 15, "replies": [{"text": "I would rather talk about the weather."}]}


class Broken(AssertionError):
    """A promise that was not kept."""


class Traces:
    """traces.jsonl of one run, read again and again: what was there must stay."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.lines: dict = {}  # what a line is of -> its digest
        self.turns: dict = {}  # episode -> how many

    def read(self) -> None:
        if not self.path.exists():
            if self.lines:
                raise Broken(f"{self.path} is gone")
            return
        turns: collections.Counter = collections.Counter()
        seen: dict = {}
        for line in self.path.read_bytes().split(b"\n")[:-1]:  # the last may be half of one
            x = json.loads(line)
            key = (x["kind"], x.get("episode"), x.get("group"), x.get("turn"))
            if key in seen:
                raise Broken(f"{key} is in the traces twice")
            seen[key] = hashlib.sha256(line).hexdigest()
            if x["kind"] == "turn":
                if x["turn"] != turns[x["episode"]]:
                    raise Broken(f"{key} comes after {turns[x['episode']]} turns")
                turns[x["episode"]] += 1
        for key, digest in self.lines.items():
            if seen.get(key) != digest:
                raise Broken(f"{key} was in the traces and is {'gone' if key not in seen else 'another'}")
        self.lines, self.turns = seen, turns


class Chaos:
    def __init__(self, folder: pathlib.Path, options):
        self.folder, self.wanted, self.wanted_evaluated = folder, options.actions, options.evaluated_actions
        self.evaluated, self.seed = options.evaluated, options.seed
        self.dice = random.Random(options.seed)
        self.relay = Relay()
        self.struck: collections.Counter = collections.Counter()
        self.struck_evaluated = 0  # those of them that struck a run which builds and evaluates
        self.told: collections.Counter = collections.Counter()
        self.calm: dict = {}

    # -- processes --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def server(self, script: str):
        """A policy server that is started again whenever it has died; yields how to reach it."""
        with contextlib.ExitStack() as stack:
            holder = {}

            def start():
                out = self.folder / "server.out"
                with open(out, "wb") as file:
                    holder["process"] = stack.enter_context(
                        started(
                            [binary, "policy", "scripted", "--script", script],
                            self.folder,
                            self.folder / "server.log",
                            stdout=file,
                        )
                    )
                end = time.monotonic() + 60
                while not (found := re.search(r"127\.0\.0\.1:(\d+)", out.read_text())):
                    if time.monotonic() > end:
                        raise RuntimeError("the policy server says no address")
                    time.sleep(0.01)
                self.relay.upstream = int(found[1])

            holder["start"] = start
            start()
            yield holder
            self.relay.upstream = 0

    def run_words(self, name: str, evaluated: bool):
        words = [
            binary,
            "run",
            "run.json" if evaluated else "words.json",
            f"run.dir={name}",
            f"run.name={name}",
            "policy.kind=openai",
            f"policy.base_url=http://127.0.0.1:{self.relay.port}/v1",
        ]
        return words + ([f"compile.cache_dir={self.folder}/cache"] if evaluated else [])

    # -- one run ----------------------------------------------------------------------------------

    def live(self, name: str, evaluated: bool) -> None:
        """From the first start to the last resume."""
        traces = Traces(self.folder / name / "traces.jsonl")
        self.relay.asked.clear()
        with self.server("script.json" if evaluated else "words-script.json") as server:
            for attempt in range(200):
                resumes = (self.folder / name / "manifest.json").exists()
                words = [binary, "resume", name] if resumes else self.run_words(name, evaluated)
                self.told["resumes"] += resumes
                with started(words, self.folder, self.folder / f"{name}.log", stdout=subprocess.DEVNULL) as process:
                    code = self.disturb(process, server, evaluated, 1 + attempt / 10)
                self.check(name, traces)
                if code == 0:
                    break
                if code != -signal.SIGKILL:
                    self.told[f"exit {code}"] += 1
            else:
                raise Broken(f"{name} does not finish")
        self.check_end(name, traces, evaluated)

    def is_wanted(self, evaluated: bool) -> bool:
        """Whether one more action is."""
        return self.struck.total() < self.wanted or evaluated and self.struck_evaluated < self.wanted_evaluated

    def disturb(self, process, server, evaluated: bool, calm: float) -> int:
        """Strikes until the process has ended; returns how it did. `calm`: times the usual time between two strikes,
        so that a run gets on however busy the machine is."""
        watch = select.poll()
        watch.register(os.pidfd_open(process.pid), select.POLLIN)
        end = time.monotonic() + PATIENCE
        while not watch.poll(self.dice.uniform(5, 250 * calm)):
            if time.monotonic() > end:
                raise Broken(f"{process.args} does not end")
            if not self.is_wanted(evaluated):
                continue
            what = self.dice.choice(ACTIONS)
            self.struck[what] += 1
            self.struck_evaluated += evaluated
            self.strike(what, process, server)
        return process.wait()

    def strike(self, what: str, process, server) -> None:
        pause = self.dice.uniform(0.02, 0.4)
        if what == "kill run":
            process.kill()
        elif what == "kill server":
            server["process"].kill()
            self.relay.upstream = 0
            time.sleep(pause)
            server["start"]()
        elif what in ("freeze run", "freeze server"):
            pid = process.pid if what == "freeze run" else server["process"].pid
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(pause)
                os.kill(pid, signal.SIGCONT)
        elif what == "cut":
            self.relay.cut()
            time.sleep(pause)
            self.relay.heal()
        else:
            self.relay.silence()
            time.sleep(pause)
            self.relay.speak()

    # -- what must hold ---------------------------------------------------------------------------

    def fsck(self, name: str) -> dict:
        done = subprocess.run(
            [binary, "fsck", name, "--json"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise Broken(f"fsck of {name}: exit {done.returncode}: {done.stderr[-2000:]}") from None

    def check(self, name: str, traces: Traces) -> None:
        """Of a run that no process has open now."""
        traces.read()
        if not (self.folder / name / "manifest.json").exists():
            if any(self.relay.asked.values()):
                raise Broken(f"{name} has turns and no manifest")
            return
        told = self.fsck(name)
        acknowledged = sum(self.relay.asked.values())  # turn t was asked for: 0 to t - 1 are there
        stored = told.get("turns", 0)
        if stored < max(acknowledged, sum(traces.turns.values())):
            raise Broken(
                f"{name} has {stored} turns; {acknowledged} were acknowledged, {sum(traces.turns.values())} "
                f"are in the traces"
            )
        self.told["checks"] += 1
        for x in told["findings"]:  # what a resume mends; at the end there may be none
            if x["state"] == "lost":
                raise Broken(f"{name}: {x['what']}")
            self.told[f"found {x['kind']}"] += 1

    def check_end(self, name: str, traces: Traces, evaluated: bool) -> None:
        told = self.fsck(name)
        if not told["sound"]:
            raise Broken(f"{name} is not sound: {told['findings']}")
        if told["turns"] != sum(traces.turns.values()):
            raise Broken(f"{name}: {told['turns']} turns in the store, {sum(traces.turns.values())} in the traces")
        for episode, turn in self.relay.asked.items():
            if traces.turns[episode] < turn:
                raise Broken(f"{name}: turn {turn} of {episode} was asked for, {traces.turns[episode]} are there")
        ended = sum(key[0] == "episode" for key in traces.lines)
        planned = 2 * 4 if evaluated else GROUPS * MEMBERS
        if ended != planned:
            raise Broken(f"{name}: {ended} of {planned} episodes have ended")
        self.told["turns"] += told["turns"]
        self.told["evaluated" if evaluated else "words"] += 1
        if evaluated:
            wrong: list = []
            self.told["infrastructure"] += judge(self.calm, turns_of(self.folder, name), wrong)
            if wrong:
                raise Broken(f"{name}: {wrong[0]}")

    # -- all of it --------------------------------------------------------------------------------

    def prepare(self) -> None:
        write_script(self.folder)
        (self.folder / "words-script.json").write_text(json.dumps(WORDS))
        x = json.loads((self.folder / "run.json").read_text())
        x["policy"]["timeout_ms"] = 60000
        (self.folder / "run.json").write_text(json.dumps(x))
        x["tasks"] = {"ids": ["native/row_sum"], "groups": GROUPS, "group_size": MEMBERS, "max_turns": TURNS}
        (self.folder / "words.json").write_text(json.dumps(x))
        with self.server("script.json"):
            for attempt in range(9):  # a busy machine may lose a turn of this one, too
                name = f"calm{attempt}"
                done = subprocess.run(
                    self.run_words(name, True),
                    cwd=self.folder,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=1800,
                )
                if done.returncode == 0:
                    self.calm = turns_of(self.folder, name)
                    if all(x["outcome"] != "infrastructure" for x in self.calm.values()):
                        return
        raise RuntimeError(f"no run is calm here: {done.stderr[-3000:]}")

    def print_table(self, actions: list, begin: float) -> None:
        print(f"\n{'action':<24}{'times':>8}")
        for what in sorted(set(actions)):
            print(f"{what:<24}{self.struck[what]:>8,}")
        print(f"{'all':<24}{self.struck.total():>8,}\n{'over evaluations':<24}{self.struck_evaluated:>8,}\n")
        for what, count in sorted(self.told.items()):
            print(f"{what:<24}{count:>8,}")
        print(f"{'requests':<24}{self.relay.requests:>8,}\n{'seconds':<24}{time.monotonic() - begin:>8,.0f}\n")

    def storm(self) -> None:
        begin, runs, broken = time.monotonic(), 0, ""
        while self.is_wanted(True):
            name = f"run{runs}"
            try:
                self.live(name, self.dice.random() < self.evaluated or not self.is_wanted(False))
            except Broken as why:
                broken = str(why)
                break
            runs += 1
            subprocess.run(["rm", "-rf", name, f"{name}.log"], cwd=self.folder, check=True)
            if runs % 20 == 0:
                print(f"{self.struck.total()} actions, {runs} runs, {time.monotonic() - begin:.0f} s", flush=True)
        self.print_table(ACTIONS, begin)
        report(
            actions=self.struck.total(),
            runs=runs,
            turns=self.told["turns"],
            checks=self.told["checks"],
            kills=self.struck["kill run"] + self.struck["kill server"],
            evaluated_runs=self.told["evaluated"],
            evaluated_actions=self.struck_evaluated,
            broken=bool(broken),
        )
        if broken:
            raise Broken(f"{broken}\nrepeat about the same with --seed {self.seed}")


def main(storm=None, actions: int = 24, evaluated: float = 0.1) -> int:
    """`storm` takes the folder and the options; cluster_chaos.py has one of its own."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__.splitlines()[0])
    parser.add_argument("--actions", type=int, default=number("KERNELMILL_ACTIONS", actions))
    parser.add_argument("--seed", type=int, default=number("KERNELMILL_SEED", 20261124))
    parser.add_argument("--evaluated", type=float, default=evaluated, help="share of runs that build and evaluate")
    parser.add_argument(
        "--evaluated-actions",
        type=int,
        default=number("KERNELMILL_EVALUATED_ACTIONS", 0),
        help="at least so many of the actions strike runs that build and evaluate",
    )
    options = parser.parse_args()
    if not os.access(binary, os.X_OK):
        print(f"SKIP: {binary} is not built")
        return SKIP
    with scratch_folder(pathlib.Path(sys.argv[0]).stem) as folder:
        (storm or strike_runs)(folder, options)
    print("ok")
    return 0


def strike_runs(folder, options) -> None:
    chaos = Chaos(folder, options)
    chaos.prepare()
    chaos.storm()


if __name__ == "__main__":
    sys.exit(main())
