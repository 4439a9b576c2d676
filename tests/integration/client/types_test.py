#!/usr/bin/env python3
"""mypy --strict has nothing to say of the client, and a program that misuses it is told."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

CLIENT = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"]) / "launch/learning/client"
MYPY = os.environ.get("KERNELMILL_MYPY") or shutil.which("mypy")
MISUSE = """
from kernelmill import Client, runs
one: int = Client("http://127.0.0.1:1").evaluate("native/gelu", source=3)
two: str = runs()[0].reward
"""


@unittest.skipUnless(MYPY, "mypy is not installed: `apt install mypy`, or KERNELMILL_MYPY=PATH")
class Types(unittest.TestCase):
    def mypy(self, *words):
        with tempfile.TemporaryDirectory() as cache:
            return subprocess.run(
                [MYPY, "--config-file", "pyproject.toml", "--cache-dir", cache, *words],
                cwd=CLIENT,
                capture_output=True,
                text=True,
                check=False,
            )

    def test_the_package_is_typed(self):
        done = self.mypy()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_program_that_misuses_it_is_told(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(MISUSE)
            program.flush()
            said = self.mypy(program.name).stdout
        for words in (
            'Argument "source" to "evaluate"',
            'has type "Evaluation", variable has type "int"',
            'has type "float | None"',
        ):
            self.assertIn(words, said.replace("Optional[float]", "float | None"))


if __name__ == "__main__":
    unittest.main()
