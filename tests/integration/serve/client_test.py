#!/usr/bin/python3
"""The Python client against a server that answers what the test says."""

import http.server
import json
import os
import pathlib
import sys
import threading
import unittest
from unittest import mock

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "launch" / "python"))

import kernelmill  # noqa: E402
from kernelmill.adapters import trl  # noqa: E402


def evaluation(state="done", reward=1.0):
    verdict = {"reward": reward, "outcome": "accepted", "correct": True,
               "timing": {"measured": True, "speedup": {"low": 1.5}}}
    return {"id": "ev-1", "state": state, "verdict": verdict if state == "done" else None,
            "feedback": None}


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
        self.answers = [busy, (0, {}), (202, {"evaluations": [evaluation("waiting")]}),
                        (200, evaluation("building")), (200, evaluation())]
        one = self.client.evaluate("native/x", "code")
        self.assertEqual((one.reward, one.speedup, one.correct), (1.0, 1.5, True))
        posts = [x for x in self.asked if x[0] == "POST"]
        self.assertEqual(len(posts), 3)
        self.assertEqual(len({x[2]["Idempotency-Key"] for x in posts}), 1)
        self.assertEqual({x[2]["Authorization"] for x in self.asked}, {"Bearer t0ken"})
        self.assertEqual(json.loads(posts[0][3])["candidates"],
                         [{"task": "native/x", "source": "code", "contract": "auto"}])

    def test_errors_are_what_the_server_says(self):
        said = {"error": {"category": "c", "message": "m", "hint": "h"}}
        for status, kind in ((400, kernelmill.RequestError), (401, kernelmill.Unauthorized),
                             (404, kernelmill.NotFound), (500, kernelmill.Unavailable)):
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
        self.assertEqual([x["completion"] for x in json.loads(self.asked[0][3])["candidates"]],
                         ["a", ""])


if __name__ == "__main__":
    unittest.main()
