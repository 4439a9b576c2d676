"""What is stored is judged again, built again and exported by other verdicts; the run's own stay."""

import json
import pathlib
import shutil
import subprocess
import unittest

from support import PROGRAM, program, the_run


def document(*arguments):
    return json.loads(program(*arguments, "--json"))


def rows(*more):
    return the_run(own=True).rows("rl", *more)


def refused(test, *arguments):
    done = subprocess.run([PROGRAM, *arguments, "--json"], capture_output=True, text=True, timeout=300, check=False)
    test.assertNotEqual(done.returncode, 0)
    return done.returncode, json.loads(done.stderr)["error"]


class Rescore(unittest.TestCase):
    def setUp(self):
        self.run_directory = str(the_run(own=True).directory)

    def test_the_same_rules_give_the_same_verdicts_byte_for_byte(self):
        said = document("rescore", self.run_directory, "--name", "again")
        self.assertEqual(said["turns"], 24)
        self.assertEqual(said["equal"], said["turns"])
        self.assertEqual(said["equal_episodes"], said["episodes"])
        self.assertEqual(rows(), rows("--verdict", "again"))

    def test_a_second_call_adds_nothing(self):
        document("rescore", self.run_directory, "--name", "twice")
        self.assertEqual(document("rescore", self.run_directory, "--name", "twice")["new_records"], 0)

    def test_other_rules_are_a_version_beside_the_old_one(self):
        before = rows()
        said = document("rescore", self.run_directory, "--reward", "sparse", "--name", "sparse")
        self.assertGreater(said["other_reward"], 0)
        self.assertEqual(said["other_outcome"], 0)
        self.assertEqual(rows(), before)
        after = rows("--verdict", "sparse")
        rewards = {t["reward"] for g in after for e in g["episodes"] for t in e["turns"]}
        self.assertLessEqual(rewards - {None}, {0, 1})  # what the machine could not time has none
        for group in after:
            advantages = [e["advantage"] for e in group["episodes"] if e["advantage"] is not None]
            self.assertAlmostEqual(sum(advantages), 0, places=9)

    def test_latest_is_the_one_begun_last(self):
        document("rescore", self.run_directory, "reward.speed=0", "--name", "last")
        out = the_run(own=True).export("rl", "--verdict", "latest")
        provenance = json.loads((out / "PROVENANCE.json").read_text())
        self.assertIn('"name": "last"', json.dumps(provenance))

    def test_a_name_keeps_its_rules(self):
        document("rescore", self.run_directory, "--name", "kept")
        code, error = refused(self, "rescore", self.run_directory, "reward.speed_cap=2", "--name", "kept")
        self.assertEqual((code, error["category"]), (4, "verdicts_exist"))

    def test_what_is_no_rule_is_refused(self):
        for words in (["tasks.groups=2"], ["--governance", "speed=2"], ["--name", "latest"], ["--name", "../x"]):
            self.assertEqual(refused(self, "rescore", self.run_directory, *words)[0], 2, words)

    def test_an_unknown_version_is_named(self):
        code, error = refused(
            self,
            "export",
            self.run_directory,
            "--form",
            "rl",
            "--out",
            self.run_directory + ".none",
            "--verdict",
            "none",
        )
        self.assertNotEqual(code, 0)
        self.assertIn("none", error["message"])


class Replay(unittest.TestCase):
    def test_every_accepted_turn_stands(self):
        said = document("replay", str(the_run(own=True).directory), "--accepted")
        self.assertGreater(said["turns"], 8)
        self.assertEqual((said["stand"], said["do_not_stand"], said["not_replayed"]), (said["turns"], 0, 0))
        for check in (
            "record: build input",
            "record: candidate",
            "build: toolchain",
            "build: compiles",
            "correctness: seed",
            "correctness: cases",
        ):
            self.assertEqual(said["checks"][check]["equal"], said["turns"], check)

    def test_a_turn_that_was_refused_is_refused_again(self):
        turn = next(
            x
            for x in document("replay", str(the_run(own=True).directory), "--no-timing")["replayed"]
            if x["category_before"] not in ("success", "slower", "not_timed", "unchanged")
        )
        self.assertTrue(turn["stands"], turn)

    def test_a_changed_task_is_named_and_the_verdict_falls(self):
        folder = the_run(own=True).folder / "tasks/kernelbench/level1/1_row_sum"
        kept = pathlib.Path(str(folder) + ".kept")
        shutil.copytree(folder, kept)
        try:
            reference = next(x for x in folder.iterdir() if x.name.startswith("reference"))
            reference.write_text(reference.read_text().replace("+=", "-="))
            done = subprocess.run(
                [PROGRAM, "replay", f"{the_run(own=True).directory}/g0.e1.t0", "--no-timing", "--json"],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            self.assertNotEqual(done.returncode, 0, done.stdout)
            if done.stdout:
                checks = json.loads(done.stdout)["checks"]
                self.assertEqual(checks["build: task files"]["different"], 1)
        finally:
            shutil.rmtree(folder)
            kept.rename(folder)

    def test_what_is_not_there_is_not_found(self):
        self.assertEqual(refused(self, "replay", f"{the_run(own=True).directory}/g9.e9.t9")[0], 3)


if __name__ == "__main__":
    unittest.main()
