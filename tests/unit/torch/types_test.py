"""Tensors of other types than float32, and the bound that each output has by its own."""

import os
import tempfile
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import compare, problem_check
    from kernelmill_torch.admission import moved
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.contents import half_turned, of_kind, traits_of
    from kernelmill_torch.problem import Truth

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(32))
    def forward(self, x, w, at, keep, wide):
        y = torch.where(keep, x, -x) * w[at]
        return y, y.float().sum(-1) * self.scale, keep & (x > 0), wide * 3
def get_inputs():
    return [torch.randn(32, 64).to(torch.bfloat16), torch.randn(8, 64).to(torch.bfloat16), torch.randint(0, 8, (32,)),
            torch.rand(32, 64) > 0.5, torch.randn(32).double()]
"""
NORM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, w):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return y.to(x.dtype) * w
def get_inputs():
    return [torch.randn(64, 256).to(torch.bfloat16), torch.randn(256).to(torch.bfloat16)]
"""


def rounded(x, bits):
    m, e = torch.frexp(x.float())
    return torch.ldexp(torch.round(m * 2**bits) / 2**bits, e).to(x.dtype)


@unittest.skipIf(torch is None, "there is no torch here")
class OwnTypes(unittest.TestCase):
    def bench(self, text, precision="own"):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "problem.py"), "w") as file:
                file.write(text)
            result = Bench(None, "cpu", folder, precision)
        self.addCleanup(result.close)
        return result

    def test_each_tensor_keeps_its_own(self):
        bench = self.bench(PROBLEM)
        bf16, f64 = torch.bfloat16, torch.float64
        self.assertEqual([x.dtype for x in bench.layout.inputs], [bf16, bf16, torch.int64, torch.bool, f64])
        self.assertEqual([x.dtype for x in bench.layout.outputs], [bf16, torch.float32, torch.bool, f64])
        self.assertFalse(bench.problem.is_float32)
        self.assertEqual(problem_check.unfit(bench), [])
        self.assertIn("signs", bench.admitted.names)

    def test_a_cast_is_work_and_a_copy_is_none(self):
        text = NORM.replace("forward(self, x, w)", "forward(self, x)").replace(
            ", torch.randn(256).to(torch.bfloat16)]", "]"
        )
        head = text[: text.index("        y = x.float()")]
        tail = text[text.index("def get_inputs") :]
        for result, problems in (("x.half()", []), ("x.clone()", ["an unchanged input passes"])):
            bench = self.bench(f"{head}        return {result}\n{tail}")
            self.assertEqual(problem_check.unfit(bench), problems, result)

    def test_one_that_is_asked_for_is_that_of_all_that_floats(self):
        bench = self.bench(NORM, "fp32")
        self.assertEqual({x.dtype for x in bench.layout.inputs + bench.layout.outputs}, {torch.float32})
        self.assertTrue(bench.problem.is_float32)

    def test_each_output_has_the_bound_of_its_own(self):
        bench = self.bench(PROBLEM)
        bench.problem.build(1, "cpu")
        truth = bench.truth(bench.problem.draw(1), 1)
        rules = compare.honest_rules(truth, "fp32", False)
        self.assertGreater(rules[0].relative, 2.0**-7)
        self.assertLess(rules[3].relative, 2.0**-40)
        benchmark = [x.absolute for x in compare.benchmark_rules(truth)]
        self.assertEqual((benchmark[0], benchmark[1], benchmark[3]), (1e-2, 1e-4, 1e-4))

    def test_a_narrower_type_behind_one_is_seen(self):
        for name, bits in ("bfloat16", 4), ("float16", 8), ("float32", 11), ("float64", 24):
            x = torch.randn(1 << 14, dtype=torch.float64)
            own = x.to(getattr(torch, name))
            spread = float(x.square().mean().sqrt())
            level = float(((own.double() - x).abs() / (x.abs() + spread)).max())
            truth = Truth([x], [level], [spread], types=[own.dtype])
            (rule,) = compare.honest_rules(truth, "fp32", False)
            self.assertEqual(compare.judge(own, x, rule)[0], 0, name)
            narrow = x.float().to(own.dtype) if bits == 24 else rounded(own, bits)
            self.assertGreater(compare.judge(narrow, x, rule)[0], 0, name)

    def test_honest_answers_are_right_on_contents_of_every_kind(self):
        bench = self.bench(NORM)
        self.assertGreater(len(bench.admitted.names), 10)
        bench.problem.build(1, "cpu")

        def fused(x, w):
            y = x.float()
            return [(y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)]

        for kind in bench.admitted.names:
            inputs = bench.problem.draw(7, kind)
            self.assertEqual(inputs[0].dtype, torch.bfloat16)
            truth = bench.truth(inputs, 7, kind)
            for outputs in fused(*inputs), bench.problem.run(inputs):
                for got, want, rule in zip(outputs, truth.want, compare.honest_rules(truth, "fp32", False)):
                    self.assertEqual(compare.judge(got, want, rule)[0], 0, kind)

    def test_the_smallest_have_contents_and_comparisons_too(self):
        for name in "float8_e4m3fn", "float8_e5m2":
            if not hasattr(torch, name):
                self.skipTest("this torch has no fp8")
            x = torch.randn(64, 64).to(getattr(torch, name))
            traits = traits_of(x, 64)
            for kind in "signs", "outliers", "unequal", "sparse", "held":
                (made,) = of_kind([x], kind, 3, [traits])
                self.assertEqual((made.dtype, made.shape), (x.dtype, x.shape))
                self.assertFalse(compare.same_bytes(made, x), kind)
            turned = half_turned(x)
            self.assertTrue(torch.equal(turned.float().abs(), x.float().abs()))
            rule = compare.Rule(1e-3, 1e-3)
            self.assertEqual(compare.judge(x, x.double(), rule)[0], 0)
            self.assertEqual(compare.count_bad([(x, x, rule)]), 0)
            self.assertGreater(compare.count_bad([(turned, x, rule)]), 0)

    def test_moved_copies_have_the_types_that_they_are_of(self):
        bench = self.bench(NORM)
        inputs = bench.problem.draw(1)
        for dtype, wanted in (None, torch.bfloat16), (torch.float64, torch.float64):
            x, _ = moved(inputs, 2.0**-4, bench.problem, dtype)
            self.assertEqual(x.dtype, wanted)
            self.assertFalse(torch.equal(x.float(), inputs[0].float()))


if __name__ == "__main__":
    unittest.main()
