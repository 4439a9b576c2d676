#!/usr/bin/env python3
"""Kills -9 of trainer, policy's server and head while launch/teach.sh runs;
then the checkpoints are held against the hand-off's log.

    KERNELMILL_PYTHON=/usr/bin/python3 python3 tests/integration/client/teach_kills.py FOLDER --pretrained FOLDER
    --program PROGRAM

--pretrained is a folder that launch/teach.sh made with launch/learning/trainer/cpu.json. 12 steps;
3 minutes on two cores. No test runs this: it takes torch and a policy."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import time

SOURCE = pathlib.Path(__file__).resolve().parents[3]


def lines_of(path):
    return [json.loads(x) for x in path.read_text().splitlines() if x.endswith("}")] if path.exists() else []


class Training:
    """One that is killed and started again by the same command."""

    def __init__(self, folder, pretrained, program):
        self.folder, self.program, self.begun = folder, program, time.monotonic()
        folder.mkdir(parents=True)
        config = json.loads((SOURCE / "launch/learning/trainer/cpu.json").read_text())
        config["teaching"].update(steps=12, evaluate_every=6)
        (folder / "short.json").write_text(json.dumps(config))
        self.words = [
            str(SOURCE / "launch/teach.sh"),
            str(folder),
            "--config",
            str(folder / "short.json"),
            "--seed",
            "4",
            "--pretrained",
            str(pretrained),
        ]
        self.start()

    def start(self):
        with open(self.folder / "teach.log", "a") as log:
            self.head = subprocess.Popen(
                self.words, env={**os.environ, "KERNELMILL": self.program}, stdout=log, stderr=log
            )

    def say(self, *words):
        print(f"{time.monotonic() - self.begun:6.1f} s", *words, flush=True)

    def steps(self):
        return lines_of(self.folder / "checkpoints.jsonl")

    def pid(self, part):
        """Of `policy` or `trainer`, by the port that only it was given; 0: it does not run."""
        port = str(json.loads((self.folder / "ports.json").read_text())[part]).encode()
        for one in pathlib.Path("/proc").iterdir():
            try:
                words = (one / "cmdline").read_bytes().split(b"\0") if one.name.isdigit() else []
            except OSError:
                continue
            if port in words and b"-m" in words:
                return int(one.name)
        return 0

    def wait(self, what, seconds=300):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end and self.head.poll() is None, (self.folder / "teach.log").read_text()[-2000:]
            time.sleep(0.01)

    def strike(self, parts, learning):
        """Kills them while a step is learned or sampled, and waits for that step."""
        at = len(self.steps())
        self.wait(lambda: (self.folder / (f"steps/step-{at}/request.json" if learning else f"runs/step-{at}")).exists())
        time.sleep(0.2 if learning else 1.0)
        doomed = [self.head.pid if x == "head" else self.pid(x) for x in parts]
        for one in doomed:
            os.kill(one, signal.SIGKILL)
        assert len(self.steps()) == at
        self.say("kill -9 of", ", ".join(parts), "in the", "learning" if learning else "episodes", "of step", at)
        if "head" in parts:
            self.head.wait()
            time.sleep(2)
            left = [x for x in ("policy", "trainer") if self.pid(x)]
            assert not left, f"they outlive the head: {left}"
            self.start()
        self.wait(lambda: len(self.steps()) > at)
        self.say("step", at, "is there")

    def log(self):
        said = subprocess.run(
            [self.program, "rollouts", "log", "--runs", str(self.folder / "runs")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return [
            (x.split(None, 2)[1], json.loads(x.split(None, 2)[2]))
            for x in said.splitlines()
            if x.lstrip()[:1].isdigit()
        ]


def optimizer_steps(path):
    """As the optimizer's own state has counted them."""
    code = "import sys, torch; print({int(x['step']) for x in torch.load(sys.argv[1])['optimizer']['state'].values()})"
    return subprocess.run(
        [os.environ.get("KERNELMILL_PYTHON", "python3"), "-c", code, path], capture_output=True, text=True, check=True
    ).stdout.strip()


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--pretrained", type=pathlib.Path, required=True)
    words.add_argument("--program", default="kernelmill")
    given = words.parse_args()
    training = Training(given.folder.resolve(), given.pretrained.resolve(), given.program)
    training.wait(lambda: len(training.steps()) >= 2)
    training.strike(["trainer"], learning=True)
    training.strike(["policy"], learning=False)
    training.strike(["head"], learning=True)
    training.strike(["head"], learning=False)
    training.strike(["head", "trainer", "policy"], learning=True)
    assert training.head.wait() == 0
    steps = training.steps()
    assert [x["step"] for x in steps] == list(range(12))
    assert [x["versions"] for x in steps] == [["pretrained"], *([x["version"]] for x in steps[:-1])]
    learned = [x for one in steps for x in one["groups"]]
    leased = [
        f"{x['order']}/g{g}"
        for kind, x in training.log()
        if kind == "leased" and x["consumer"] == "trainer"
        for g in x["groups"]
    ]
    assert len(learned) == len(set(learned)) and set(learned) == set(leased)
    training.say(
        f"{len(learned)} groups in {len(steps)} steps, none twice; "
        f"{len(leased) - len(learned)} were given again after a kill;",
        "steps of the last checkpoint's optimizer:",
        optimizer_steps(steps[-1]["weights"]),
    )
    for x in lines_of(training.folder / "evaluations.jsonl"):
        training.say("held out after", x["after"], "steps:", *(f"{y:.2f}" for y in x["reward"]))


if __name__ == "__main__":
    main()
