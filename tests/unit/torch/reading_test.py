"""What of the inputs every answer must read."""

import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import reading
    from problems import problem

MIB = 1 << 20


@unittest.skipIf(torch is None, "there is no torch here")
class Reading(unittest.TestCase):
    def bytes(self, call, given="torch.rand(512, 512)", outputs=0):
        return reading.floor_bytes(problem(call, given), outputs)

    def setUp(self):
        self.addCleanup(setattr, reading, "SECONDS", reading.SECONDS)
        reading.SECONDS = 60.0

    def test_what_all_matters_is_read_whole(self):
        for call in "torch.relu(x)", "x.square().mean()", "x.amax(dim=1)", "torch.clamp(x, 0, 1)":
            self.assertEqual(self.bytes(call), MIB, call)

    def test_each_number_of_a_long_sum_matters(self):
        self.assertEqual(self.bytes("torch.mean((x - 0.5) ** 2)", "torch.rand(4096, 2048)"), 32 * MIB)

    def test_what_does_not_matter_is_not(self):
        for call in "x[:, ::2] + 1", "x[:256].sum()", "torch.ones_like(x)":
            self.assertEqual(self.bytes(call), 0, call)

    def test_zeros_and_the_half_of_a_symmetric_matrix_need_not_be(self):
        triangular = self.bytes("x @ x", "torch.triu(torch.rand(512, 512))")
        self.assertAlmostEqual(triangular / MIB, 0.5, delta=0.05)
        self.assertAlmostEqual(
            self.bytes("x @ x", "(lambda a: a + a.t())(torch.rand(512, 512))") / MIB, 0.5, delta=0.01
        )

    def test_outputs_count_beyond_the_cache(self):
        self.assertEqual(self.bytes("torch.ones_like(x)", outputs=reading.L2_BYTES + 5), 5)
        self.assertEqual(self.bytes("torch.ones_like(x)", outputs=5), 0)

    def test_random_and_slow_models_have_no_floor(self):
        self.assertEqual(self.bytes("x + torch.rand_like(x)"), 0)
        reading.SECONDS = 0.0
        self.assertEqual(self.bytes("torch.relu(x)"), 0)


if __name__ == "__main__":
    unittest.main()
