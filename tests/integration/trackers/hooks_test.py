#!/usr/bin/python3
"""Runs tell a real HTTP receiver and a real command what happens to them, and wait for neither."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402
from receiver import Receiver  # noqa: E402

SECRET = "sk-of-the-test-0815"


class Hooks(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)
        self.environment = {**os.environ, "XDG_CACHE_HOME": home.name + "/cache", "HOOK_TOKEN": SECRET}

    def run_with(self, *more, members=2, turns=1, texts=(serving.GOOD,), code=0, patience_ms=60000):
        script = serving.write_script(self.home, serving.replies(*texts))
        # A receiver has the time to answer on a busy machine, too.
        more = [*more, f"hooks.timeout_ms={patience_ms}"]
        done = subprocess.run(
            serving.run_arguments(self.home / "runs/told", script, members, turns, more),
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def log(self):
        return (self.home / "runs/told/logs/run.log").read_text()

    def test_the_end_of_a_run_is_told_to_a_url_and_to_a_command(self):
        kept, around = self.home / "event.json", self.home / "environment"
        with Receiver() as receiver:
            self.run_with(
                f"hooks.url={receiver.url}",
                "hooks.token_env=HOOK_TOKEN",
                "hooks.command=" + json.dumps(["/bin/sh", "-c", f"cat > {kept}; env > {around}"]),
            )
            [(path, headers, body)] = receiver.wait(lambda x: len(x) == 1)
        event = json.loads(body)
        self.assertEqual((path, headers["Authorization"]), ("/hook", "Bearer " + SECRET))
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual((event["event"], event["state"], event["turns"]), ("run_ended", "finished", 2))
        self.assertIn("finished with 2 episodes and 2 turns", event["text"])
        self.assertEqual(json.loads(kept.read_text()), event)
        self.assertIn("KERNELMILL_EVENT=run_ended", around.read_text())
        self.assertNotIn(SECRET, around.read_text())
        for file in (self.home / "runs/told").rglob("*"):
            if file.is_file():
                self.assertNotIn(SECRET.encode(), file.read_bytes(), file)

    def test_a_refusal_is_tried_again(self):
        with Receiver(lambda number: 503 if number == 1 else 200) as receiver:
            self.run_with(f"hooks.url={receiver.url}")
            first, second = receiver.wait(lambda x: len(x) == 2)
        self.assertEqual(first[2], second[2])

    def test_a_run_waits_for_no_hook_that_is_silent_or_gone(self):
        with Receiver(lambda number: None) as receiver:
            # Time enough to begin to tell it: what has not begun when the time is over is not in the log.
            self.run_with(f"hooks.url={receiver.url}", 'hooks.command=["/bin/sleep", "3600"]', patience_ms=10000)
        self.assertIn("failed to tell the URL of run_ended", self.log())
        self.assertNotIn(receiver.url, self.log())  # an address may be a secret

    def test_a_command_that_fails_or_is_missing_is_named_in_the_log(self):
        self.run_with('hooks.command=["/nonexistent/program"]')
        self.assertIn("failed to tell the command of run_ended: No such file", self.log())

    def test_too_many_infrastructure_faults_are_told_once_while_the_run_goes_on(self):
        with Receiver() as receiver:
            self.run_with(
                f"hooks.url={receiver.url}", "compile.compiler=/nonexistent/g++", "run.max_infrastructure=1", members=40
            )
            events = [json.loads(x[2]) for x in receiver.wait(lambda x: b"run_ended" in x[-1][2] if x else False)]
        self.assertEqual([x["event"] for x in events], ["infrastructure_faults", "run_ended"])
        self.assertEqual((events[0]["turns"], events[0]["share"]), (32, 1.0))

    def test_too_many_integrity_findings_are_told_once_while_the_run_goes_on(self):
        cheat = (serving.SOURCE / "tests/exploits/corpus/hacks/input_mutation.cpp").read_text()
        with Receiver() as receiver:
            self.run_with(f"hooks.url={receiver.url}", members=34, texts=(cheat,))
            events = [json.loads(x[2]) for x in receiver.wait(lambda x: b"run_ended" in x[-1][2] if x else False)]
        self.assertEqual([x["event"] for x in events], ["integrity_findings", "run_ended"])
        self.assertEqual((events[0]["turns"], events[0]["count"], events[0]["share"]), (32, 32, 1.0))
        self.assertIn("100.0 % of 32 turns are with integrity violations", events[0]["text"])

    def test_a_standstill_is_told_once(self):
        with Receiver() as receiver, serving.held_policy([serving.GOOD]) as (policy, release):
            arguments = serving.held_arguments(
                self.home / "runs/told",
                policy,
                1,
                1,
                [f"hooks.url={receiver.url}", "hooks.no_progress_minutes=0.02", "hooks.timeout_ms=60000"],
            )
            with subprocess.Popen(
                arguments, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as run:
                receiver.wait(lambda x: len(x) == 1)
                release(0)
                run.wait()
            events = [json.loads(x[2]) for x in receiver.wait(lambda x: b"run_ended" in x[-1][2])]
        self.assertEqual(events[0]["event"], "no_progress")
        self.assertGreaterEqual(events[0]["seconds"], 1.2)

    def test_what_is_wrong_in_the_configuration_is_said_before_the_run_begins(self):
        done = self.run_with("hooks.url=http://127.0.0.1:1/", 'hooks.on=["lunch"]', code=2)
        self.assertIn("no event is called 'lunch'", done.stderr)
        done = self.run_with("hooks.url_env=NO_SUCH_VARIABLE", code=2)
        self.assertIn("hooks.url_env", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
