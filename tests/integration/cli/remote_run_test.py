#!/usr/bin/python3
"""`show` and `report` of a head's run say what they say where its folder is."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402
from serving import PROGRAM  # noqa: E402

# Longer than what a record holds by itself.
LONG = serving.GOOD + "// " + "word " * 2000 + "\n"


class RemoteRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        cls.root = pathlib.Path(home.name) / "runs"
        cls.environment = {**os.environ, "TMPDIR": home.name + "/tmp"}
        os.mkdir(home.name + "/tmp")
        script = serving.write_script(home.name, serving.replies(serving.BROKEN, LONG))
        done = subprocess.run(
            serving.run_arguments(cls.root / "far", script, 2, 2, ["tasks.groups=2"]),
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        cls.head = subprocess.Popen(
            [PROGRAM, "head", "--listen", "127.0.0.1:0", "--insecure-loopback", "--root", str(cls.root)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        cls.address = cls.head.stdout.readline().strip()

    @classmethod
    def tearDownClass(cls):
        cls.head.terminate()
        cls.head.wait()
        cls.head.stdout.close()

    def both(self, command, what, *more):
        """What it prints from afar and where the folder is; the copy is gone."""
        texts = []
        for place in (["--head", self.address, "--insecure-loopback"], ["--root", str(self.root)]):
            done = subprocess.run(
                [PROGRAM, command, what, *more, *place],
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            texts.append(done.stdout)
        self.assertEqual(os.listdir(self.environment["TMPDIR"]), [])
        return texts

    def test_a_run_a_group_an_episode_and_a_turn_are_shown_as_they_are(self):
        for what in ("far", "far/g1", "far/g1.e0", "far/g0.e1.t1"):
            for more in ((), ("--json",)):
                far, near = self.both("show", what, *more)
                self.assertEqual(far, near, what)
        self.assertIn("word word", near)

    def test_a_report_has_the_same_figures(self):
        for more in ((), ("--json",), ("--by", "turn", "--json")):
            far, near = self.both("report", "far", *more)
            self.assertEqual(far, near)
        self.assertEqual(json.loads(near)["by"], "turn")

    def test_the_environments_head_is_asked_unless_a_root_is_given(self):
        environment = {**self.environment, "KERNELMILL_HEAD": self.address}

        def said(*words):
            done = subprocess.run(
                [PROGRAM, *words, "--json"], env=environment, capture_output=True, text=True, check=False
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

        for words in (("show", "far"), ("report", "far"), ("ps",), ("node", "ls"), ("gpu", "ls"), ("runs",)):
            far = said(*words, "--insecure-loopback")
            self.assertEqual(far, said(*words, "--head", self.address, "--insecure-loopback"), words)
        self.assertEqual(said("runs", "--root", self.environment["TMPDIR"])["runs"], [])

    def test_what_is_not_there_is_said(self):
        for what, says in (("none", "none"), ("far/g7", "g7"), ("far/g0.e9", "g0.e9"), ("0123abcd", "0123abcd")):
            done = subprocess.run(
                [PROGRAM, "show", what, "--head", self.address, "--insecure-loopback"],
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
