"""launch/test.sh tries tests that fail beside others once more, alone."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[3]

# Fails the tests of the first word below, and in its second run those of the second.
CTEST = """#!/bin/sh
round=second; case "$*" in *--rerun-failed*) ;; *) round=first ;; esac
mkdir -p build/Testing/Temporary
log=build/Testing/Temporary/LastTestsFailed.log
[ -s "$round" ] || exit 0
cp "$round" "$log"
exit 8
"""


class SecondTry(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("bin", "launch"):
            (self.folder / name).mkdir()
        shutil.copy(ROOT / "launch/test.sh", self.folder / "launch")
        nothing = "#!/bin/sh\n"
        stubs = {"launch/packages.sh": nothing, "launch/build.sh": nothing, "bin/cmake": nothing, "bin/ctest": CTEST}
        for name, text in stubs.items():
            path = self.folder / name
            path.write_text(text)
            path.chmod(0o755)

    def run_with(self, first, second=()):
        for name, tests in (("first", first), ("second", second)):
            (self.folder / name).write_text("".join(f"{i}:{x}\n" for i, x in enumerate(tests, 1)))
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        return subprocess.run([self.folder / "launch/test.sh"], env=environment, text=True, capture_output=True)

    def test_all_that_passes_is_tried_once(self):
        done = self.run_with([])
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_what_passes_alone_is_named(self):
        done = self.run_with(["a.b", "c.d"])
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("a.b", "c.d"):
            self.assertIn(f"UNSTABLE, failed beside others and passed alone: {name}\n", done.stdout)

    def test_what_fails_again_fails(self):
        done = self.run_with(["a.b", "c.d"], ["c.d"])
        self.assertEqual(done.returncode, 8)
        self.assertNotIn("UNSTABLE", done.stdout)

    def test_many_failures_have_no_second_try(self):
        done = self.run_with(["a", "b", "c", "d"])
        self.assertEqual(done.returncode, 8)
        self.assertNotIn("alone", done.stdout)

    def test_a_run_that_did_not_come_so_far_fails(self):
        (self.folder / "bin/ctest").write_text("#!/bin/sh\nexit 3\n")
        self.assertEqual(self.run_with(["a"]).returncode, 3)


if __name__ == "__main__":
    sys.exit(unittest.main())
