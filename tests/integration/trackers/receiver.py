"""An HTTP server that keeps what it is sent, and answers as a test says."""

import http.server
import threading


class Receiver:
    """`answer(request number)` gives the status; None: it never answers."""

    def __init__(self, answer=lambda number: 200):
        self.requests = []  # (path, headers, body)
        self.changed = threading.Condition()
        self.released = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.changed:
                    receiver.requests.append((self.path, self.headers, body))
                    status = answer(len(receiver.requests))
                    receiver.changed.notify_all()
                if status is None:
                    receiver.released.wait()
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    def wait(self, enough, patience=120):
        """Waits until `enough(requests)` says so."""
        with self.changed:
            if not self.changed.wait_for(lambda: enough(self.requests), patience):
                raise AssertionError(f"not sent: {self.requests}")
            return list(self.requests)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
