#!/usr/bin/env python3
"""Measures all variants of matmul_variants.py with the referee, and writes a table that search_bench reads.

    tests/bench/measure_variants.py --out table.txt [--language cuda] [--rounds 2] [--finalists 16] [--final-rounds 5]

A row is the mean of a variant's speedups over all rounds. The fastest ones are measured more often, since the
fastest of many measurements has been lucky, too; the optimum is the fastest by these further rounds alone.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import matmul_variants as variants

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("KERNELMILL_BIN_DIR", ROOT / "build/bin")) / "kernelmill"


def judged(kernels, family=variants.CPP, until=math.inf, part=128):
    """Judges `kernels` (name: source) once each. Name: (low, estimate, high), or None where it was not timed.

    No further `part` is begun after `until` (seconds of time.monotonic())."""
    result = dict.fromkeys(kernels)
    rest = list(kernels.items())
    while rest and time.monotonic() < until:
        result |= judged_at_once(dict(rest[:part]), family)
        rest = rest[part:]
    if len(rest) < len(kernels) and not any(result.values()):
        sys.exit("no kernel was timed")
    return result


def judged_at_once(kernels, family):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        rows = []
        for at, (name, source) in enumerate(kernels.items()):
            (folder / f"{at}{family.suffix}").write_text(source, encoding="utf-8")
            rows.append(json.dumps({"task": variants.TASK, "file": f"{at}{family.suffix}", "name": name}))
        (folder / "batch.ndjson").write_text("\n".join(rows) + "\n", encoding="utf-8")
        done = subprocess.run(
            [PROGRAM, "judge", folder / "batch.ndjson", "--backend", family.backend],
            capture_output=True,
            text=True,
            check=False,
        )
    result = {}
    for verdict in map(json.loads, done.stdout.splitlines()):
        timing = verdict["timing"]
        if not verdict.get("correct"):
            sys.exit(f"{verdict['name']} is {verdict['outcome']}: {verdict['category']}")
        if timing["measured"]:
            result[verdict["name"]] = tuple(timing["speedup"][x] for x in ("low", "estimate", "high"))
    if not result:
        print(f"judge exited with {done.returncode}: {done.stderr.strip()[-2000:]}", file=sys.stderr)
    return result


def middle(values):
    """Geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--language", choices=variants.FAMILIES, default="cpp", help="cuda needs a GPU")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--finalists", type=int, default=16)
    parser.add_argument("--final-rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, help="measures only so many variants, for a trial")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no further variants are begun after this time")
    asked = parser.parse_args()
    family = variants.FAMILIES[asked.language]
    begun = time.monotonic()
    names = {"_".join(map(str, x)): x for x in family.all_variants()[: asked.limit]}
    # The plain one, and the others in an order that has nothing to do with what they are: what there is time for is a
    # sample of them.
    order = sorted(names, key=lambda x: (names[x] != family.plain, variants.draw(x)))
    kernels = {name: family.source_of(names[name]) for name in order}
    seen = {name: [] for name in names}
    for number in range(asked.rounds):
        for name, x in judged(kernels, family, begun + asked.seconds).items():
            if x:
                seen[name].append(x)
        print(f"round {number + 1}: {time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    estimate = {name: middle([x[1] for x in rows]) for name, rows in seen.items() if rows}
    finalists = sorted(estimate, key=estimate.get, reverse=True)[: asked.finalists]
    final = {name: [] for name in finalists}
    for _ in range(asked.final_rounds):
        for name, x in judged({name: kernels[name] for name in finalists}, family).items():
            if x:
                final[name].append(x)
                seen[name].append(x)
    best = max((x for x in final if final[x]), key=lambda x: middle([y[1] for y in final[x]]), default=finalists[0])
    with asked.out.open("w", encoding="utf-8") as out:
        print(*(len(x) for x in family.choices.values()), file=out)
        for name, variant in names.items():
            if not seen[name]:
                continue
            lows, estimates, highs = zip(*seen[name], strict=True)
            print(
                *variant,
                family.niche_of(variant),
                f"{middle(estimates):.5f} {middle(lows):.5f} {middle(highs):.5f}",
                file=out,
            )
    spreads = [math.log(rows[0][1] / rows[1][1]) for rows in seen.values() if len(rows) > 1]
    if len(spreads) > 1:
        print(
            f"two rounds of one variant differ by {statistics.stdev(spreads) / math.sqrt(2):.3f} (standard deviation)"
        )
    print(f"{len(estimate)} of {len(names)} timed; plain {estimate.get('_'.join(map(str, family.plain)), 0):.3f}")
    for name in finalists:
        if final[name]:
            rows = [x[1] for x in final[name]]
            print(f"  {name} {middle(rows):.3f} ({min(rows):.3f} to {max(rows):.3f}, {len(rows)} rounds)")
    print(f"optimum {best}, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
