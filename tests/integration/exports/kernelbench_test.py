"""KernelBench's own scoring of an exported run gives the fast_p that `kernelmill report` gives."""

import json
import os
import pathlib
import unittest

from support import classes_of, go_on_with_trainers_python, has, program, the_run

THRESHOLDS = (0.0, 0.5, 1.0, 1.5, 2.0)


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


def benchmarks_own(test):
    root = os.environ.get("KERNELBENCH_ROOT")
    path = pathlib.Path(root or "/nonexistent") / "src/kernelbench/score.py"
    if not path.exists() or not has("numpy"):
        test.skipTest("KernelBench is not there: set KERNELBENCH_ROOT to a checkout, in a Python that has numpy")
    import numpy

    own = classes_of(path, ["fastp"], {"np": numpy})["fastp"]
    return lambda c, r, a, n, p: own(numpy.array(c), numpy.array(r), numpy.array(a), n, p)


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
        self.assertEqual(len(self.baseline), 2)
        self.expect(scored(self.results, self.baseline, formula))

    def test_the_benchmarks_own_scoring_gives_our_fast_p(self):
        self.expect(scored(self.results, self.baseline, benchmarks_own(self)))


if __name__ == "__main__":
    go_on_with_trainers_python()
    unittest.main()
