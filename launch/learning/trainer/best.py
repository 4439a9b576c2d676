"""Judges the best kernels of trainings again: the fastest one for each held-out task, over all evaluations.

    python -m trainer.best FOLDER... --program KERNELMILL --out best.jsonl

Each FOLDER is one seed's. A kernel is replayed with the seed of its run, evaluated with a new secret seed and the
referee's own timing, and looked at by the sanitizers. One line a kernel, and a table.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
from typing import Any, Dict, List

from .curve import lines_of


def best_of(folder: pathlib.Path) -> Dict[str, str]:
    """The turn with the highest speedup for each held-out task."""
    found = [
        (x["speedup"], task, x["turn"])
        for line in lines_of(folder / "evaluations.jsonl")
        for task, x in line["best"].items()
    ]
    return {task: turn for _, task, turn in sorted(found)}


def asked(program: str, *words: str) -> Any:
    """What a command says as JSON. An exit code may say something of the kernel;
    without a document the command has failed."""
    done = subprocess.run([program, *words, "--json"], capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"failed to run {words[0]}: {done.stderr.strip()}") from None


def judged_again(program: str, tasks: pathlib.Path, turn: str) -> Dict[str, Any]:
    """`turn` is a path: RUN/g0.e1.t0."""
    stored = asked(program, "show", turn)
    with tempfile.TemporaryDirectory() as folder:
        backend = stored["facts"]["backend"]
        completion, kernel = (
            pathlib.Path(folder, x) for x in ("completion.txt", "kernel.cu" if backend == "cuda" else "kernel.cpp")
        )
        completion.write_text(stored["completion"]["text"])
        kernel.write_text(stored["candidate"])
        where = ["--task", stored["episode"]["task"], "--root", str(tasks), "--backend", backend]
        now = asked(program, "eval", str(completion), "--completion", *where)
        memory = asked(program, "sanitize", str(kernel), *where)
    replayed = asked(program, "replay", turn)["replayed"][0]
    return {
        "task": stored["episode"]["task"],
        "backend": backend,
        "first": stored["facts"]["evaluation"]["timing"]["speedup"],
        "again": now["timing"]["speedup"],
        "outcome": now["outcome"],
        "category": now["category"],
        "stands": replayed["stands"],
        "findings": [x["rule"] for x in now["integrity"]["findings"]],
        "replay_differs": [
            f"{x['level']}: {x['what']}: {x['detail']}" for x in replayed["checks"] if x["said"] == "different"
        ],
        "sanitizers": {x["check"]: x["errors"] if x["problem"] == "none" else x["problem"] for x in memory["checks"]},
        "kernel": stored["candidate"],
    }


def interval_of(x: Dict[str, Any]) -> str:
    if not x["estimate"]:  # the machine was too busy, or the calls too few
        return "not timed"
    return f"{x['estimate']:.2f} [{x['low']:.2f}, {x['high']:.2f}]"


def row_of(x: Dict[str, Any]) -> str:
    first, again = (interval_of(y) for y in (x["first"], x["again"]))
    findings = ", ".join([*x["findings"], *(f"{k}: {v}" for k, v in x["sanitizers"].items() if v)]) or "none"
    return (
        f"| `{x['task']}` | {first} | {again} | {x['outcome']} | {findings} | "
        f"{'stands' if x['stands'] else 'does not stand'} |"
    )


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folders", type=pathlib.Path, nargs="+")
    words.add_argument("--program", default="kernelmill")
    words.add_argument("--out", type=pathlib.Path, required=True)
    given = words.parse_args()
    rows: List[Dict[str, Any]] = []
    for folder in given.folders:
        for turn in best_of(folder).values():
            found = judged_again(given.program, folder / "tasks", str(folder / "runs" / turn))
            rows.append({"folder": folder.name, "turn": turn, **found})
            print(row_of(rows[-1]), flush=True)
    given.out.write_text("".join(json.dumps(x) + "\n" for x in rows))


if __name__ == "__main__":
    main()
