#!/usr/bin/env python3
"""What launch/tools/promises says of programs that hold, fail, are skipped or are not there; the programs are stubs."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[3]
BOMB = "an_intruder.with_a_fork_bomb_dies_whole"


def gtest_stub(cases: dict) -> str:
    """A program that answers as GoogleTest does: name of a case -> held, failed or skipped."""
    return f"""#!/usr/bin/env python3
import fnmatch, json, os, sys
cases = {cases!r}
wanted = next((x.split("=", 1)[1] for x in sys.argv if x.startswith("--gtest_filter=")), "*").split(":")
chosen = {{k: v for k, v in cases.items() if any(fnmatch.fnmatch(k, x) for x in wanted)}}
for _ in range(int(os.environ.get("GTEST_REPEAT", 1))):
    for name, state in chosen.items():
        print(f"[{{'       OK' if state == 'held' else '  FAILED '}} ] {{name}} (3 ms)")
rows = [{{"name": k, "result": "SKIPPED" if v == "skipped" else "COMPLETED",
         **({{"failures": [1]}} if v == "failed" else {{}})}} for k, v in chosen.items()]
with open(os.environ["GTEST_OUTPUT"].removeprefix("json:"), "w") as out:
    json.dump({{"testsuites": [{{"testsuite": rows}}]}}, out)
sys.exit(any(x == "failed" for x in chosen.values()))
"""


class Promises(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "build/tests").mkdir(parents=True)
        (self.root / "launch").mkdir()
        self.node = self.root / "no-gpu"

    def put(self, path: str, text: str):
        file = self.root / path
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def show(self, which: str) -> tuple:
        done = subprocess.run(
            [
                sys.executable,
                "-B",
                "-m",
                "promises",
                "--quick",
                "--no-build",
                "--json",
                "--only",
                which,
                "--out",
                self.root / "out",
            ],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "PYTHONPATH": str(SOURCES / "launch/tools"),
                "KERNELMILL_SOURCE_DIR": str(self.root),
                "KERNELMILL_BUILD_DIR": str(self.root / "build"),
                "KERNELMILL_GPU_NODE": str(self.node),
            },
        )
        self.assertIn(done.returncode, (0, 5), done.stderr)
        return done.returncode, json.loads(done.stdout)["promises"][0]

    def test_the_sandbox_counts_its_attacks(self):
        self.put(
            "build/tests/sandbox_tests",
            gtest_stub({"an_intruder.reads": "held", "an_intruder.calls": "held", BOMB: "held"}),
        )
        code, row = self.show("P13")
        self.assertEqual((code, row["state"]), (0, "held"))
        self.assertEqual(row["figure"], "0 ways out in 3 attacks; 3 fork bombs, 0 with survivors")

    def test_a_way_out_is_counted_and_not_held(self):
        self.put(
            "build/tests/sandbox_tests",
            gtest_stub({"an_intruder.reads": "failed", "an_intruder.calls": "held", BOMB: "held"}),
        )
        code, row = self.show("P13")
        self.assertEqual((code, row["state"]), (5, "broken"))
        self.assertIn("1 ways out in 3 attacks", row["figure"])

    def test_a_survivor_is_counted_and_not_held(self):
        self.put("build/tests/sandbox_tests", gtest_stub({"an_intruder.reads": "held", BOMB: "failed"}))
        code, row = self.show("P13")
        self.assertEqual((code, row["state"]), (5, "broken"))
        self.assertIn("3 fork bombs, 3 with survivors", row["figure"])

    def test_what_is_skipped_is_said_and_what_is_not_built_is_not_run_here(self):
        _, row = self.show("P13")
        self.assertEqual(row["state"], "elsewhere")
        self.assertIn("sandbox_tests is not built", row["figure"])
        self.put("build/tests/sandbox_tests", gtest_stub({"an_intruder.reads": "skipped", BOMB: "held"}))
        _, row = self.show("P13")
        self.assertIn("0 ways out in 1 attacks, 1 skipped", row["figure"])

    def test_timing_is_not_run_without_a_gpu_and_names_its_parts(self):
        code, row = self.show("P12")
        self.assertEqual((code, row["state"], row["here"]), (0, "elsewhere", False))
        self.assertEqual(row["figure"], "not run here: no GPU")
        self.assertIn("same", row["gpu"])

    def test_timing_on_a_gpu_is_what_gpu_check_says(self):
        self.node.touch()
        self.put(
            "launch/gpu_check.sh", '#!/bin/sh\necho "$@" > "$OUT/words"\necho "ok      called faster in 0 of 50"\n'
        )
        code, row = self.show("P12")
        self.assertEqual((code, row["state"]), (0, "held"), row)
        self.assertIn("called faster in 0 of 50", row["figure"])
        self.assertTrue((self.root / "out/gpu_check/words").read_text().startswith("same planted"))
        self.put("launch/gpu_check.sh", '#!/bin/sh\necho "BROKEN  called faster in 9 of 50"\nexit 1\n')
        code, row = self.show("P12")
        self.assertEqual((code, row["state"]), (5, "broken"))
        self.assertIn("1 of 1 broken", row["figure"])
        self.put("launch/gpu_check.sh", "#!/bin/sh\nexit 0\n")
        self.assertEqual(self.show("P12")[0], 5, "who says nothing has shown nothing")


if __name__ == "__main__":
    unittest.main()
