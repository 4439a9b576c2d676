#!/usr/bin/python3
"""Seats of `kernelmill serve`: an agent talks OpenAI's protocol, the server behind it is a scripted one, and the trace
has what a trainer needs."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import kernels  # noqa: F401 - puts the client on the path

# isort: split
import kernelmill
from kernels import GOOD, PROGRAM, TASK, TASKS
from serve_test import hold
from weights_test import Emulated

WORDS = "Two words."


class Seats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.folder = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["XDG_CACHE_HOME"] = str(cls.folder)
        cls.client = cls.stack.enter_context(
            kernelmill.serve(
                "cpu",
                program=PROGRAM,
                tasks=str(TASKS),
                patience=0,
                with_token=False,
                options=["--no-timing", "--runs", str(cls.folder / "runs")],
            )
        )
        cls.client.timeout = 600
        cls.policies = {x: cls.policy(x) for x in ("vllm", "sglang", "openai")}

    @classmethod
    def policy(cls, kind):
        answer = f"<think>\nt\n</think>\n<KERNEL>\n```cpp\n{GOOD}```\n</KERNEL>\n"
        script = cls.folder / f"{kind}.json"
        script.write_text(
            json.dumps(
                {
                    "model": "m",
                    "versions": [{"version": "step-1"}],
                    "drift": True,
                    "replies": [{"text": WORDS}, {"task": TASK, "text": answer}],
                }
            )
        )
        process = subprocess.Popen(
            [PROGRAM, "policy", "scripted", "--script", str(script), "--kind", kind],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        cls.stack.callback(process.stdout.close)
        cls.stack.callback(process.wait)
        cls.stack.callback(process.kill)
        return process.stdout.readline().strip()

    def emulated(self, answers):
        made = Emulated(answers)
        self.addCleanup(made.server_close)
        self.addCleanup(made.shutdown)
        return made

    def ask(self, seat, path="chat/completions", **body):
        """(status, headers, text), as an agent gets them."""
        if path == "chat/completions":
            body = {"model": "whatever", "messages": [{"role": "user", "content": "Say."}], **body}
        request = urllib.request.Request(
            f"{seat.base_url}/{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {seat.api_key}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read().decode()

    def chat(self, seat, **body):
        status, _, text = self.ask(seat, **body)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def test_a_chat_is_a_row_with_ids_that_the_agent_does_not_see(self):
        for kind in ("vllm", "sglang"):
            with self.subTest(kind), self.client.seat(kind, self.policies[kind], model="m") as seat:
                seen = self.chat(seat)
                self.assertEqual(seen["choices"][0]["message"]["content"], WORDS)
                self.assertNotIn("token_ids", json.dumps(seen))
                self.assertIsNone(seen["choices"][0]["logprobs"])
                [row] = seat.trace()
                self.assertEqual(row["request"], {"model": "m", "messages": [{"role": "user", "content": "Say."}]})
                self.assertEqual(row["response"], seen)
                count = seen["usage"]["completion_tokens"]
                for key in ("completion_token_ids", "completion_tokens", "per_token_logps"):
                    self.assertEqual(len(row[key]), count, key)
                self.assertEqual(len(row["prompt_token_ids"]), seen["usage"]["prompt_tokens"])
                self.assertTrue(all(x <= 0 for x in row["per_token_logps"]))

    def test_ids_and_log_probabilities_are_those_of_the_server(self):
        with self.client.seat("vllm", self.policies["vllm"], model="m") as seat:
            asked = self.chat(seat, logprobs=True, return_token_ids=True)
            [row] = seat.trace()
            choice = asked["choices"][0]
            self.assertEqual(row["completion_token_ids"], choice["token_ids"])
            for mine, theirs in zip(row["per_token_logps"], choice["logprobs"]["content"]):
                self.assertAlmostEqual(mine, theirs["logprob"], places=5)

    def test_a_stream_tells_the_same_and_is_the_same_row(self):
        with self.client.seat("vllm", self.policies["vllm"], model="m") as seat:
            whole = self.chat(seat)
            status, headers, text = self.ask(seat, stream=True, stream_options={"include_usage": True})
            self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
            events = [x.removeprefix("data: ") for x in text.split("\n\n") if x]
            self.assertEqual(events.pop(), "[DONE]")
            frames = [json.loads(x) for x in events]
            self.assertEqual({x["object"] for x in frames}, {"chat.completion.chunk"})
            deltas = [x["choices"][0] for x in frames if x["choices"]]
            self.assertEqual("".join(x["delta"].get("content") or "" for x in deltas), WORDS)
            self.assertEqual([x["finish_reason"] for x in deltas], [None, whole["choices"][0]["finish_reason"]])
            self.assertEqual(frames[-1]["usage"], whole["usage"])
            first, second = seat.trace()
            self.assertEqual(first["completion_token_ids"], second["completion_token_ids"])

    def test_calls_of_tools_are_in_the_stream(self):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        server = self.emulated(
            {
                "/v1/chat/completions": (
                    200,
                    {
                        "id": "x",
                        "model": "m",
                        "prompt_token_ids": [1, 2],
                        "usage": {"prompt_tokens": 2, "completion_tokens": 1},
                        "choices": [
                            {
                                "index": 0,
                                "finish_reason": "tool_calls",
                                "token_ids": [7],
                                "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                                "logprobs": {"content": [{"token": "f", "logprob": -0.5}]},
                            }
                        ],
                    },
                )
            }
        )
        with self.client.seat("vllm", server.url) as seat:
            _, _, text = self.ask(seat, stream=True, tools=[])
            self.assertIn('"tool_calls":[{"id":"c"', text.replace(" ", ""))
            self.assertEqual(server.seen[0][1]["model"], "whatever")
            [row] = seat.trace()
            self.assertEqual(
                (row["completion_token_ids"], row["per_token_logps"], row["completion_tokens"]), ([7], [-0.5], ["f"])
            )
            self.assertEqual(row["response"]["choices"][0]["message"]["tool_calls"], [call])

    def test_calls_of_tools_that_are_no_objects_end_no_seat(self):
        server = self.emulated(
            {
                "/v1/chat/completions": (
                    200,
                    {
                        "choices": [
                            {
                                "index": 0,
                                "finish_reason": "stop",
                                "message": {"role": "assistant", "content": "hi", "tool_calls": [1]},
                            }
                        ]
                    },
                )
            }
        )
        with self.client.seat("openai", server.url) as seat:
            self.assertEqual(self.ask(seat, stream=True)[0], 200)
            self.assertEqual(self.ask(seat)[0], 200)

    def test_a_key_that_the_server_says_is_in_no_answer_and_no_trace(self):
        server = self.emulated(
            {
                "/v1/chat/completions": (
                    200,
                    {
                        "choices": [
                            {
                                "index": 0,
                                "finish_reason": "stop",
                                "message": {"role": "assistant", "content": "I was asked with secret-key."},
                            }
                        ]
                    },
                )
            }
        )
        with self.client.seat("openai", server.url, api_key="secret-key") as seat:
            for stream in (False, True):
                status, _, text = self.ask(seat, stream=stream)
                self.assertEqual((status, server.keys[-1]), (200, "Bearer secret-key"))
                self.assertNotIn("secret-key", text)
            document = self.client._ask("GET", f"/v1/seats/{seat.id}/trace")
            self.assertEqual(len(document["trace"]), 2)
            self.assertNotIn("secret-key", json.dumps(document))

    def test_completions_too(self):
        server = self.emulated(
            {
                "/v1/completions": (
                    200,
                    {
                        "id": "x",
                        "object": "text_completion",
                        "model": "m",
                        "usage": {"prompt_tokens": 2, "completion_tokens": 2},
                        "choices": [
                            {
                                "index": 0,
                                "text": "ab",
                                "finish_reason": "length",
                                "prompt_token_ids": [5, 6],
                                "token_ids": None,
                                "logprobs": {"tokens": ["token_id:7", "token_id:8"], "token_logprobs": [-1.0, -2.0]},
                            }
                        ],
                    },
                )
            }
        )
        with self.client.seat("vllm", server.url) as seat:
            status, _, text = self.ask(seat, "completions", model="m", prompt=[5, 6], max_tokens=2)
            self.assertEqual((status, json.loads(text)["choices"][0]["text"]), (200, "ab"), text)
            self.assertEqual(server.seen[0][1]["logprobs"], 1)
            [row] = seat.trace()
            self.assertEqual((row["prompt_token_ids"], row["completion_token_ids"]), ([5, 6], [7, 8]))
            self.assertEqual(row["per_token_logps"], [-1.0, -2.0])

    def test_what_is_not_exact_has_a_flaw(self):
        with self.client.seat("openai", self.policies["openai"], model="m") as seat:
            self.chat(seat)
            with self.assertRaisesRegex(kernelmill.Inexact, "no token ids"):
                seat.trace()
            document = self.client._ask("GET", f"/v1/seats/{seat.id}/trace")
            hold(self, document, "SeatTrace")
            self.assertFalse(document["exact"])

    def test_bytes_of_a_policy_that_are_no_json_are_a_turn(self):
        """As the policy client reads them: a lone surrogate, bytes that are no UTF-8, a control byte, NaN."""
        told = b'"choices": [{"index": 0, "finish_reason": "stop", "token_ids": [7], '
        for said, shown in ((b"\\ud800!", "\ufffd!"), (b"\xff!", "\ufffd!"), (b"a\n!", "a\n!"), (b"\\q!", "\\q!")):
            message = b'"message": {"role": "assistant", "content": "' + said + b'"}'
            logprobs = b'"logprobs": {"content": [{"token": "x", "logprob": NaN}]}}]'
            body = b"{" + told + message + b", " + logprobs + b"}"
            server = self.emulated({"/v1/chat/completions": (200, body)})
            with self.client.seat("vllm", server.url) as seat:
                self.assertEqual(self.chat(seat)["choices"][0]["message"]["content"], shown)
                [row] = self.client._ask("GET", f"/v1/seats/{seat.id}/trace")["trace"]
                self.assertEqual((row["completion_token_ids"], row["per_token_logps"]), ([7], [None]))
                self.assertIn("no number", row["flaw"])
        server = self.emulated({"/v1/completions": (200, {"choices": [{"index": 0, "text": None}]})})
        with self.client.seat("vllm", server.url) as seat:
            status, _, text = self.ask(seat, "completions", model="m", prompt=[5])
            self.assertEqual((status, json.loads(text)["choices"][0]["text"]), (200, ""), text)

    def test_errors_are_the_servers_own_and_no_rows(self):
        server = self.emulated({"/v1/chat/completions": (429, {"error": {"message": "slow down, secret-key"}})})
        with self.client.seat("vllm", server.url, api_key="secret-key") as seat:
            status, _, text = self.ask(seat)
            self.assertEqual((status, server.keys), (429, ["Bearer secret-key"]))
            self.assertIn("slow down", text)
            self.assertNotIn("secret-key", text)
            self.assertEqual(self.ask(seat, n=2)[0], 400)
            self.assertEqual(self.ask(seat, messages=[])[0], 400)
            self.assertEqual(seat.trace(), [])
        self.assertEqual(self.ask(seat)[0], 404, "it is closed")
        with self.client.seat("vllm", "http://127.0.0.1:1/v1") as seat:
            self.assertEqual(self.ask(seat)[0], 503)
        with self.assertRaises(kernelmill.RequestError):
            self.client.seat("vllm", "nonsense")

    def test_an_episode_of_ours_is_an_agent(self):
        with self.client.seat("sglang", self.policies["sglang"], model="m") as seat:
            self.client.order(
                [TASK],
                id="agent",
                groups=1,
                group_size=2,
                max_turns=1,
                policy={"kind": "openai", "base_url": seat.base_url, "model": "m"},
                config={"retrieval": {"enabled": False}, "evaluation": {"timing": {"enabled": False}}},
            )
            stream = self.client.rollouts("agent")
            for batch in stream:
                stream.ack(batch, 1)
            rows = seat.trace()
            self.assertEqual(len(rows), 2)
            for row in rows:
                self.assertEqual(row["weight_version"], "step-1")
                self.assertIn(GOOD, row["response"]["choices"][0]["message"]["content"])
                self.assertGreater(len(row["completion_token_ids"]), 10)


if __name__ == "__main__":
    unittest.main()
