"""KernelBench's own scoring of an exported run gives the fast_p that `kernelmill report` gives."""

import json
import os
import pathlib
import sys
import types
import unittest

from support import classes_of, go_on_with_trainers_python, has, program, the_run

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)


def scored(results: dict, baseline: dict, fastp) -> dict:
    """As scripts/benchmark_eval_analysis.py does: sample 0 of each problem of the timing file."""
    correct, reference, actual = [], [], []
    for problem, stats in baseline.items():
        entry = next((x for x in results.get(problem.split("_")[0], []) if x["sample_id"] == 0), None)
        correct.append(bool(entry and entry["correctness"]))
        actual.append(entry["runtime"] if entry else -1.0)
        reference.append(stats["mean"])
    return {p: fastp(correct, reference, actual, len(correct), p) for p in THRESHOLDS}


def formula(correct, reference, actual, n, p):
    """fast_p = (1/N) |{i: correct_i and t_ref,i / t_i > p}|."""
    return sum(c and r / a > p for c, r, a in zip(correct, reference, actual)) / n


class Problems:
    """Stands in for the benchmark's data set, which it downloads: the problems of the run."""

    def __init__(self, names):
        self.names = {int(x.split("_")[0]): x for x in names}

    def __len__(self):
        return len(self.names)

    def get_problem_ids(self):
        return list(self.names)

    def get_problem_by_id(self, number):
        return types.SimpleNamespace(name=self.names[number])


def benchmarks_own(test, folder, baseline) -> dict:
    """What scripts/benchmark_eval_analysis.py of a checkout says."""
    root = pathlib.Path(os.environ.get("KERNELBENCH_ROOT") or "/nonexistent")
    script = root / "scripts/benchmark_eval_analysis.py"
    if not script.exists() or not has("numpy"):
        test.skipTest("KernelBench is not there: set KERNELBENCH_ROOT to a checkout, in a Python that has numpy")
    package = types.ModuleType("kernelbench")  # its own imports torch
    package.__path__ = [str(root / "src/kernelbench")]
    sys.modules["kernelbench"] = package
    names = classes_of(
        script,
        ["patch", "analyze_greedy_eval"],
        {
            "json": json,
            "os": os,
            "tabulate": lambda rows, **_: str(rows),
            "construct_kernelbench_dataset": lambda level: Problems(baseline),
        },
    )
    return names["analyze_greedy_eval"](
        "level1",
        "any",
        "any",
        1,
        eval_results_dir=str(folder),
        baseline_file=str(folder / "baseline_time_kernelmill.json"),
    )


class KernelBench(unittest.TestCase):
    def setUp(self):
        self.folder = the_run().export("kernelbench")
        self.results = json.loads((self.folder / "level1/eval_results.json").read_text())
        self.baseline = json.loads((self.folder / "baseline_time_kernelmill.json").read_text())["level1"]
        # Of each problem only sample 0, as the benchmark's analysis reads it.
        first = {k: [x for x in v if x["sample_id"] == 0] for k, v in self.results.items()}
        path = self.folder / "first.json"
        path.write_text(json.dumps(first))
        thresholds = ",".join(str(x) for x in THRESHOLDS)
        self.report = json.loads(program("report", "--from", str(path), "--level", "1", "--p", thresholds, "--json"))
        if any(not x["metadata"]["kernelmill"].get("speedup") for v in first.values() for x in v if x["correctness"]):
            self.skipTest("the machine was too busy to time every kernel")

    def expect(self, got):
        for entry in self.report["all"]["fast_p"]:
            self.assertAlmostEqual(got[entry["p"]], entry["by_estimate"]["share"], places=9, msg=entry["p"])

    def test_the_formula_gives_our_fast_p(self):
        self.assertEqual(len(self.baseline), 3)
        self.expect(scored(self.results, self.baseline, formula))

    def test_the_benchmarks_own_analysis_gives_our_fast_p(self):
        said = benchmarks_own(self, self.folder, self.baseline)
        self.expect({float(p): x for p, x in said["fast_p"].items()})
        self.assertEqual(said["correct_count"], self.report["all"]["correct"]["count"])
        self.assertEqual(said["compiled_count"], self.report["all"]["compiled"]["count"])


if __name__ == "__main__":
    go_on_with_trainers_python()
    unittest.main()
