"""Models that write to their inputs, and problems that cannot tell right from wrong."""

import os
import tempfile
import unittest
import unittest.mock

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import problem_check, uses
    from kernelmill_torch import referee as referee_module
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.candidate import calling_on_copies
    from kernelmill_torch.faults import Fault
    from problems import problem

WRITES = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, residual):
        residual.add_(x)
        return residual * torch.rsqrt(residual.pow(2).mean(-1, keepdim=True) + 1e-6)
def get_inputs():
    return [torch.randn(64, 128), torch.randn(64, 128)]
"""
CONSTANT = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1).sum(1)
def get_inputs():
    return [torch.randn(64, 128)]
"""


class Folder(unittest.TestCase):
    def folder(self, text):
        result = tempfile.TemporaryDirectory()
        self.addCleanup(result.cleanup)
        with open(os.path.join(result.name, "problem.py"), "w") as file:
            file.write(text)
        return result.name

    def bench(self, text, mutates=()):
        bench = Bench(None, "cpu", self.folder(text), "fp32", None, mutates)
        self.addCleanup(bench.close)
        return bench

    def refusal(self, text, mutates=()):
        with self.assertRaises(Fault) as raised:
            self.bench(text, mutates)
        return raised.exception


@unittest.skipIf(torch is None, "there is no torch here")
class WrittenInputs(Folder):
    def test_one_that_is_not_declared_is_the_tasks_fault_by_name(self):
        fault = self.refusal(WRITES)
        self.assertEqual((fault.cls, fault.category), ("configuration", "bad_problem"))
        self.assertIn("input 1 (residual)", fault.message)
        self.assertIn('"mutates": [1]', fault.message)

    def test_one_that_is_declared_is_an_output_and_stays_as_it_was_drawn(self):
        bench = self.bench(WRITES, (1,))
        self.assertEqual([x.shape for x in bench.layout.outputs], [(64, 128), (64, 128)])
        x, residual = bench.problem.draw(5)
        before = residual.clone()
        _, left = bench.problem.run([x, residual])
        self.assertTrue(torch.equal(residual, before))
        self.assertTrue(torch.equal(left, before + x))
        self.assertEqual(problem_check.unfit(bench), [])

    def test_another_beside_those_declared_is_refused(self):
        self.assertIn(
            '"mutates": [0, 1]',
            self.refusal(WRITES.replace("residual.add_(x)", "residual.add_(x.add_(1))"), (0,)).message,
        )

    def test_what_is_no_tensor_cannot_be_declared(self):
        for mutates in (2,), (7,):
            self.assertIn(
                "which is no tensor",
                self.refusal(WRITES.replace("torch.randn(64, 128)]", "torch.randn(64, 128), 3]"), mutates).message,
            )

    def test_a_model_that_only_writes_may_return_nothing(self):
        p = problem("(x.mul_(2), None)[1]", "torch.rand(8, 8)", mutates=(0,))
        inputs = p.draw(1)
        (left,) = p.run(inputs)
        self.assertTrue(torch.equal(left, inputs[0] * 2))

    def test_an_unnamed_one_has_its_position(self):
        p = problem("x")
        self.assertEqual(uses.name_of(p, 0), "input 0 (x)")
        self.assertEqual(uses.name_of(p, 4), "input 4")

    def test_candidates_get_copies_too(self):
        x = torch.ones(3)
        out, left = calling_on_copies(lambda a: a.add_(1), [0])(x)
        self.assertEqual((x.tolist(), left.tolist()), ([1.0] * 3, [2.0] * 3))
        self.assertIs(out, left)

    def test_what_copies_them_is_none_of_theirs(self):
        x = torch.ones(3)
        with unittest.mock.patch.object(torch.Tensor, "clone", lambda self: self):
            calling_on_copies(lambda a: a.add_(1), [0])(x)
        self.assertEqual(x.tolist(), [1.0] * 3)


@unittest.skipIf(torch is None, "there is no torch here")
class Unfit(Folder):
    def request(self, text, **more):
        return {"directory": self.folder(text), "digest": "a", **more}

    def test_a_problem_that_decides_nothing_is_the_tasks_fault_before_any_candidate(self):
        for text, words in (
            (CONSTANT, "does not depend on the inputs"),
            (CONSTANT.replace("torch.softmax(x, 1).sum(1)", "x * float('nan')"), "not finite"),
            (CONSTANT.replace("torch.softmax(x, 1).sum(1)", "x * 0"), "passes"),
        ):
            x = referee_module.Referee(None, None, "cpu", 0)
            self.addCleanup(x.close_benches)
            with self.assertRaises(Fault) as raised:
                x.fit_bench(self.request(text))
            self.assertEqual((raised.exception.cls, raised.exception.category), ("configuration", "unfit_task"))
            self.assertIn(words, raised.exception.message)

    def test_the_benchmarks_mode_has_the_benchmarks_verdicts(self):
        x = referee_module.Referee(None, None, "cpu", 0)
        self.addCleanup(x.close_benches)
        self.assertIsNone(x.fit_bench(self.request(CONSTANT, mode="kernelbench")).unfit)

    def test_it_is_found_out_once_for_the_same_files(self):
        x, looks = referee_module.Referee(None, None, "cpu", 0), []
        self.addCleanup(x.close_benches)
        request = self.request(WRITES, mutates=[1])
        with unittest.mock.patch.object(problem_check, "unfit", lambda *given: looks.append(given) or []):
            x.fit_bench(request)
            x.fit_bench(request)
            x.close_benches()
            x.fit_bench(request)
        self.assertEqual(len(looks), 1)

    def test_too_little_memory_is_none_of_its_faults(self):
        bench = self.bench(CONSTANT)
        with unittest.mock.patch.object(bench, "truth", side_effect=RuntimeError("CUDA out of memory")):
            self.assertRaises(RuntimeError, problem_check.unfit, bench)


if __name__ == "__main__":
    unittest.main()
