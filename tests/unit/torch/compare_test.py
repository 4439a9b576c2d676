"""Which elements are right: the quick way must say what the thorough one says."""

import importlib.util
import math
import random
import unittest

if importlib.util.find_spec("torch"):
    import torch
    from kernelmill_torch import compare, problem
    from kernelmill_torch.candidate import fingerprints

INF, NAN = math.inf, math.nan


@unittest.skipUnless(importlib.util.find_spec("torch"), "this Python has no torch")
class Compare(unittest.TestCase):
    rule = compare.Rule(1e-3, 1e-3) if importlib.util.find_spec("torch") else None

    def bad(self, got, want, dtype="float32"):
        return compare.judge(torch.tensor(got), torch.tensor(want, dtype=getattr(torch, dtype)), self.rule)[0]

    def test_kinds_of_numbers(self):
        for got, want, bad in (
            ([1.0, 2.0], [1.0, 2.0], 0),
            ([1.0, 2.0], [1.0, 2.1], 1),
            ([INF], [INF], 0),
            ([INF], [-INF], 1),
            ([INF], [1.0], 1),
            ([1.0], [INF], 1),
            ([NAN], [NAN], 0),
            ([NAN], [1.0], 1),
            ([1.0], [NAN], 1),
            ([0.0], [-0.0], 0),
            ([INF, 1.0, 5.0], [INF, 1.0, 1.0], 1),
        ):
            for dtype in ("float32", "float64"):
                self.assertEqual(self.bad(got, want, dtype), bad, (got, want, dtype))

    def test_a_suites_rule_lets_a_share_be_off_and_nothing_by_too_much(self):
        want = torch.ones(100)
        got = want.clone()
        got[:5] = 1.5

        def bad(got, **rule):
            tolerance = {"absolute": 0.1, "relative": 0.0, "matched": 1.0, "largest": None, **rule}
            return compare.judge(got, want, compare.suite_rules(1, tolerance)[0])[0]

        self.assertEqual(bad(got), 5)
        self.assertEqual(bad(got, matched=0.96), 5)
        self.assertEqual(bad(got, matched=0.95), 0)
        self.assertEqual(bad(got, matched=0.95, largest=0.6), 0)
        self.assertEqual(bad(got, matched=0.95, largest=0.4), 5)
        got[0] = NAN
        self.assertEqual(bad(got, matched=0.95), 5)  # what is not written is often no number
        got[0] = INF
        self.assertEqual(bad(got, matched=0.95), 5)
        want[0] = INF
        self.assertEqual(bad(got, matched=0.95), 0)
        got[0], want[0] = NAN, 1.0
        self.assertEqual(bad(got, matched=0.95, largest=0.6), 5)
        got[0] = 1.5
        rule = compare.SharedRule(0.1, 0.0, matched=0.95)
        self.assertEqual(compare.count_bad([(got, want, rule), (want + 1, want, rule)]), 100)
        self.assertFalse(compare.would_pass(None, want, rule))
        self.assertEqual(compare.explain(want + 1, want, rule, "output").bad, 100)

    def test_by_a_suites_rule_integers_are_numbers(self):
        want = torch.arange(8, dtype=torch.int8)
        self.assertEqual(compare.judge(want + 1, want, compare.SharedRule(1.0, 0.0))[0], 0)
        self.assertEqual(compare.judge(want + 2, want, compare.SharedRule(1.0, 0.0))[0], 8)
        keep = want > 3
        self.assertEqual(compare.judge(~keep, keep, compare.SharedRule(0.1, 0.0))[0], 8)

    def test_whole_numbers_are_right_exactly(self):
        self.assertEqual(compare.judge(torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4]), self.rule)[0], 1)
        self.assertEqual(compare.judge(torch.tensor([True]), torch.tensor([True]), self.rule), (0.0, 0.0))

    def test_wanted_numbers_are_left_as_they_are(self):
        want = torch.tensor([1.0, -2.0], dtype=torch.float64)
        compare.judge(torch.tensor([1.0, 2.0]), want, self.rule)
        problem.relative_error(torch.tensor([1.0, 2.0]), want, problem.root_mean_square(want))
        self.assertEqual(want.tolist(), [1.0, -2.0])

    def test_several_outputs_are_counted_as_one_by_one(self):
        random.seed(1)
        pairs = []
        for _ in range(20):
            want = torch.randn(257)
            got = want + 1e-3 * torch.randn(257)
            if random.random() < 0.5:
                got[random.randrange(257)] = random.choice((INF, NAN, 7.0))
            pairs.append((got, want, self.rule))
        by_one = sum(int(compare.judge_part(*x)[0].sum()) for x in pairs)
        self.assertGreater(by_one, 0)
        self.assertEqual(compare.count_bad(pairs), by_one)
        self.assertEqual(compare.count_bad([]), 0)

    def test_what_is_looked_at_quickly_is_counted_as_by_the_thorough_way(self):
        numbers = (0.0, 1.0, 1.0009, 1.0031, -1.0, 3e38, INF, -INF, NAN)
        for dtype in (torch.float32, torch.float64):
            for want in numbers:
                for got in numbers:
                    one = torch.tensor([2.0, got], dtype=dtype), torch.tensor([2.0, want], dtype=dtype), self.rule
                    self.assertEqual(
                        compare.count_bad([one]), int(compare.judge_part(*one)[0].sum()), (got, want, dtype)
                    )
        exact = compare.Rule(1e9, 1e9)  # of whole numbers no bound lets any pass
        for got, bad in (([1, 2], 0), ([1, 3], 1), ([4, 3], 2)):
            self.assertEqual(compare.count_bad([(torch.tensor(got), torch.tensor([1, 2]), exact)]), bad)
        self.assertEqual(compare.count_bad([(torch.zeros(0), torch.zeros(0), self.rule)]), 0)

    def test_a_rule_of_an_output_that_is_nothing_in_double_precision_is_no_fault(self):
        x, y = torch.rand(1024), torch.rand(1024)
        out = (x + y) - x - y
        exact = (x.double() + y.double()) - x.double() - y.double()
        level = problem.relative_error(out, exact, problem.root_mean_square(exact))
        self.assertGreater(level, 1e200)
        for rule in (compare.Rule(4 * level * 1e-8, 4 * level), compare.Rule(INF, INF), compare.Rule(INF, 1e-3)):
            self.assertEqual(compare.count_bad([(out, out, rule)]), 0)
        self.assertEqual(compare.count_bad([(torch.tensor([INF]), torch.tensor([1.0]), compare.Rule(INF, 1e-3))]), 1)

    def test_sizes_of_several_outputs_are_those_of_each(self):
        outputs = [torch.randn(300), torch.tensor([1, 2]), torch.tensor([3.0, INF]), torch.tensor(2.0), torch.zeros(0)]
        for x, size in zip(outputs, problem.root_mean_squares(outputs)):
            self.assertAlmostEqual(size, problem.root_mean_square(x) if x.is_floating_point() else 0.0)

    def test_another_draw_is_judged_at_its_own_scale(self):
        want = torch.randn(4096)
        rules = [compare.Rule(1e-3, 1e-3)]  # of outputs of one
        for scale in (1e-12, 1.0, 1e12):
            (rule,) = compare.at_own_scale(rules, [want * scale], 64)
            self.assertAlmostEqual(rule.absolute / (1e-3 * scale), 1.0, delta=0.1)
            self.assertEqual(rule.relative, 1e-3)
        few, integers = compare.at_own_scale(2 * rules, [torch.tensor([1e-9]), torch.tensor([3])], 64)
        self.assertEqual((few.absolute, integers.absolute), (1e-3, 1e-3))
        (infinite,) = compare.at_own_scale(rules, [torch.cat([want, torch.tensor([INF])])], 64)
        self.assertAlmostEqual(infinite.absolute, 1e-3, delta=1e-4)

    def test_what_would_pass_is_seen_in_all_places(self):
        want = torch.zeros(1 << 20)
        self.assertTrue(compare.would_pass(None, want, self.rule))
        want[12345] = 1  # between the places that are looked at first
        self.assertFalse(compare.would_pass(None, want, self.rule))
        self.assertTrue(compare.would_pass(want.clone(), want, self.rule))

    def test_spread_and_error_are_those_of_finite_elements(self):
        x = torch.tensor([3.0, 4.0, INF, NAN])
        self.assertAlmostEqual(problem.root_mean_square(x), math.sqrt(12.5))
        self.assertAlmostEqual(problem.root_mean_square(x[:2]), math.sqrt(12.5))
        got = torch.tensor([3.0, 4.5, INF, NAN])
        self.assertAlmostEqual(problem.relative_error(got, x.double(), 1.0), 0.1)
        self.assertEqual(problem.relative_error(x[:0], x[:0].double(), 1.0), 0.0)

    def test_fingerprints_know_numbers_and_not_their_order(self):
        torch.manual_seed(1)
        one = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        one.mask = torch.tensor([True, False])
        torch.manual_seed(1)
        other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        other.mask = torch.tensor([True, False])
        self.assertEqual(fingerprints(one), fingerprints(other))
        other[0].weight.data = other[0].weight.data.t().contiguous()
        self.assertEqual(fingerprints(one), fingerprints(other))
        other[0].weight.data[0, 0] += 1
        self.assertNotEqual(fingerprints(one), fingerprints(other))
        self.assertEqual(fingerprints(torch.nn.ReLU()), [])


if __name__ == "__main__":
    unittest.main()
