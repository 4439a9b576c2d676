#!/usr/bin/env python3
"""A key that only its owner may see: where is it after a run against a server that says it aloud?

The policy server puts the Authorization header that it was sent into its answers, into errors and into headers, as it
is, in Base64 and in hexadecimal; a second run has them as a stream, cut within the key. The first run is killed with a
signal that asks for a core dump, and resumed. Then the key is looked for in every file that the run left (stored texts
unpacked), in its logs at the finest level, in what the program printed, in core dumps, and, while it runs, in the
arguments and environments of all processes that the node has started. Exit code 77: it cannot run here.
"""

import base64
import contextlib
import http.server
import json
import os
import pathlib
import resource
import secrets
import signal
import subprocess
import sys
import threading
import time

from real_processes import SKIP, binary, descendants, policies, report, scratch_folder, started

GROUP, TURNS = 8, 3


class EchoingServer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0
    signalled = threading.Event()  # before, not all answers come: the run is not over when it is killed

    def log_message(self, *_):
        pass

    def answer(self, code, document):
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Authorization", self.headers.get("Authorization", ""))
        self.send_header("Content-Length", str(len(body)))
        with contextlib.suppress(ConnectionError):  # a run that was killed asks no more
            self.end_headers()
            self.wfile.write(body)

    def do_GET(self):
        self.answer(200, {"data": [{"id": "m"}], "object": "list"})

    def stream(self, said, text):
        """The text in pieces of seven letters, so that no piece holds the key."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for at in range(0, len(text), 7):
            self.piece(said, {"delta": {"content": text[at : at + 7]}})
        self.piece(said, {"delta": {}, "finish_reason": "stop"})
        self.wfile.write(b"data: [DONE]\n\n")

    def piece(self, said, choice):
        document = {
            "id": f"id-{said}",
            "object": "chat.completion.chunk",
            "model": "m",
            "choices": [{"index": 0, **choice}],
        }
        self.wfile.write(f"data: {json.dumps(document)}\n\n".encode())

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        said = self.headers.get("Authorization", "none")
        said += " " + base64.b64encode(said.encode()).decode() + " " + said.encode().hex()
        cls = type(self)
        cls.asked += 1
        if cls.asked > 2 * GROUP:
            cls.signalled.wait()
        if cls.asked % 7 == 0:
            return self.answer(503, {"error": {"message": f"overloaded, you are {said}", "code": said}})
        kernel = (policies / "row_sum/plain.cpp").read_text()
        text = f"<think>I was asked with {said}</think>\n<KERNEL>\n```cpp\n// {said}\n{kernel}\n```\n</KERNEL>"
        if cls.asked % 5 == 0:
            text = f'<think>x</think>\n<KERNEL>\n```cpp\n#error "{said}"\n```\n</KERNEL>'
        if asked.get("stream"):
            return self.stream(said, text)
        return self.answer(
            200,
            {
                "id": f"id-{said}",
                "object": "chat.completion",
                "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 9},
            },
        )


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EchoingServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def forms_of(key: str) -> list:
    """The key, and what a reader would need of it in Base64, wherever it begins, and in hexadecimal."""
    result = [key.encode(), key.encode().hex().encode(), key.encode().hex().upper().encode()]
    for shift in range(3):
        whole = base64.b64encode(b"x" * shift + key.encode()).decode().rstrip("=")
        result.append(whole[(shift * 8 + 5) // 6 : (shift + len(key)) * 8 // 6].encode())
    return result


def tells(data: bytes, forms: list) -> bool:
    return any(x in data for x in forms)


def bytes_of_processes(node) -> dict:
    """Arguments and environments of what the node started; its own are not its children's."""
    found = {}
    for pid, name in descendants(node.pid).items():
        for part in ("cmdline", "environ"):
            try:
                found[f"{part} of {name}"] = pathlib.Path(f"/proc/{pid}/{part}").read_bytes()
            except OSError:
                pass
    return found


def unpacked(path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".zst":
        data += subprocess.run(["zstd", "-dcq", path], capture_output=True, check=False).stdout
    return data


def watch_and_dump(node, journal, forms, hits):
    """Looks at what the node starts; when it has stored some turns, a signal asks it for a core dump."""
    looked = 0
    end = time.monotonic() + 400
    while node.poll() is None and time.monotonic() < end:
        for name, data in bytes_of_processes(node).items():
            looked += 1
            if tells(data, forms):
                hits.append(name)
        if journal.exists() and len(journal.read_bytes().splitlines()) > TURNS:
            node.send_signal(signal.SIGABRT)
            node.wait(300)  # it writes a core dump
    EchoingServer.signalled.set()
    return looked


def main():
    if not os.access(binary, os.X_OK):
        print(f"SKIP: {binary} is not built")
        return SKIP
    server = serve()
    key = "sk-canary-" + secrets.token_hex(16)
    with scratch_folder("secrets") as folder:
        (folder / "key").write_text(key + "\n")
        (folder / "key").chmod(0o600)
        (folder / "run.json").write_text(
            json.dumps(
                {
                    "run": {"name": "told", "dir": "told"},
                    "tasks": {"ids": ["native/row_sum"], "group_size": GROUP, "max_turns": TURNS},
                    "policy": {
                        "kind": "openai",
                        "base_url": f"http://127.0.0.1:{server.server_port}/v1",
                        "model": "m",
                        "api_key_file": "key",
                    },
                    "log": {"level": "trace"},
                    "compile": {"cache_dir": "cache"},
                    "retrieval": {"enabled": False},
                    "profile": {"enabled": False},
                    "evaluation": {"backend": "cpu", "timing": {"enabled": False}},
                }
            )
        )
        hits: list = []
        forms = forms_of(key)
        limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        with started(
            [binary, "run", "run.json"],
            folder,
            folder / "printed",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, limit),
        ) as node:
            looked = watch_and_dump(node, folder / "told/metrics.jsonl", forms, hits)
            assert node.returncode == -signal.SIGABRT, f"exit {node.returncode}"
        done = subprocess.run([binary, "resume", "told"], cwd=folder, capture_output=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        (folder / "resumed").write_bytes(done.stdout + done.stderr)
        done = subprocess.run(
            [binary, "run", "run.json", "run.name=streamed", "run.dir=streamed", "policy.stream=true"],
            cwd=folder,
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        (folder / "printed-streamed").write_bytes(done.stdout + done.stderr)
        traces = (folder / "streamed/traces.jsonl").read_text()
        assert "I was asked with Bearer [key] " in traces, "the stream has not been taken for a text with the key"
        for words in (
            ["show", "told"],
            ["show", "told", "--json"],
            ["show", "told/g0.e0", "--json"],
            ["report", "told"],
        ):
            told = subprocess.run([binary, *words], cwd=folder, capture_output=True, check=False, timeout=300)
            (folder / f"said-{len(words)}-{words[1].replace('/', '-')}-{words[0]}").write_bytes(
                told.stdout + told.stderr
            )
        files = [x for x in folder.rglob("*") if x.is_file() and x.name != "key"]
        hits += [str(x.relative_to(folder)) for x in files if tells(unpacked(x), forms)]
        cores = [x.name for x in files if x.name.startswith("core")]
        report(files=len(files), processes=looked, cores=len(cores), answers=EchoingServer.asked, hits=len(hits))
        assert EchoingServer.asked >= 2 * GROUP * TURNS and looked > 0
        assert not hits, "the key is in: " + ", ".join(sorted(set(hits)))
    server.shutdown()
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
