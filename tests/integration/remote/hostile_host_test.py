#!/usr/bin/python3
"""`--on HOST` with a far end that lies: nothing is written outside of what was asked for, nothing half."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402

HERE = pathlib.Path(__file__).parent


class Hostile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hostile_host_")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.work = self.root / "work"
        self.work.mkdir()
        (self.work / "k.cpp").write_text(serving.GOOD)

    def do(self, mode):
        words = [serving.PROGRAM, "eval", "--task", "native/row_sum", "k.cpp", "--bundle", "found", "--on", "far"]
        return subprocess.run(
            words,
            cwd=self.work,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.root / "home"),
                "HOSTILE": mode,
                "KERNELMILL_SSH": f"/usr/bin/python3 -B {HERE}/hostile_host.py",
            },
            stdout=subprocess.DEVNULL if mode == "endless_output" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )

    def test_an_honest_one_serves(self):
        done = self.do("honest")
        self.assertEqual((done.returncode, done.stdout), (0, b"out\n"), done.stderr)
        self.assertEqual((self.work / "found" / "x").read_text(), "text")

    def test_lies_are_refused_and_leave_nothing(self):
        for mode, code in (
            ("leads_out", 1),
            ("absolute", 1),
            ("other_place", 1),
            ("twice", 1),
            ("control_bytes", 1),
            ("no_list", 1),
            ("wrong_hash", 1),
            ("another_file", 1),
            ("endless_file", 1),
            ("endless_output", 1),
            ("endless_banner", 1),
            ("endless_line", 1),
            ("out_of_order", 1),
            ("no_stream", 1),
            ("no_exit_code", 1),
            ("asks_for_others", 1),
            ("too_large", 75),
            ("version", 3),
            ("error_with_escapes", 3),
        ):
            with self.subTest(mode):
                done = self.do(mode)
                self.assertEqual(done.returncode, code, (mode, done.stdout, done.stderr[:2000]))
                self.assertNotIn(b"\x1b", done.stderr)
                names = {x.name for x in self.work.iterdir()}
                self.assertFalse((self.work / "found").exists(), names)
                staged = [x for x in self.work.iterdir() if x.name.startswith(".found")]
                self.assertEqual(
                    [list(x.rglob("*")) for x in staged if mode != "endless_file" and list(x.iterdir())], []
                )
                self.assertFalse(any(x.exists() for x in (self.root / "escaped", pathlib.Path("/tmp/escaped"))))


if __name__ == "__main__":
    unittest.main()
