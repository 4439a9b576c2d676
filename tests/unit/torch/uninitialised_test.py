"""Inputs that a problem leaves uninitialised."""

import os
import tempfile
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch.problem import Problem
    from kernelmill_torch.uninitialised import filled

OUTPUT_IS_GIVEN = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, out):
        return out.copy_(torch.softmax(x, -1))
def get_inputs():
    x = torch.randn(8, 100)
    return [x, torch.empty_like(x)]
"""


@unittest.skipIf(torch is None, "no torch")
class UninitialisedTest(unittest.TestCase):
    def test_every_type_has_the_same_contents_each_time(self):
        fp8 = getattr(torch, "float8_e4m3fn", torch.half)  # older ones have none
        for dtype in (torch.float32, torch.bfloat16, fp8, torch.complex64, torch.int8, torch.bool):
            for _ in range(2):
                with filled():
                    made = [torch.empty(3, dtype=dtype), torch.ones(3, dtype=dtype).new_empty(2)]
                    made.append(torch.empty_like(made[0]))
                for x in made:
                    wide = x.to(torch.complex64) if dtype == torch.complex64 else x.double()
                    self.assertTrue(bool((torch.isnan(wide) | (wide.real >= 1)).all()), dtype)

    def test_what_is_filled_by_the_problem_stays(self):
        with filled():
            self.assertEqual(torch.empty(2).fill_(3).tolist(), [3, 3])
            self.assertEqual(torch.zeros(2).tolist(), [0, 0])

    def test_draws_of_a_seed_are_the_same_whatever_lay_in_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "problem.py"), "w") as file:
                file.write(OUTPUT_IS_GIVEN)
            made = Problem(folder, "cpu", mutates=[1])
            for _ in range(3):
                torch.rand(8, 100)  # whose memory the next has
                self.assertTrue(bool(torch.isnan(made.draw(5)[1]).all()))


if __name__ == "__main__":
    unittest.main()
