#!/usr/bin/python3
"""`kernelmill train`: the loop over the real hand-off, with a policy and a trainer that learn by counting."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from kernels import PROGRAM, SOURCE, TASKS

PARTS = SOURCE / "tests/integration/serve/train_parts.py"


def make_task(root, name, shape):
    folder = root / name
    shutil.copytree(TASKS / "native/row_sum", folder)
    about = json.loads((folder / "task.json").read_text())
    about.update(id=name, source="own")
    for key in ("timed", "timed_gpu"):
        if key in about:
            about[key]["scalars"].update(shape)
    (folder / "task.json").write_text(json.dumps(about))
    (folder / "prompt.md").write_text(f"Sum the rows of a matrix, as the book of {name} says.\n")


class Training(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
        for name, rows in (("train/a", 64), ("train/b", 96), ("held_out/c", 128)):
            make_task(self.folder / "tasks", name, {"rows": rows, "cols": 2 * rows})
        (self.folder / "initial.json").write_text('{"count": 0, "of": []}')
        policy, trainer = self.kept_port(), self.kept_port()
        python = [sys.executable, "-B", str(PARTS)]
        self.config = {
            "dir": "out",
            "preset": "single_turn",
            "steps": 3,
            "seed": 5,
            "backend": "cpu",
            "tasks": {"root": "tasks", "train": ["train/*"], "held_out": ["held_out/*"]},
            "batch": {"groups": 2, "group_size": 2, "least_deviation": 0.1, "rounds": 0},
            "evaluation": {"every": 3, "samples": 2},
            "policy": {"command": [*python, "policy", "{weights}", str(policy)], "weights": "initial.json"},
            "trainer": {"command": [*python, "trainer", str(trainer)], "url": f"http://127.0.0.1:{trainer}/step"},
            "run": {
                "policy": {
                    "kind": "sglang",
                    "base_url": f"http://127.0.0.1:{policy}/v1",
                    "model": "m",
                    "max_in_flight": 1,
                },
                "evaluation": {"timing": {"enabled": False}},
                "reward": {"preset": "correctness"},
            },
        }

    def kept_port(self):
        """A port that the system gives to no other socket meanwhile; one with SO_REUSEADDR may listen there."""
        kept = self.stack.enter_context(socket.socket())
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        return kept.getsockname()[1]

    def write(self, **changes):
        for key, value in changes.items():
            if isinstance(value, dict):
                self.config[key] = {**self.config.get(key, {}), **value}
            else:
                self.config[key] = value
        path = self.folder / "training.json"
        path.write_text(json.dumps(self.config, indent=1))
        return str(path)

    def ask(self, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=self.folder, timeout=1200)

    def train(self, **changes):
        done = self.ask("train", self.write(**changes), "--json")
        self.assertEqual(done.returncode, 0, done.stderr + self.logs())
        return [json.loads(x) for x in done.stdout.splitlines()]

    def logs(self):
        return (
            "".join(x.read_text() for x in (self.folder / "out/logs").glob("*.log"))
            if (self.folder / "out").exists()
            else ""
        )

    def lines(self, name="checkpoints"):
        path = self.folder / f"out/{name}.jsonl"
        return [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []

    def learned_once(self, steps, most_alike=0):
        """The weights are those of each step once, and so are the groups; the log of the hand-off agrees. A policy that
        is killed counts anew, so that all groups of a step may be alike: then the weights stay."""
        lines = self.lines()
        groups = [x for line in lines for x in line["groups"]]
        self.assertEqual(len(groups), len(set(groups)))
        learned = [x["step"] for x in lines if x["alike"] < len(x["groups"])]
        self.assertGreaterEqual(len(learned), steps - most_alike)
        self.assertEqual(json.loads(pathlib.Path(lines[-1]["weights"]).read_text())["of"], learned)
        log = json.loads(self.ask("rollouts", "log", "--runs", "out/runs", "--json").stdout)
        self.assertEqual(
            sum(x["committed"] for name, x in log["orders"].items() if name.startswith("step-")), len(groups)
        )

    def test_it_learns_evaluates_and_says_what_it_did(self):
        said = self.train(batch={"thinking": 0.25})
        self.assertEqual(["after" in x for x in said], [True, False, False, False, True])
        first, last = (x for x in said if "after" in x)
        self.assertEqual((first["pass@1"][0], last["pass@1"][0], last["pass@2"][0]), (0, 1, 1))
        self.assertGreater(last["reward"][1], first["reward"][2])  # the intervals are apart
        steps = [x for x in said if "step" in x]
        for step in steps:
            self.assertEqual(
                (len(step["groups"]), step["alike"], step["kernel/correct_rate"], step["trainer/loss"]),
                (2, 0, 0.5, 0.5),
            )
            self.assertEqual(step["trainer/lowest"], 0.25)  # a wrong answer that thought
        self.assertEqual([x["version"] for x in steps], ["step-0", "step-1", "step-2"])
        self.learned_once(3)
        events = b"".join(x.read_bytes() for x in (self.folder / "out/tensorboard").iterdir())
        for tag in (
            b"Reward/Mean",
            b"Kernel/CorrectRate",
            b"Progress/CompletionFraction",
            b"Batch/NumGroups",
            b"Timing/Train",
            b"Timing/Rollout",
            b"Optimizer/LearningRate",
            b"eval/Pass@1",
            b"eval/Fast1x",
        ):
            self.assertIn(tag, events)
        show = json.loads(self.ask("train", "show", "training.json", "--json").stdout)
        self.assertEqual((show["steps"], show["episodes"], show["turns"], len(show["held_out"])), (3, 12, 12, 2))
        self.assertIsInstance(show["findings"], dict)
        self.assertIn("steps", self.ask("train", "show", "training.json").stdout)
        # Longer, with the same file: the steps that are there stay.
        self.assertEqual([x.get("step") for x in self.train(steps=4)], [3, None])
        self.learned_once(4)

    def test_groups_without_variance_are_replaced_and_the_weights_stay_when_none_is_left(self):
        said = [
            x
            for x in self.train(steps=1, batch={"least_deviation": 10, "rounds": 1}, evaluation={"every": 0})
            if "step" in x
        ]
        self.assertEqual((said[0]["alike"], said[0]["rounds"], len(said[0]["groups"])), (4, 1, 4))
        self.assertEqual((said[0]["version"], said[0]["weights"]), ("initial", str(self.folder / "initial.json")))

    def test_stages_choose_tasks_and_rewards(self):
        said = self.train(
            evaluation={"every": 0},
            batch={"groups": 1},
            stages=[
                {"from": 0, "tasks": ["train/a"]},
                {"from": 2, "at_correct": 0.5, "tasks": ["train/b"], "run": {"reward": {"correct": 7}}},
            ],
        )
        self.assertEqual([x["stage"] for x in said], [0, 1, 1])  # half of step 0's answers were right
        self.assertEqual([x["reward/max"] for x in said], [1, 7.3, 7.3])

    def test_a_command_for_each_step(self):
        self.config["trainer"] = {"command": [sys.executable, "-B", str(PARTS), "step"]}
        self.train(steps=2, evaluation={"every": 0})
        self.learned_once(2)

    def test_a_server_that_loads_weights_at_its_start_is_started_again(self):
        self.config["run"]["policy"]["kind"] = "openai"
        said = self.train()
        self.assertEqual([x["pass@1"][0] for x in said if "after" in x], [0, 1])

    def children(self, pid):
        """Of the training's spawner: the parts."""
        result = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if str(PARTS).encode() in words and any(x.startswith(str(self.folder).encode()) for x in words):
                    result[words[words.index(str(PARTS).encode()) + 1].decode()] = int(path.parent.name)
        return result

    def test_it_goes_on_after_any_kill_and_learns_from_no_group_twice(self):
        # The trainer's words name the folder too, so that it can be found.
        self.config["trainer"]["command"].insert(-1, str(self.folder))
        path = self.write(steps=1000, evaluation={"every": 0})  # more than it takes while this test looks elsewhere
        for part in ("policy", "trainer", "head"):
            process = subprocess.Popen(
                [PROGRAM, "train", path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            try:
                self.assertIn("step", json.loads(process.stdout.readline() or process.stderr.read()))
                victim = process.pid if part == "head" else self.children(process.pid)[part]
                os.kill(victim, signal.SIGKILL)
                if part != "head":
                    self.assertIn("step", json.loads(process.stdout.readline() or process.stderr.read()))
                    process.send_signal(signal.SIGINT)
                code = process.wait(600)
                self.assertEqual(code, -signal.SIGKILL if part == "head" else 130)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
                process.stderr.close()
        steps = (self.folder / "out/checkpoints.jsonl").read_text().count("\n") + 1  # the last line may be torn
        self.assertGreater(steps, 4)
        self.train(steps=steps)
        self.assertEqual([x["step"] for x in self.lines()], list(range(steps)))
        self.learned_once(steps, most_alike=2)  # the policy was killed, and the head with it

    def test_what_is_held_out_is_searched_for(self):
        (self.folder / "texts.jsonl").write_text('["harmless"]\n["a book of held_out/c"]\n')
        self.train(steps=1, evaluation={"every": 0})
        clean = self.ask("train", "check", "training.json")
        self.assertEqual(clean.returncode, 0, clean.stderr)
        self.assertIn("none is shown", clean.stdout)
        self.write(tasks={"texts": ["texts.jsonl"]})
        found = self.ask("train", "check", "training.json", "--json")
        self.assertEqual(found.returncode, 5)
        self.assertEqual([x["task"] for x in json.loads(found.stdout)["leaks"]], ["held_out/c"])

    def test_what_is_wrong_is_named_with_its_line(self):
        for changes, text in (
            ({"stepz": 1}, "training.json:"),
            ({"stepz": 1}, "did you mean 'steps'"),
            ({"steps": 0}, "from 1 to"),
            ({"batch": {"groups": "x"}}, "'batch.groups' takes a whole number"),
            ({"preset": "kevn"}, "did you mean 'kevin'"),
            ({"tasks": {"train": ["*/*"]}}, "is in tasks.train and in tasks.held_out"),
            ({"tasks": {"train": ["trian/*"]}}, "trian"),
            ({"batch": {"groups": 3}}, "batch.groups is 3"),
            ({"trainer": {"command": [], "url": ""}}, "neither a command nor a url"),
            ({"run": {"policy": {}}}, "no kind and base_url"),
            ({"run": {"rewards": {}}}, "rewards"),
            ({"policy": {"command": ["no-such-server"]}}, "there is no such program"),
        ):
            before = json.loads(json.dumps(self.config))
            done = self.ask("train", self.write(**changes))
            self.config = before
            self.assertNotEqual(done.returncode, 0, changes)
            self.assertIn(text, done.stderr, changes)
        done = self.ask("train", self.write(), "speed=3")
        self.assertEqual((done.returncode, "speed=3" in done.stderr), (2, True))

    def test_a_trainer_that_fails_ends_it_with_its_words(self):
        done = self.ask("train", self.write(trainer={"settings": {"fail": True}}, evaluation={"every": 0}))
        self.assertEqual(done.returncode, 2)
        self.assertIn("no memory left", done.stderr)
        self.assertEqual(self.lines(), [])


if __name__ == "__main__":
    unittest.main()
