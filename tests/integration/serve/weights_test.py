#!/usr/bin/python3
"""`POST /v1/weights` with servers that have vLLM's and SGLang's routes, word for word, and do what a test says."""

import contextlib
import http.server
import json
import os
import tempfile
import threading
import unittest
import urllib.parse

import kernels  # noqa: F401 - puts the client on the path

# isort: split
import kernelmill
from kernels import PROGRAM, TASKS
from serve_test import hold


class Emulated(http.server.ThreadingHTTPServer):
    """`answers`: (status, document) by path; other paths are answered 404, as FastAPI does. Remembers what came."""

    daemon_threads = True

    def __init__(self, answers):
        super().__init__(("127.0.0.1", 0), Asked)
        self.answers, self.seen, self.keys = answers, [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def paths(self):
        return [x for x, _ in self.seen]


class Asked(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        self.take(None)

    def do_POST(self):  # noqa: N802
        self.take(json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"null"))

    def take(self, body):
        self.server.seen.append((self.path, body))
        self.server.keys.append(self.headers["Authorization"])
        answer = self.server.answers.get(urllib.parse.urlsplit(self.path).path, (404, {"detail": "Not Found"}))
        status, document = answer(body) if callable(answer) else answer
        text = document if isinstance(document, (str, bytes)) else json.dumps(document)
        text = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


VLLM = {
    "/pause": (200, {"status": "paused"}),
    "/resume": (200, {"status": "resumed"}),
    "/collective_rpc": (200, {"results": [None]}),
    "/reset_prefix_cache": (200, ""),
    "/update_weight_version": (200, {"message": "Weight version updated"}),
}
SGLANG = {
    "/update_weights_from_disk": (
        200,
        {"success": True, "message": "Succeeded to update model weights.", "num_paused_requests": 0},
    ),
    "/get_model_info": (200, {"model_path": "/w/2", "weight_version": "step-2"}),
}


class Weights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        home = cls.stack.enter_context(tempfile.TemporaryDirectory())
        os.environ["XDG_CACHE_HOME"] = home
        cls.client = cls.stack.enter_context(
            kernelmill.serve(
                "cpu", program=PROGRAM, tasks=str(TASKS), patience=0, options=["--no-timing", "--runs", home + "/runs"]
            )
        )
        cls.client.timeout = 600

    def server(self, answers):
        made = Emulated(answers)
        self.addCleanup(made.server_close)
        self.addCleanup(made.shutdown)
        return made

    def load(self, kind, server, version="step-2", **more):
        return self.client.declare_weights(
            version,
            "/w/2",
            servers=[{"kind": kind, "base_url": getattr(server, "url", server), "api_key": "s3cret-of-the-server"}],
            **more,
        )

    def refused(self, category, *words, **more):
        with self.assertRaises(kernelmill.KernelmillError) as caught:
            self.load(*words, **more)
        self.assertEqual(caught.exception.category, category, caught.exception)
        return caught.exception

    def test_vllm_waits_loads_forgets_its_cache_and_goes_on(self):
        server = self.server(VLLM)
        loaded = self.load("vllm", server)
        hold(self, loaded, "WeightsDeclared")
        self.assertEqual(loaded["servers"], [{"base_url": server.url, "kind": "vllm", "weight_version": "step-2"}])
        self.assertEqual(
            server.paths(),
            [
                "/pause?mode=keep&clear_cache=false",
                "/collective_rpc",
                "/reset_prefix_cache",
                "/update_weight_version",
                "/resume",
            ],
        )
        rpc = dict(server.seen)["/collective_rpc"]
        self.assertEqual((rpc["method"], rpc["kwargs"]), ("reload_weights", {"weights_path": "/w/2"}))
        self.assertEqual(set(server.keys), {"Bearer s3cret-of-the-server"})

    def test_vllm_that_fails_to_load_goes_on(self):
        server = self.server(
            {**VLLM, "/collective_rpc": (500, {"detail": "no such folder; the key is s3cret-of-the-server"})}
        )
        why = self.refused("weights_not_loaded", "vllm", server)
        self.assertIn("/collective_rpc answered 500: no such folder", why.message)
        self.assertNotIn("s3cret", why.message)
        self.assertEqual(server.paths()[-1], "/resume")

    def test_vllm_without_its_routes_names_what_it_needs(self):
        self.assertIn("VLLM_SERVER_DEV_MODE=1", self.refused("weights_refused", "vllm", self.server({})).hint)

    def test_prime_rls_vllm_has_a_route_of_its_own(self):
        server = self.server({"/update_weights": (200, {"status": "ok"}), "/pause": (200, {}), "/resume": (200, {})})
        self.assertIsNone(self.load("vllm", server)["servers"][0]["weight_version"])
        self.assertEqual(dict(server.seen)["/update_weights"], {"weight_dir": "/w/2"})

    def test_vllm_takes_an_adapter_in_place_or_anew(self):
        server = self.server({"/v1/load_lora_adapter": (200, "Success: LoRA adapter 'a' added successfully.")})
        self.load("vllm", server, adapter="a")
        self.assertEqual(server.seen[0][1], {"lora_name": "a", "lora_path": "/w/2", "load_inplace": True})
        again = iter(
            [
                (400, {"error": {"message": "The lora adapter 'a' has already been loaded.", "code": 400}}),
                (200, "Success"),
            ]
        )
        older = self.server(
            {"/v1/load_lora_adapter": lambda _: next(again), "/v1/unload_lora_adapter": (200, "Success")}
        )
        self.load("vllm", older, adapter="a")
        self.assertEqual(
            older.paths()[:3], ["/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/load_lora_adapter"]
        )
        why = self.refused("weights_refused", "vllm", self.server({}), adapter="a")
        self.assertIn("VLLM_ALLOW_RUNTIME_LORA_UPDATING", why.hint)

    def test_sglang_loads_and_tells_the_version(self):
        server = self.server(SGLANG)
        self.assertEqual(self.load("sglang", server)["servers"][0]["weight_version"], "step-2")
        self.assertEqual(
            server.seen[0],
            (
                "/update_weights_from_disk",
                {"model_path": "/w/2", "weight_version": "step-2", "abort_all_requests": False, "flush_cache": True},
            ),
        )

    def test_an_older_sglang_is_told_the_version_and_ends_no_request(self):
        server = self.server(
            {
                **SGLANG,
                "/get_model_info": (200, {"weight_version": "default"}),
                "/update_weight_version": (200, {"success": True}),
            }
        )
        self.assertEqual(self.load("sglang", server)["servers"][0]["weight_version"], "step-2")
        self.assertEqual(
            server.seen[-1], ("/update_weight_version", {"new_version": "step-2", "abort_all_requests": False})
        )

    def test_sglang_refuses_with_its_reason(self):
        for status in (200, 400):
            server = self.server(
                {"/update_weights_from_disk": (status, {"success": False, "message": "no model in /w/2"})}
            )
            self.assertIn("no model in /w/2", self.refused("weights_refused", "sglang", server).message)

    def test_a_kind_that_cannot_and_a_server_that_is_away(self):
        self.assertIn(
            "at their start only", self.refused("weights_refused", "llamacpp", "http://127.0.0.1:1/v1").message
        )
        self.assertEqual(self.refused("weights_not_loaded", "sglang", "http://127.0.0.1:1/v1").status, 503)

    def test_what_one_of_two_cannot_is_named(self):
        good, bad = self.server(SGLANG), self.server({})
        with self.assertRaises(kernelmill.RequestError) as caught:
            self.client.declare_weights(
                "step-2", "/w/2", servers=[{"kind": "sglang", "base_url": x.url} for x in (good, bad)]
            )
        self.assertIn("at 1 of 2 servers", caught.exception.message)
        self.assertIn(bad.url, caught.exception.message)
        self.assertNotIn(good.url, caught.exception.message)

    def test_wrong_wishes(self):
        for body in (
            {"version": "a", "servers": [{"kind": "vllm", "base_url": "http://a/v1"}]},
            {"version": "a", "path": "/w", "servers": []},
            {"version": "a", "path": "/w", "servers": [{"kind": "other", "base_url": "http://a/v1"}]},
            {"version": "a", "path": "/w", "servers": [{"kind": "vllm", "base_url": "nonsense"}]},
            {"version": "a", "path": "/w"},
        ):  # no order is under way
            with self.assertRaises(kernelmill.RequestError):
                self.client._ask("POST", "/v1/weights", body)


if __name__ == "__main__":
    unittest.main()
