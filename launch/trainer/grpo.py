"""GRPO on groups that `kernelmill serve --runs` hands over, each learned from once.

    python -m trainer.grpo FOLDER --url KERNELMILL --policy SERVER

FOLDER has config.json, pretrained.pt and the tasks. Kill it whenever you like and start it again: checkpoint.pt says where it was,
and the rollback gives back what was taken after it. checkpoints.jsonl has a line a step, evaluations.jsonl one a held-out evaluation.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import time
import urllib.request
from typing import Any, Dict, List, NamedTuple, Tuple

import torch

from . import model
from .measures import CORRECT, rewards_of, with_intervals

LAUNCH = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(LAUNCH / "python"), str(LAUNCH.parent / "client")]  # in the source, and where it is installed
import kernelmill  # noqa: E402

PRESETS: Dict[str, Dict[str, Any]] = {
    "single_turn": {"max_turns": 1},
    "kevin": {"max_turns": 4, "group_size": 16},
}


# -- what is learned from ----------------------------------------------------------------------------


class Sequence(NamedTuple):
    """Ids with, for each but the first, the log-probability when it was sampled and its advantage; 0 where nothing is learned."""

    ids: List[int]
    old: List[float]
    advantages: List[float]
    learned: List[int]


def sequences_of(group: Dict[str, Any], least_deviation: float) -> List[Sequence]:
    """A group in the form `rl`. Every turn's discounted return is compared with those of all turns of the group; a group whose
    returns are alike teaches nothing, and is left out."""
    turns = [(e, t) for e in group["episodes"] for t in e["turns"] if t["mask"] and t["sequence"] is not None]
    returns = [t["return"] for _, t in turns]
    if len(returns) < 2 or (deviation := statistics.pstdev(returns)) <= least_deviation:
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


# -- the loop ----------------------------------------------------------------------------------------


class Teacher:
    """The policy, its optimizer, and how far they came; the folder's files are whole at any moment."""

    def __init__(self, folder: pathlib.Path, client: kernelmill.Client, policy_url: str) -> None:
        self.folder, self.client, self.policy_url = folder, client, policy_url
        self.config = json.loads((folder / "config.json").read_text())
        self.teaching = {"group_size": 8, **PRESETS[self.config["teaching"]["preset"]], **self.config["teaching"]}
        found = {x.id for x in client.tasks()}
        self.train = sorted(x for x in found if x.startswith("train/"))
        self.held_out = sorted(x for x in found if x.startswith("held_out/"))
        self.checkpoint = folder / "checkpoint.pt"
        begin = self.checkpoint if self.checkpoint.exists() else folder / "pretrained.pt"
        self.policy, self.vocabulary, kept = model.load(str(begin), self.config["device"])
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=self.teaching["rate"], betas=(0.9, 0.95), weight_decay=0.0)
        if "optimizer" in kept:
            self.optimizer.load_state_dict(kept["optimizer"])
            self.optimizer.param_groups[0]["lr"] = self.teaching["rate"]
        self.lines: List[Dict[str, Any]] = json.loads(kept.get("lines", "[]"))
        self.learned = {x for line in self.lines for x in line["groups"]}
        self.write_lines()

    @property
    def step(self) -> int:
        return len(self.lines) - 1  # the last one that is learned

    @property
    def version(self) -> str:
        return f"step-{self.step}" if self.lines else "pretrained"

    def write_lines(self) -> None:
        new = self.folder / "checkpoints.jsonl.new"
        new.write_text("".join(json.dumps(x) + "\n" for x in self.lines))
        os.replace(new, self.folder / "checkpoints.jsonl")

    def serve_weights(self) -> None:
        """The policy server samples from the last checkpoint from now on, and Kernelmill knows."""
        path = self.checkpoint if self.lines else self.folder / "pretrained.pt"
        body = json.dumps({"model_path": str(path.resolve()), "weight_version": self.version}).encode()
        for left in range(60, -1, -1):
            try:
                urllib.request.urlopen(urllib.request.Request(self.policy_url + "/update_weights_from_disk", body), timeout=60).close()
                break
            except OSError:  # it was killed; somebody starts it again
                if not left:
                    raise
                time.sleep(1)
        self.client.declare_weights(self.version)

    def order(self, name: str, tasks: List[str], size: int, stage: Dict[str, Any]) -> str:
        self.client.order(tasks, id=name, groups=1, group_size=size, max_turns=self.teaching["max_turns"], form="rl",
                          policy={"kind": "sglang", "base_url": self.policy_url + "/v1", "model": "policy", "tokens": "exact"},
                          sampling={"temperature": 1.0, "max_tokens": self.teaching.get("max_tokens", 512), "logprobs": True},
                          config={"retrieval": {"enabled": False}, "profile": {"enabled": False}, "episode": {"gamma": 0.4},
                                  "reward": {"preset": "kevin", "correct": CORRECT, **stage},
                                  "evaluation": {"timing": self.teaching.get("timing", {})}})
        return name

    def order_step(self, step: int) -> str:
        tasks = random.Random(f"{self.config['seed']}/{step}").sample(self.train, self.teaching["groups"])
        stages = [x for x in self.teaching.get("stages", []) if x["from"] <= step]
        return self.order(f"step-{step}", sorted(tasks), self.teaching["group_size"], stages[-1]["reward"] if stages else {})

    def take(self, order: str, consumer: str, checkpoint: Any, step: int) -> Tuple[Any, Any]:
        """The groups of an order, acknowledged."""
        while True:
            stream = self.client.rollouts(order, consumer=consumer, groups=64, checkpoint=checkpoint)
            batch = stream.next()
            if batch is None:
                return stream, None
            try:
                stream.ack(batch, step)
                return stream, batch
            except kernelmill.LeaseLost:
                continue

    def teach(self) -> None:
        step, begun = self.step + 1, time.monotonic()
        name = self.order_step(step)
        if self.teaching.get("ahead") and step + 1 < self.teaching["steps"]:
            self.order_step(step + 1)  # its episodes go on while this one is learned from
        stream, batch = self.take(name, "trainer", self.step if self.lines else None, step)
        groups = batch.groups if batch else []
        names = [x.id for x in groups]
        if again := self.learned & set(names):
            raise RuntimeError(f"these groups were learned from before: {sorted(again)}")
        taken = time.monotonic()
        kept = [sequences_of(x, self.teaching.get("least_deviation", 0.02)) for group in groups for x in group.rows]
        sequences = [x for group in kept for x in group]
        said = learn(self.policy, self.optimizer, sequences, passes=self.teaching.get("passes", 1),
                     rows=self.teaching.get("rows", 8)) if sequences else {}
        rewards = [x for task in rewards_of(groups).values() for x in task]
        now = time.monotonic()
        self.lines.append({
            "step": step, "groups": names, "alike": sum(not x for x in kept), "episodes": len(rewards),
            "reward": round(statistics.fmean(rewards), 4) if rewards else None,
            "correct": round(statistics.fmean(x >= CORRECT for x in rewards), 4) if rewards else None, **said,
            "rewards": {k: [round(x, 3) for x in v] for k, v in rewards_of(groups).items()},
            "versions": sorted({x.max_version for x in groups if x.max_version}),
            "seconds": {"rollouts": round(taken - begun, 2), "learning": round(now - taken, 2)}, "time": round(time.time(), 1)})
        self.learned.update(names)
        model.save(str(self.checkpoint), self.policy, self.vocabulary, optimizer=self.optimizer.state_dict(), version=self.version,
                   lines=json.dumps(self.lines))
        if batch:
            stream.commit(step)
        self.write_lines()
        print(json.dumps({k: v for k, v in self.lines[-1].items() if k not in ("groups", "rewards")}), flush=True)

    def evaluate(self) -> None:
        """Samples all held-out tasks, once for each step that asks for it."""
        path, at = self.folder / "evaluations.jsonl", self.step + 1
        done = [json.loads(x) for x in path.read_text().splitlines() if x.endswith("}")] if path.exists() else []
        if any(x["after"] == at for x in done):
            return
        name = self.order(f"held-out-{at}", self.held_out, self.teaching["samples"], {})
        stream, batch = self.take(name, f"evaluator-{at}", None, at)
        rewards = rewards_of(batch.groups)
        line = {"after": at, "version": self.version, "samples": sum(map(len, rewards.values())), **with_intervals(rewards),
                "rewards": {k: [round(x, 3) for x in v] for k, v in sorted(rewards.items())}, "time": round(time.time(), 1)}
        stream.commit(at)
        new = path.with_suffix(".new")
        new.write_text("".join(json.dumps(x) + "\n" for x in [*done, line]))
        os.replace(new, path)
        print(json.dumps({k: v for k, v in line.items() if k != "rewards"}), flush=True)

    def run(self) -> None:
        self.serve_weights()
        while True:
            at, last = self.step + 1, self.teaching["steps"]
            if at % self.teaching["evaluate_every"] == 0 or at == last:
                self.evaluate()
            if at >= last:
                return
            self.teach()
            self.serve_weights()


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--url", required=True, help="of kernelmill serve --runs")
    words.add_argument("--policy", required=True, help="of the policy's server")
    given = words.parse_args()
    Teacher(given.folder, kernelmill.Client(given.url, patience=3600), given.policy.rstrip("/")).run()


if __name__ == "__main__":
    main()
