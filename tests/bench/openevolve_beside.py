#!/usr/bin/env python3
"""Searches of Kernelmill and OpenEvolve with the same policy, the same evaluator and the same number of answers.

    tests/bench/openevolve_beside.py --openevolve VENV/bin/openevolve-run [--seeds 5] [--answers 64] [--kill]

The policy (variant_policy.py) changes one or two choices of the kernel that a prompt shows, and 1 in 5 of its answers
is broken. OpenEvolve asks `kernelmill serve` for verdicts; its score is the lower bound of the speedup, as a search of
Kernelmill ranks by. It runs as it comes, but for whole rewrites and two evaluations at a time. At the end each
system's own choice is measured again, together with the kernels of --optimum, in rounds of fresh processes.

--kill: each system is killed (SIGKILL, all of its processes) after half of the answers, and resumed.
"""

import argparse
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import matmul_variants as variants
from measure_variants import PROGRAM, judged, middle
from variant_policy import VariantPolicy

WIDTH = 8  # of a generation; OpenEvolve's checkpoints are as far apart in the trial with a kill
EVALUATOR = """
import json
import time
import urllib.request

from openevolve.evaluation_result import EvaluationResult


def evaluate(program_path, url, log):
    begun = time.monotonic()
    body = {"task": "native/matmul", "source": open(program_path).read(), "wait": True}
    request = urllib.request.Request(
        url + "/v1/evaluate", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=250) as answer:
        verdict = json.load(answer)["verdict"]
    timing = verdict["timing"]
    score = timing["speedup"]["low"] if verdict["outcome"] == "accepted" and timing["measured"] else 0.0
    with open(log, "a") as out:
        slot = sum(verdict["slot_seconds"].values())
        out.write(json.dumps({"score": score, "seconds": time.monotonic() - begun, "slot": slot}) + "\\n")
    return EvaluationResult(
        metrics={"combined_score": score}, artifacts={"verdict": f"{verdict['outcome']}: {verdict['category']}"}
    )
"""


def openevolve_config(policy, seed, serve, log, every):
    config = {
        "language": policy.family.language,
        "file_suffix": policy.family.suffix,
        "random_seed": seed,
        "diff_based_evolution": False,
        "llm": {"api_base": policy.url, "api_key": "none", "primary_model": "variants"},
        "evaluator": {
            "parallel_evaluations": 2,
            "cascade_evaluation": False,
            "evaluator_args": {"url": serve, "log": str(log)},
        },
        "database": {"random_seed": seed},
    }
    if every:
        config["checkpoint_interval"] = every
    return json.dumps(config)  # which is YAML, too


class OpenEvolve:
    name = "openevolve"

    def __init__(self, folder, policy, seed, asked, every=None):
        self.folder, self.asked = folder, asked
        self.log = folder / "evaluations.ndjson"
        self.plain = f"plain{policy.family.suffix}"
        (folder / self.plain).write_text(policy.family.source_of(policy.family.plain))
        (folder / "evaluator.py").write_text(EVALUATOR)
        (folder / "config.yaml").write_text(openevolve_config(policy, seed, asked.serve, self.log, every))

    def words(self, resume=False):
        words = [self.asked.openevolve, self.plain, "evaluator.py", "--config", "config.yaml", "--output", "out"]
        done = 0
        if resume and (latest := self.latest()):
            words += ["--checkpoint", str(latest)]
            done = int(latest.name.rpartition("_")[2])
        return [*words, "--iterations", str(self.asked.answers - done)]

    def latest(self):
        found = (self.folder / "out/checkpoints").glob("checkpoint_*")
        return max(found, key=lambda x: int(x.name.rpartition("_")[2]), default=None)

    def kept(self):
        """Answers that a resumed one would know of, without the kernel that all begins with."""
        latest = self.latest()
        return len(list((latest / "programs").glob("*.json"))) - 1 if latest else 0

    def best(self):
        return (self.folder / f"out/best/best_program{self.asked.family.suffix}").read_text()

    def evaluator_seconds(self):
        return sum(json.loads(x)["slot"] for x in self.log.read_text().splitlines())


class Kernelmill:
    def __init__(self, name, folder, policy, seed, asked):
        self.name, self.folder, self.policy, self.seed, self.asked = name, folder, policy, seed, asked

    def words(self, resume=False):
        if resume:
            return [PROGRAM, "search", "--resume", "run"]
        return [
            PROGRAM, "search", variants.TASK, "--policy", self.policy.url, "policy.model=variants",
            "--strategy", self.name, "--width", str(WIDTH), "--budget", f"turns={self.asked.answers}",
            f"run.seed={self.seed}", "run.dir=run", "retrieval.enabled=false", "profile.enabled=false",
            f"evaluation.backend={self.asked.family.backend}",
        ]  # fmt: skip

    def kept(self):
        rows = (self.folder / "run/traces.jsonl").read_text().splitlines()
        return sum('"kind":"turn"' in x.replace(" ", "") for x in rows)

    def found(self):
        return json.loads((self.folder / "run/search.json").read_text())

    def best(self):
        return (self.folder / f"run/best{self.asked.family.suffix}").read_text()

    def evaluator_seconds(self):
        return self.found()["used"]["slot_seconds"]


def system_of(name, folder, policy, seed, asked, **more):
    return (
        OpenEvolve(folder, policy, seed, asked, **more)
        if name == OpenEvolve.name
        else Kernelmill(name, folder, policy, seed, asked)
    )


def started(system, **more):
    out = (system.folder / "output").open("ab")
    return subprocess.Popen(
        system.words(**more),
        cwd=system.folder,
        stdout=out,
        stderr=out,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )


def ended(system, process):
    if process.wait() != 0:
        text = (system.folder / "output").read_text(errors="replace")[-3000:]
        sys.exit(f"{system.name} in {system.folder} ended with {process.returncode}:\n{text}")


def search(name, seed, folder, asked):
    """One search to its end, as a row of the results."""
    with VariantPolicy(seed, asked.family) as policy:
        system = system_of(name, folder, policy, seed, asked)
        begun = time.monotonic()
        ended(system, started(system))
        seconds = time.monotonic() - begun
        return {
            "system": name,
            "seed": seed,
            "source": system.best(),
            "answers": policy.answers,
            "seconds": seconds,
            "evaluator_seconds": system.evaluator_seconds(),
            "tokens": sum(policy.tokens.values()),
        }


def killed(name, seed, folder, asked, every=None):
    """A search that is killed after half of its answers, and resumed."""
    with VariantPolicy(seed, asked.family) as policy:
        system = system_of(name, folder, policy, seed, asked, **({"every": every} if every else {}))
        process = started(system)
        while policy.answers < asked.answers // 2 and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        before, kept = policy.answers, system.kept()
        ended(system, started(system, resume=True))
        return before, kept, policy.answers


def spread(values, digits=2):
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.{digits}f}"
    student = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
    half = student.get(len(values), 2.1) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.{digits}f} [{mean - half:.{digits}f}, {mean + half:.{digits}f}]"


def compare(asked, folder):
    rows = []
    for seed in range(1, asked.seeds + 1):
        for name in asked.systems:
            place = folder / f"{name}-{seed}"
            place.mkdir()
            rows.append(search(name, seed, place, asked))
            print(
                f"{name:10} seed {seed}: {rows[-1]['answers']} answers, {rows[-1]['seconds']:.0f} s, "
                f"{asked.family.variant_of(rows[-1]['source'])}, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            asked.out.write_text(json.dumps(rows, indent=1))
    verify(asked, rows)
    asked.out.write_text(json.dumps(rows, indent=1))
    report(asked, rows)


def verify(asked, rows):
    """Measures each system's choice again, all of them and the optimum in each round."""
    for x in rows:
        x["kernel"] = "_".join(map(str, asked.family.variant_of(x["source"])))
    kernels = {x["kernel"]: x["source"] for x in rows}
    for text in asked.optimum:
        kernels[text] = asked.family.source_of(tuple(map(int, text.split("_"))))
    times = {x: [] for x in kernels}
    for _ in range(asked.rounds):
        for x, speedup in judged(kernels, asked.family).items():
            if speedup:
                times[x].append(speedup[1])
    known = {x: middle(y) for x, y in times.items() if y}
    best = max(known, key=known.get)
    print(f"fastest of {len(known)} kernels in {asked.rounds} rounds: {best}, {known[best]:.3f}")
    for x in rows:
        x["verified"] = known.get(x["kernel"], 0)
        x["share"] = x["verified"] / known[best]


def report(asked, rows):
    print(
        f"\n{asked.answers} answers, {asked.seeds} seeds: mean [95 % interval]\n\n"
        "| system | share of the optimum | worst | answers | seconds | evaluator seconds | tokens |\n"
        "|---|---|---|---|---|---|---|"
    )
    for name in asked.systems:
        mine = [x for x in rows if x["system"] == name]
        shares = [x["share"] for x in mine]
        means = [
            statistics.fmean(x[key] for x in mine) for key in ("answers", "seconds", "evaluator_seconds", "tokens")
        ]
        print(f"| {name} | {spread(shares)} | {min(shares):.2f} | " + " | ".join(f"{x:,.0f}" for x in means) + " |")


def kill_all(asked, folder):
    print(f"\nkilled after {asked.answers // 2} of {asked.answers} answers\n")
    print("| system | answers given before the kill | known after it | answers asked in all |\n|---|---|---|---|")
    trials = [(name, None) for name in asked.systems if name != "best_of_n"]
    if OpenEvolve.name in asked.systems:
        trials.append((OpenEvolve.name, WIDTH))
    for name, every in trials:
        place = folder / f"killed-{name}-{every}"
        place.mkdir()
        before, kept, total = killed(name, 1, place, asked, every)
        label = name + (f", a checkpoint every {every}" if every else "")
        print(f"| {label} | {before} | {kept} | {total} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openevolve", default="openevolve-run", help="the program of the package")
    parser.add_argument("--systems", nargs="+", default=["openevolve", "tree", "islands", "best_of_n"])
    parser.add_argument("--language", choices=variants.FAMILIES, default="cpp", help="cuda needs a GPU")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--answers", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each system's choice at the end")
    parser.add_argument(
        "--optimum", nargs="*", default=[], help="variants that are measured beside them, as 3_2_1_0_0_1_1"
    )
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("openevolve_beside.json"))
    asked = parser.parse_args()
    asked.family = variants.FAMILIES[asked.language]
    with tempfile.TemporaryDirectory() as folder:
        serve = subprocess.Popen(
            [PROGRAM, "serve", "--backend", asked.family.backend],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            asked.serve = serve.stdout.readline().strip()
            (kill_all if asked.kill else compare)(asked, pathlib.Path(folder))
        finally:
            serve.terminate()
            serve.wait()


if __name__ == "__main__":
    main()
