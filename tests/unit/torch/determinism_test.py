"""How often the same inputs are called, and what is made of results that differ."""

import types
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from fakes import Ended, FakeBench
    from kernelmill_torch import compare
    from kernelmill_torch.judgement import Judgement


@unittest.skipIf(torch is None, "there is no torch here")
class Determinism(unittest.TestCase):
    def judged(self, later, **options):
        """Findings of a candidate whose first result is 1 and whose next ones are these, and how many were called."""
        output, calls = torch.ones(4), []
        bench = FakeBench()
        bench.arena = types.SimpleNamespace(
            sets=[types.SimpleNamespace(outputs=[output])], poison=lambda _: output.fill_(float("nan"))
        )
        bench.synchronize = lambda: None
        x = Judgement(bench, None, {"seconds": 60, "seed": "00" * 32, **options})
        x.latest_rules = [compare.Rule(0.1, 0.0)]
        x.process = Ended()

        def row(*_):
            output.fill_(later[len(calls)])
            calls.append(1)

        x.process.row = row
        x.judge_determinism()
        return [found["rule"] for found in x.findings], len(calls)

    def test_two_calls_are_compared_by_default(self):
        self.assertEqual(self.judged([1.0]), ([], 1))
        self.assertEqual(self.judged([9.0]), (["not_deterministic"], 1))

    def test_as_many_are_compared_as_is_asked_for(self):
        self.assertEqual(self.judged([1.0, 1.0, 1.0], determinism_runs=4), ([], 3))
        self.assertEqual(self.judged([1.0, 1.0, 9.0], determinism_runs=4), (["not_deterministic"], 3))

    def test_other_bits_hide_no_other_result(self):
        self.assertEqual(self.judged([1.05, 9.0], determinism_runs=3), (["not_deterministic"], 2))
        self.assertEqual(self.judged([1.05, 1.0], determinism_runs=3), (["bits_vary"], 2))


if __name__ == "__main__":
    unittest.main()
