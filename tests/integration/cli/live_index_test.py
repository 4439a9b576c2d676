#!/usr/bin/env python3
"""Kernels that runs verify, as examples of other prompts: in an index that several runs share, and in a run that is
killed and resumed."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = BIN / "kernelmill"
KERNELS = SOURCE / "configs/policies/quickstart"
PATIENCE = 300
OVERFLOW = """
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  int seed = 2147483600;
  for (int r = 0; r < rows; ++r) {
    seed = seed + 100;
    double s = 0;
    for (int j = 0; j < cols; ++j) s += x[r * cols + j];
    y[r] = seed == 1 ? 0 : float(s);
  }
}
"""
UNTIMED = {"backend": "cpu", "timing": {"enabled": False}}


class LiveIndex(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-live-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        for name in ("softmax", "gelu", "layer_norm"):
            self.add_task(f"mine/{name}", name)
        self.add_task("mine/held", "row_sum", "dev")
        (self.folder / "cards").mkdir()  # one, so that kernels have room
        shutil.copy(next((SOURCE / "configs/knowledge").rglob("*softmax*.md")), self.folder / "cards")

    def add_task(self, name, origin, split="train"):
        """A shipped task as one of the user's: what splits and licences say of it is known here."""
        to = self.folder / "tasks" / name
        shutil.copytree(SOURCE / "configs/tasks/native" / origin, to)
        file = to / "task.json"
        lines = [x for x in file.read_text().splitlines() if not x.lstrip().startswith("//")]
        file.write_text(json.dumps({**json.loads("\n".join(lines)), "id": name, "split": split, "source": "own"}))

    def program(self, *arguments, code=0):
        done = subprocess.run(
            [PROGRAM, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.folder,
        )
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def build(self):
        self.program("index", "build", "index", "--from", "cards=cards")

    def script(self, stalled=None):
        """The right kernel of each task, at once; with `stalled`, that task gets no answer."""
        replies = [
            {"task": task, "kernel": str(KERNELS / name / "fast.cpp")}
            for task, name in (
                ("mine/softmax", "softmax"),
                ("mine/gelu", "gelu"),
                ("mine/layer_norm", "layer_norm"),
                ("mine/held", "row_sum"),
            )
        ]
        text = f"<think>\nsums\n</think>\n<KERNEL>\n```cpp\n{OVERFLOW}```\n</KERNEL>\n"
        replies.append({"task": "mine/rows", "text": text})
        faults = [{"kind": "stall", "task": stalled}] if stalled else []
        return {"model": "m", "replies": replies, "faults": faults}

    def configuration(self, name, tasks, index=None, stalled=None, evaluation=None, live=True, **sections):
        (self.folder / f"{name}-script.json").write_text(json.dumps(self.script(stalled)))
        retrieval = {"count": 32, "live": live, "corpus": str(self.folder / "cards")}
        if index:
            retrieval["index"] = str(self.folder / index)
        config = {
            "tasks": {
                "root": str(self.folder / "tasks"),
                "ids": [f"mine/{x}" for x in tasks],
                "group_size": 1,
                "max_turns": 1,
            },
            "policy": {"kind": "scripted", "script": f"{name}-script.json", "model": "m"},
            "retrieval": retrieval,
            "evaluation": evaluation or UNTIMED,
            "profile": {"enabled": False},
            **sections,
        }
        config["run"] = {"name": name, "dir": f"runs/{name}", **sections.get("run", {})}
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(config))
        return file

    def run_over(self, name, *tasks, **more):
        self.program("run", self.configuration(name, tasks, **more))

    def lines(self, index="index"):
        file = self.folder / index / "live.jsonl"
        result = []
        for line in file.read_text().splitlines() if file.exists() else []:
            try:
                result.append(json.loads(line))
            except ValueError:
                result.append(None)
        return result

    def rows(self, run):
        """Of a run's traces; one that is being written may end in half a row."""
        file = self.folder / "runs" / run / "traces.jsonl"
        whole = file.read_text().split("\n")[:-1] if file.exists() else []
        return [json.loads(x) for x in whole]

    def verified(self, run):
        """Ids of accepted turns by task."""
        rows = self.rows(run)
        return {x["task"]: x["turn_id"] for x in rows if x.get("eval_result", {}).get("outcome") == "accepted"}

    def shown(self, run, task):
        """Ids of the kernels that the prompts of a task showed."""
        turns = [x for x in self.rows(run) if x["kind"] == "turn" and x["task"] == task]
        self.assertTrue(turns, f"{run} has no turn of {task}")
        examples = {y for x in turns for y in x["examples"]}
        return {x.removeprefix("kernel:") for x in examples if x.startswith("kernel:")}

    def kill_after_first_kernel(self, name, index):
        """A run over softmax and gelu that is killed with the first verified and no answer for the second."""
        config = self.configuration(name, ["softmax", "gelu"], index=index, stalled="mine/gelu")
        started = subprocess.Popen(
            [PROGRAM, "run", config], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + PATIENCE
        while not (self.lines(index) if index else self.verified(name)):
            self.assertIsNone(started.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        started.send_signal(signal.SIGKILL)
        started.wait()
        (self.folder / f"{name}-script.json").write_text(json.dumps(self.script()))

    def test_a_killed_runs_kernels_serve_it_and_others_until_they_are_retracted(self):
        self.build()
        self.kill_after_first_kernel("a", "index")
        with open(self.folder / "index/live.jsonl", "a") as file:
            file.write('{"kind": "kernel", "id": "torn')  # as a machine that lost its power leaves it
        resumed = self.program("resume", "runs/a")
        self.assertIn("1 line is left out", resumed.stderr)
        kernels = self.verified("a")
        self.assertEqual(set(kernels), {"mine/softmax", "mine/gelu"})
        self.assertEqual(self.shown("a", "mine/gelu"), {kernels["mine/softmax"]})
        kept = [x for x in self.lines() if x]
        self.assertEqual([x["task"] for x in kept], ["mine/softmax", "mine/gelu"])  # each once
        for x in kept:
            self.assertEqual(x["run"], "a")
            self.assertEqual(x["origin"], "run a")
            self.assertRegex(x["date"], r"^\d{4}-\d\d-\d\d$")
            self.assertTrue(x["device"])
            self.assertIn("solve", x["reference"])
            self.assertFalse(x["hidden"])
        self.program("resume", "runs/a")
        self.assertEqual(len([x for x in self.lines() if x]), 2)

        self.run_over("b", "layer_norm", index="index", live=False)
        self.assertEqual(self.shown("b", "mine/layer_norm"), set(kernels.values()))
        self.run_over("c", "softmax", index="index", live=False)
        self.assertEqual(self.shown("c", "mine/softmax"), {kernels["mine/gelu"]})
        asked = json.loads(self.program("index", "query", "--json", "index", "softmax", "--count", "32").stdout)
        self.assertLessEqual({f"kernel:{x}" for x in kernels.values()}, {x["id"] for x in asked["results"]})

        self.program("index", "retract", "index", "--turn", "kernel:" + kernels["mine/softmax"])
        self.run_over("d", "layer_norm", index="index")
        self.assertEqual(self.shown("d", "mine/layer_norm"), {kernels["mine/gelu"]})
        self.build()  # keeps what was added and what was retracted
        said = json.loads(self.program("index", "retract", "index", "--run", "a", "--json").stdout)
        self.assertEqual((said["retracted"], said["already"]), (1, 1))
        self.run_over("e", "gelu", index="index", live=False)
        self.assertEqual(self.shown("e", "mine/gelu"), set(self.verified("d").values()))
        self.assertIn("no kernel of run z", self.program("index", "retract", "index", "--run", "z", code=3).stderr)
        self.program("index", "retract", "index", code=2)

    def test_without_an_index_a_resumed_run_has_its_own_kernels(self):
        self.kill_after_first_kernel("a", None)
        self.program("resume", "runs/a")
        self.assertEqual(self.shown("a", "mine/gelu"), {self.verified("a")["mine/softmax"]})

    def test_what_was_lost_of_the_file_comes_again_from_the_store(self):
        self.build()
        self.run_over("a", "softmax", index="index")
        (self.folder / "index/live.jsonl").write_text("")
        self.program("resume", "runs/a")
        self.assertEqual([x["id"] for x in self.lines()], [self.verified("a")["mine/softmax"]])

    def test_two_runs_append_at_the_same_time(self):
        self.build()
        runs = [
            subprocess.Popen(
                [PROGRAM, "run", self.configuration(name, tasks, index="index")],
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for name, tasks in (("a", ["softmax", "held"]), ("b", ["gelu", "layer_norm"]))
        ]
        for one in runs:
            self.assertEqual(one.wait(PATIENCE), 0, one.stderr.read())
            one.stderr.close()
        self.assertEqual(
            {(x["run"], x["task"]) for x in self.lines()},
            {("a", "mine/softmax"), ("a", "mine/held"), ("b", "mine/gelu"), ("b", "mine/layer_norm")},
        )
        # What is held out is known, and never shown.
        self.run_over("c", "softmax", index="index", live=False)
        self.assertEqual(self.shown("c", "mine/softmax"), set(self.verified("b").values()))

    def test_terms_of_a_model_go_along_with_its_kernels(self):
        self.build()
        policy = {"kind": "scripted", "model": "m", "licence": "reference-kernels"}
        self.run_over("a", "softmax", index="index", policy={**policy, "script": "a-script.json"})
        self.assertEqual([x["hidden"] for x in self.lines()], [True])
        self.run_over(
            "b",
            "gelu",
            index="index",
            policy={**policy, "script": "b-script.json"},
            run={"accepted_terms": ["researcher-reciprocity-1.0"]},
        )
        self.assertEqual([(x["hidden"], x["rights_source"]) for x in self.lines()][1:], [(False, "reference-kernels")])
        # A run that shows it is bound, and so is what that run verifies.
        self.run_over("c", "layer_norm", index="index")
        of_b = self.verified("b")["mine/gelu"]
        self.assertEqual(self.shown("c", "mine/layer_norm"), {of_b})
        manifest = json.loads((self.folder / "runs/c/manifest.json").read_text())
        self.assertEqual([x["id"] for x in manifest["retrieval"]["examples"]], ["kernel:" + of_b])
        self.assertEqual([x["hidden"] for x in self.lines()][2:], [True])

    def test_a_verdict_that_is_lost_takes_the_kernel_out(self):
        self.add_task("mine/rows", "row_sum")
        self.build()
        # With the preset `kevin` the gate that sees the overflow reports, and does not reject.
        sections = {"evaluation": {**UNTIMED, "sanitize": "on_accept"}, "reward": {"preset": "kevin"}}
        self.run_over("a", "rows", "softmax", index="index", **sections)
        self.assertEqual(len(self.lines()), 2)
        rescore = ("rescore", "runs/a", "reward.memory_safety=reject")
        self.assertIn("1 turn was accepted and is not", self.program(*rescore).stderr)
        self.assertEqual(len(self.lines()), 2)
        self.assertIn("1 kernel retracted", self.program(*rescore, "--retract", "index").stderr)
        said = json.loads(self.program(*rescore, "--retract", "index", "--json").stdout)
        self.assertEqual(said["no_longer_accepted"], 1)
        self.assertEqual(said["retracted"], {"index": "index", "now": 0, "before": 1})
        self.run_over("b", "gelu", index="index", live=False)
        self.assertEqual(self.shown("b", "mine/gelu"), {self.verified("a")["mine/softmax"]})
        self.program("resume", "runs/a")  # its own verdict stands, and the retraction as well
        self.assertEqual(len(self.lines()), 3)


if __name__ == "__main__":
    unittest.main()
