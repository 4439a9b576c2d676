#!/usr/bin/python3
"""`runs rm`, `runs rename`, `runs tag`, and the forms in which tables and documents are printed."""

import csv
import io
import json
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402
from serving import PROGRAM  # noqa: E402


class RunFolders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        script = serving.write_script(cls.made.name, serving.replies(serving.GOOD, serving.GOOD))
        words = serving.run_arguments(cls.made.name + "/one", script, 1, 2, ["evaluation.timing.enabled=false"])
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        cls.said = done.stderr

    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)
        for name in ("one", "two"):
            shutil.copytree(self.made.name + "/one", self.home / "runs" / name)

    def do(self, *words, code=0, **more):
        more = {"stdin": subprocess.DEVNULL, **more}
        done = subprocess.run([PROGRAM, *words], cwd=self.home, capture_output=True, text=True, check=False, **more)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def names(self):
        return sorted(x.name for x in (self.home / "runs").iterdir())

    def rows(self, *words):
        return json.loads(self.do("runs", *words, "--json").stdout)["runs"]

    # -- folders ------------------------------------------------------------------------------

    def test_rm_asks_and_takes_no_for_an_answer(self):
        self.assertIn("add --yes", self.do("runs", "rm", "one", code=2).stderr)
        for answer, left in ((b"n\n", ["one", "two"]), (b"\n", ["one", "two"]), (b"y\n", ["two"])):
            main, end = pty.openpty()
            with open(main, "wb", buffering=0) as keyboard:
                keyboard.write(answer)
                said = self.do("runs", "rm", "one", stdin=end).stderr
            self.assertIn("remove runs/one for ever", said)
            self.assertEqual(self.names(), left)
        self.assertEqual(json.loads(self.do("runs", "rm", "two", "-y", "--json").stdout)["removed"], ["runs/two"])
        self.do("runs", "rm", "two", "--yes", code=3)

    def test_rm_takes_what_a_cut_left_and_no_other_folder(self):
        (self.home / "runs/one/manifest.json").unlink()
        (self.home / "runs/mine").mkdir()
        self.do("runs", "rm", "mine", "--yes", code=3)
        self.do("runs", "rm", "one", "nothing", "--yes", code=3)
        self.assertEqual(self.names(), ["mine", "one", "two"])
        self.do("runs", "rm", "one", "--yes")
        self.assertEqual(self.names(), ["mine", "two"])

    def test_what_is_in_use_stays(self):
        script = serving.write_script(self.home, serving.replies(serving.GOOD), latency_ms=600_000)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = subprocess.Popen(serving.run_arguments("runs/live", script, 1, 1), cwd=self.home, **quiet)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        while not json.loads(self.do("status", "--json").stdout)["runs"]:
            self.assertIsNone(run.poll())
        self.assertIn("kernelmill cancel", self.do("runs", "rm", "live", "--yes", code=4).stderr)
        self.do("runs", "rename", "live", "other", code=4)
        self.do("runs", "tag", "live", "slow")
        self.assertEqual(self.names(), ["live", "one", "two"])

    def test_a_renamed_run_is_found_by_its_new_name(self):
        self.do("runs", "rename", "one", "two", code=4)
        self.do("runs", "rename", "one", "../out", code=2)
        self.do("runs", "rename", "one", "three")
        self.assertEqual(self.names(), ["three", "two"])
        self.do("show", "three")
        self.do("resume", "three")
        self.assertEqual([(x["folder"], x["run"]) for x in self.rows()], [("three", "one"), ("two", "one")])
        # Both began as "one": the folders tell them apart.
        self.assertRegex(self.do("runs").stdout, r"(?s)\nthree \(one\) .*\ntwo \(one\) ")

    def test_forks_learn_where_their_origin_is(self):
        self.do("fork", "two/g0.e0.t1", "run.name=twig")
        self.do("runs", "rename", "two", "stem")
        fork = json.loads((self.home / "runs/twig/manifest.json").read_text())["fork"]
        self.assertEqual(pathlib.Path(fork["directory"]).resolve(), (self.home / "runs/stem").resolve())

    def test_tags_are_kept_shown_and_filtered(self):
        self.assertNotIn("TAGS", self.do("runs").stdout)
        self.assertEqual(self.do("runs", "tag", "one", "paper", "base").stdout, "base\npaper\n")
        self.assertEqual(self.do("runs", "tag", "one").stdout, "base\npaper\n")
        self.assertRegex(self.do("runs").stdout, r"TAGS\none .* base paper\n")
        for where, folders in (
            ("tags=paper", ["one"]),
            ("tags=pap", []),
            ("tags~pap", ["one"]),
            ("tags!=paper", ["two"]),
            ("tags=base and state=finished", ["one"]),
        ):
            self.assertEqual([x["folder"] for x in self.rows("--where", where)], folders, where)
        self.assertEqual(self.do("runs", "tag", "one", "--remove", "paper", "none").stdout, "base\n")
        self.do("runs", "tag", "one", "two words", code=2)
        self.do("fsck", "one")

    # -- forms --------------------------------------------------------------------------------

    def test_tables_come_as_csv_with_the_columns_that_are_wanted(self):
        def said(*words):
            return self.do(*words).stdout

        table = list(csv.DictReader(io.StringIO(said("runs", "-o", "csv"))))
        self.assertEqual([x["run"] for x in table], ["one", "two (one)"])
        self.assertEqual(table[0]["turns"], "2")
        narrow = said("runs", "-o", "csv", "--columns", "turns,RUN", "--no-headers")
        self.assertEqual(narrow, "2,one\n2,two (one)\n")
        text = said("runs", "--columns", "run,state")
        self.assertEqual(text.split(), "RUN STATE one finished two (one) finished".split())
        cases = said("-o", "csv", "task", "show", "native/row_sum", "--columns", "case")
        self.assertEqual(cases.split()[0], "case")
        wrong = self.do("runs", "--columns", "run,none", code=2)
        self.assertEqual(wrong.stdout, "")
        self.assertIn("there are run, state, episodes", " ".join(wrong.stderr.split()))
        self.assertIn("has no table", self.do("version", "-o", "csv", code=2).stderr)
        for absent in (("import", "gpu-rl-bundle", "none"), ("import", "kernel-rl-traces", "none")):
            self.assertIn("has no table", self.do(*absent, "--out", "new", "-o", "csv", code=2).stderr)
        tasks = list(csv.DictReader(io.StringIO(said("show", "one", "-o", "csv"))))
        self.assertEqual(
            [x for x in tasks[0] if "speedup" in x], ["best_speedup", "best_speedup_low", "best_speedup_high"]
        )
        self.assertEqual(self.do("runs", "--root", "none", "-o", "csv").stdout, "")
        for words in (("--json", "-o", "csv"), ("-o", "json", "--columns", "run"), ("-o", "xml"), ("--columns", ",")):
            self.do("runs", *words, code=2)

    def test_documents_come_as_json_and_as_yaml(self):
        plain = self.do("runs", "--json").stdout
        self.assertEqual(self.do("runs", "-o", "json").stdout, plain)
        self.assertEqual(self.do("-ojson", "runs").stdout, plain)
        text = self.do("runs", "--output=yaml").stdout
        self.assertEqual(text.splitlines()[:4], ["schema_version: 1", "root: runs", "runs:", "  - run: one"])
        self.assertIn("    tags: []\n", text)
        self.assertIn('    failure: ""\n', text)
        lines = self.do("query", "", "one", "-o", "yaml", "--fields", "name", "--limit", "1").stdout
        self.assertEqual(lines, '- {"name":"one/g0.e0.t0"}\n')
        try:
            import yaml
        except ImportError:
            return
        self.assertEqual(yaml.safe_load(text), json.loads(plain))
        self.assertEqual(yaml.safe_load(self.do("show", "one", "-o", "yaml").stdout)["run"], "one")

    def test_errors_are_documents_where_results_are(self):
        for form in ("json", "yaml"):
            fault = json.loads(self.do("show", "none", "-o", form, code=3).stderr)["error"]
            self.assertEqual(fault["category"], "not_found")
        self.assertIn("kernelmill: error:", self.do("show", "none", "-o", "csv", code=3).stderr)

    def test_the_manual_names_every_command(self):
        page = self.do("__reference", "man").stdout
        self.assertTrue(page.startswith('.\\"'))
        for command in ("run", "runs rm", "config diff"):
            self.assertIn(f".SS kernelmill {command}\n", page)

    # -- words --------------------------------------------------------------------------------

    def test_a_demonstration_ends_with_the_next_commands(self):
        for command in ("show", "report", "page"):
            self.assertIn(f"\n  kernelmill {command} ", self.said)

    def test_an_export_without_rows_fails_and_says_why(self):
        words = ("export", "one", "--form", "sft", "--min-reward", "1000")
        for out in ("none", "-"):
            done = self.do(*words, "--out", out, code=5)
            self.assertIn("gives a row of the form sft", " ".join(done.stderr.split()))
        fault = json.loads(self.do(*words, "--out", "also", "--json", code=5).stderr)["error"]
        self.assertEqual(fault["category"], "export_empty")
        self.assertEqual(self.do("export", "one", "--form", "trajectories", "--out", "-").returncode, 0)

    def test_a_terminal_is_told_what_a_command_is_at(self):
        kernel = self.home / "kernel.cpp"
        kernel.write_text(serving.GOOD)
        main, end = pty.openpty()
        done = subprocess.run(
            [PROGRAM, "eval", "--task", "native/row_sum", "--no-timing", str(kernel)],
            stdout=subprocess.PIPE,
            stderr=end,
            check=False,
        )
        with open(main, "rb", buffering=0) as screen:
            seen = screen.read(65536)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(seen, b"\r\x1b[Kcompiling ...\r\x1b[Kchecking ...\r\x1b[K")


if __name__ == "__main__":
    unittest.main(verbosity=2)
