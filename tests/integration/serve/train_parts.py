#!/usr/bin/env python3
"""What stands beside `kernelmill train` in its tests, and learns by counting.

train_parts.py policy WEIGHTS PORT   a policy server of the kind sglang. Of training tasks every second answer
                                     is right; of held-out ones all are once the weights count `enough`,
                                     none before
train_parts.py trainer PORT          POST /step: the next weights count one more
train_parts.py step REQUEST          the same as a command
"""

import collections
import http.server
import itertools
import json
import pathlib
import sys

from kernels import GOOD, WRONG

ENOUGH = 2


def take_step(request):
    if request["settings"].get("fail"):
        raise ValueError("no memory left")
    before = json.loads(pathlib.Path(request["previous"]["weights"]).read_text())
    rows = [json.loads(x) for x in pathlib.Path(request["batch"]).read_text().splitlines()]
    returns = [sorted(t["return"] for e in x["episodes"] for t in e["turns"]) for x in rows]
    path = pathlib.Path(request["checkpoint"] + ".json")
    path.write_text(json.dumps({"count": before["count"] + 1, "of": before["of"] + [request["step"]]}))
    return {"weights": str(path), "metrics": {"loss": 0.5, "Optimizer/LearningRate": 1e-4, "lowest": returns[0][0]}}


class Handler(http.server.BaseHTTPRequestHandler):
    numbers = collections.defaultdict(itertools.count)  # by task
    weights, version = "", "initial"

    def do_GET(self):
        self.reply(
            {
                "/v1/models": {"object": "list", "data": [{"id": "m", "object": "model"}]},
                "/get_model_info": {"model_path": self.weights, "weight_version": Handler.version},
            }.get(self.path.split("?")[0], {})
        )

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/step":
            try:
                return self.reply(take_step(body))
            except ValueError as error:
                return self.reply({"error": {"message": str(error)}}, 500)
        if self.path == "/update_weights_from_disk":
            Handler.weights, Handler.version = body["model_path"], body["weight_version"]
            return self.reply({"success": True})
        said = body["messages"][0]["content"] + body["messages"][-1]["content"]
        task = said.split("[task: ")[1].split("]")[0]
        right = next(self.numbers[task]) % 2 == 0
        if task.startswith("held_out"):
            right = json.loads(pathlib.Path(Handler.weights).read_text())["count"] >= ENOUGH
        text = f"<think>\nhm\n</think>\n<KERNEL>\n```cpp\n{GOOD if right else WRONG}```\n</KERNEL>\n"
        self.reply(
            {
                "id": "x",
                "object": "chat.completion",
                "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 3},
            }
        )

    def reply(self, body, status=200):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "step":
        asked = json.loads(pathlib.Path(words[0]).read_text())
        pathlib.Path(asked["result"]).write_text(json.dumps(take_step(asked)))
    else:
        Handler.weights = words[0]
        http.server.ThreadingHTTPServer(("127.0.0.1", int(words[-1])), Handler).serve_forever()
