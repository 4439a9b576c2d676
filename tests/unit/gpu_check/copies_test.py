import unittest

from gpu_check import common, copies


def around(*estimates, width=0.05):
    return [{"estimate": x, "low": x - width, "high": x + width} for x in estimates]


class Copies(unittest.TestCase):
    def test_time_may_cut_a_third_and_nothing_else_may_cut_any(self):
        for judged, ended, enough in (
            (60, False, True),
            (59, True, True),
            (40, True, True),
            (39, True, False),
            (59, False, False),
        ):
            self.assertEqual(copies.is_enough(judged, 60, ended), enough)
        self.assertEqual(copies.how_many(59, 60, True), "59 of 60 judged before the time ended")
        self.assertEqual(copies.how_many(59, 60, False), "59 of 60 judged, the others are lost")

    def test_planted_work_is_found_in_most_of_those_that_were_judged(self):
        holds, words = copies.planted_promise(around(*[0.914] * 59), 59, 60, True)  # of 2026-11-26
        self.assertTrue(holds)
        self.assertIn("59 of 59", words)
        self.assertIn("59 of 60 judged before the time ended", words)
        for slower, unseen, enough in ((57, 3, True), (56, 4, False)):
            self.assertEqual(copies.planted_promise(around(*[0.9] * slower, *[1.0] * unseen), 60, 60, False)[0], enough)
        self.assertFalse(copies.planted_promise(around(*[0.9] * 56), 60, 60, False)[0])  # four have no time

    def test_the_same_is_not_faster(self):
        self.assertTrue(copies.same_promise(around(*[1.0] * 40), 40, 40, False)[0])
        self.assertFalse(copies.same_promise(around(*[1.0] * 39, 1.1), 40, 40, False)[0])
        self.assertTrue(copies.same_promise(around(*[1.0] * 199, 1.1), 200, 200, False)[0])
        self.assertFalse(copies.same_promise(around(*[1.0] * 39), 40, 40, False)[0])  # one has no time
        self.assertFalse(copies.same_promise(around(*[1.0] * 30), 30, 200, True)[0])
        self.assertFalse(copies.same_promise(around(*[1.0] * 37, *[0.3] * 3), 40, 40, False)[0])

    def test_copies_that_are_paid_too_little_break_the_promise(self):
        busy = around(*[0.99] * 16) + [
            {"estimate": 0.306, "low": 0.238, "high": 0.401},
            {"estimate": 0.365, "low": 0.279, "high": 0.472},
            {"estimate": 0.423, "low": 0.301, "high": 0.493},
        ]  # of 2026-11-26
        holds, words = copies.torch_promise(busy, 20, 20, False)
        self.assertFalse(holds)
        self.assertIn(
            "called faster in 0 of 19, surely below 0.9 in 3, 1 not timed; least, median and largest estimate 0.306",
            words,
        )
        self.assertTrue(copies.torch_promise(busy[:17], 17, 20, True)[0])  # one of twenty may be
        self.assertTrue(copies.torch_promise(around(*[0.88] * 20), 20, 20, False)[0])  # the intervals reach 0.9

    def test_a_speedup_that_json_has_no_number_for_is_none_that_is_paid(self):
        found = common.with_numbers(
            {"timing": {"measured": True, "speedup": {"estimate": 0.5, "low": None, "high": None}}}
        )
        self.assertEqual(found["timing"]["speedup"], {"estimate": 0.5, "low": 0.0, "high": float("inf")})
        self.assertEqual(common.with_numbers({"timing": None}), {"timing": None})

    def test_verdicts_without_a_time_have_no_speedup(self):
        self.assertEqual(
            copies.speedups({"a": {"outcome": "infrastructure"}, "b": {"timing": {"measured": False}}}), []
        )


if __name__ == "__main__":
    unittest.main()
