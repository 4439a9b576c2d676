"""Elements that are wrong by their own size, where an output has parts of very unequal sizes."""

import os
import tempfile
import unittest
import unittest.mock

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from fakes import FakeBench, judgement
    from kernelmill_torch import compare, small_scales
    from kernelmill_torch.problem import Problem
    from kernelmill_torch.small_scales import SmallScales, far_off, missed

# Each of 32 heads is four times smaller than the one before, as decays make them; a sum of 256 terms.
DECAYS = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 64)

    def forward(self, x):
        y = torch.nn.functional.gelu({scaled})
        return y * torch.exp(-1.386 * torch.arange(32.0, device=x.device, dtype=x.dtype))[:, None, None]


def get_inputs():
    return [torch.randn(32, 64, 256)]


def get_init_inputs():
    return []
"""

DECAYS_OF_AN_INPUT = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, a, w):
        return torch.matmul(x, w) * torch.exp(-a * torch.arange(32.0, device=x.device, dtype=x.dtype))[:, None, None]


def get_inputs():
    return [torch.randn(32, 64, 256), torch.rand(()) + 0.5, torch.randn(256, 64)]


def get_init_inputs():
    return []
"""


@unittest.skipIf(torch is None, "there is no torch here")
class OwnSize(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def problem(self, scaled="self.linear(x)"):
        with open(os.path.join(self.folder.name, "problem.py"), "w") as file:
            file.write(DECAYS.format(scaled=scaled))
        result = Problem(self.folder.name, "cpu", "fp32")
        result.build(3, "cpu")
        return result

    def wrong(self, problem, answer, seed=5):
        inputs = problem.draw(seed)
        truth = problem.truth(problem.draw(seed), 0)
        with torch.no_grad():
            got = answer(problem.models[torch.float32], inputs[0], truth.want[0])
        self.assertEqual(
            compare.count_bad([(got, truth.want[0], compare.Rule(1.2e-4 * truth.spread[0], 1.2e-4))]), 0.0
        )  # the bound of the whole
        return SmallScales().wrong([got], truth.want, inputs, problem)

    def test_zeros_in_small_parts_are_wrong(self):
        def cut(model, x, want):
            result = model(x)
            result[10:] = 0
            return result

        self.assertGreater(self.wrong(self.problem(), cut), 0.6)

    def test_lower_precision_in_small_parts_is_wrong(self):
        def coarse(rounded):
            def answer(model, x, want):
                low = torch.nn.functional.linear(rounded(x), rounded(model.linear.weight.detach()), model.linear.bias)
                low = torch.nn.functional.gelu(low) * torch.exp(-1.386 * torch.arange(32.0))[:, None, None]
                return torch.cat([model(x)[:10], low[10:]])

            return answer

        def tf32(x):
            return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)

        self.assertGreater(self.wrong(self.problem(), coarse(lambda x: x.bfloat16().float())), 0.1)
        self.assertGreater(self.wrong(self.problem(), coarse(tf32)), 0.2)

    def test_lower_precision_is_wrong_where_an_input_makes_the_parts_small(self):
        with open(os.path.join(self.folder.name, "problem.py"), "w") as file:
            file.write(DECAYS_OF_AN_INPUT)
        problem = Problem(self.folder.name, "cpu", "fp32")
        problem.build(3, "cpu")

        def coarse(model, x, a, w):
            round_to_tf32 = lambda y: ((y.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
            scale = torch.exp(-a * torch.arange(32.0))[:, None, None]
            return (
                torch.where(scale < 2e-3, torch.matmul(round_to_tf32(x), round_to_tf32(w)), torch.matmul(x, w)) * scale
            )

        inputs = problem.draw(5)
        exact = problem.run_exact(inputs)
        self.assertGreater(SmallScales().wrong([coarse(None, *inputs)], exact, problem.draw(5), problem), 0.1)
        self.assertEqual(SmallScales().wrong(problem.run(inputs), exact, problem.draw(5), problem), 0.0)

    def test_other_orders_and_formulas_are_right(self):
        def parts(model, x, want):
            y = sum(x[..., i::8] @ model.linear.weight[:, i::8].t() for i in range(8)) + model.linear.bias
            return torch.nn.functional.gelu(y) * torch.exp(-1.386 * torch.arange(32.0))[:, None, None]

        def tail(model, x, want):  # which is zero below -5.5
            y = 3 * model.linear(x)
            return 0.5 * y * (1 + torch.erf(y * 0.70710678)) * torch.exp(-1.386 * torch.arange(32.0))[:, None, None]

        self.assertEqual(self.wrong(self.problem(), parts), 0.0)
        self.assertEqual(self.wrong(self.problem(), lambda model, x, want: want.float()), 0.0)
        self.assertEqual(self.wrong(self.problem("3 * self.linear(x)"), tail), 0.0)

    def test_what_is_next_to_nothing_instead_of_zero_is_right(self):
        with_zeros = self.problem("torch.relu(self.linear(x))")
        self.assertEqual(
            self.wrong(with_zeros, lambda model, x, want: want.float() + 1e-9 * torch.rand(want.shape) * (want == 0)),
            0.0,
        )

    def test_a_timed_output_is_looked_at_by_its_places(self):
        dice, want = torch.Generator(), torch.randn(100, 100)
        half = want * (torch.arange(100) % 2)
        scales = SmallScales()
        with unittest.mock.patch.object(small_scales, "ANYHOW", 0.0):
            self.assertFalse(scales.seems_wrong([want], [want], dice))
            self.assertTrue(scales.seems_wrong([half], [want], dice))
            self.assertFalse(scales.seems_wrong([half[0, :7]], [want[0, :7]], dice))  # few
            scales.usual = 0.3
            self.assertFalse(scales.seems_wrong([half], [want], dice))  # as the model is

    def test_at_times_all_of_a_timed_output_is_looked_at_whatever_its_places_say(self):
        dice, want = torch.Generator(), torch.randn(100, 100)
        scales = SmallScales()
        scales.usual, scales.was_right = 0.5, True
        found = [scales.seems_wrong([want], [want], dice) for _ in range(200)]
        self.assertTrue(20 < sum(found) < 90)
        scales.usual = 0.0
        self.assertFalse(any(scales.seems_wrong([want], [want], dice) for _ in range(50)))
        self.assertFalse(any(scales.seems_wrong([want[0, :7]], [want[0, :7]], dice) for _ in range(50)))  # few

    def test_zeros_are_not_asked_and_dilute_nothing(self):
        want = torch.zeros(128, 128)
        want[:, 0] = torch.randn(128)
        cut = want.clone()
        cut[100:] = 0
        for what in missed(cut, want), far_off(cut, want, want, torch.zeros_like(want)):
            self.assertAlmostEqual(what, 28 / 128)
        self.assertEqual(missed(want + 1e-9, want), missed(want, want))

    def test_outputs_of_some_elements_are_asked_and_a_few_wrong_ones_are_chance(self):
        want = torch.rand(100) + 1
        for wrong, share in (1, 0.0), (2, 0.02):
            got = want.clone()
            got[:wrong] = 0
            self.assertAlmostEqual(missed(got, want), share)
        self.assertEqual((missed(0 * want[:7], want[:7]), missed(0 * want[:8], want[:8])), (0.0, 1.0))

    def test_memory_that_is_short_makes_nothing_right(self):
        problem = self.problem()
        inputs = problem.draw(5)
        with unittest.mock.patch.object(small_scales, "moves_of", side_effect=MemoryError):
            with self.assertRaises(MemoryError):
                SmallScales().wrong([torch.zeros(32, 64, 64)], problem.run(inputs), inputs, problem)

    def test_a_row_of_which_a_part_is_cut_is_wrong(self):
        problem = self.problem()
        inputs = problem.draw(5)
        want = problem.run(inputs)
        cut = [want[0].clone()]
        cut[0][10:] = 0
        bench = FakeBench()
        bench.problem, bench.places = problem, torch.Generator()
        x = judgement(bench)
        for able, wrong in (True, True), (False, False):
            bench.can_ask_small_scales = lambda _inputs: able
            self.assertEqual(x.asks_small_scales(inputs) and x.wrong_by_own_size(cut, want, [inputs]) > 50_000, wrong)
        bench.can_ask_small_scales = lambda _inputs: True
        self.assertEqual(x.wrong_by_own_size(want, want, [inputs]), 0.0)


if __name__ == "__main__":
    unittest.main()
