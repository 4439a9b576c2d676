#!/usr/bin/env python3
"""The test lets a machine fail while a run goes on, in many ways that are real ones where root can make them.

Each fault comes and goes while scripted answers are judged whose verdicts are known. A turn is then what it is on a
machine that is well, or `infrastructure` and without a reward; a run that was ended goes on by `resume` until all
episodes have ended; each group has all its members; and the same answers, with the same build cache on the machine
when it is well again, are judged as ever. $KERNELMILL_TURNS says how many turns each fault meets (40 without it),
$KERNELMILL_FAULTS which ones there are (all without it), $KERNELMILL_SEED how they are drawn. Exit code 77: it cannot
run here.
"""

import collections
import contextlib
import dataclasses
import json
import os
import random
import select
import shutil
import subprocess
import sys

from machine_faults import FAULTS, Unavailable
from real_processes import SKIP, binary, lines_of, number, policies, report, scratch_folder, started
from serve_on_full_disk import Server


@dataclasses.dataclass
class Workload:
    """Scripted answers whose verdicts are known. Each has `versions` texts that differ in a comment alone."""

    contract: str
    sources: dict
    members: int
    turns: int
    groups: int
    versions: int = 2
    words: tuple = ()

    def __len__(self):
        return len(self.sources) * self.groups * self.members * self.turns

    def replies(self, folder):
        yield {"text": "none"}
        mark = "#" if self.contract == "torch" else "//"
        for task, names in self.sources.items():
            for member in range(self.members):
                for turn in range(self.turns):
                    name, version = names[(member + turn) % len(names)], member % self.versions
                    path = folder / f"{task}-{version}-{name}"
                    of = OF_TORCH if self.contract == "torch" else policies / task
                    path.write_text(f"{(of / name).read_text()}{mark} {version}\n")
                    yield {
                        "task": f"{self.contract}/{task}",
                        "member": member,
                        "turn": turn,
                        "thought": name,
                        "kernel": str(path),
                    }

    def configuration(self):
        return {
            "run": {"name": "faults", "max_infrastructure": 1.0},
            "tasks": {
                "ids": [f"{self.contract}/{x}" for x in self.sources],
                "groups": self.groups,
                "group_size": self.members,
                "max_turns": self.turns,
            },
            "policy": {"kind": "scripted", "script": f"{self.contract}.script.json", "model": "m"},
            "compile": {"deadline_ms": 5000},
            "retrieval": {"enabled": False},
            "profile": {"enabled": False},
            "evaluation": {"backend": "cpu", "deadline_ms": 3000, "timing": {"enabled": False}},
            "reward": {"preset": "correctness"},
        }

    def write(self, folder):
        script = {"model": "m", "latency_ms": 5, "replies": list(self.replies(folder))}
        (folder / f"{self.contract}.script.json").write_text(json.dumps(script))
        (folder / f"{self.contract}.json").write_text(json.dumps(self.configuration()))


OF_TORCH = policies.parent / "torch_quickstart"
NATIVE = {
    "row_sum": ["broken.cpp", "plain.cpp", "wrong_tail.cpp", "fast.cpp", "lanes.cpp"],
    "gelu": ["broken.cpp", "plain.cpp", "wrong_tanh.cpp", "fast.cpp", "hack_half.cpp"],
}
TORCH = {"row_max": ["broken.py", "row_max.py", "unfinished.py"]}


def workloads(turns):
    native = Workload("native", NATIVE, members=4, turns=5, groups=max(1, turns // 40))
    torch = Workload("torch", TORCH, members=2, turns=3, groups=2, versions=1)
    if python := python_with_torch():
        torch.words = (f"evaluation.python={python}",)
    return {"native": native, "torch": torch}


def python_with_torch():
    for name in (os.environ.get("KERNELMILL_PYTHON"), "python3", "/usr/bin/python3"):
        path = shutil.which(name or "none")
        if path and subprocess.run([path, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return path
    return None


# docs/reference/exit-codes.md: failed, no answer of a process, faults of the machine, later, not permitted.
DOCUMENTED = (0, 1, 69, 70, 75, 77)
ENDED = (-9, -6)  # the kernel took the memory, or there was none


class Machine:
    def __init__(self, folder, turns, dice):
        self.folder, self.dice = folder, dice
        self.workloads = workloads(turns)
        self.calm: dict = {}  # by contract
        self.wrong: list = []
        self.figures: dict = {}
        self.skipped: dict = {}

    def call(self, *words, code=0):
        done = subprocess.run(
            [binary, *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stderr[-3000:]}"
        return done

    def turns(self, name):
        lines = lines_of(self.folder / name / "metrics.jsonl")
        return {(x["task"], x["group"], x["member"], x["turn"]): x for x in lines if x["kind"] == "turn"}

    def run(self, work, name, cache):
        return ["run", f"{work.contract}.json", f"run.dir={name}", f"compile.cache_dir={cache}", *work.words]

    def be_calm(self, work):
        """Once for each contract: what its answers are."""
        if work.contract in self.calm:
            return
        if work.contract == "torch" and not work.words:
            raise Unavailable("no Python here has torch")
        work.write(self.folder)
        name = f"calm-{work.contract}"
        self.call(*self.run(work, name, "cache"))
        turns = self.turns(name)
        kinds = collections.Counter(x["category"] for x in turns.values())
        assert len(turns) == len(work) and len(kinds) > 2, kinds
        assert all(x["outcome"] != "infrastructure" for x in turns.values()), kinds
        self.calm[work.contract] = turns

    def suffer(self, name):
        work = self.workloads[FAULTS[name].contract]
        try:
            self.be_calm(work)
            fault = FAULTS[name](self.folder, self.dice)
        except Unavailable as why:
            self.skipped[name] = str(why)
            return
        cache = f"cache-{name}"
        if not fault.builds:
            shutil.copytree(self.folder / "cache", self.folder / cache)
        try:
            words = [*self.run(work, name, cache), *fault.words]
            code, strikes = self.strike(name, fault, words)
            if code != 0:
                self.go_on(name, words)
            infrastructure = self.judge(name, work, f"while the machine has {name}")
            self.look_at_groups(name, work)
            self.call(*self.run(work, f"{name}-again", cache), *fault.words)
            assert self.judge(f"{name}-again", work, "on the machine that is well again") == 0
            self.figures[name] = {"strikes": strikes, "exit": code, "infrastructure": infrastructure}
            print(name, self.figures[name], flush=True)
        finally:
            fault.close()

    def serve(self):
        """A server of evaluations and rollouts has another shape than a run."""
        try:
            server = Server(self.folder, self.dice)
        except Unavailable as why:
            self.skipped["serve"] = str(why)
            return
        try:
            self.figures["serve"] = server.suffer()
            self.wrong += [("serve", key, why, seen) for key, why, seen in server.wrong]
        finally:
            server.close()

    def go_on(self, name, words):
        """On a machine that is well. What ended before there was a run is begun once more."""
        begun = (self.folder / name / "manifest.json").exists()
        self.call("resume", name) if begun else self.call(*words)

    def strike(self, name, fault, words):
        """Until the node has ended; how it ended, and how often it was struck."""
        log = self.folder / f"{name}.log"
        environment = {**os.environ, **fault.environment}
        with started([binary, *words], self.folder, log, env=environment, preexec_fn=fault.before) as node:
            watch = select.poll()
            watch.register(os.pidfd_open(node.pid), select.POLLIN)
            strikes = 0
            while not (self.folder / name / "manifest.json").exists() and not watch.poll(20):
                pass  # a machine on which no run begins has no turns
            while not watch.poll(1000 * self.dice.uniform(*fault.rests)):
                fault.strike(node.pid)
                strikes += 1
                watch.poll(1000 * self.dice.uniform(*fault.lasts))
                fault.undo(node.pid)
            node.wait()
        assert node.returncode in (*DOCUMENTED, *ENDED), f"{name}: exit {node.returncode}: {log.read_text()[-3000:]}"
        return node.returncode, strikes

    def judge(self, name, work, where):
        infrastructure = 0
        for key, turn in self.turns(name).items():
            calm = self.calm[work.contract][key]
            if turn["outcome"] == "infrastructure":
                infrastructure += 1
                if turn["reward"] is not None:
                    self.wrong.append((name, key, "a fault of the machine has a reward", turn))
            elif (turn["category"], turn["reward"]) != (calm["category"], calm["reward"]):
                self.wrong.append((name, key, f"{where}; without it is {calm['category']}", turn))
        return infrastructure

    def look_at_groups(self, name, work):
        groups = [x for x in lines_of(self.folder / name / "metrics.jsonl") if x["kind"] == "group"]
        assert len(groups) == len(work.sources) * work.groups, f"{name}: {len(groups)} groups"
        short = [x for x in groups if x["episodes"] != work.members]
        assert not short, f"{name}: groups that are short of members: {short}"


def main():
    if not os.access(binary, os.X_OK):
        print(f"SKIP: {binary} is not built")
        return SKIP
    if os.geteuid() == 0 and "KERNELMILL_OWN_MOUNTS" not in os.environ:
        # Mounts of the test are seen by its own processes alone.
        os.environ["KERNELMILL_OWN_MOUNTS"] = "1"
        with contextlib.suppress(OSError):
            os.execvp("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv])
    dice = random.Random(number("KERNELMILL_SEED", 20261129))
    names = [x for x in os.environ.get("KERNELMILL_FAULTS", "").split(",") if x] or [*FAULTS, "serve"]
    with scratch_folder("machine") as folder:
        folder.chmod(0o755)
        machine = Machine(folder, number("KERNELMILL_TURNS", 40), dice)
        for name in names:
            machine.serve() if name == "serve" else machine.suffer(name)
        report(of=machine.figures, skipped=machine.skipped, mislabelled=len(machine.wrong))
        assert not machine.wrong, "\n".join(f"{a}: {key}: {why}: {turn}" for a, key, why, turn in machine.wrong)
    if machine.skipped and len(machine.skipped) == len(names):
        print(f"SKIP: {machine.skipped}")
        return SKIP
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
