#!/usr/bin/python3
"""Keys of the operator's, over HTTP: orders, weights and seats name them, and they go to their address alone. A client
with a token gets no variable and no file of the server's machine to an address of its own, by no door."""

import contextlib
import json
import os
import pathlib
import tempfile
import unittest

import kernels  # noqa: F401 - puts the client on the path

# isort: split
import kernelmill
from kernels import PROGRAM, TASK, TASKS
from seats_test import WORDS
from weights_test import SGLANG, Emulated

SECRET = "s3cret-of-the-lab"
OTHER = "another-s3cret-of-the-server"
SAYS = {
    "id": "x",
    "object": "chat.completion",
    "model": "m",
    "usage": {"prompt_tokens": 2, "completion_tokens": 1},
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": WORDS}}],
}


class Keys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        home = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["XDG_CACHE_HOME"] = str(home)
        os.environ["KERNELMILL_TEST_LAB"], os.environ["KERNELMILL_TEST_OTHER"] = SECRET, OTHER
        (home / "other-key").write_text(OTHER)
        cls.other_file = str(home / "other-key")
        cls.lab = cls.emulated({**SGLANG, "/v1/chat/completions": (200, SAYS)})
        cls.evil = cls.emulated({**SGLANG, "/v1/chat/completions": (200, SAYS), "/hook": (200, {})})
        (home / "keys.json").write_text(
            json.dumps({"keys": [{"name": "lab", "base_url": cls.lab.url, "api_key_env": "KERNELMILL_TEST_LAB"}]})
        )
        cls.client = cls.stack.enter_context(
            kernelmill.serve(
                "cpu",
                program=PROGRAM,
                tasks=str(TASKS),
                patience=0,
                options=["--no-timing", "--runs", str(home / "runs"), "--policy-keys", str(home / "keys.json")],
            )
        )
        cls.client.timeout = 600

    @classmethod
    def emulated(cls, answers):
        made = Emulated(answers)
        cls.addClassCleanup(made.server_close)
        cls.addClassCleanup(made.shutdown)
        return made

    def tearDown(self):
        told = json.dumps([self.evil.seen, self.evil.keys])
        self.assertNotIn(SECRET, told)
        self.assertNotIn(OTHER, told)

    def refused(self, category, *words, call, **more):
        with self.assertRaises(kernelmill.RequestError) as caught:
            call(**more)
        what = caught.exception
        self.assertEqual(what.category, category, what)
        for word in words:
            self.assertIn(word, f"{what.message} {what.hint}")

    def order(self, policy=None, **more):
        return self.client._ask(
            "POST",
            "/v1/rollouts",
            {
                "tasks": [TASK],
                "groups": 1,
                "group_size": 1,
                "max_turns": 1,
                "policy": {"kind": "openai", "model": "m", **(policy or {})},
                **more,
            },
        )

    def test_an_order_names_a_key_and_it_goes_to_its_server(self):
        ordered = self.order({"key": "lab"}, id="lab", config={"retrieval": {"enabled": False}})
        with contextlib.suppress(kernelmill.KernelmillError):
            self.client._ask("GET", "/v1/rollouts/batch?order=lab&consumer=c&request=r&wait_s=600", extra_s=600)
        self.assertEqual(ordered["requested"], 1)
        self.assertIn(f"Bearer {SECRET}", self.lab.keys)

    def test_an_order_gets_no_key_elsewhere(self):
        for policy, words in (
            ({"api_key_env": "KERNELMILL_TEST_OTHER"}, ("policy.api_key_env", "policy.key=NAME")),
            ({"api_key_file": self.other_file}, ("policy.api_key_file", "--policy-keys")),
            ({"ca_file": self.other_file}, ("policy.ca_file",)),
            ({"kind": "scripted", "script": self.other_file}, ("policy.script",)),
        ):
            self.refused("not_in_orders", *words, call=self.order, policy={"base_url": self.evil.url, **policy})
        self.refused(
            "policy_key_refused", '"lab" is for', call=self.order, policy={"base_url": self.evil.url, "key": "lab"}
        )
        self.refused(
            "policy_key_refused",
            '"KERNELMILL_TEST_OTHER"',
            "it has lab",
            call=self.order,
            policy={"base_url": self.evil.url, "key": "KERNELMILL_TEST_OTHER"},
        )
        self.refused("bad_request", "policy.key", call=self.order, policy={"base_url": self.evil.url, "key": ["lab"]})

    def test_nothing_else_of_an_order_names_the_machine(self):
        command = ["/bin/sh", "-c", "exit 0"]
        for section, key, value in (
            ("hooks", "url", self.evil.url + "/hook"),
            ("hooks", "command", command),
            ("hooks", "token_env", "KERNELMILL_TEST_OTHER"),
            ("hooks", "token_file", self.other_file),
            ("otlp", "endpoint", self.evil.url),
            ("otlp", "headers_env", "KERNELMILL_TEST_OTHER"),
            ("otlp", "content", True),
            ("evaluation", "python", "/bin/sh"),
            ("compile", "compiler", "/bin/sh"),
            ("compile", "cache_dir", "/tmp"),
            ("tasks", "root", "/etc"),
            ("retrieval", "corpus", "/etc"),
            ("retrieval", "index", "/etc/passwd"),
            ("storage", "store", "/tmp"),
            ("run", "dir", "/tmp"),
        ):
            with self.subTest(key=f"{section}.{key}"):
                self.refused(
                    "not_in_orders",
                    f"{section}.{key}",
                    call=self.order,
                    policy={"base_url": self.evil.url},
                    config={section: {key: value}},
                )
        embedder = {"kind": "http", "base_url": self.evil.url, "model": "m"}
        for more, words in (
            ({"api_key_env": "KERNELMILL_TEST_OTHER"}, ("retrieval.embedder.key=NAME",)),
            ({"api_key_file": self.other_file}, ("retrieval.embedder.api_key_file",)),
        ):
            self.refused(
                "not_in_orders",
                *words,
                call=self.order,
                policy={"base_url": self.evil.url},
                config={"retrieval": {"embedder": {**embedder, **more}}},
            )
        self.refused(
            "not_in_orders",
            "retrieval.embedder.api_key_env",
            call=self.order,
            policy={"base_url": self.evil.url},
            config={"retrieval": {**embedder, "embedder.api_key_env": "KERNELMILL_TEST_OTHER"}},
        )
        self.refused(
            "policy_key_refused",
            call=self.order,
            policy={"base_url": self.evil.url},
            config={"retrieval": {"embedder": {**embedder, "key": "lab"}}},
        )

    def load(self, **server):
        return self.client.declare_weights("step-2", "/w/2", servers=[{"kind": "sglang", **server}])

    def test_weights_are_loaded_with_a_key_that_is_named(self):
        self.lab.keys.clear()
        self.load(key="lab", base_url=self.lab.url)
        self.load(key="lab")
        self.assertEqual(set(self.lab.keys), {f"Bearer {SECRET}"})
        self.refused("policy_key_refused", '"lab" is for', call=self.load, key="lab", base_url=self.evil.url)
        self.refused("policy_key_refused", call=self.load, key="lab", api_key="mine")
        self.refused(
            "bad_request",
            '"servers[0].api_key_env"',
            call=self.load,
            base_url=self.evil.url,
            api_key_env="KERNELMILL_TEST_OTHER",
        )
        self.refused(
            "bad_request",
            '"servers[0].api_key_file"',
            call=self.load,
            base_url=self.evil.url,
            api_key_file=self.other_file,
        )

    def test_a_seat_has_a_key_that_is_named(self):
        self.lab.keys.clear()
        with self.client.seat("openai", key="lab", model="m") as seat:
            answer = self.client._ask(
                "POST",
                seat.base_url[seat.base_url.index("/v1/") :] + "/chat/completions",
                {"model": "m", "messages": [{"role": "user", "content": "Say."}]},
            )
        self.assertEqual(answer["choices"][0]["message"]["content"], WORDS)
        self.assertEqual(self.lab.keys, [f"Bearer {SECRET}"])
        self.refused(
            "policy_key_refused",
            '"lab" is for',
            call=self.client.seat,
            kind="openai",
            base_url=self.evil.url,
            key="lab",
        )
        for key, value in (("api_key_env", "KERNELMILL_TEST_OTHER"), ("api_key_file", self.other_file)):
            with self.assertRaises(kernelmill.RequestError) as caught:
                self.client._ask("POST", "/v1/seats", {"kind": "openai", "base_url": self.evil.url, key: value})
            self.assertEqual(caught.exception.category, "bad_request")

    def test_a_client_that_brings_its_own_key_needs_no_list(self):
        self.evil.keys.clear()
        self.load(base_url=self.evil.url, api_key="mine-0000")
        self.assertEqual(set(self.evil.keys), {"Bearer mine-0000"})


class WithoutList(unittest.TestCase):
    def test_no_key_is_sent_where_the_operator_lists_none(self):
        with contextlib.ExitStack() as stack:
            home = stack.enter_context(tempfile.TemporaryDirectory())
            client = stack.enter_context(
                kernelmill.serve(
                    "cpu", program=PROGRAM, tasks=str(TASKS), patience=0, options=["--no-timing", "--runs", home]
                )
            )
            for call in (
                lambda: client.seat("openai", "http://127.0.0.1:1/v1", key="lab"),
                lambda: client.declare_weights("a", "/w", servers=[{"kind": "vllm", "key": "lab"}]),
                lambda: client.order([TASK], policy={"kind": "vllm", "model": "m", "key": "lab"}),
            ):
                with self.assertRaises(kernelmill.RequestError) as caught:
                    call()
                self.assertEqual(caught.exception.category, "policy_key_refused")
                self.assertIn("--policy-keys", caught.exception.hint)


if __name__ == "__main__":
    unittest.main()
