"""What held-out evaluations measure, and how policies of several seeds compare with what they were.

    python -m trainer.measures FOLDER...

Each FOLDER is one seed's. The difference is that of the last evaluation and the first one of the same folder.
"""

import json
import math
import pathlib
import random
import statistics
import sys
from typing import Any, Dict, List

CORRECT = 0.3  # what a right kernel is worth; its speedup comes on top
# Of Student's t, two-sided 95 %, by degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


def pass_at(k: int, samples: int, right: int) -> float:
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)


def measures(rewards: Dict[str, List[float]]) -> Dict[str, float]:
    """Of the rewards of each task's samples; each task counts alike. Speedups are lower bounds."""
    def mean_of(what: Any) -> float:
        return statistics.fmean(what(x) for x in rewards.values())

    right = lambda x: sum(r >= CORRECT for r in x)  # noqa: E731
    fewest = min(map(len, rewards.values()))
    return {"reward": mean_of(statistics.fmean), "pass@1": mean_of(lambda x: right(x) / len(x)),
            f"pass@{fewest}": mean_of(lambda x: pass_at(fewest, len(x), right(x))),
            **{f"fast_{p:g}": mean_of(lambda x, p=p: sum(r - CORRECT >= p - 1e-9 for r in x) / len(x)) for p in (1.0, 1.5, 2.0, 4.0)}}


def with_intervals(rewards: Dict[str, List[float]], draws: int = 1000) -> Dict[str, List[float]]:
    """[measure, 2.5 %, 97.5 %]: samples are drawn again within each task, so this is about these tasks."""
    draw = random.Random(0)
    again = [measures({k: draw.choices(x, k=len(x)) for k, x in rewards.items()}) for _ in range(draws)]
    result = {}
    for name, value in measures(rewards).items():
        ordered = sorted(x[name] for x in again)
        result[name] = [round(x, 4) for x in (value, ordered[int(0.025 * draws)], ordered[int(0.975 * draws) - 1])]
    return result


def rewards_of(groups: List[Any]) -> Dict[str, List[float]]:
    """The best turn of each judged episode, by task."""
    result: Dict[str, List[float]] = {}
    for row in (row for group in groups for row in group.rows):
        for episode in row["episodes"]:
            rewards = [t["reward"] for t in episode["turns"] if t.get("reward") is not None]
            if rewards:
                result.setdefault(row["task"], []).append(max(rewards))
    return result


def compare(folders: List[pathlib.Path]) -> Dict[str, Any]:
    """The differences of the seeds, paired, with their 95 % interval where there are two or more."""
    lines = [[json.loads(x) for x in (folder / "evaluations.jsonl").read_text().splitlines()] for folder in folders]
    result: Dict[str, Any] = {"seeds": len(folders), "after": [x[-1]["after"] for x in lines], "samples": [x[-1]["samples"] for x in lines]}
    for name in lines[0][0]:
        if not isinstance(lines[0][0][name], list):
            continue
        first, last = [x[0][name][0] for x in lines], [x[-1][name][0] for x in lines]
        change = [b - a for a, b in zip(first, last)]
        result[name] = {"first": first, "last": last, "change": round(statistics.fmean(change), 4)}
        if 2 <= len(change) <= len(STUDENT) + 1:
            half = STUDENT[len(change) - 2] * statistics.stdev(change) / math.sqrt(len(change))
            result[name]["interval"] = [round(statistics.fmean(change) + x, 4) for x in (-half, half)]
    return result


if __name__ == "__main__":
    print(json.dumps(compare([pathlib.Path(x) for x in sys.argv[1:]]), indent=1))
