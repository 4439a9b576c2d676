"""Benches and processes that only say what they are told, for tests of judgements. REQUIRES: torch."""

import contextlib
import types

from kernelmill_torch.judgement import Judgement


class Ended:
    def __init__(self):
        self.closed = self.is_working = False

    def output(self):
        return ""

    def close(self):
        self.closed = True


class FakeBench:
    again = contextlib.nullcontext

    def __init__(self):
        self.directory, self.baseline, self.baseline_seed, self.device = "problems/some", Ended(), 1, "cpu"
        self.admitted, self.is_random = types.SimpleNamespace(others=["signs", "large"]), False


def judgement(bench):
    result = Judgement(bench, None, {"seconds": 60, "seed": "00" * 32})
    result.process = Ended()
    return result
