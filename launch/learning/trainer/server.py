"""Serves a policy by the part of SGLang's HTTP protocol that `policy.kind=sglang` and `policy.tokens=exact` use.

    python -m trainer.server WEIGHTS.pt --port PORT

Token ids in; token ids, their log-probabilities and the version of the weights out. What comes while a batch is being
sampled makes the next batch. POST /update_weights_from_disk takes new weights between two batches.
"""

import argparse
import concurrent.futures
import queue
import threading
import time
from typing import Any, Dict, List, NamedTuple

from . import model, web

MOST_ROWS = 64  # completions that are sampled together


class Wish(NamedTuple):
    """A completion that a request waits for."""

    prompt: List[int]
    most: int
    temperature: float
    done: "concurrent.futures.Future[Any]"


class Sampler:
    """The policy, and the one thread that samples from it. `most_ids` is the limit of a prompt and its completion."""

    def __init__(self, weights: str, device: str, most_ids: int = 2048) -> None:
        self.device, self.most_ids, self.running = device, most_ids, 0
        self.wishes: "queue.Queue[Wish]" = queue.Queue()
        self.changing = threading.Lock()  # held while weights are read or used
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
            while len(wishes) < MOST_ROWS and not self.wishes.empty():
                wishes.append(self.wishes.get())
            self.running = len(wishes)
            with self.changing:
                try:
                    made = model.sample(
                        self.policy,
                        [x.prompt for x in wishes],
                        [x.most for x in wishes],
                        [x.temperature for x in wishes],
                    )
                    for wish, (ids, scores) in zip(wishes, made):
                        wish.done.set_result((ids, scores, self.vocabulary.decode(ids), self.version))
                except RuntimeError as error:  # such as a GPU without memory
                    for wish in wishes:
                        wish.done.set_exception(error)
            self.running = 0

    def complete(self, body: Dict[str, Any]) -> Dict[str, Any]:
        prompt, asked = body.get("input_ids"), body.get("sampling_params", {})
        if (
            not isinstance(prompt, list)
            or not prompt
            or not all(isinstance(x, int) and model.PAD < x < len(self.vocabulary) for x in prompt)
        ):
            raise ValueError("input_ids must be ids of the vocabulary")
        if asked.get("top_p", 1.0) != 1.0 or asked.get("stop"):
            raise ValueError("top_p below 1 and stop texts are not known here")
        most = min(int(asked.get("max_new_tokens", 128)), self.most_ids - len(prompt))
        if most < 1:
            raise ValueError(f"the prompt has {len(prompt)} ids; context length is {self.most_ids}")
        wish = Wish(prompt, most, float(asked.get("temperature", 1.0)), concurrent.futures.Future())
        self.wishes.put(wish)
        ids, scores, text, version = wish.done.result()
        finish = (
            {"type": "stop", "matched": model.END} if ids[-1] == model.END else {"type": "length", "length": len(ids)}
        )
        return {
            "text": text,
            "output_ids": ids,
            "meta_info": {
                "id": body.get("rid", ""),
                "finish_reason": finish,
                "prompt_tokens": len(prompt),
                "completion_tokens": len(ids),
                "weight_version": version,
                "output_token_logprobs": [[score, x, None] for score, x in zip(scores, ids)],
            },
        }

    def chat(self, body: Dict[str, Any]) -> Dict[str, Any]:
        """The same by messages, for `kernelmill policy probe`; without streams."""
        asked = {
            "max_new_tokens": body.get("max_completion_tokens") or body.get("max_tokens", 128),
            "temperature": body.get("temperature", 1.0),
            "top_p": body.get("top_p", 1.0),
            "stop": body.get("stop"),
        }
        made = self.complete({"input_ids": self.vocabulary.render(body["messages"]), "sampling_params": asked})
        meta = made["meta_info"]
        return {
            "object": "chat.completion",
            "model": "policy",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": made["text"]},
                    "finish_reason": meta["finish_reason"]["type"],
                    "logprobs": {
                        "content": [
                            {"token": self.vocabulary.decode([x]), "logprob": score, "top_logprobs": []}
                            for score, x, _ in meta["output_token_logprobs"]
                        ]
                    }
                    if body.get("logprobs")
                    else None,
                }
            ],
            "usage": {k: meta[k] for k in ("prompt_tokens", "completion_tokens")},
        }

    def answer(self, path: str, body: Dict[str, Any]) -> Any:
        if path == "/generate":
            return self.complete(body)
        if path == "/v1/chat/completions":
            return self.chat(body)
        if path == "/v1/tokenize":
            ids = (
                self.vocabulary.render(body["messages"])
                if "messages" in body
                else self.vocabulary.encode(body["prompt"])
            )
            return {"tokens": ids, "count": len(ids), "max_model_len": self.most_ids}
        if path == "/v1/detokenize":
            return {"text": self.vocabulary.decode(body["tokens"])}
        if path == "/update_weights_from_disk":
            self.use(body["model_path"], body.get("weight_version", ""))
            return {"success": True, "message": "", "num_paused_requests": 0}
        if path in ("/health", "/get_model_info", "/get_server_info"):
            return {"model_path": self.path, "weight_version": self.version, "version": "0+trainer"}
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": "policy", "object": "model", "max_model_len": self.most_ids}]}
        if path == "/metrics":
            return "".join(
                f"# TYPE sglang:{name} gauge\nsglang:{name} {value}\n"
                for name, value in (("num_running_reqs", self.running), ("num_queue_reqs", self.wishes.qsize()))
            )
        return None


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("weights")
    words.add_argument("--port", type=int, required=True)
    words.add_argument("--device", default="cpu")
    given = words.parse_args()
    web.Server(given.port, Sampler(given.weights, given.device).answer).serve_forever()


if __name__ == "__main__":
    main()
