#!/usr/bin/env python3
"""A user's own model: `task import model`, an answer to one of its parts, and `task apply`."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PATIENCE = 500
sys.path.insert(0, str(SOURCE / "tests/unit/torch"))
sys.path.insert(0, str(SOURCE / "gpu/torch"))

from model_tasks_test import ANSWER, MODEL  # noqa: E402


def python_with_torch():
    for python in (os.environ.get("KERNELMILL_PYTHON"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return python
    return None


PYTHON = python_with_torch()


@unittest.skipIf(PYTHON is None, "no Python here has torch")
class ModelCommands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "mine.py").write_text(MODEL, encoding="utf-8")
        (self.folder / "answer.py").write_text(ANSWER, encoding="utf-8")

    def kernelmill(self, *words):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "KERNELMILL_PYTHON": PYTHON,
        }
        done = subprocess.run(
            [BIN / "kernelmill", *words],
            cwd=self.folder,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
        self.said = done.stdout + done.stderr
        return done

    def imported(self, *words):
        done = self.kernelmill("task", "import", "model", "mine.py", "--share", "1", *words)
        self.assertEqual(done.returncode, 0, self.said)
        return done

    def test_a_model_becomes_tasks_and_a_second_import_changes_nothing(self):
        done = self.imported()
        self.assertIn("left out gate (Sequential", done.stderr)
        self.assertIn("\n  model/mine/whole: the whole model\n  model/mine/", done.stdout)
        self.assertIn("% of the time\n", done.stdout)
        shown = self.kernelmill("task", "show", "model/mine/Attention", "--json")
        document = json.loads(shown.stdout)
        self.assertEqual(document["suite"], "model")
        self.assertEqual([x["timed"] for x in document["variants"]], [True])
        again = json.loads(self.imported("--json").stdout)
        self.assertEqual(again["imported"], 0, again)

    def test_an_answer_goes_back_and_the_whole_is_judged(self):
        self.imported()
        part = self.kernelmill(
            "eval", "--task", "model/mine/Attention", "--backend", "cpu", "--no-timing", "--json", "answer.py"
        )
        self.assertTrue(json.loads(part.stdout)["correct"], self.said)
        words = (
            "--task",
            "model/mine/Attention",
            "--model",
            "mine.py",
            "--to",
            "fast.py",
            "--backend",
            "cpu",
            "--json",
        )
        whole = self.kernelmill("task", "apply", "answer.py", *words)
        document = json.loads(whole.stdout)
        self.assertEqual(document["task"], "model/mine/whole", self.said)
        self.assertTrue(document["correct"], self.said)
        self.assertIn("def _patched(model)", (self.folder / "fast.py").read_text(encoding="utf-8"))

    def test_what_is_no_model_is_refused_and_nothing_is_written(self):
        (self.folder / "none.py").write_text("x = 1\n", encoding="utf-8")
        for file, words in (("none.py", "it defines no model"), ("nowhere.py", "not a readable file")):
            done = self.kernelmill("task", "import", "model", file)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        self.assertFalse((self.folder / ".local").exists())
        self.imported()
        words = ("--task", "torch/row_softmax", "--model", "mine.py", "--to", "fast.py")
        done = self.kernelmill("task", "apply", "answer.py", *words)
        self.assertIn("was not made of a model", done.stderr)
        self.assertFalse((self.folder / "fast.py").exists())


if __name__ == "__main__":
    unittest.main()
