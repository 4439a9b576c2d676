"""Serves a policy by the part of SGLang's HTTP protocol that `policy.kind=sglang` and `policy.tokens=exact` use.

    python -m trainer.server WEIGHTS.pt --port PORT

Token ids in; token ids, their log-probabilities and the version of the weights out. What comes while a batch is being sampled
makes the next batch. POST /update_weights_from_disk takes new weights between two batches.
"""

import argparse
import http.server
import json
import queue
import threading
import time
from typing import Any, Dict, List

import torch

from . import model


class Refused(Exception):
    pass


class Wish:
    """A completion that somebody waits for."""

    def __init__(self, prompt: List[int], most: int, temperature: float) -> None:
        self.prompt, self.most, self.temperature = prompt, most, temperature
        self.done = threading.Event()
        self.answer: Any = None


class Sampler:
    """The policy, and the one thread that samples from it."""

    def __init__(self, weights: str, device: str, most_rows: int, most_ids: int, name: str) -> None:
        self.device, self.most_rows, self.most_ids, self.name = device, most_rows, most_ids, name
        self.wishes: "queue.Queue[Wish]" = queue.Queue()
        self.changing = threading.Lock()  # held while weights are read or used
        self.running = 0
        self.use(weights)
        threading.Thread(target=self.sample, daemon=True).start()

    def use(self, weights: str, version: str = "") -> None:
        policy, vocabulary, kept = model.load(weights, self.device)
        with self.changing:
            self.policy, self.vocabulary, self.path = policy.eval(), vocabulary, weights
            self.version = version or kept.get("version", "pretrained")

    def sample(self) -> None:
        while True:
            wishes = [self.wishes.get()]
            time.sleep(0.01)  # siblings come together
            while len(wishes) < self.most_rows and not self.wishes.empty():
                wishes.append(self.wishes.get())
            self.running = len(wishes)
            with self.changing:
                try:
                    made = model.sample(self.policy, [x.prompt for x in wishes], [x.most for x in wishes],
                                        [x.temperature for x in wishes])
                    for wish, (ids, scores) in zip(wishes, made):
                        wish.answer = (ids, scores, self.vocabulary.decode(ids), self.version)
                except RuntimeError as error:  # such as a GPU without memory
                    for wish in wishes:
                        wish.answer = error
            self.running = 0
            for wish in wishes:
                wish.done.set()

    def complete(self, body: Dict[str, Any]) -> Dict[str, Any]:
        prompt, asked = body.get("input_ids"), body.get("sampling_params", {})
        if not isinstance(prompt, list) or not prompt or not all(isinstance(x, int) and 0 <= x < len(self.vocabulary) for x in prompt):
            raise Refused("input_ids must be ids of the vocabulary")
        if asked.get("top_p", 1.0) != 1.0 or asked.get("stop"):
            raise Refused("top_p below 1 and stop texts are not known here")
        most = min(int(asked.get("max_new_tokens", 128)), self.most_ids - len(prompt))
        if most < 1:
            raise Refused(f"the prompt has {len(prompt)} ids; context length is {self.most_ids}")
        wish = Wish(prompt, most, float(asked.get("temperature", 1.0)))
        self.wishes.put(wish)
        wish.done.wait()
        if isinstance(wish.answer, Exception):
            raise wish.answer
        ids, scores, text, version = wish.answer
        finish = {"type": "stop", "matched": model.END} if ids[-1] == model.END else {"type": "length", "length": len(ids)}
        return {"text": text, "output_ids": ids, "meta_info": {
            "id": body.get("rid", ""), "finish_reason": finish, "prompt_tokens": len(prompt), "completion_tokens": len(ids),
            "weight_version": version, "output_token_logprobs": [[score, x, None] for score, x in zip(scores, ids)]}}

    def chat(self, body: Dict[str, Any]) -> Dict[str, Any]:
        """The same by messages, for whoever asks so; without streams."""
        asked = {"max_new_tokens": body.get("max_completion_tokens") or body.get("max_tokens", 128),
                 "temperature": body.get("temperature", 1.0), "top_p": body.get("top_p", 1.0), "stop": body.get("stop")}
        made = self.complete({"input_ids": self.vocabulary.render(body["messages"]), "sampling_params": asked})
        meta = made["meta_info"]
        return {"object": "chat.completion", "model": self.name, "choices": [{
            "index": 0, "message": {"role": "assistant", "content": made["text"]}, "finish_reason": meta["finish_reason"]["type"],
            "logprobs": {"content": [{"token": self.vocabulary.decode([x]), "logprob": score, "top_logprobs": []}
                                     for score, x, _ in meta["output_token_logprobs"]]} if body.get("logprobs") else None}],
            "usage": {k: meta[k] for k in ("prompt_tokens", "completion_tokens")}}

    def answer(self, path: str, body: Dict[str, Any]) -> Any:
        if path == "/generate":
            return self.complete(body)
        if path == "/v1/chat/completions":
            return self.chat(body)
        if path in ("/v1/tokenize", "/tokenize"):
            ids = (self.vocabulary.render(body["messages"], body.get("add_generation_prompt", True)) if "messages" in body
                   else self.vocabulary.encode(body["prompt"]))
            return {"tokens": ids, "count": len(ids), "max_model_len": self.most_ids}
        if path in ("/v1/detokenize", "/detokenize"):
            return {"text": self.vocabulary.decode(body["tokens"])}
        if path == "/update_weights_from_disk":
            self.use(body["model_path"], body.get("weight_version", ""))
            return {"success": True, "message": "", "num_paused_requests": 0}
        if path in ("/health", "/health_generate"):
            return {}
        if path in ("/get_model_info", "/model_info", "/get_server_info", "/server_info"):
            return {"model_path": self.path, "weight_version": self.version, "version": "0+trainer"}
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": self.name, "object": "model", "max_model_len": self.most_ids}]}
        if path == "/metrics":
            return "".join(f"# TYPE sglang:{name} gauge\nsglang:{name} {value}\n" for name, value in
                           (("num_running_reqs", self.running), ("num_queue_reqs", self.wishes.qsize())))
        return None


def handler_of(sampler: Sampler) -> Any:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def reply(self, body: Dict[str, Any]) -> None:
            try:
                answer, status = sampler.answer(self.path.split("?")[0], body), 200
                if answer is None:
                    answer, status = {"error": {"message": f"there is no {self.path}"}}, 404
            except (Refused, KeyError, TypeError, ValueError, AttributeError) as error:
                answer, status = {"error": {"message": f"failed to read the request: {error}"}}, 400
            except (OSError, RuntimeError) as error:
                answer, status = {"error": {"message": str(error)}}, 500
            text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self) -> None:
            self.reply({})

        def do_POST(self) -> None:
            try:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            except ValueError:
                body = None
            self.reply(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("weights")
    words.add_argument("--port", type=int, default=0)
    words.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    words.add_argument("--name", default="policy")
    words.add_argument("--rows", type=int, default=64, help="completions that are sampled together")
    words.add_argument("--ids", type=int, default=2048, help="of a prompt and its completion")
    given = words.parse_args()
    server = Server(("127.0.0.1", given.port), handler_of(Sampler(given.weights, given.device, given.rows, given.ids, given.name)))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
