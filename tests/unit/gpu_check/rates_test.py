import unittest

from gpu_check.rates import binomial_at_most, clopper_pearson, words


class Rates(unittest.TestCase):
    def test_bounds_are_those_of_tables(self):
        for count, trials, low, high in (
            (0, 1000, 0, 0.003682),
            (1, 1000, 0.0000253, 0.005559),
            (5, 10, 0.1871, 0.8129),
            (10, 10, 0.6915, 1),
        ):
            found = clopper_pearson(count, trials)
            self.assertAlmostEqual(found[0], low, places=4)
            self.assertAlmostEqual(found[1], high, places=4)

    def test_nothing_tried_says_nothing(self):
        self.assertEqual(clopper_pearson(0, 0), (0.0, 1.0))

    def test_binomial(self):
        self.assertAlmostEqual(binomial_at_most(1, 3, 0.5), 0.5)
        self.assertEqual(binomial_at_most(3, 3, 1.0), 1.0)

    def test_words(self):
        self.assertIn("1 of 1000 (0.10 %, 95 % bounds 0.00 to 0.56 %)", words(1, 1000))


if __name__ == "__main__":
    unittest.main()
