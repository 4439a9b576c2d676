#!/usr/bin/python3
"""launch/tools/hooks/commit-msg takes messages that follow CONTRIBUTING.md, and says what is wrong with others."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

HOOK = pathlib.Path(__file__).resolve().parents[3] / "launch/tools/hooks/commit-msg"
BODY = "\n\nReaders of the log missed the reason.\n"
SCISSORS = "# ------------------------ >8 ------------------------\n"


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class Hook(unittest.TestCase):
    def ask(self, message):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "COMMIT_EDITMSG")
            file.write_text(message)
            return subprocess.run([HOOK, file], cwd=folder, capture_output=True, text=True, check=False)

    def test_a_subject_with_a_body_is_taken(self):
        for message in (
            "Say why in logs" + BODY,
            "x" * 50 + BODY,
            "µ" * 50 + BODY,
            "\n\nSay why in logs" + BODY,
            "# a comment of the template\nSay why in logs" + BODY + "# Changes to be committed:\n",
            "Say why in logs" + BODY + SCISSORS + "diff --git a/x b/x\n",
        ):
            done = self.ask(message)
            self.assertEqual((done.returncode, done.stderr), (0, ""), message)

    def test_merges_and_commits_for_a_rebase_are_exempt(self):
        for subject in ("Merge branch 'x' of example.org", "fixup! Say why", "squash! Say why", "amend! Say why"):
            self.assertEqual(self.ask(subject + " " + "x" * 60).returncode, 0, subject)

    def test_an_empty_message_is_gits_to_refuse(self):
        self.assertEqual(self.ask("# nothing\n").returncode, 0)

    def refused(self, message, why, step):
        done = self.ask(message)
        self.assertEqual(done.returncode, 1, message)
        self.assertIn(why, done.stderr)
        self.assertIn("next: " + step, done.stderr)
        self.assertIn("COMMIT_EDITMSG", done.stderr)

    def test_a_long_subject_is_refused(self):
        self.refused("x" * 51 + BODY, "the subject has 51 characters, and may have 50", "shorten it")

    def test_a_subject_that_goes_on_is_refused(self):
        self.refused("Say why\nin logs" + BODY, "the second line is not blank: in logs", "put a blank line")

    def test_a_message_without_a_body_is_refused(self):
        for message in (
            "Say why in logs",
            "Say why in logs\n\n\n",
            "Say why in logs\n\n# Please enter the message\n",
            "Say why in logs\n\n" + SCISSORS + "diff --git a/x b/x\n",
        ):
            self.refused(message, "the message has no body", "add a blank line")


if __name__ == "__main__":
    unittest.main()
