#!/usr/bin/python3
"""TensorBoard's event files of real runs, read by TensorBoard itself and by a reader of the test's own."""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import readers  # noqa: E402
from policy import Policy, serving  # noqa: E402

PATIENCE = 600
TAGS = {
    "Reward/Mean": "reward/mean",
    "Reward/StdDev": "reward/std",
    "Kernel/CompileRate": "kernel/compile_rate",
    "Kernel/CorrectRate": "kernel/correct_rate",
    "Kernel/MeanSpeedup": "kernel/mean_speedup",
    "multiturn/success_rate": "multiturn/success_rate",
    "Batch/NumTrajectories": "episodes",
    "Batch/Group": "step",
}


def event_file(run):
    [path] = (run / "tensorboard").glob("events.out.tfevents.*")
    return path


def group_lines(run):
    lines = [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]
    return [x for x in lines if x["kind"] == "group"]


class TensorBoard(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.run_directory = pathlib.Path(home.name) / "runs" / "told"
        self.script = serving.write_script(home.name, serving.replies(serving.BROKEN, serving.GOOD))

    def do(self, arguments):
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_says_what_the_metrics_say(self, events):
        lines = group_lines(self.run_directory)
        self.assertEqual([step for step, _ in events], list(range(len(lines))))
        by_group = {x["step"]: x for x in lines}
        self.assertEqual(sorted(by_group), sorted(int(values["Batch/Group"]) for _, values in events))
        for _, values in events:
            line = by_group[int(values["Batch/Group"])]
            for tag, key in TAGS.items():
                self.assertAlmostEqual(values[tag], line[key], places=4, msg=tag)

    def test_a_run_has_a_step_for_each_group_that_tensorboard_reads(self):
        # Without timing each turn has a reward, also where the machine has no time to time it.
        self.do(
            serving.run_arguments(
                self.run_directory, self.script, 2, 2, ["tasks.groups=3", "evaluation.timing.enabled=false"]
            )
        )
        events = readers.scalars(event_file(self.run_directory).read_bytes())
        self.assertEqual(len(events), 3)
        self.assert_says_what_the_metrics_say(events)
        self.assertEqual(events[-1][1]["Progress/CompletionFraction"], 1)
        python, why = readers.python()
        if python is None:
            self.skipTest(why)
        read = readers.read_with(readers.TENSORBOARD, str(self.run_directory / "tensorboard"))
        self.assertEqual(
            {tag: [x[2] for x in xs] for tag, xs in read["scalars"].items()},
            {tag: [values[tag] for _, values in events] for tag in events[0][1]},
        )
        for points in read["scalars"].values():
            self.assertEqual([x[0] for x in points], [0, 1, 2])
            for (_, at, _), line in zip(points, group_lines(self.run_directory)):
                self.assertAlmostEqual(at, line["timestamp"], places=3)
        for step, (_, count, low, high, inside) in enumerate(read["histograms"]["Distributions/Rewards"]):
            self.assertEqual((count, inside), (4, 4), step)  # two members, two turns
            self.assertTrue(math.isfinite(low) and low <= high)

    def test_after_kill_and_resume_no_step_is_missing_torn_or_there_twice(self):
        arguments = [
            x
            for x in serving.run_arguments(self.run_directory, "", 1, 1, ["tasks.groups=4"])
            if "policy.script" not in x
        ]
        with Policy([serving.GOOD], held=lambda session: session.rsplit("/", 1)[1] in ("g2.e0", "g3.e0")) as policy:
            arguments += ["policy.kind=openai", f"policy.base_url={policy.url}", "policy.model=asked"]
            with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
                until = time.monotonic() + PATIENCE
                metrics = self.run_directory / "metrics.jsonl"
                while not metrics.exists() or metrics.read_text().count('"kind":"group"') < 2:
                    self.assertIsNone(run.poll())
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.05)
                run.kill()
            path = event_file(self.run_directory)
            with path.open("ab") as file:
                file.write(path.read_bytes()[-30:-7])  # as a write that was cut off leaves it
            policy.released.set()
            self.do([serving.PROGRAM, "resume", str(self.run_directory)])
        events = readers.scalars(event_file(self.run_directory).read_bytes())
        self.assertEqual(len(events), 4)
        self.assert_says_what_the_metrics_say(events)

    def test_a_run_that_wants_none_has_none(self):
        self.do(serving.run_arguments(self.run_directory, self.script, 1, 1, ["trackers.tensorboard=false"]))
        self.assertFalse((self.run_directory / "tensorboard").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
