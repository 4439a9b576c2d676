#!/usr/bin/env python3
"""The client's tests with every Python from 3.9 to 3.14 that this machine has: on PATH, or made by pyenv."""

import glob
import os
import pathlib
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
TEST = SOURCE / "tests/integration/serve/client_test.py"
# A module of the name of a function would take its place once it is imported.
ALL_MODULES = """
import pkgutil
import kernelmill, kernelmill.__main__, kernelmill.parquet, kernelmill.adapters.trl
assert not {x.name for x in pkgutil.iter_modules(kernelmill.__path__)} & set(kernelmill.__all__)
"""


def interpreter(version):
    """Its path, or None."""
    there = shutil.which(f"python{version}", path="/usr/bin:/usr/local/bin")
    made = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python")))
    return there or (made[-1] if made else None)


class Versions(unittest.TestCase):
    """A method for each version, so that what is not there is skipped by its name."""


def with_version(version):
    """The test of a version."""

    def test(self):
        python = interpreter(version)
        if python is None:
            self.skipTest(f"there is no Python {version}")
        environment = {**os.environ, "PYTHONPATH": str(SOURCE / "launch/learning/client")}
        for words in ([str(TEST)], ["-W", "error", "-c", ALL_MODULES]):
            done = subprocess.run([python, "-B", *words], capture_output=True, text=True, check=False, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)

    return test


for minor in range(9, 15):
    setattr(Versions, f"test_python_3_{minor:02}", with_version(f"3.{minor}"))

if __name__ == "__main__":
    unittest.main(verbosity=2)
