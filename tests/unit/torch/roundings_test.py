"""Models that round to narrow types on their way: an honest answer passes, one in a type one step narrower does not."""

import importlib.util
import os
import tempfile
import unittest

if importlib.util.find_spec("torch"):
    import torch
    from kernelmill_torch import compare
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.contents import OWN

    FP8 = getattr(torch, "float8_e4m3fn", None)
    E5M2 = getattr(torch, "float8_e5m2", None)
else:
    FP8 = None

HEAD = """
import torch
class Model(torch.nn.Module):
    def forward(self, {}):
        {}
def get_inputs():
    return {}
"""
INSIDE = HEAD.format(
    "x, w",
    "return torch.relu(x.to(torch.bfloat16) @ w.to(torch.bfloat16)).float().sum(-1)",
    "[torch.randn(96, 128), torch.randn(128, 64)]",
)
QUANTIZED = HEAD.format(
    "x",
    "s = x.float().abs().amax(-1, keepdim=True) / 448.0; return (x.float() / s).to(torch.float8_e4m3fn), s",
    "[torch.randn(64, 256, dtype=torch.bfloat16)]",
)
PRODUCT = HEAD.format(
    "a, b",
    "return torch._scaled_mm(a, b.t(), scale_a=torch.ones(()), scale_b=torch.ones(()), out_dtype=torch.bfloat16)",
    "[torch.randn(64, 256).to(torch.float8_e4m3fn), torch.randn(96, 256).to(torch.float8_e4m3fn)]",
)
INT8 = HEAD.format(
    "a, b, s",
    "y = (a.float() @ b.float().t()) * s; "
    "return y.to(torch.bfloat16), (y * 0.05).round().clamp(-128, 127).to(torch.int8), y > 0",
    "[torch.randint(-128, 127, (64, 256), dtype=torch.int8), torch.randint(-128, 127, (96, 256), dtype=torch.int8), "
    "torch.rand(96) * 0.01]",
)
PACKED = HEAD.format(
    "a, s",
    "w = torch.stack([(a & 15).to(torch.int8) - 8, (a >> 4).to(torch.int8) - 8], -1).flatten(-2).float(); "
    "return (w.view(32, -1, 16) * s.float().unsqueeze(-1)).flatten(1).to(torch.bfloat16)",
    "[torch.randint(0, 256, (32, 64), dtype=torch.uint8), torch.rand(32, 8).to(torch.float8_e4m3fn)]",
)
PLAIN = HEAD.format("x, w", "return torch.relu(x @ w)", "[torch.randn(32, 64), torch.randn(64, 64)]")


def sums_are_wide():
    """Whether products of bfloat16 are added in float32, as on GPUs."""
    if not importlib.util.find_spec("torch"):
        return False
    x, w = torch.linspace(-1, 1, 4096).view(8, 512).to(torch.bfloat16), torch.ones(512, 8, dtype=torch.bfloat16)
    wide = (x.float() @ w.float()).to(torch.bfloat16)
    return bool(((x @ w).float() - wide.float()).abs().max() <= wide.float().abs().max() * 2.0**-7)


@unittest.skipUnless(importlib.util.find_spec("torch"), "this Python has no torch")
class Roundings(unittest.TestCase):
    def bench(self, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "problem.py"), "w") as file:
                file.write(text)
            result = Bench(None, "cpu", folder, "own")
        self.addCleanup(result.close)
        result.problem.build(1, "cpu")
        return result

    @staticmethod
    def bad(bench, answer, kinds=(OWN,)):
        """Wrong elements of an answer by the rules of trials, on some draws of each kind."""
        result = 0
        for kind in kinds:
            for seed in (5, 6):
                drawn = bench.problem.draw(seed, kind)
                truth = bench.truth(drawn, seed, kind)
                outputs = answer(*drawn)
                outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
                rules = compare.honest_rules(truth, "fp32", False)
                result += sum(compare.judge(*x)[0] for x in zip(outputs, truth.want, rules))
        return result

    def test_a_model_that_rounds_nothing_keeps_its_bound(self):
        bench = self.bench(PLAIN)
        self.assertFalse(bench.problem.rounds)
        self.assertEqual(bench.truth(bench.problem.draw(5), 5).flips, [])

    @unittest.skipUnless(sums_are_wide(), "this torch adds products of bfloat16 in bfloat16")
    def test_products_in_bfloat16_may_be_rounded_otherwise_inside(self):
        bench = self.bench(INSIDE)
        self.assertTrue(bench.problem.rounds and bench.problem.exact)

        def fused(x, w):
            return torch.relu(x.to(torch.bfloat16).float() @ w.to(torch.bfloat16).float()).sum(-1)

        self.assertEqual(self.bad(bench, fused, bench.admitted.names), 0)
        self.assertGreater(self.bad(bench, lambda x, w: fused(x, w) - torch.relu(x @ w)[:, -1]), 0)
        self.assertFalse(bench.can_ask_small_scales(bench.problem.draw(5)))

    @unittest.skipIf(FP8 is None, "this torch has no fp8")
    def test_an_output_of_fp8_is_the_same_in_most_elements(self):
        bench = self.bench(QUANTIZED)
        self.assertEqual([str(x.dtype)[6:] for x in bench.layout.outputs], ["float8_e4m3fn", "float32"])

        def answer(x, through=None):
            most = x.float().abs().amax(-1, keepdim=True)
            y = x.float() * (448.0 / most)
            return (y if through is None else y.to(through).float()).to(FP8), most / 448.0

        self.assertEqual(self.bad(bench, answer, bench.admitted.names), 0)
        self.assertGreater(self.bad(bench, lambda x: answer(x, E5M2)), 100)

    @unittest.skipIf(FP8 is None, "this torch has no fp8")
    def test_a_product_that_has_no_double_precision_sees_a_narrower_output(self):
        bench = self.bench(PRODUCT)
        self.assertFalse(bench.problem.exact)
        self.assertTrue(bench.problem.rounds)

        def answer(a, b):
            return a.double() @ b.double().t()

        kinds = bench.admitted.names
        self.assertEqual(self.bad(bench, lambda a, b: answer(a, b).to(torch.bfloat16), kinds), 0)
        self.assertGreater(self.bad(bench, lambda a, b: answer(a, b).float().to(FP8).to(torch.bfloat16)), 0)

    def test_quantized_integers_may_be_rounded_otherwise_in_few_places(self):
        bench = self.bench(INT8)

        def answer(a, b, s, order=slice(None, None, -1), much=0.05):
            at = torch.arange(a.shape[1])[order] if order.step != -1 else torch.arange(a.shape[1]).flip(0)
            y = (a.float()[:, at] @ b.float()[:, at].t()).double() * s.double()
            return y.to(torch.bfloat16), (y * much).round().clamp(-128, 127).to(torch.int8), y > 0

        self.assertEqual(self.bad(bench, answer), 0)
        self.assertGreater(self.bad(bench, lambda *x: answer(*x, much=0.0503)), 0)

    @unittest.skipIf(FP8 is None, "this torch has no fp8")
    def test_packed_numbers_are_uint8(self):
        bench = self.bench(PACKED)
        self.assertEqual([str(x.dtype)[6:] for x in bench.layout.inputs], ["uint8", "float8_e4m3fn"])
        self.assertEqual(self.bad(bench, bench.problem.models[None], bench.admitted.names), 0)


if __name__ == "__main__":
    unittest.main()
