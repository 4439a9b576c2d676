"""A policy server that keeps the headers of each request, and holds the answers that a test does not want yet."""

import contextlib
import http.server
import json
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "page"))
import serving  # noqa: E402


class Policy:
    """`texts[turn]` answers turn `turn`; sessions for which `held(session)` is true wait for release()."""

    def __init__(self, texts, held=lambda session: False):
        self.requests = []  # (session, headers)
        self.released = threading.Event()
        lock = threading.Lock()
        policy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, document):
                body = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # a run that was ended asks no more
                    self.wfile.write(body)

            def do_GET(self):  # noqa: N802
                self.answer({"object": "list", "data": [{"id": "asked", "object": "model"}]})

            def do_POST(self):  # noqa: N802
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                session = self.headers["X-Session-ID"]
                with lock:
                    policy.requests.append((session, dict(self.headers)))
                if held(session):
                    policy.released.wait()
                turn = sum(x["role"] == "assistant" for x in asked["messages"])
                self.answer(
                    {
                        "id": "x",
                        "object": "chat.completion",
                        "model": "answered",
                        "choices": [
                            {
                                "index": 0,
                                "finish_reason": "stop",
                                "message": {"role": "assistant", "content": serving.completion(texts[turn])},
                            }
                        ],
                        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
                    }
                )

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
