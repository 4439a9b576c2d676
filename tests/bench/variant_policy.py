"""A policy server on the loopback with OpenAI's API, which answers variants of matmul_variants.py.

An answer depends on the kernel that the prompt shows as the one to improve, on how often that kernel was shown
before, and on the seed; so every search that asks it has the same policy.
"""

import http.server
import json
import re
import threading

import matmul_variants as variants

# Where a prompt shows the kernel to improve: of Kernelmill's searches and of OpenEvolve.
PARENT = re.compile(r"^(?:## The kernel to (?:improve|mend)|# Current Program$).*?^```\w*\n(.*?)^```$", re.M | re.S)


def parent_of(prompt, family):
    """The variant that a prompt asks to improve; None: it shows none."""
    found = PARENT.search(prompt)
    return family.variant_of(found[1]) if found else None


class VariantPolicy:
    """Serves until it is closed. `answers` and `tokens` are what was asked of it so far."""

    def __init__(self, seed, family=variants.CPP):
        self.seed, self.family, self.answers, self.tokens = seed, family, 0, {"prompt": 0, "completion": 0}
        self.asked = {}  # how often a kernel was shown
        self.lock = threading.Lock()
        policy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def send(self, document):
                body = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.send({"object": "list", "data": [{"id": "variants", "object": "model"}]})

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send(policy.complete(asked["messages"]))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def complete(self, messages):
        prompt = "\n".join(x["content"] for x in messages)
        parent = parent_of(prompt, self.family) or self.family.plain
        with self.lock:
            count = self.asked[parent] = self.asked.get(parent, 0) + 1
        source, changed = self.family.answer(parent, self.seed, parent, count)
        text = f"<think>\n{changed}\n</think>\n<KERNEL>\n```{self.family.language}\n{source}```\n</KERNEL>\n"
        used = {"prompt": len(prompt.split()), "completion": len(text.split())}
        with self.lock:
            self.answers += 1
            for name, count in used.items():
                self.tokens[name] += count
        return {
            "id": f"answer-{self.answers}",
            "object": "chat.completion",
            "created": 0,
            "model": "variants",
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}},
            ],
            "usage": {
                "prompt_tokens": used["prompt"],
                "completion_tokens": used["completion"],
                "total_tokens": sum(used.values()),
            },
        }
