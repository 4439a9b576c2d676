#!/usr/bin/python3
"""The Python client against a server that answers what the test says."""

import asyncio
import dataclasses
import http.server
import json
import os
import pathlib
import socket
import sys
import tempfile
import threading
import unittest
import urllib.parse
from unittest import mock

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "launch/learning/client"))

import kernelmill  # noqa: E402
from kernelmill.adapters import trl  # noqa: E402


def evaluation(state="done", reward=1.0):
    verdict = {
        "reward": reward,
        "outcome": "accepted",
        "correct": True,
        "timing": {"measured": True, "speedup": {"low": 1.5}},
    }
    return {"id": "ev-1", "state": state, "verdict": verdict if state == "done" else None, "feedback": None}


class Client(unittest.TestCase):
    def setUp(self):
        test = self
        self.asked, self.answers = [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                test.asked.append((self.command, self.path, dict(self.headers), body))
                status, document, *headers = test.answers.pop(0)
                if status == 0:
                    return  # hangs up
                text = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.client = kernelmill.Client(f"http://127.0.0.1:{self.server.server_port}/", "t0ken")

    def tearDown(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def test_it_asks_again_where_nothing_is_lost(self):
        busy = (429, {"error": {"message": "full"}}, ("Retry-After", "0.01"))
        self.answers = [
            busy,
            (0, {}),
            (202, {"evaluations": [evaluation("waiting")]}),
            (200, evaluation("building")),
            (200, evaluation()),
        ]
        one = self.client.evaluate("native/x", "code")
        self.assertEqual((one.reward, one.speedup_lower, one.correct), (1.0, 1.5, True))
        posts = [x for x in self.asked if x[0] == "POST"]
        self.assertEqual(len(posts), 3)
        self.assertEqual(len({x[2]["Idempotency-Key"] for x in posts}), 1)
        self.assertEqual({x[2]["Authorization"] for x in self.asked}, {"Bearer t0ken"})
        self.assertEqual(
            json.loads(posts[0][3])["candidates"], [{"task": "native/x", "source": "code", "contract": "auto"}]
        )

    def test_a_server_that_never_answered_is_not_waited_for(self):
        client = kernelmill.Client(f"http://127.0.0.1:{self.server.server_port}/", "t0ken", first_contact=0)
        self.answers = [(0, {}), (200, evaluation()), (0, {}), (200, evaluation())]
        with self.assertRaisesRegex(kernelmill.Unavailable, "kernelmill serve"):
            client.get("ev-1")
        self.assertTrue(client.get("ev-1").over)
        self.assertTrue(client.get("ev-1").over, "it is there, and was away for a moment")

    def test_the_best_kernel_is_the_first_of_a_task_and_the_highest_bound_of_an_operator(self):
        fields = {x.name: "" for x in dataclasses.fields(kernelmill.Kernel)}
        rows = [{**fields, "task": t, "best_speedup_lower": low, "more": 1} for t, low in (("a", 1.5), ("b", 2.5))]
        self.answers = [(200, {"kernels": rows}), (200, {"kernels": rows}), (200, {"kernels": []})]
        self.assertEqual(self.client.best_kernel("a", gpu="NVIDIA H200", shape="n=8").task, "a")
        self.assertEqual(self.client.best_kernel(operator="scan").task, "b")
        self.assertIsNone(self.client.best_kernel("c"))
        asked = [urllib.parse.urlsplit(x[1]) for x in self.asked]
        self.assertEqual({x.path for x in asked}, {"/v1/kernels"})
        query = {"task": "a", "gpu": "NVIDIA H200", "shape": "n=8"}
        self.assertEqual(dict(urllib.parse.parse_qsl(asked[0].query)), query)

    def test_a_token_is_one_word_and_is_never_shown(self):
        for token in "two words", "t\u00f6ken", "a\nb":
            with self.assertRaises(ValueError) as said:
                kernelmill.Client("http://127.0.0.1:1", token)
            self.assertNotIn(token, str(said.exception))
        client = kernelmill.Client(self.client.url, "s3cret\n")
        self.answers = [(401, {"error": {"message": "m"}})]
        with self.assertRaises(kernelmill.Unauthorized) as said:
            client.get("ev-1")
        self.assertEqual(self.asked[0][2]["Authorization"], "Bearer s3cret")
        self.assertNotIn("s3cret", repr(client) + str(said.exception))

    def test_a_token_may_lie_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "token")
            path.write_text(" f1led\n")
            client = kernelmill.Client(self.client.url, token_file=str(path))
            self.answers = [(200, evaluation())]
            client.get("ev-1")
            self.assertEqual(self.asked[0][2]["Authorization"], "Bearer f1led")
            self.assertNotIn("f1led", repr(client))
            with self.assertRaisesRegex(ValueError, "keep one"):
                kernelmill.Client(self.client.url, "t0ken", token_file=str(path))

    def test_a_url_holds_no_password_and_is_that_of_a_kernelmill(self):
        with self.assertRaises(ValueError) as said:
            kernelmill.Client("http://me:s3cret@127.0.0.1:1")
        self.assertNotIn("s3cret", str(said.exception))
        self.answers = [(200, b"<html>")]
        with self.assertRaisesRegex(kernelmill.KernelmillError, "is no kernelmill"):
            self.client.get("ev-1")

    def test_an_address_that_keeps_silent_is_given_up_at_first_contact(self):
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)  # nothing accepts: further connections are not answered
            where = full.getsockname()
            held = []
            try:
                for _ in range(3):
                    one = socket.socket()
                    held.append(one)
                    one.setblocking(False)
                    one.connect_ex(where)
                client = kernelmill.Client(f"http://127.0.0.1:{where[1]}", first_contact=0, timeout=3600)
                with self.assertRaisesRegex(kernelmill.Unavailable, "does not answer"):
                    client.get("ev-1")
            finally:
                for one in held:
                    one.close()

    def test_what_is_printed_is_short(self):
        self.answers = [(200, evaluation())]
        self.assertEqual(
            repr(self.client.get("ev-1")), "Evaluation(id='ev-1', state='done', outcome='accepted', reward=1.0)"
        )
        self.assertNotIn("code", repr(kernelmill.Candidate("native/x", "code")))

    def test_errors_are_what_the_server_says(self):
        said = {"error": {"category": "c", "message": "m", "hint": "h"}}
        for status, kind in (
            (400, kernelmill.RequestError),
            (401, kernelmill.Unauthorized),
            (404, kernelmill.NotFound),
            (500, kernelmill.Unavailable),
        ):
            self.answers = [(status, said)]
            with self.assertRaises(kind) as caught:
                self.client.get("ev-1")
            self.assertEqual((caught.exception.status, str(caught.exception)), (status, "m (h)"))
        self.answers = [(502, b"<html>")]
        with self.assertRaises(kernelmill.Unavailable):
            self.client.get("ev-1")

    def test_patience_ends(self):
        self.client.patience = 0
        self.answers = [(429, {"error": {"message": "full"}}), (0, {})]
        with self.assertRaises(kernelmill.Busy):
            self.client.get("ev-1")
        with self.assertRaises(kernelmill.Unavailable):
            self.client.get("ev-1")
        self.answers = [(0, {})]
        self.assertFalse(self.client.ready())

    def test_a_connection_that_is_reset_before_it_is_there_is_asked_again(self):
        client = kernelmill.Client("http://127.0.0.1:1", patience=0)
        with mock.patch("http.client.HTTPConnection.connect", side_effect=ConnectionResetError("reset")):
            with self.assertRaisesRegex(kernelmill.Unavailable, "does not answer: reset"):
                client.tasks()

    def test_no_url_and_no_program_are_said(self):
        with self.assertRaises(ValueError):
            kernelmill.Client("localhost:80")
        with self.assertRaises(kernelmill.KernelmillError) as caught:
            with kernelmill.serve(program="/bin/false"):
                pass
        self.assertEqual(caught.exception.category, "serve_failed")

    def test_the_key_is_in_no_text(self):
        self.assertNotIn("t0ken", repr(self.client))

    def test_rewards_have_the_shape_that_trl_wants(self):
        self.answers = [(202, {"evaluations": [evaluation(), evaluation(reward=None)]})]
        chat = [[{"role": "assistant", "content": "a"}], [{"role": "assistant", "content": None}]]
        with mock.patch.object(trl, "client", lambda: self.client):
            self.assertEqual(trl.kernel_reward(completions=chat, task=["t", "t"], prompts=[]), [1.0, None])
        self.assertEqual([x["completion"] for x in json.loads(self.asked[0][3])["candidates"]], ["a", ""])

    # -- rollouts -----------------------------------------------------------------------------

    def batch(self, lease, *groups, over=False):
        return 200, {
            "schema_version": 1,
            "order": "o",
            "lease": lease,
            "consumer": "trainer",
            "generation": 3,
            "until_s": 9.5 if lease else None,
            "over": over,
            "groups": [
                {"id": x, "requested": 2, "delivered": 1, "min_version": None, "max_version": "v", "rows": [{"row": x}]}
                for x in groups
            ],
        }

    def test_batches_come_until_nothing_is_left(self):
        self.answers = [
            (200, {"generation": 3}),
            self.batch(None),
            (0, {}),
            self.batch(1, "o/g0", "o/g1"),
            (200, {}),
            self.batch(None, over=True),
            (200, {}),
        ]
        stream = self.client.rollouts("o", groups=2, checkpoint=5)
        batches = []
        for batch in stream:
            batches.append(batch)
            stream.ack(batch, 6, batch.groups[:1])
        stream.commit(6)
        self.assertEqual([x.rows for x in batches], [[{"row": "o/g0"}, {"row": "o/g1"}]])
        bodies = [json.loads(x[3]) for x in self.asked if x[0] == "POST"]
        self.assertEqual(
            bodies,
            [
                {"consumer": "trainer", "optimizer_step": 5},
                {"lease": 1, "optimizer_step": 6, "groups": ["o/g0"]},
                {"consumer": "trainer", "generation": 3, "optimizer_step": 6},
            ],
        )
        asked = [urllib.parse.parse_qs(x[1].split("?")[1]) for x in self.asked if x[0] == "GET"]
        self.assertEqual([x["generation"] for x in asked], [["3"]] * 4)
        # Asked again for the same until it came, then for another.
        self.assertEqual(len({x["request"][0] for x in asked[:3]}), 1)
        self.assertNotEqual(asked[3]["request"], asked[0]["request"])

    def test_batches_come_to_a_trainer_that_awaits_them(self):
        self.answers = [(200, {"generation": 1}), self.batch(1, "o/g0"), self.batch(None, over=True)]

        async def collect():
            return [x.lease async for x in self.client.rollouts("o")]

        self.assertEqual(asyncio.run(collect()), [1])

    def awaiting(self, use):
        async def inside():
            async with kernelmill.AsyncClient(self.client.url, "t0ken") as client:
                self.assertNotIn("t0ken", repr(client))
                return await use(client)

        return asyncio.run(inside())

    def test_a_program_that_awaits_gets_verdicts_in_their_order(self):
        first, second = dict(evaluation(reward=1.0), id="ev-1"), dict(evaluation(reward=2.0), id="ev-2")
        self.answers = [(202, {"evaluations": [dict(evaluation("waiting"), id="ev-1"), second]}), (200, first)]
        candidates = [kernelmill.Candidate("native/x", source=x) for x in "ab"]
        self.assertEqual([x.reward for x in self.awaiting(lambda c: c.evaluate_many(candidates))], [1.0, 2.0])
        self.assertEqual([x[0] for x in self.asked], ["POST", "GET"])

        self.answers = [(401, {"error": {"category": "unauthorized", "message": "m"}})]
        with self.assertRaises(kernelmill.Unauthorized):
            self.awaiting(lambda c: c.evaluate("native/x", "code"))

        self.answers = [(200, evaluation("building"))]
        with self.assertRaises(TimeoutError):
            self.awaiting(lambda c: c.wait("ev-1", timeout=0))

    def test_an_evaluation_is_cancelled_with_its_coroutine(self):
        self.answers = [(202, {"evaluations": [evaluation("waiting")]}), (200, evaluation("cancelled"))]

        async def cancel(client):
            waits = asyncio.Event()

            async def never(_):
                waits.set()
                await asyncio.Event().wait()

            client.wait = never
            one = asyncio.ensure_future(client.evaluate("native/x", "code"))
            await waits.wait()
            one.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await one

        self.awaiting(cancel)
        self.assertEqual([x[:2] for x in self.asked][1:], [("DELETE", "/v1/evaluations/ev-1")])

    def test_groups_that_are_lost_and_trainers_that_are_left_over_have_errors_of_their_own(self):
        self.answers = [
            (200, {"generation": 1}),
            self.batch(1, "o/g0"),
            (409, {"error": {"category": "lease_lost", "message": "m"}}),
            (409, {"error": {"category": "consumer_fenced", "message": "m"}}),
        ]
        stream = self.client.rollouts("o")
        batch = stream.next()
        with self.assertRaises(kernelmill.LeaseLost):
            stream.ack(batch, 1)
        with self.assertRaises(kernelmill.Fenced):
            stream.next()

    def test_an_order_that_is_sent_again_is_one(self):
        self.answers = [(0, {}), (200, {"id": "x"})]
        self.client.order(["native/x"], groups=2)
        first, second = (json.loads(x[3]) for x in self.asked)
        self.assertEqual(first, second)
        self.assertEqual((first["tasks"], first["groups"]), (["native/x"], 2))


if __name__ == "__main__":
    unittest.main()
