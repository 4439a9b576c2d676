import unittest

from gpu_check.__main__ import PARTS, USUALLY, share_of as share_of_part
from gpu_check.false_alarms import rounds
from gpu_check.matrix import commands, result_of, share_of, variants


def verdict(outcome, low=None, **more):
    timing = {"measured": low is not None, "speedup": {"low": low}}
    return {"outcome": outcome, "timing": timing, **more}


class Results(unittest.TestCase):
    def test_refused_is_caught_and_gains_are_paid(self):
        unpaid = {"expect": "unpaid"}
        self.assertEqual(result_of(unpaid, verdict("rejected")), "caught")
        self.assertEqual(result_of(unpaid, verdict("accepted", 1.02)), "unpaid")
        self.assertEqual(result_of(unpaid, verdict("accepted")), "unpaid")
        self.assertEqual(result_of(unpaid, verdict("accepted", 1.03)), "paid")

    def test_the_machine_is_nobody_who_caught_it(self):
        for expect in ("unpaid", "refused", "poorer"):
            self.assertEqual(result_of({"expect": expect}, verdict("infrastructure")), "machine")

    def test_what_is_unchanged_is_unpaid(self):
        found = verdict("accepted", 1.3, integrity={"findings": [{"rule": "unchanged"}]})
        self.assertEqual(result_of({"expect": "unpaid"}, found), "unpaid")

    def test_what_nobody_may_do_is_paid_when_it_is_accepted(self):
        self.assertEqual(result_of({"expect": "refused"}, verdict("accepted", 0.9)), "paid")

    def test_words_that_come_back(self):
        x = {"expect": "silent", "marks": ["KM1"]}
        self.assertEqual(result_of(x, verdict("rejected", error={"message": "it said KM1 4 8"})), "paid")
        self.assertEqual(result_of(x, verdict("rejected", error={"message": "it said KM1 4 8"}, sealed=True)), "caught")
        self.assertEqual(result_of(x, verdict("rejected", error={"message": "it ended"})), "caught")

    def test_ending_pays_no_more_than_being_wrong(self):
        x = {"expect": "poorer"}
        self.assertEqual(result_of(x, verdict("rejected", reward=0.15), verdict("rejected", reward=0.075)), "paid")
        self.assertEqual(result_of(x, verdict("rejected", reward=0.075), verdict("rejected", reward=0.075)), "caught")


class Batches(unittest.TestCase):
    def test_all_classes_come_before_the_next_seed(self):
        seeds = [x["seed"] for x in variants([], ["native-cpu"], lambda _row: 2)]
        self.assertEqual(seeds, sorted(seeds))
        self.assertEqual(set(seeds), {0, 1})

    def test_the_first_seed_of_all_contracts_comes_before_any_other(self):
        found = list(variants([], ["native-cpu", "torch-cpu"], lambda _row: 12, first=3))
        batches = commands(found)
        self.assertEqual(sum(len(rows) for _, rows in batches), len(found))
        first = [x for _, rows in batches for x in rows if x["seed"] == 3]
        begin = [x for _, rows in batches for x in rows][:len(first)]
        self.assertEqual({x["seed"] for x in begin}, {3})
        self.assertEqual({(x["class"], x["contract"]) for x in begin}, {(x["class"], x["contract"]) for x in found})

    def test_time_is_shared_by_what_is_left(self):
        self.assertEqual(share_of(90, [1], [[1, 1], []]), 30)
        self.assertEqual(share_of(90, [1, 1], []), 90)
        self.assertEqual(share_of(float("inf"), [1], [[1]]), float("inf"))

    def test_parts_share_all_the_time_there_is(self):
        self.assertEqual(set(USUALLY), set(PARTS))
        left, given = 1650.0, []
        names = ["planted", "torch_same", "truth", "matrix"]
        for number, name in enumerate(names):
            given.append(share_of_part(left, name, names[number + 1:]))
            left -= given[-1] / 2  # each leaves a half
        self.assertLess(given[0], given[1])
        self.assertAlmostEqual(given[-1], left + given[-1] / 2)

    def test_quiet_and_busy_rounds_take_turns(self):
        rows = [("a", "t", "f", "native", "any"), ("b", "t", "f", "torch", "cuda")]
        found = list(rounds(rows, 1000))
        self.assertEqual(sum(len(batch) for _, _, batch in found), 1000)
        self.assertEqual(sum(len(batch) for busy, _, batch in found if busy), 500)


if __name__ == "__main__":
    unittest.main()
