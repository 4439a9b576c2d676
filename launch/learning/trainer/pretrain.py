"""Teaches a new policy to answer in the form that Kernelmill asks for: right or wrong, fast or slow,
as the templates do.

    python -m trainer.pretrain FOLDER --program KERNELMILL --config FILE

The prompts are Kernelmill's own: a run of all practice tasks, whose scripted policy says nothing, records them.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile
import time
from typing import Dict, List, Tuple

import torch

from . import model, tasks

Messages = List[Dict[str, str]]
Text = Tuple[Messages, str]  # a prompt and its answer
NAME = "abcdefghijklmnopqrstuvwxyz_0123456789"


def prompts_of(program: str, root: pathlib.Path, backend: str) -> Dict[str, Messages]:
    """The messages of the first turn of each practice task, as Kernelmill sends them."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "script.json")
        script.write_text(json.dumps({"model": "silent", "replies": [{"text": "-"}]}))
        subprocess.run(
            [
                program,
                "run",
                f"run.dir={folder}/run",
                f"tasks.root={root}",
                'tasks.ids=["practice/*"]',
                "tasks.group_size=1",
                "tasks.max_turns=1",
                "policy.kind=scripted",
                f"policy.script={script}",
                "policy.model=silent",
                "retrieval.enabled=false",
                f"evaluation.backend={backend}",
                "trackers.tensorboard=false",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        lines = [json.loads(x) for x in pathlib.Path(folder, "run/traces.jsonl").read_text().splitlines()]
    return {x["task"]: x["prompt_messages"] for x in lines if x["kind"] == "turn"}


def make_texts(parts: Dict[str, List[tasks.Task]], prompts: Dict[str, Messages], answers: int, seed: int) -> List[Text]:
    """Conversations to learn from, each with a function and a name of its own;
    raises tasks.Leak where one has what is held out."""
    draw, texts, held_out = random.Random(seed), [], {x.f for x in parts["held_out"]}
    for task in (x for x in parts["practice"] for _ in range(answers)):
        other = task._replace(terms=tasks.make_terms(draw, task.family, held_out))
        name = "/".join("".join(draw.choices(NAME, k=draw.randint(3, 9))) for _ in range(2))  # no name must confuse it
        prompt = [
            {**x, "content": x["content"].replace(f"return {task.f};", f"return {other.f};").replace(task.id, name)}
            for x in prompts[task.id]
        ]
        texts.append((prompt, tasks.answer(other, draw)))
    tasks.check_held_out(
        ["\n".join([*(m["content"] for m in prompt), said]) for prompt, said in texts], parts["held_out"]
    )
    return texts


def pretrain(
    folder: pathlib.Path,
    texts: List[Text],
    shape: Dict[str, int],
    steps: int,
    batch: int,
    rate: float,
    device: str,
    seed: int,
) -> None:
    part, start = folder / "pretraining.pt", 0
    if part.exists():
        policy, vocabulary, kept = model.load(str(part), device)
        start = kept["step"] + 1
    else:
        some = random.Random(seed).sample(texts, min(1000, len(texts)))
        vocabulary = model.Vocabulary.learned(
            ["".join(x["content"] for x in prompt) for prompt, _ in some], [x for _, x in some]
        )
        torch.manual_seed(seed)
        policy, kept = model.Policy({"vocabulary": len(vocabulary), **shape}).to(device), {}
    rows = [(vocabulary.render(prompt), [*vocabulary.encode(said), model.END]) for prompt, said in texts]
    print(
        f"{len(rows)} texts, {len(vocabulary)} words, {sum(x.numel() for x in policy.parameters())} weights, "
        "the longest text has "
        f"{max(len(a) + len(b) for a, b in rows)} ids",
        flush=True,
    )
    optimizer = torch.optim.AdamW(policy.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    if kept:
        optimizer.load_state_dict(kept["optimizer"])
    begun = time.monotonic()
    for step in range(start, steps):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 100) * (1 - 0.9 * step / steps)
        chosen = random.Random(f"{seed}/{step}").sample(rows, batch)
        scores = model.logprobs_of(policy, [a + b for a, b in chosen])
        learned = model.padded([[0] * (len(a) - 1) + [1] * len(b) for a, b in chosen], scores.device)
        loss = -(scores * learned).sum() / learned.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step + 1 == steps:
            print(
                json.dumps(
                    {"step": step, "loss": round(loss.item(), 4), "seconds": round(time.monotonic() - begun, 1)}
                ),
                flush=True,
            )
            model.save(str(part), policy, vocabulary, step=step, optimizer=optimizer.state_dict())
    model.save(str(folder / "pretrained.pt"), policy, vocabulary)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--program", required=True)
    words.add_argument("--config", type=pathlib.Path, required=True)
    given = words.parse_args()
    config = json.loads(given.config.read_text())
    backend = config.get("backend", "cpu")
    parts = tasks.write_all(given.folder / "tasks", **config["tasks"], seed=config["seed"], backend=backend)
    prompts = prompts_of(given.program, given.folder / "tasks", backend)
    texts = make_texts(parts, prompts, config["pretraining"].pop("answers"), config["seed"])
    with open(given.folder / "pretraining.jsonl", "w") as file:  # for `kernelmill train check`
        file.writelines(json.dumps([*(x["content"] for x in prompt), said]) + "\n" for prompt, said in texts)
    pretrain(
        given.folder, texts, config["model"], device=config["device"], seed=config["seed"], **config["pretraining"]
    )


if __name__ == "__main__":
    main()
