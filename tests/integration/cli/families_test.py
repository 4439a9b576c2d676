#!/usr/bin/env python3
"""The tasks of `families/*`, `hip/*` and `verbs/*` with the real program: each is fit to judge on a CPU."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = BIN / "kernelmill"
TASKS = SOURCE / "configs/tasks"
CPU_TASKS = ["families/*", "hip/*", "verbs/synthesize_moving_mean", "verbs/port_cuda_to_cpp"]
PATIENCE = 300


class Families(unittest.TestCase):
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
            if "/" in word and "*" not in word and not word.startswith("configs/"):
                self.assertTrue((TASKS / word / "task.json").exists(), word)


if __name__ == "__main__":
    unittest.main()
