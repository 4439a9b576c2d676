#!/usr/bin/python3
"""What the client asks of vLLM and SGLang, and what the scripted servers answer in their place, is held against the
engines' own types, of every wheel of theirs in $KERNELMILL_ENGINE_WHEELS (`pip download --no-deps vllm==...
sglang==...`). $KERNELMILL_TRAINER_PYTHON must have pydantic, msgspec, openai, numpy and torch. Skipped where either is
not there."""

import contextlib
import http.client
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[3])
PROGRAM = str(pathlib.Path(os.environ.get("KERNELMILL_BIN_DIR") or SOURCE / "build/bin") / "kernelmill")
sys.path[:0] = [str(SOURCE / "tests/integration/serve"), str(SOURCE / "launch/learning/client")]
WHEELS = sorted(pathlib.Path(os.environ.get("KERNELMILL_ENGINE_WHEELS") or "/nonexistent").glob("*.whl"))
PYTHON = os.environ.get("KERNELMILL_TRAINER_PYTHON")


class Relay(http.server.ThreadingHTTPServer):
    """Passes everything on to the server behind it, and keeps it."""

    daemon_threads = True

    def __init__(self, behind):
        super().__init__(("127.0.0.1", 0), Passed)
        self.behind, self.kept = behind.removeprefix("http://").split("/")[0], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Passed(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        self.take()

    def do_POST(self):  # noqa: N802
        self.take()

    def take(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with contextlib.closing(http.client.HTTPConnection(self.server.behind, timeout=60)) as to:
            to.request(
                self.command,
                self.path,
                body or None,
                {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "content-length")},
            )
            got = to.getresponse()
            text = got.read()
        with contextlib.suppress(ValueError):
            self.server.kept.append(
                {
                    "path": self.path,
                    "request": json.loads(body) if body else None,
                    "status": got.status,
                    "answer": json.loads(text) if text.startswith(b"{") else None,
                }
            )
        self.send_response(got.status)
        self.send_header("Content-Type", got.headers["Content-Type"] or "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def records_of(kind, stack, folder):
    """Of runs by token ids, by chat and in streams, and of a probe."""
    script = folder / f"{kind}.json"
    script.write_text(
        json.dumps({"model": "m", "versions": [{"version": "step-1"}], "replies": [{"text": "no kernel"}]})
    )
    server = subprocess.Popen(
        [PROGRAM, "policy", "scripted", "--script", str(script), "--kind", kind],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(server.wait)
    stack.callback(server.stdout.close)
    stack.callback(server.kill)
    relay = Relay(server.stdout.readline().strip())
    stack.callback(relay.server_close)
    stack.callback(relay.shutdown)
    for way, more in {
        "exact": ["policy.tokens=exact"],
        "chat": ["policy.sampling.logprobs=true"],
        "stream": ["policy.stream=true", "policy.sampling.logprobs=true"],
    }.items():
        done = subprocess.run(
            [
                PROGRAM,
                "run",
                str(SOURCE / "configs/quickstart.json"),
                'tasks.ids=["native/row_sum"]',
                "tasks.group_size=1",
                "tasks.max_turns=2",
                f"run.dir={folder}/{kind}-{way}",
                f"policy.kind={kind}",
                f"policy.base_url={relay.url}",
                "policy.model=m",
                "retrieval.enabled=false",
                "policy.sampling.seed=1",
                'policy.sampling.stop=["</KERNEL>"]',
                *more,
            ],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    probe = subprocess.run(
        [PROGRAM, "policy", "probe", relay.url, "--kind", kind, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert probe.returncode == 0, probe.stderr
    return relay.kept


def weights_of(kind, stack, client):
    """What a server of this kind is asked when it is to load weights, and an adapter."""
    from weights_test import SGLANG, VLLM, Emulated

    good = (200, {"success": True, "message": ""})
    server = Emulated(
        {
            **(VLLM if kind == "vllm" else SGLANG),
            **{
                x: good
                for x in (
                    "/load_lora_adapter",
                    "/unload_lora_adapter",
                    "/update_weight_version",
                    "/v1/load_lora_adapter",
                )
            },
        }
    )
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    for more in ({}, {"adapter": "a"}):
        client.declare_weights("step-2", "/w/2", servers=[{"kind": kind, "base_url": server.url}], **more)
    return [{"path": path, "request": body, "status": 0, "answer": None} for path, body in server.seen]


@unittest.skipUnless(WHEELS, "no wheels of engines: KERNELMILL_ENGINE_WHEELS names a folder that has them")
@unittest.skipUnless(
    PYTHON, "no Python with pydantic, msgspec, openai, numpy and torch: KERNELMILL_TRAINER_PYTHON names one"
)
class EngineTypes(unittest.TestCase):
    def test_requests_and_answers_are_of_the_engines_types(self):
        import kernelmill

        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            client = stack.enter_context(
                kernelmill.serve(
                    "cpu", program=PROGRAM, patience=0, options=["--no-timing", "--runs", str(folder / "runs")]
                )
            )
            kept = {}
            for wheel in WHEELS:
                kind = wheel.name.split("-")[0]
                with self.subTest(wheel.name):
                    if kind not in kept:
                        kept[kind] = records_of(kind, stack, folder) + weights_of(kind, stack, client)
                        (folder / f"{kind}-records.json").write_text(json.dumps(kept[kind]))
                    done = subprocess.run(
                        [
                            PYTHON,
                            "-B",
                            str(pathlib.Path(__file__).with_name("engine_types.py")),
                            str(wheel),
                            str(folder / f"{kind}-records.json"),
                        ],
                        capture_output=True,
                        text=True,
                        timeout=300,
                        check=False,
                    )
                    self.assertEqual(done.returncode, 0, done.stderr)
                    found = json.loads(done.stdout.splitlines()[-1])
                    print(
                        f"{kind} {found['version']}: {len(kept[kind])} requests; types {' '.join(found['types'])}; "
                        f"lacks {' '.join(found['lacks']) or 'nothing'}",
                        flush=True,
                    )
                    self.assertEqual([], found["wrong"], "\n".join(found["wrong"]))
                    self.assertGreater(len(found["types"]), 4, found)


if __name__ == "__main__":
    unittest.main()
