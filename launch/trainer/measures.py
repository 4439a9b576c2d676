"""How policies of several seeds compare with what they were, on the tasks that were held out.

    python -m trainer.measures FOLDER...

Each FOLDER is one seed's. The difference is that of the last evaluation and the first one of the same folder.
"""

import json
import math
import pathlib
import statistics
import sys
from typing import Any, Dict, List

# Of Student's t, two-sided 95 %, by degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]


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
