#!/usr/bin/python3
"""`run --sweep`: its grid, its names, its errors, and the same command again."""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402

TIMES, SIZES = "tasks.max_turns=1,2", "tasks.group_size=1,2"


class Sweeps(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)
        self.script = serving.write_script(self.home, serving.replies(serving.BROKEN, serving.BROKEN))

    def command(self, *words):
        # Without run.dir: a sweep lies in runs/.
        base = serving.run_arguments("", self.script, 1, 1)
        return [*(x for x in base if not x.startswith("run.dir=")), *words]

    def run_it(self, *words, code=0):
        done = subprocess.run(self.command(*words), cwd=self.home, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def plan(self, *words):
        return json.loads(self.run_it(*words, "--dry-run", "--json").stdout)["runs"]

    def test_the_grid_has_every_combination_by_name(self):
        runs = self.plan("--sweep", SIZES, "--sweep", TIMES)
        self.assertEqual(
            [x["run"] for x in runs],
            [f"quickstart-group_size_{a}-max_turns_{b}" for a in "12" for b in "12"],
        )
        self.assertEqual(runs[1]["values"], {"tasks.group_size": "1", "tasks.max_turns": "2"})
        self.assertEqual({x["state"] for x in runs}, {"new"})
        self.assertFalse((self.home / "runs").exists())
        table = self.run_it("--sweep", SIZES, "--dry-run", "run.name=mine").stdout
        self.assertRegex(table, r"^RUN +tasks.group_size +STATE\nmine-group_size_1 +1 +new\n")
        lists = self.plan("--sweep", 'tasks.ids=["native/gelu","native/softmax"],["native/gelu"]', "run.dir=elsewhere")
        self.assertEqual([x["values"]["tasks.ids"][-3:] for x in lists], ['x"]', 'u"]'])
        self.assertEqual(pathlib.Path(lists[0]["directory"]).parent, self.home / "elsewhere")
        # What a name cannot hold makes no two runs one.
        same = self.plan("--sweep", "policy.model=a/b,a b")
        self.assertEqual(len({x["run"] for x in same}), 2)

    def test_errors_name_the_key(self):
        for words, key, why in (
            (["tasks.groupsize=1,2"], "tasks.groupsize", "did you mean 'tasks.group_size'?"),
            (["tasks.group_size"], "tasks.group_size", "--sweep tasks.group_size=A,B"),
            (["tasks.group_size=1,one"], "tasks.group_size", "integer"),
            (["tasks.group_size=1,1"], "tasks.group_size", "twice"),
            (["tasks=1"], "tasks", "is a section"),
            (["run.name=a,b"], "run.name", "each run of a sweep has its own"),
            (["tasks.group_size=1", "tasks.group_size=2"], "tasks.group_size", "given twice"),
            (["policy.sampling.seed=" + ",".join(map(str, range(1001)))], "policy.sampling.seed", "more than 1000"),
        ):
            more = [y for x in words for y in ("--sweep", x)]
            said = " ".join(self.run_it(*more, code=2).stderr.split())
            self.assertIn(f"'{key}'", said)
            self.assertIn(why, said)
        self.assertIn("for one run", self.run_it("--sweep", SIZES, "--bundle", "b", code=2).stderr)
        self.assertFalse((self.home / "runs").exists())

    def test_the_same_command_takes_a_sweep_up(self):
        good = self.script.read_text()
        stalls = {**json.loads(good), "faults": [{"turn": 1, "kind": "stall", "seconds": 3600}]}
        self.script.write_text(json.dumps(stalls))
        words = ("--sweep", TIMES)
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(self.command(*words), cwd=self.home, **pipes) as cut:
            while "2 of 2, quickstart-max_turns_2" not in cut.stderr.readline():
                self.assertIsNone(cut.poll())
            journal = self.home / "runs/quickstart-max_turns_2/traces.jsonl"
            while not journal.exists() or not journal.stat().st_size:
                self.assertIsNone(cut.poll())
            cut.send_signal(signal.SIGINT)
            said = cut.stderr.read()
        self.assertEqual(cut.returncode, 130)
        self.assertIn("the same command takes the sweep up", said)

        self.script.write_text(good)
        self.assertEqual([x["state"] for x in self.plan(*words)], ["has finished", "goes on"])
        done = self.run_it(*words)
        self.assertRegex(done.stdout, r"RUN +tasks.max_turns +STATE .*TURNS")
        self.assertRegex(done.stdout, r"quickstart-max_turns_1 +1 +finished +1 +1 ")
        self.assertRegex(done.stdout, r"quickstart-max_turns_2 +2 +finished +1 +2 ")
        self.assertIn("1 of 2, quickstart-max_turns_1 has finished before", done.stderr)
        self.assertIn("resuming quickstart-max_turns_2", done.stderr)

        again = self.run_it("--sweep", TIMES + ",3", "--json")
        self.assertEqual(again.stderr, "")
        runs = json.loads(again.stdout)["runs"]
        self.assertEqual([(x["state"], x["turns"]) for x in runs], [("finished", n) for n in (1, 2, 3)])
        self.assertEqual(runs[2]["values"], {"tasks.max_turns": "3"})
        other = self.run_it(*words, "reward.speed_cap=4", code=2).stderr
        self.assertIn("began with another configuration", " ".join(other.split()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
