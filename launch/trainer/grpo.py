"""GRPO as a trainer that `kernelmill train` asks: POST /step takes a batch and a checkpoint, and answers with the next checkpoint.

    python -m trainer.grpo --port PORT --device cpu

A step depends on its checkpoint and its batch alone: kill it whenever you like, it is asked again.
"""

import argparse
import http.server
import json
import pathlib
import statistics
from typing import Any, Dict, List, NamedTuple

import torch

from . import model

# -- what is learned from ----------------------------------------------------------------------------


class Sequence(NamedTuple):
    """Ids with, for each but the first, the log-probability when it was sampled and its advantage; 0 where nothing is learned."""

    ids: List[int]
    old: List[float]
    advantages: List[float]
    learned: List[int]


def sequences_of(group: Dict[str, Any]) -> List[Sequence]:
    """A group in the form `rl`. Every turn's discounted return is compared with those of all turns of the group."""
    turns = [(e, t) for e in group["episodes"] for t in e["turns"] if t["mask"] and t["sequence"] is not None]
    returns = [t["return"] for _, t in turns]
    if len(returns) < 2 or not (deviation := statistics.pstdev(returns)):
        return []
    mean = statistics.fmean(returns)
    result = []
    for episode in group["episodes"]:
        for number, x in enumerate(episode["sequences"]):
            count = len(x["token_ids"]) - 1
            advantages, learned = [0.0] * count, [0] * count
            for turn in episode["turns"]:
                if turn["mask"] and turn["sequence"] == number:
                    span = range(turn["start"] - 1, turn["end"] - 1)
                    for i in span:
                        advantages[i], learned[i] = (turn["return"] - mean) / max(deviation, 1e-6), 1
            if any(learned):
                result.append(Sequence(x["token_ids"], x["logprobs"][1:], advantages, learned))
    return result


def learn(policy: model.Policy, optimizer: torch.optim.Optimizer, sequences: List[Sequence], *, low: float = 0.2, high: float = 0.28,
          temperature: float = 1.0, passes: int = 1, rows: int = 8, clip: float = 1.0) -> Dict[str, float]:
    """Optimizer steps on one batch: one for each pass. Every token counts alike."""
    device = policy.embedding.weight.device
    tokens = sum(sum(x.learned) for x in sequences)
    said: Dict[str, float] = {}
    for _ in range(passes):
        optimizer.zero_grad()
        said = {"loss": 0.0, "ratio": 0.0, "clipped": 0.0}
        for i in range(0, len(sequences), rows):
            part = sequences[i:i + rows]
            new = model.logprobs_of(policy, [x.ids for x in part], temperature)

            def padded(lists: List[List[Any]], width: int = new.shape[1]) -> torch.Tensor:
                return torch.tensor([[*map(float, x), *[0.0] * (width - len(x))] for x in lists], device=device)

            old, advantage = padded([x.old for x in part]), padded([x.advantages for x in part])
            learned = padded([x.learned for x in part])
            ratio = torch.exp((new - old) * learned)
            gain = torch.minimum(ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage)
            loss = -(gain * learned).sum() / tokens
            loss.backward()
            said["loss"] += loss.item()
            said["ratio"] += (ratio * learned).sum().item() / tokens
            said["clipped"] += (((ratio < 1 - low) | (ratio > 1 + high)) * learned).sum().item() / tokens
        said["gradient"] = float(torch.nn.utils.clip_grad_norm_(policy.parameters(), clip))
        optimizer.step()
    return {k: round(v, 6) for k, v in said.items()}


# -- a step ------------------------------------------------------------------------------------------


class Trainer:
    """The policy and its optimizer, as the checkpoint that it was left with has them."""

    def __init__(self, device: str) -> None:
        self.device, self.path = device, ""

    def load(self, path: str) -> None:
        self.policy, self.vocabulary, kept = model.load(path, self.device)
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
        if "optimizer" in kept:
            self.optimizer.load_state_dict(kept["optimizer"])
        self.path = path

    def step(self, request: Dict[str, Any]) -> Dict[str, Any]:
        settings, previous = request["settings"], request["previous"]["weights"]
        if self.path != previous:
            self.load(previous)
        self.path = ""  # until the step is whole, what is here is no checkpoint's
        self.optimizer.param_groups[0]["lr"] = settings["rate"]
        groups = [json.loads(x) for x in pathlib.Path(request["batch"]).read_text().splitlines()]
        sequences = [x for group in groups for x in sequences_of(group)]
        said = learn(self.policy, self.optimizer, sequences, passes=settings.get("passes", 1),
                     rows=settings.get("rows", 8)) if sequences else {}
        path = request["checkpoint"] + ".pt"
        model.save(path, self.policy, self.vocabulary, optimizer=self.optimizer.state_dict(), version=request["version"])
        self.path = path
        return {"weights": path, "metrics": {**said, "sequences": len(sequences), "Optimizer/LearningRate": settings["rate"]}}


def handler_of(trainer: Trainer) -> Any:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                answer, status = trainer.step(json.loads(self.rfile.read(int(self.headers["Content-Length"])))), 200
            except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
                answer, status = {"error": {"message": f"failed to take the step: {error!r}"}}, 500
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--port", type=int, required=True)
    words.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = words.parse_args()
    http.server.HTTPServer(("127.0.0.1", given.port), handler_of(Trainer(given.device))).serve_forever()


if __name__ == "__main__":
    main()
