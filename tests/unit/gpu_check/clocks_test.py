import statistics
import unittest
from unittest import mock

from gpu_check import clocks, common


class Clocks(unittest.TestCase):
    def off(self, *each):
        return clocks.Off(sorted(each)[len(each) // 2], list(each))

    def test_one_kernel_that_agrees_proves_nothing(self):
        self.assertFalse(clocks.clock_promise("device", [self.off(0.008)], 60)[0])
        self.assertFalse(clocks.clock_promise("device", [], 60)[0])
        self.assertFalse(clocks.clock_promise("device", [None] * 60, 60)[0])
        holds, words = clocks.clock_promise("device", [self.off(0.008), self.off(-0.012), None] * 10, 60)
        self.assertTrue(holds)
        self.assertIn("at most 1.20 %", words)
        self.assertIn("20 kernels of 50 µs and more", words)
        self.assertIn("30 of 60 judged", words)
        self.assertFalse(clocks.clock_promise("device", [self.off(0.021)] * 60, 60)[0])

    def test_a_verdict_that_is_off_is_said_and_three_that_are_break_the_promise(self):
        holds, words = clocks.clock_promise("native", [self.off(0.0, 0.03, -0.01), self.off(0.01)], 2)
        self.assertTrue(holds)
        self.assertIn("of single verdicts 3 of 4 by at most 2%, worst 3.0%", words)
        self.assertFalse(clocks.clock_promise("native", [self.off(0.03, 0.03, -0.01)], 1)[0])

    def test_all_kernels_are_judged_once_before_any_is_again(self):
        rows = common.repeated([("a b", "task", 1), ("c", "task", 2)])
        self.assertEqual(rows[:3], [("a b 0", "task", 1), ("c 0", "task", 2), ("a b 1", "task", 1)])
        self.assertEqual(
            clocks.by_kernel({name: number for number, (name, *_) in enumerate(rows)}),
            {"a b": [0, 2, 4], "c": [1, 3, 5]},
        )

    def test_short_kernels_are_judged_and_not_held_to_it(self):
        verdict = lambda ms, events: {
            "timing": {"device_ms": {"candidate": ms}},
            "conditions": [{"name": "time_by_events", "value": events}],
        }
        long = [verdict(x, 0.1) for x in (0.102, 0.104, 0.099)]
        found = clocks.off_device({"long": long, "short": [verdict(0.02, 0.01)], "none": [{"outcome": "rejected"}]})
        self.assertEqual(
            found,
            {"long": clocks.Off(0.102 / 0.1 - 1, [0.102 / 0.1 - 1, 0.104 / 0.1 - 1, 0.099 / 0.1 - 1]), "short": None},
        )

    def test_one_odd_verdict_or_plain_process_of_three_is_not_the_truth(self):
        timed = lambda ms: {"timing": {"candidate_ms": ms}}
        verdicts = {
            "long": [timed(0.101), timed(0.78), timed(0.1)],
            "slow": [timed(0.11)] * 3,
            "none": [{"outcome": "rejected"}],
        }
        plain = {
            "long": [(0.1, 0.1, 0.1), (0.1, 0.133, 0.1), (0.1, 0.099, 0.1)],
            "slow": [(0.1, 0.1, 0.1), (0.1, 0.12, 0.1), (0.1, 0.1, 0.1)],
            "none": [(0.1, 0.1, 0.1)],
        }
        with mock.patch.object(clocks, "say"):
            found = clocks.off_native(verdicts, plain)
        self.assertEqual(
            {name: x.middle for name, x in found.items()}, {"long": 0.101 / 0.1 - 1, "slow": 0.11 / 0.1 - 1}
        )
        self.assertEqual(found["long"].each[1], 0.78 / 0.1 - 1)

    def test_what_is_off_is_judged_two_more_times(self):
        judged, off = [], {"a": [0.03, 0.0, 0.025], "b": [0.0, 0.03, 0.0]}

        def judge(name, rows, **_):
            judged.append((name, [x[0] for x in rows]))
            return {x[0]: 0.001 for x in rows}, 1.0

        off_of = lambda some: {name: clocks.Off(statistics.median(x), x) for name, x in some.items()}
        with mock.patch.object(clocks, "judge", judge), mock.patch.object(clocks, "say"):
            found = clocks.judged_again("clocks", [("a", "t", "f"), ("b", "t", "f")], off, off_of)
        self.assertEqual(judged, [("clocks-again", ["a 0", "a 1"])])
        self.assertEqual({name: (x.middle, len(x.each)) for name, x in found.items()}, {"a": (0.001, 5), "b": (0.0, 3)})

    def test_all_of_it(self):
        judged, said = [], []
        verdict = {
            "timing": {"candidate_ms": 0.101, "device_ms": {"candidate": 0.101}},
            "conditions": [{"name": "time_by_events", "value": 0.1}],
        }

        def judge(name, rows, **_):
            judged.append((name, len(rows)))
            return {row[0]: verdict for row in rows}, 1.0

        with (
            mock.patch.object(clocks, "judge", judge),
            mock.patch.object(clocks, "task_ids", lambda: ["native/a", "native/b"]),
            mock.patch.object(clocks, "baseline", lambda task: task),
            mock.patch.object(clocks, "say"),
            mock.patch.object(clocks, "plain_times", lambda tasks, _until: {x: [(0.1, 0.1, 0.1)] * 3 for x in tasks}),
            mock.patch.object(clocks, "honest_set", lambda _contract: [("k.cu", "device/a", "k.cu", "device")]),
            mock.patch.object(clocks, "promise", lambda holds, words: said.append((holds, words))),
        ):
            clocks.check_clocks()
        self.assertEqual(judged, [("clocks", 6), ("clocks-device", 3)])
        self.assertEqual([holds for holds, _ in said], [True, True])
        self.assertIn("2 of 2 judged); of single verdicts 6 of 6", said[0][1])
        self.assertIn("1 of 1 judged); of single verdicts 3 of 3", said[1][1])


if __name__ == "__main__":
    unittest.main()
