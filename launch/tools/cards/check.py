#!/usr/bin/env python3
"""Checks the cards: what they show, that snippets compile, and that both forms of a pair give equal results here.

    launch/tools/cards/check.py [--language cpp --language torch ...] [ID ...]

Languages: cpp, cuda, hip, torch, triton. What a machine cannot compile or run is counted, and is no failure.
$KERNELMILL_PYTHON, or else the first python3 that has torch, runs PyTorch's snippets, and compiles Triton's where it
has Triton.
"""

import argparse
import ast
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cards import build, corpus  # noqa: E402

LANGUAGES = ("cpp", "cuda", "hip", "torch", "triton")
TORCH_PAIRS = pathlib.Path(__file__).resolve().parent / "torch_pairs.py"


def snippets_of(cards, language):
    return [x for card in cards for x in (card.before, card.after) if x and x.language == language]


def torch_python():
    """An interpreter that has torch, or None."""
    for tried in filter(None, (os.environ.get("KERNELMILL_PYTHON"), sys.executable, "python3", "/usr/bin/python3")):
        if subprocess.run([tried, "-c", "import torch"], capture_output=True).returncode == 0:
            return tried
    return None


def python_results(cards, seconds=0.0, device="cpu"):
    """{id: result of torch_pairs.py} of the cards whose snippet runs; None where no interpreter has torch."""
    python = torch_python()
    if not python:
        return None
    jobs = []
    for x in cards:
        if x.after and x.after.bench and x.after.language in ("torch", "triton"):
            jobs.append(
                {
                    "id": x.id,
                    "before": str(x.before.path) if x.before else "",
                    "after": str(x.after.path),
                    "bench": [vars(y) for y in x.after.bench.arguments],
                    "torch": x.after.bench.torch,
                    "triton": x.after.language == "triton",
                    "seconds": seconds,
                    "device": device,
                }
            )
    if not jobs:
        return {}
    environment = {**build.OPENMP, **os.environ}
    done = subprocess.run(
        [python, "-B", TORCH_PAIRS], input=json.dumps(jobs), capture_output=True, text=True, env=environment
    )
    lines = [x.removeprefix("RESULT ") for x in done.stdout.splitlines() if x.startswith("RESULT ")]
    results = {x["id"]: x for x in map(json.loads, lines)}
    for x in jobs:
        results.setdefault(x["id"], {"failed": f"the interpreter ended with {done.returncode}: {done.stderr[-500:]}"})
    return results


def check_python(cards, language, tell):
    found = []
    for x in snippets_of(cards, language):
        try:
            ast.parse(x.text)
        except SyntaxError as e:
            found.append(f"{x.path}: {e}")
    results = python_results([x for x in cards if x.after and x.after.language == language])
    if results is None:
        tell(f"{language}: only parsed, since no python3 has torch")
        return found
    by_id = {x.id: x for x in cards}
    for name, x in results.items():
        if "failed" in x:
            found.append(f"{name}: {x['failed']}")
        elif x.get("error", 0) > by_id[name].after.bench.within:
            found.append(f"{name}: the two forms differ by {x['error']:.3g}")
    skipped = collections.Counter(x["skipped"] for x in results.values() if "skipped" in x)
    tell(
        f"{language}: {len(results) - sum(skipped.values())} called"
        + "".join(f", {n} not ({why})" for why, n in skipped.items())
    )
    return found


def check_compiled(cards, language, tell):
    snippets = snippets_of(cards, language)
    if not snippets:
        return []
    if not build.compiler(language):
        tell(f"{language}: {len(snippets)} not compiled, since the compiler is missing")
        return []
    with tempfile.TemporaryDirectory() as folder:
        said = build.compile_all(language, snippets, pathlib.Path(folder))
        tell(f"{language}: {len(snippets)} compiled")
        return [said] if said else []


def runs_here(card):
    """Whether this machine's processor has what the pair uses."""
    return "_mm512" not in card.after.text or "avx512_vnni" in pathlib.Path("/proc/cpuinfo").read_text()


def check_pairs(cards, language, tell):
    """Builds the program that compares the pairs, as measure.py does; of C++ it also runs each pair once."""
    pairs = [x for x in cards if x.before and x.before.language == language]
    if language == "cpp":
        pairs = [x for x in pairs if runs_here(x)]
    if not pairs or not build.compiler(language):
        return []
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if said := build.build_pairs(pairs, folder):
            return [said]
        for number, card in enumerate(pairs if language == "cpp" else []):
            x = build.compare(number, folder, 0)
            if "failed" in x:
                found.append(f"{card.id}: {x['failed']}")
            elif not x["error"] <= card.after.bench.within:
                found.append(f"{card.id}: the two forms differ by {x['error']:.3g}")
    tell(f"{language}: {len(pairs)} pairs {'compared' if language == 'cpp' else 'built'}")
    return found


def check(cards, languages=LANGUAGES, tell=print):
    """Sentences about what is wrong."""
    found = [y for x in cards for y in x.faults]
    for language in languages:
        if language in ("torch", "triton"):
            found += check_python(cards, language, tell)
        else:
            said = check_compiled(cards, language, tell)
            found += said or check_pairs(cards, language, tell)
    return found


def summary(cards):
    """How many are measured, and of which language those are that are not."""
    pairs = [x for x in cards if x.before]
    unmeasured = collections.Counter(x.before.language for x in pairs if not x.measured)
    missing = ", ".join(f"{k} {n}" for k, n in sorted(unmeasured.items()))
    snippets = sum(bool(x.after) for x in cards)
    return (
        f"{len(cards)} cards, {snippets} with a snippet; {len(pairs)} pairs, "
        f"{len(pairs) - unmeasured.total()} measured, "
        f"{unmeasured.total()} not{' (' + missing + ')' if missing else ''}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", action="append", choices=LANGUAGES)
    parser.add_argument("ids", nargs="*", metavar="ID")
    options = parser.parse_args()
    cards = corpus.load()
    chosen = [x for x in cards if not options.ids or x.id in options.ids]
    found = check(chosen, options.language or LANGUAGES)
    print(summary(cards))
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
