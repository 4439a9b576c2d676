"""How policies of several seeds compare with what they were, on the tasks that were held out; what a minute brought;
and what they learned: the share of each plan in the completions for held-out tasks, before and after.

    python -m trainer.measures FOLDER...

Each FOLDER is one seed's. The difference is that of the last evaluation and the first one of the same folder.
"""

import collections
import json
import math
import pathlib
import re
import statistics
import sys
from typing import Any, Dict, List

from .curve import lines_of
from .tasks import WITHOUT_SIZE

# Of Student's t, two-sided 95 %, by degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


def compare(folders: List[pathlib.Path]) -> Dict[str, Any]:
    """The differences of the seeds, paired, with their 95 % interval where there are two or more."""
    lines = [lines_of(folder / "evaluations.jsonl") for folder in folders]
    result: Dict[str, Any] = {
        "seeds": len(folders),
        "after": [x[-1]["after"] for x in lines],
        "samples": [x[-1]["samples"] for x in lines],
    }
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


def rates(folder: pathlib.Path) -> Dict[str, float]:
    """Of the steps alone: turns, each with its verdict, and optimizer steps a minute,
    and the share of the time in episodes."""
    steps = lines_of(folder / "checkpoints.jsonl")
    total = sum(x["Timing/Total"] for x in steps)
    return {
        "steps": len(steps),
        "seconds": round(total, 1),
        "verdicts_a_minute": round(60 * sum(x["turns"] for x in steps) / total, 1),
        "steps_a_minute": round(60 * len(steps) / total, 2),
        "share_of_episodes": round(sum(x["Timing/Rollout"] for x in steps) / total, 3),
    }


def plans(folder: pathlib.Path, after: int) -> Dict[str, Dict[str, float]]:
    """By family of held-out tasks: the share of each plan, the words in <think>, after so many steps.
    Empty where the runs are gone."""
    counts: Dict[str, Any] = collections.defaultdict(collections.Counter)
    known = re.compile(r"(split, )?\d+ at a time|" + "|".join(WITHOUT_SIZE.values()))
    for line in lines_of(folder / "runs" / f"held-out-{after}" / "traces.jsonl"):
        if line["kind"] == "turn":
            family, plan = line["task"].rsplit("/", 1)[-1].rsplit("_", 1)[0], line["response"]["thought"].strip()
            counts[family][plan if known.fullmatch(plan) else "other words"] += 1
    return {
        family: {plan: round(n / sum(x.values()), 3) for plan, n in x.most_common()}
        for family, x in sorted(counts.items())
    }


if __name__ == "__main__":
    given = [pathlib.Path(x) for x in sys.argv[1:]]
    said = {**compare(given), "rates": {str(x): rates(x) for x in given}}
    for name, place in (("plans_before", 0), ("plans_after", -1)):
        said[name] = {
            str(x): made for x in given if (made := plans(x, lines_of(x / "evaluations.jsonl")[place]["after"]))
        }
    print(json.dumps(said, indent=1))
