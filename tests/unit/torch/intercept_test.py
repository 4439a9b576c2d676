"""What rows of two lengths say of the part that is none of their calls'."""

import unittest

try:
    from kernelmill_torch.intercept import (
        FEWEST,
        Intercept,
        beside_others,
        beyond_chance,
        charge_of,
        cold_launches,
        saved_together,
        short_length,
        unseen_work,
        without,
    )
except ImportError:
    Intercept = None


def charged(candidate, alone, baseline, baseline_alone, launching, error=0.0):
    return beyond_chance(saved_together(candidate, alone, baseline, baseline_alone, launching), candidate, alone, error)


@unittest.skipIf(Intercept is None, "there is no torch here")
class Seconds(unittest.TestCase):
    """Rows of 16 and of 4 calls of 0.25 s, which take half a second besides."""

    def intercept(self, more=0.0, rows=FEWEST):
        result = Intercept()
        result.long = [4.5 + more] * rows
        result.short = [1.5 + more] * rows
        return result

    def test_a_line_through_both_lengths(self):
        self.assertEqual(self.intercept().seconds(16, known=0.25, most=9.0), (0.5, 0.0))

    def test_what_was_known_before_until_there_are_rows_enough(self):
        self.assertEqual(self.intercept(rows=FEWEST - 1).seconds(16, known=0.25, most=9.0), (0.25, 0.0))
        self.assertEqual(Intercept().seconds(1, known=0.25, most=9.0), (0.25, 0.0))

    def test_a_candidate_that_makes_rows_longer_has_no_more_free_than_the_most(self):
        self.assertEqual(self.intercept(more=3.0).seconds(16, known=0.25, most=0.75)[0], 0.75)

    def test_chance_makes_it_no_less_than_a_row_without_calls(self):
        self.assertEqual(self.intercept(more=-0.4).seconds(16, known=0.25, most=9.0)[0], 0.25)

    def test_a_wild_row_changes_little_and_widens_the_error(self):
        x = self.intercept(rows=9)
        x.short = [1.4, 1.45, 1.48, 1.5, 1.5, 1.52, 1.55, 1.6, 99.0]
        found, error = x.seconds(16, known=0.25, most=9.0)
        self.assertAlmostEqual(found, 0.5)
        self.assertAlmostEqual(error, 4 / 3 * 1.2533 * 1.4826 * 0.05 / 3)

    def test_lengths(self):
        self.assertEqual([short_length(x) for x in (1, 2, 7, 16)], [0, 1, 1, 4])

    def test_something_is_left_of_every_row(self):
        self.assertEqual(without(0.5, 2.0), 1.5)
        self.assertEqual(without(2.0, 2.0), 0.2)

    def test_half_of_a_call_that_takes_milliseconds_is_no_launch(self):
        self.assertAlmostEqual(charged(1e-3, 2e-3, 2e-3, 2e-3, 1e-4), 0.9e-3)
        self.assertEqual(charged(1e-3, 1.15e-3, 2e-3, 2e-3, 1e-4), 0.0)
        self.assertEqual(charged(1e-3, 2e-3, 2e-3, 3e-3, 1e-4), 0.0)  # as cold as the model's own
        self.assertEqual(charged(50e-6, 100e-6, 100e-6, 100e-6, 50e-6), 0.0)

    def test_whose_calls_take_twice_as_long_alone_is_paid_as_for_one_alone(self):
        saved = charged(0.113e-3, 0.48e-3, 0.412e-3, 0.543e-3, 0.0)
        self.assertAlmostEqual(saved, 0.236e-3)  # 1.18 was paid; 0.29 in another evaluation
        self.assertAlmostEqual(charge_of(0.113e-3, 0.48e-3, saved), (0.528 - 0.113) * 1e-3)
        self.assertAlmostEqual(charge_of(0.3e-3, 0.5e-3, 0.2e-3), 0.2e-3)  # not twice
        # A launch of 10 us in place of many that take 500 us, 35 us colder alone,
        # is ten times as fast and not as slow as these.
        self.assertAlmostEqual(charge_of(10e-6, 45e-6, 30e-6), 39.5e-6)

    def test_a_fence_that_takes_a_copy_as_long_as_the_baseline_is_free(self):
        self.assertEqual(beside_others(46e-6, 52.5e-6, 46e-6, 52.5e-6), 0.0)  # launches limit both; 4.5 us were charged
        self.assertAlmostEqual(beside_others(25e-6, 51e-6, 50e-6, 51e-6), 25e-6)

    def test_chance_charges_no_candidate(self):
        self.assertAlmostEqual(charged(16e-6, 60e-6, 16e-6, 16e-6, 0.0, error=3e-6), 44e-6)
        self.assertEqual(charged(16e-6, 30e-6, 16e-6, 16e-6, 0.0, error=5e-6), 0.0)

    def test_first_launches_are_free_up_to_a_small_part_of_the_work(self):
        self.assertAlmostEqual(cold_launches(2.1e-3, 2e-3), 0.1e-3)
        self.assertAlmostEqual(cold_launches(2.2e-3, 2e-3), 0.1e-3)  # 0.05 ms are paid
        self.assertAlmostEqual(cold_launches(2.3e-3, 2e-3), 0.0)  # launches take so long
        self.assertAlmostEqual(cold_launches(230e-6, 200e-6), 30e-6)
        self.assertAlmostEqual(cold_launches(240e-6, 200e-6), 20e-6)

    def test_work_behind_a_gate_that_takes_longer_makes_no_row_longer(self):
        self.assertEqual(cold_launches(1.96e-3, 2e-3), 0.0)
        self.assertEqual(cold_launches(1e-3, 2e-3), 0.0)

    def test_no_row_has_less_than_the_gpus_work(self):
        self.assertAlmostEqual(unseen_work(1.9e-3, 2e-3, 4.0e-3, 3.9e-3), 0.08e-3)
        self.assertEqual(unseen_work(2.1e-3, 2e-3, 4.0e-3, 3.9e-3), 0.0)
        self.assertAlmostEqual(unseen_work(-30e-6, 20e-6, 4.0e-3, 3.9e-3), 49e-6)
        self.assertAlmostEqual(
            unseen_work(1.9e-3, 2e-3, 3.97e-3, 4e-3), 0.07e-3
        )  # the baseline's does not show it all either
        self.assertAlmostEqual(
            unseen_work(1.9e-3, 2e-3, 3e-3, 4e-3), 0.06e-3
        )  # of which a candidate may have made more

    def test_a_candidate_that_makes_the_baselines_rows_uneven_gains_little(self):
        self.assertAlmostEqual(charged(16e-6, 60e-6, 16e-6, 16e-6, 0.0, error=1.0), 44e-6)
        self.assertAlmostEqual(charged(0.5e-3, 1e-3, 1e-3, 1e-3, 0.0, error=1.0), 0.5e-3)
        self.assertAlmostEqual(beside_others(0.2e-3, 0.4e-3, 0.4e-3, 0.4e-3, error=1.0), 0.2e-3)


if __name__ == "__main__":
    unittest.main()
