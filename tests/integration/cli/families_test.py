#!/usr/bin/env python3
"""The tasks of `families/*`, `hip/*` and `verbs/*` with the real program: each is fit to judge on a CPU, and one
episode of each verb comes out as tests/integration/cli/golden/verbs.json has it, byte for byte.
KERNELMILL_WRITE_GOLDEN=1 writes that file anew."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = BIN / "kernelmill"
TASKS = SOURCE / "configs/tasks"
GOLDEN = SOURCE / "tests/integration/cli/golden/verbs.json"
CPU_TASKS = ["families/*", "hip/*", "verbs/synthesize_moving_mean", "verbs/port_cuda_to_cpp"]
PATIENCE = 300


def told(observation):
    """What of an observation depends on neither clock nor seed: verdict, gates, counts of cases."""
    kept = []
    for line in observation.splitlines():
        if line.startswith("Cases:"):
            kept.append(line)
        elif line.startswith("Gates:"):
            kept.append(re.sub(r", performance [^,]*", "", line))
        elif re.match(r"(\[failed\] )?c\d+: (accepted|rejected)", line):
            kept.append(re.sub(r"(accepted) .*", r"\1", line))
    return kept


def lasting(turn):
    """All of a turn that is the same in each run and on each machine."""
    result = turn["eval_result"]
    return {
        "task": turn["task"],
        "turn": turn["turn"],
        "verb": turn["verb"],
        "calls": [
            {
                **{k: x[k] for k in ("tool", "status", "transition", "input", "output", "steps", "hidden")},
                "told": told(x["observation"]),
            }
            for x in turn["calls"]
        ],
        "candidates": [
            {k: x[k] for k in ("id", "parent", "sha256", "role", "origin", "depth")} for x in turn["candidates"]
        ],
        "active": turn["active"],
        "end": turn.get("stop_condition", ""),
        "outcome": result["outcome"],
        "gates": {x["name"]: x["status"] for x in result["gates"] if x["name"] != "performance"},
        "reward": {k: v for k, v in turn["reward_breakdown"].items() if k != "speed"},
    }


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-families-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def program(self, *arguments):
        return subprocess.run(
            [PROGRAM, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.folder,
        )


class Families(Program):
    def test_each_task_for_a_cpu_is_fit(self):
        done = self.program("task", "check", "--json", "--root", TASKS, "--backend", "cpu", *CPU_TASKS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        checked = json.loads(done.stdout)["tasks"]
        self.assertGreaterEqual(len(checked), 12)
        for task in checked:
            self.assertEqual(task["backends"], ["cpu"], task)

    def test_the_page_names_each_task_and_no_other(self):
        page = (SOURCE / "docs/reference/task-families.md").read_text(encoding="utf-8")
        for folder in ("families", "hip", "triton", "verbs"):
            for task in sorted((TASKS / folder).iterdir()):
                self.assertIn(f"`{folder}/{task.name}`", page)
        for word in page.split("`")[1::2]:
            if "/" in word and "*" not in word and not word.startswith(("configs/", "tests/")):
                self.assertTrue((TASKS / word / "task.json").exists(), word)

    def test_an_episode_of_each_verb_comes_out_as_recorded(self):
        config = SOURCE / "configs/verbs_quickstart.json"
        done = self.program("run", config, f"run.dir={self.folder / 'verbs'}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = [json.loads(x) for x in (self.folder / "verbs/traces.jsonl").read_text().splitlines()]
        turns = sorted((lasting(x) for x in lines if "calls" in x), key=lambda x: (x["task"], x["turn"]))
        text = json.dumps(turns, indent=1) + "\n"
        if os.environ.get("KERNELMILL_WRITE_GOLDEN"):
            GOLDEN.parent.mkdir(exist_ok=True)
            GOLDEN.write_text(text)
        self.assertEqual(
            {x["verb"] for x in turns}, {"optimize", "debug", "diagnose", "reformulate", "synthesize", "port"}
        )
        self.assertEqual({x["outcome"] for x in turns if x["end"]}, {"accepted"})
        self.assertEqual(text, GOLDEN.read_text(), "see KERNELMILL_WRITE_GOLDEN in this file")


class TorchVerbs(Program):
    """Each problem in Python of `verbs/*` that a CPU can judge: the right answer passes, a starter to be repaired does
    not, and a copy of one to be rewritten is no answer."""

    def judged(self, verb, file):
        done = self.program(
            *(
                "eval",
                "--json",
                "--no-timing",
                "--backend",
                "cpu",
                "--root",
                TASKS,
                "--task",
                f"verbs/torch_{verb}",
                file,
            )
        )
        if "python_missing" in done.stdout + done.stderr:
            self.skipTest("no Python with torch")
        document = json.loads(done.stdout)
        return document["outcome"], document["error"]["category"]

    def test_right_answers_pass(self):
        for verb in ("debug", "diagnose", "reformulate", "synthesize"):
            outcome, category = self.judged(verb, SOURCE / f"configs/policies/verbs/torch_{verb}.py")
            # A file has no place for a diagnosis.
            self.assertTrue(outcome == "accepted" or (verb == "diagnose" and "diagnosis" in category), (verb, category))

    def test_starters_do_not(self):
        for verb, wrong in (("debug", "wrong_result"), ("reformulate", "not_reformulated")):
            self.assertEqual(self.judged(verb, TASKS / f"verbs/torch_{verb}/starter.py"), ("rejected", wrong))


if __name__ == "__main__":
    unittest.main()
