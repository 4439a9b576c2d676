#!/usr/bin/env python3
"""Runs of a folder and their rows, in Python: what the program prints, as objects."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")
os.environ["KERNELMILL"] = PROGRAM
sys.path.insert(0, str(SOURCE / "launch/learning/client"))

import kernelmill  # noqa: E402


class Runs(unittest.TestCase):
    """One short run."""

    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.root = os.path.join(made.name, "runs")
        subprocess.run(
            [
                PROGRAM,
                "run",
                "quickstart",
                'tasks.ids=["native/row_sum"]',
                "tasks.group_size=2",
                "tasks.max_turns=2",
                "evaluation.timing.half_width=0.1",
                "profile.enabled=false",
                f"run.dir={cls.root}/first",
            ],
            cwd=made.name,
            check=True,
            capture_output=True,
        )

    def printed(self, *words):
        return subprocess.run([PROGRAM, *words, "--root", self.root], check=True, capture_output=True, text=True).stdout

    def test_a_run_is_what_the_program_says(self):
        (one,) = kernelmill.runs(self.root)
        (said,) = json.loads(self.printed("runs", "--json"))["runs"]
        self.assertEqual((one.run, one.state, one.over, one.episodes, one.turns), ("first", "finished", True, 2, 4))
        for name in (
            "reward",
            "best_speedup_lower",
            "geomean_speedup",
            "evidence",
            "near_misses",
            "best_turn",
            "seconds",
            "directory",
            "failure",
        ):
            self.assertEqual(getattr(one, name), said[name], name)
        self.assertEqual(kernelmill.runs(self.root, where="state=failed"), [])
        self.assertEqual(kernelmill.runs(self.root + "/none"), [])

    def test_rows_are_those_of_the_export(self):
        rows = list(kernelmill.export_rows("first", "trajectories", root=self.root))
        self.assertEqual(
            rows,
            [
                json.loads(x)
                for x in self.printed("export", "first", "--form", "trajectories", "--out", "-").splitlines()
            ],
        )
        self.assertEqual(len(rows), 2)
        out = pathlib.Path(self.root, "../set")
        document = kernelmill.export(["first"], "trajectories", str(out), root=self.root)
        self.assertEqual(document["rows"], 2)
        self.assertTrue((out / "PROVENANCE.json").is_file())
        self.assertEqual(
            list(kernelmill.export_rows("first", "sft", root=self.root, options=["--min-reward", "1e9"])), []
        )

    def test_a_reader_of_one_row_ends_the_program(self):
        rows = kernelmill.export_rows("first", "trajectories", root=self.root)
        next(rows)
        rows.close()
        with self.assertRaises(StopIteration):
            next(rows)

    def test_errors_are_the_programs(self):
        with self.assertRaises(kernelmill.NotFound) as caught:
            kernelmill.export("second", "sft", self.root + "/x", root=self.root)
        self.assertIn("second", str(caught.exception))
        with self.assertRaises(kernelmill.NotFound):
            list(kernelmill.export_rows("second", "sft", root=self.root))
        with self.assertRaises(kernelmill.RequestError) as caught:
            kernelmill.export("first", "no-such-form", self.root + "/x", root=self.root)
        self.assertEqual(caught.exception.category, "usage")


if __name__ == "__main__":
    unittest.main()
