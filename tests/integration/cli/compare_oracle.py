"""Makes the figures of `kernelmill compare A B --json` anew, from the rows of `kernelmill query`,
and fails where they differ.

Nothing is shared with the program: the rows are read as JSON, pass@k comes from binomial coefficients, the sign test
from exact integers, subsets from `itertools`, and those that are drawn from a SplitMix64 of its own.

usage: compare_oracle.py KERNELMILL A B [words of compare ...]
"""

import itertools
import json
import math
import statistics
import subprocess
import sys
from collections import defaultdict

MASK = (1 << 64) - 1
FIELDS = (
    "task,group,member,turn,split,accepted,lost,paid,reward,"
    "speedup,speedup.low,speedup.high,ended,episode.outcome,shared"
)


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def episodes_of(program, name):
    """By task: a list of (best reward or None, right, (estimate, low, high) or None), and the split."""
    found = defaultdict(list)
    for line in run(program, "query", "", name, "--fields", FIELDS, "--json").splitlines():
        row = json.loads(line)
        found[row["task"], row["group"], row["member"]].append(row)
    tasks, splits = defaultdict(list), {}
    for (task, _, _), rows in found.items():
        splits[task] = rows[0]["split"]
        tasks[task]
        if not rows[0]["ended"] or rows[0]["episode.outcome"] == "infrastructure":
            continue
        judged = [x for x in rows if not x["lost"] and not x["shared"]]
        if not judged:
            continue
        rewards = [x["reward"] for x in judged if x["paid"]]
        timed = [
            (x["speedup.low"], x["speedup"], x["speedup.high"])
            for x in judged
            if x["accepted"] and x["speedup"] is not None
        ]
        best = max(timed, default=None, key=lambda x: x[0])
        tasks[task].append((max(rewards, default=None), any(x["accepted"] for x in judged), best))
    return tasks, splits


def reward(episodes):
    known = [x[0] for x in episodes if x[0] is not None]
    return statistics.fmean(known) if known else None


def fast(p):
    def value(episodes):
        hits = [right and (p <= 0 or (best is not None and best[1] > p)) for _, right, best in episodes]
        return sum(hits) / len(hits) if hits else None

    return value


def passes(k):
    def value(episodes):
        n, c = len(episodes), sum(x[1] for x in episodes)
        return 1 - math.comb(n - c, k) / math.comb(n, k) if n >= k else None

    return value


def best_speedup(episodes):
    return max((x[2] for x in episodes if x[2] is not None), default=None, key=lambda x: x[0])


def log_speedup(episodes):
    known = [math.log(x[2][1]) for x in episodes if x[2] is not None]
    return statistics.fmean(known) if known else None


class SplitMix64:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def interval(differences, how):
    n = len(differences)
    if n < how["least_tasks"] or max(differences) - min(differences) <= 1e-12:
        return None, None
    if n <= how["all_subsets_up_to_tasks"]:
        subsets = (x for size in range(1, n + 1) for x in itertools.combinations(differences, size))
    else:
        subsets = drawn_subsets(differences, how)
    means = sorted(sum(x) / len(x) for x in subsets)
    place = max(1, (len(means) + 1) // 40) - 1
    return means[place], means[-1 - place]


def drawn_subsets(differences, how):
    draw, n, count = SplitMix64(how["seed"]), len(differences), 0
    while count < how["draws"]:
        words = [draw.next() for _ in range((n + 63) // 64)]
        subset = [x for i, x in enumerate(differences) if words[i // 64] >> (i % 64) & 1]
        if subset:
            count += 1
            yield subset


def expect(what, said, known):
    if said is None or known is None:
        assert said is None and known is None, f"{what}: the program says {said}, the oracle {known}"
    else:
        assert math.isclose(said, known, rel_tol=1e-9, abs_tol=1e-9), (
            f"{what}: the program says {said}, the oracle {known}"
        )


def sign_test(wins, losses):
    n = wins + losses
    tail = sum(math.comb(n, i) for i in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / 2**n) if n else 1.0


def main():
    program, a, b, *words = sys.argv[1:]
    said = json.loads(run(program, "compare", a, b, "--json", *words))
    tasks_a, splits = episodes_of(program, a)
    tasks_b, _ = episodes_of(program, b)
    common = sorted(set(tasks_a) & set(tasks_b) - set(said["tasks"]["changed"]))
    if said["tasks"]["held_out"]:
        common = [x for x in common if splits[x] == "dev"]
    assert said["tasks"]["compared"] == len(common), (said["tasks"], common)
    assert [x["task"] for x in said["by_task"]] == common
    pairs = [(tasks_a[x], tasks_b[x]) for x in common]

    figures = 0
    for row in said["statistics"]:
        metric = row["metric"]
        value = {"reward": reward, "task_geomean_speedup": log_speedup}.get(metric)
        if metric.startswith("fast_"):
            value = fast(float(metric[5:]))
        elif metric.startswith("pass@"):
            value = passes(int(metric[5:]))
        known = [(x, y) for x, y in ((value(p), value(q)) for p, q in pairs) if x is not None and y is not None]
        assert row["tasks"] == len(known), (metric, row["tasks"], len(known))
        differences = [y - x for x, y in known]
        low, high = interval(differences, said["intervals"])
        means = [
            statistics.fmean(x) if x else None for x in ([x for x, _ in known], [y for _, y in known], differences)
        ]
        for key, number in zip(("a", "b", "difference", "low", "high"), (*means, low, high)):
            if row["scale"] == "ratio" and number is not None:
                number = math.exp(number)
            expect(f"{metric}.{key}", row[key], number)
            figures += number is not None

    def count(better):
        found = [x for x in (better(p, q) for p, q in pairs) if x is not None]
        return [sum(x > 0 for x in found), sum(x < 0 for x in found), sum(x == 0 for x in found)]

    def by_reward(p, q):
        x, y = reward(p), reward(q)
        return None if x is None or y is None else 0 if math.isclose(x, y, abs_tol=1e-9, rel_tol=0) else y - x

    def by_correct(p, q):
        return fast(0)(q) - fast(0)(p) if p and q else None

    def by_speedup(p, q):
        x, y = best_speedup(p), best_speedup(q)
        if x is None or y is None:
            return None
        return 1 if y[0] > x[2] else -1 if x[0] > y[2] else 0

    for row, better in zip(said["wins"], (by_reward, by_correct, by_speedup)):
        known = count(better)
        assert [row["wins"], row["losses"], row["ties"]] == known, (row, known)
        expect(f"{row['by']}.p", row["p"], sign_test(*known[:2]))
        figures += 4
    print(f"{figures} figures of {len(common)} tasks agree")


if __name__ == "__main__":
    main()
