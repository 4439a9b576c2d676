#!/usr/bin/python3
"""`status`, `pause`, `resume` and `cancel` of a run of this machine, from another process."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402
from serving import PROGRAM  # noqa: E402


class LocalOrders(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)
        self.run_ = None

    def do(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=self.home, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def row(self, name="first"):
        (row,) = json.loads(self.do("status", name, "--json").stdout)["runs"]
        return row

    def wait(self, matches):
        while not matches(row := self.row()):
            self.assertIsNone(self.run_.poll(), row)

    def start(self, latency_ms):
        """One episode at a time of twelve, each of two turns."""
        replies = serving.replies(serving.BROKEN, serving.BROKEN)
        script = serving.write_script(self.home, replies, latency_ms)
        more = ["tasks.groups=12", "episode.max_live=1", "profile.enabled=false"]
        words = serving.run_arguments("runs/first", script, 1, 2, more)
        self.run_ = subprocess.Popen(words, cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.run_.communicate)
        self.addCleanup(self.run_.kill)
        while not json.loads(self.do("status", "--json").stdout)["runs"]:
            self.assertIsNone(self.run_.poll())

    def test_a_pause_lets_what_runs_end_and_loses_nothing(self):
        self.start(latency_ms=5)
        self.assertEqual(self.do("pause", "first").stderr, "paused first\n")
        self.wait(lambda x: x["state"] == "paused" and x["live"] == 0)
        held = self.row()
        self.assertLess(held["ended"], 12)
        self.assertIn("kernelmill resume", self.do("explain", "first").stdout)
        self.assertIn("first: paused; ", self.do("status").stdout)
        self.assertEqual(self.row("runs/first")["turns"], held["turns"])
        self.assertEqual(self.do("resume", "first").stderr, "first goes on\n")
        out, err = self.run_.communicate()
        self.assertEqual(self.run_.returncode, 0, err)
        self.assertIn("finished: 12 groups, 12 episodes, 24 turns", out)
        self.assertEqual((self.row()["state"], self.row()["ended"]), ("finished", 12))
        self.do("pause", "first", code=69)
        self.assertEqual(self.do("resume", "first").stderr, "")

    def test_cancel_ends_a_run_as_ctrl_c_does(self):
        self.start(latency_ms=600_000)
        self.do("resume", "first")  # of a run that is not paused: nothing changes
        self.do("resume", "first", "log.level=warn", code=4)
        self.assertEqual(self.do("cancel", "runs/first").stderr, "cancelling first\n")
        out, err = self.run_.communicate()
        self.assertEqual(self.run_.returncode, 130, err)
        self.assertIn("cancelled: ", out)
        self.assertIn("ending: `kernelmill cancel` asked for it", err)
        self.assertIn("continue with: kernelmill resume runs/first", err)
        self.assertEqual(self.row()["state"], "cancelled")
        self.assertIn("not in progress", self.do("cancel", "first", code=69).stderr)
        self.assertEqual(self.do("status").stdout, "")
        self.do("cancel", "nothing", code=3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
