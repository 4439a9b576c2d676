"""GRPO as a trainer that `kernelmill train` asks: POST /step takes a batch and a checkpoint,
and answers with the next checkpoint.

    python -m trainer.grpo --port PORT --device cpu

A step depends on its checkpoint and its batch alone: kill it whenever you like, it is asked again.
"""

import argparse
import json
import pathlib
import statistics
import threading
from typing import Any, Dict, List, NamedTuple

import torch

from . import model, web

CLIP = (0.8, 1.28)  # of importance weights


class Sequence(NamedTuple):
    """Ids with, for each but the first, the log-probability when it was sampled and its advantage;
    0 where nothing is learned."""

    ids: List[int]
    old: List[float]
    advantages: List[float]
    learned: List[int]


def sequences_of(group: Dict[str, Any]) -> List[Sequence]:
    """A group in the form `rl`. Every turn's discounted return is compared with those of all turns of the group."""
    returns = [t["return"] for e in group["episodes"] for t in e["turns"] if t["mask"] and t["sequence"] is not None]
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
                    for i in range(turn["start"] - 1, turn["end"] - 1):
                        advantages[i], learned[i] = (turn["return"] - mean) / max(deviation, 1e-6), 1
            if any(learned):
                result.append(Sequence(x["token_ids"], x["logprobs"][1:], advantages, learned))
    return result


def learn(
    policy: model.Policy, optimizer: torch.optim.Optimizer, sequences: List[Sequence], passes: int = 1, rows: int = 8
) -> Dict[str, float]:
    """Optimizer steps on one batch: one for each pass. Every token counts alike."""
    device = policy.embedding.weight.device
    tokens = sum(sum(x.learned) for x in sequences)
    said: Dict[str, float] = {}
    for _ in range(passes):
        optimizer.zero_grad()
        said = {"loss": 0.0, "ratio": 0.0, "clipped": 0.0}
        for i in range(0, len(sequences), rows):
            part = sequences[i : i + rows]
            new = model.logprobs_of(policy, [x.ids for x in part])
            old = model.padded([x.old for x in part], device)
            advantage = model.padded([x.advantages for x in part], device)
            learned = model.padded([x.learned for x in part], device)
            ratio = torch.exp((new - old) * learned)
            gain = torch.minimum(ratio * advantage, ratio.clamp(*CLIP) * advantage)
            loss = -(gain * learned).sum() / tokens
            loss.backward()
            said["loss"] += loss.item()
            said["ratio"] += (ratio * learned).sum().item() / tokens
            said["clipped"] += ((ratio != ratio.clamp(*CLIP)) * learned).sum().item() / tokens
        said["gradient"] = float(torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0))
        optimizer.step()
    return {k: round(v, 6) for k, v in said.items()}


class Trainer:
    """The policy and its optimizer, as the checkpoint that it was left with has them."""

    def __init__(self, device: str) -> None:
        self.device, self.path, self.busy = device, "", threading.Lock()

    def answer(self, path: str, request: Any) -> Any:
        if path != "/step":
            return None
        with self.busy:
            return self.step(request)

    def step(self, request: Dict[str, Any]) -> Dict[str, Any]:
        settings, previous = request["settings"], request["previous"]["weights"]
        is_here, self.path = self.path == previous, ""  # until the step is whole, what is here is no checkpoint's
        if not is_here:
            self.policy, self.vocabulary, kept = model.load(previous, self.device)
            self.optimizer = torch.optim.AdamW(self.policy.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
            if "optimizer" in kept:
                self.optimizer.load_state_dict(kept["optimizer"])
        self.optimizer.param_groups[0]["lr"] = settings["rate"]
        groups = [json.loads(x) for x in pathlib.Path(request["batch"]).read_text().splitlines()]
        sequences = [x for group in groups for x in sequences_of(group)]
        passes, rows = settings.get("passes", 1), settings.get("rows", 8)
        said = learn(self.policy, self.optimizer, sequences, passes, rows) if sequences else {}
        path = request["checkpoint"] + ".pt"
        model.save(
            path, self.policy, self.vocabulary, optimizer=self.optimizer.state_dict(), version=request["version"]
        )
        self.path = path
        return {
            "weights": path,
            "metrics": {**said, "sequences": len(sequences), "Optimizer/LearningRate": settings["rate"]},
        }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--port", type=int, required=True)
    words.add_argument("--device", default="cpu")
    given = words.parse_args()
    web.Server(given.port, Trainer(given.device).answer).serve_forever()


if __name__ == "__main__":
    main()
