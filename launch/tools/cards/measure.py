#!/usr/bin/env python3
"""Measures the pairs of the cards, and writes what it found into their headers.

    launch/tools/cards/measure.py --backend cpu|cuda|hip [--seconds 1] [--dry] [ID ...]
    launch/tools/cards/measure.py --show     copies each snippet into the fence of its card

    measured: 3.10x on AMD EPYC (family 26, model 2), 2 cores, 2026-11-30

The backend says which pairs: cpu those of C++ and PyTorch, cuda those of CUDA, Triton and PyTorch, hip those of HIP. A
pair whose results differ, or whose speedup is unsteady, is refused. A new measurement replaces that of the same device.
"""

import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cards import build, check, corpus  # noqa: E402

LANGUAGES = {"cpu": ("cpp", "torch"), "cuda": ("cuda", "triton", "torch"), "hip": ("hip",)}

STEADY = 0.1  # the speedup of the even samples may differ from that of the odd ones by this part


def device(backend):
    """The name of what this machine measures on, with what makes it comparable."""
    if backend == "cpu":
        text = pathlib.Path("/proc/cpuinfo").read_text()
        name, family, model = (
            re.search(rf"^{x}\s*: (.*)$", text, re.M)[1].strip() for x in ("model name", "cpu family", "model")
        )
        return f"{name} (family {family}, model {model}), {len(os.sched_getaffinity(0))} cores"
    command = {
        "cuda": ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
        "hip": ["sh", "-c", "rocminfo | sed -n 's/.*Marketing Name: *//p' | grep -v CPU"],
    }[backend]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0].strip()


def results_of(cards, seconds, backend):
    """Yields (card, result), with {"failed": why} where there is no measurement."""
    compiled = {}  # language: cards
    for x in cards:
        if x.after.path.suffix != ".py":
            compiled.setdefault(x.after.language, []).append(x)
    for language, pairs in compiled.items():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            wrong = build.build_pairs(pairs, folder) if build.compiler(language) else "its compiler is missing"
            for number, card in enumerate(pairs):
                yield card, {"failed": wrong} if wrong else build.compare(number, folder, seconds)
    python = [x for x in cards if x.after.path.suffix == ".py"]
    results = check.python_results(python, seconds, backend) if python else {}
    for card in python:
        yield card, {"failed": "no python3 has torch"} if results is None else results[card.id]


def fault_of(card, x):
    """Why a result is no measurement, or None."""
    if "failed" in x or "skipped" in x:
        return x.get("failed") or x["skipped"]
    if not x["error"] <= card.after.bench.within:
        return f"the two forms differ by {x['error']:.3g}"
    even, odd = (b / a for b, a in zip(x["before"], x["after"]))
    if abs(even / odd - 1) > STEADY:
        return f"unsteady: {even:.2f}x in one half of the samples, {odd:.2f}x in the other; next: a quiet machine"
    return None


def record(card, speedup, name, date):
    kept = [x for x in card.measured if x[1] != name]
    kept.append((f"{speedup:.2f}", name, date))
    card.header["measured"] = "; ".join(f"{s}x on {d}, {t}" for s, d, t in kept)
    corpus.rewrite(card)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=LANGUAGES)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each pair")
    parser.add_argument("--dry", action="store_true", help="prints, and writes nothing")
    parser.add_argument("--show", action="store_true", help="copies snippets into cards")
    parser.add_argument("ids", nargs="*", metavar="ID")
    options = parser.parse_args()
    if not options.show and not options.backend:
        parser.error("--backend or --show is missing")
    cards = [x for x in corpus.load() if not options.ids or x.id in options.ids]
    if options.show:
        for x in cards:
            if x.after:
                corpus.rewrite(x)
    if not options.backend:
        return 0
    chosen = [x for x in cards if x.before and x.after.language in LANGUAGES[options.backend]]
    name, date, failed = device(options.backend), datetime.date.today().isoformat(), 0
    for card, x in results_of(chosen, options.seconds, options.backend):
        wrong = fault_of(card, x)
        if wrong:
            failed += 1
            print(f"{card.id}: {wrong}", file=sys.stderr)
            continue
        before, after = min(x["before"]), min(x["after"])
        speedup = before / after
        print(f"{card.id}: {speedup:.2f}x ({before / 1e3:.1f} us to {after / 1e3:.1f} us), error {x['error']:.1g}")
        if not options.dry:
            record(card, speedup, name, date)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
