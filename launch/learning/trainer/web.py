"""JSON by HTTP, for the trainer and for the policy's server."""

import http.server
import json
from typing import Any, Callable


class Server(http.server.ThreadingHTTPServer):
    """Gives each request to `answer(path, body)`. What that returns is sent as JSON, or as text if it is text.
    None: no such path."""

    request_queue_size = 1024

    def __init__(self, port: int, answer: Callable[[str, Any], Any]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.answer = answer


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Server

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        try:
            answer = self.server.answer(self.path.split("?")[0], json.loads(self.rfile.read(length) or b"{}"))
            status = 200 if answer is not None else 404
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            answer, status = {"error": {"message": f"failed to read the request: {error!r}"}}, 400
        except (OSError, RuntimeError) as error:
            answer, status = {"error": {"message": repr(error)}}, 500
        text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass
