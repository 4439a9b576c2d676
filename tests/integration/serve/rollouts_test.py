#!/usr/bin/python3
"""Rollouts of `kernelmill serve`, over HTTP: ordered, leased, acknowledged, committed, gone back from, and
what is left of it all when the server is killed."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import kernels  # noqa: F401 - puts the client on the path

# isort: split
from kernelmill.client import Client, KernelmillError
from kernels import GOOD, PROGRAM, TASK, TASKS, WRONG
from serve_test import hold


class Place:
    """A folder with a policy server and a server of rollouts, which may be killed."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.left: contextlib.ExitStack = contextlib.ExitStack()
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        (folder / "script.json").write_text(
            json.dumps(
                {
                    "model": "m",
                    "versions": [{"version": "step-0"}],
                    "replies": [{"text": f"<think>\nt\n</think>\n<KERNEL>\n```cpp\n{WRONG}```\n</KERNEL>\n"}]
                    + [
                        {
                            "task": TASK,
                            "member": member,
                            "text": f"<think>\nt\n</think>\n<KERNEL>\n```cpp\n{GOOD}```\n</KERNEL>\n",
                        }
                        for member in (0, 2)
                    ],
                }
            )
        )
        self.policy_server = self.start(
            "policy", "scripted", "--script", str(folder / "script.json"), "--kind", "sglang"
        )
        self.policy = self.line(self.policy_server)
        self.server = None
        self.serve()

    def start(self, *words):
        log = self.left.enter_context(open(self.folder / "log", "ab"))
        process = subprocess.Popen(
            [PROGRAM, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
        )
        self.left.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        process.stdout.close()

    def line(self, process):
        said = process.stdout.readline().strip()
        assert said, (self.folder / "log").read_text()
        return said

    def serve(self):
        self.server = self.start(
            "serve", "--backend", "cpu", "--no-timing", "--root", str(TASKS), "--runs", str(self.folder / "runs")
        )
        self.client = Client(self.line(self.server), patience=0, timeout=300)

    def kill(self):
        self.server.kill()
        self.server.wait()
        self.serve()

    def ask(self, method, path, body=None, extra_s=600):
        return self.client._ask(method, path, body, extra_s=extra_s)

    def order(self, **more):
        return self.ask(
            "POST",
            "/v1/rollouts",
            {
                "tasks": [TASK],
                "groups": 2,
                "group_size": 2,
                "max_turns": 1,
                "policy": {"kind": "sglang", "base_url": self.policy, "model": "m", "tokens": "exact"},
                "sampling": {"logprobs": True},
                "config": {"retrieval": {"enabled": False}, "evaluation": {"timing": {"enabled": False}}},
                **more,
            },
        )

    def batch(self, order, request, groups=1, generation=0, wait_s=600, consumer="", lease_s=600):
        return self.ask(
            "GET",
            f"/v1/rollouts/batch?order={order}&consumer={consumer or order}&request={request}"
            f"&groups={groups}&generation={generation}&wait_s={wait_s}&lease_s={lease_s}",
        )


class Rollouts(unittest.TestCase):
    """Of one place: each test has orders and consumers of its own names."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.at = Place(pathlib.Path(folder.name))
        cls.addClassCleanup(cls.at.left.close)

    def refused(self, category, status, call, *words, **more):
        with self.assertRaises(KernelmillError) as what:
            call(*words, **more)
        self.assertEqual((what.exception.category, what.exception.status), (category, status), str(what.exception))

    def test_a_group_goes_from_its_order_to_a_checkpoint(self):
        at = self.at
        self.refused("bad_request", 400, at.order, form="sft")
        self.refused("not_found", 404, at.ask, "GET", "/v1/rollouts/none")
        self.refused("unknown_task", 400, at.order, id="none", tasks=["native/none"])
        self.refused("bad_request", 400, at.order, id="flat", config={"policy": {"sampling": 3}}, sampling={"seed": 1})
        ordered = at.order(id="first", form="trl")
        hold(self, ordered, "Rollouts")
        hold(self, ordered["groups"], "RolloutCounts")
        self.assertEqual(ordered["requested"], 2)
        self.assertEqual(at.order(id="first", form="trl")["id"], "first")
        self.refused("handoff_conflict", 409, at.order, id="first", form="trl", groups=3)

        batch = at.batch("first", "r1")
        hold(self, batch, "RolloutBatch")
        group = batch["groups"][0]
        hold(self, group, "RolloutGroup")
        self.assertEqual((group["requested"], group["delivered"]), (2, 2))
        self.assertEqual(group["min_version"], "step-0")
        self.assertEqual(len(group["rows"]), 2)
        for row in group["rows"]:
            self.assertEqual(len(row["input_ids"]), len(row["completion_mask"]))
        self.assertEqual(at.batch("first", "r1"), batch)

        acked = at.ask("POST", "/v1/rollouts/ack", {"lease": batch["lease"], "optimizer_step": 1})
        hold(self, acked, "RolloutAcknowledged")
        at.ask("POST", "/v1/rollouts/ack", {"lease": batch["lease"], "groups": [group["id"]], "optimizer_step": 1})
        self.refused(
            "handoff_conflict",
            409,
            at.ask,
            "POST",
            "/v1/rollouts/ack",
            {"lease": batch["lease"], "groups": [group["id"]], "optimizer_step": 2},
        )
        done = at.ask("POST", "/v1/rollouts/commit", {"consumer": "first", "optimizer_step": 1})
        hold(self, done, "RolloutConsumer")
        hold(self, at.ask("POST", "/v1/weights", {"version": "step-1"}), "WeightsDeclared")

        second = at.batch("first", "r2")
        at.ask("POST", "/v1/rollouts/ack", {"lease": second["lease"], "optimizer_step": 2})
        over = at.batch("first", "r3")
        self.assertEqual((over["lease"], over["groups"], over["over"]), (None, [], True))
        at.ask("POST", "/v1/rollouts/commit", {"consumer": "first", "optimizer_step": 2})
        end = at.ask("GET", "/v1/rollouts/first")
        self.assertEqual((end["groups"]["committed"], end["state"]), (2, "settled"))
        self.assertEqual(sum(end["groups"].values()), end["requested"])
        hold(self, at.ask("GET", "/v1/rollouts"), "RolloutList")

    def test_what_a_licence_binds_is_not_ordered(self):
        at = self.at
        policy = {"kind": "sglang", "base_url": at.policy, "model": "m", "tokens": "exact"}
        for name, more in {
            "bound": {"licence": "sol-execbench"},
            "hearsay": {"licence": "openai-answers"},
            "model": {"model": "openrouter/openai/gpt-5"},
        }.items():
            with self.assertRaises(KernelmillError) as what:
                at.order(id=name, policy=policy | more)
            self.assertEqual(what.exception.category, "licence_forbids", str(what.exception))
            self.assertFalse((at.folder / "runs" / name).exists())
            self.refused("not_found", 404, at.ask, "GET", f"/v1/rollouts/{name}")

    def test_a_killed_server_goes_on_where_it_was(self):
        at = self.at
        at.order(id="long", groups=4)
        first = at.batch("long", "r1")
        at.kill()
        self.assertEqual(at.batch("long", "r1"), first)
        at.ask("POST", "/v1/rollouts/ack", {"lease": first["lease"], "optimizer_step": 1})
        at.kill()
        at.ask("POST", "/v1/rollouts/commit", {"consumer": "long", "optimizer_step": 1})
        second = at.batch("long", "r2", groups=2)
        self.assertEqual(len(second["groups"]), 2)
        at.ask("POST", "/v1/rollouts/ack", {"lease": second["lease"], "optimizer_step": 2})
        at.kill()
        # The trainer was killed too: it has the checkpoint of step 1.
        back = at.ask("POST", "/v1/rollouts/rollback", {"consumer": "long", "optimizer_step": 1})
        self.assertEqual((back["generation"], back["committed_step"]), (1, 1))
        self.refused("consumer_fenced", 409, at.batch, "long", "r3")
        self.refused(
            "lease_lost", 409, at.ask, "POST", "/v1/rollouts/ack", {"lease": second["lease"], "optimizer_step": 2}
        )
        rest = at.batch("long", "r1", groups=4, generation=1)
        self.assertEqual([x["id"] for x in rest["groups"]][:2], [x["id"] for x in second["groups"]])
        self.assertEqual(len(rest["groups"]), 3)
        again = at.ask("GET", "/v1/rollouts/long")["groups"]
        self.assertEqual((again["committed"], again["leased"]), (1, 3))

    def test_a_run_without_a_store_is_begun(self):
        at = self.at
        names = ["torn-before", "torn-within"]
        at.policy_server.send_signal(signal.SIGSTOP)  # nothing is committed meanwhile
        try:
            for name in names:
                at.order(id=name, groups=1)
            at.server.kill()
            at.server.wait()
        finally:
            at.policy_server.send_signal(signal.SIGCONT)
        for name in names:  # as if it had been killed before the store was made: that comes before the journal
            run = at.folder / "runs" / name
            shutil.rmtree(run / "lineage")
            self.assertEqual((run / "traces.jsonl").read_text(), "")
            for journal in ("traces.jsonl", "metrics.jsonl"):
                (run / journal).unlink()
        (run / "lineage").mkdir()
        (run / "lineage" / "data.mdb").touch()  # of the last one: LMDB had made its file and written nothing
        at.serve()
        for name in names:
            self.assertEqual(len(at.batch(name, "r1")["groups"]), 1, at.ask("GET", "/v1/rollouts/" + name))

    def test_a_lease_that_expires_goes_to_another(self):
        at = self.at
        at.order(id="short", groups=1)
        late = at.batch("short", "r1", lease_s=0.01)
        other = at.batch("short", "r1", consumer="other")
        self.assertEqual(other["groups"][0]["id"], late["groups"][0]["id"])
        self.refused(
            "lease_lost", 409, at.ask, "POST", "/v1/rollouts/ack", {"lease": late["lease"], "optimizer_step": 1}
        )
        gone = at.ask("DELETE", "/v1/rollouts/short")
        self.assertEqual((gone["state"], gone["groups"]["leased"]), ("cancelled", 1))

    def test_a_run_is_held_while_no_trainer_takes_its_groups(self):
        at = self.at
        at.order(
            id="slow",
            groups=12,
            max_ready=2,
            config={
                "retrieval": {"enabled": False},
                "episode": {"max_live": 2},
                "evaluation": {"timing": {"enabled": False}},
            },
        )
        self.refused("bad_request", 400, at.batch, "slow", "r0", groups=3)
        while at.ask("GET", "/v1/rollouts/slow")["state"] != "held":
            pass
        held = at.ask("GET", "/v1/rollouts/slow")["groups"]
        self.assertGreaterEqual(held["ready"], 2)
        self.assertGreater(held["open"], 0)
        seen, step = set(), 0
        while True:
            batch = at.batch("slow", f"r{step}", groups=2)
            if batch["over"]:
                break
            step += 1
            seen |= {x["id"] for x in batch["groups"]}
            at.ask("POST", "/v1/rollouts/ack", {"lease": batch["lease"], "optimizer_step": step})
        self.assertEqual(len(seen), 12)

    def test_groups_that_a_form_cannot_use_are_dropped_with_the_reason(self):
        at = self.at
        at.order(
            id="blind",
            groups=1,
            form="trl",
            sampling={"logprobs": False},
            policy={"kind": "openai", "base_url": at.policy, "model": "m"},
        )
        batch = at.batch("blind", "r1")
        self.assertTrue(batch["over"])
        self.assertEqual(at.ask("GET", "/v1/rollouts/blind")["dropped"], {"without_token_ids": 1})

    def test_old_weights_are_counted(self):
        at = self.at
        at.order(id="stale", groups=1, max_off_policy=0)
        at.ask("POST", "/v1/weights", {"version": "step-0"})
        at.ask("POST", "/v1/weights", {"version": "step-1"})
        self.assertTrue(at.batch("stale", "r1")["over"])
        self.assertEqual(at.ask("GET", "/v1/rollouts/stale")["dropped"], {"stale": 1})


if __name__ == "__main__":
    unittest.main()
