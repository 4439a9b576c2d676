import unittest

from gpu_check import clocks


class Clocks(unittest.TestCase):
    def test_one_kernel_that_agrees_proves_nothing(self):
        self.assertFalse(clocks.clock_promise("device", [0.008], 60)[0])
        self.assertFalse(clocks.clock_promise("device", [], 60)[0])
        self.assertFalse(clocks.clock_promise("device", [None] * 60, 60)[0])
        holds, words = clocks.clock_promise("device", [0.008, -0.012, None] * 10, 60)
        self.assertTrue(holds)
        self.assertIn("at most 1.20 %", words)
        self.assertIn("20 kernels of 50 µs and more; 30 of 60 judged", words)
        self.assertFalse(clocks.clock_promise("device", [0.021] * 60, 60)[0])

    def test_short_kernels_are_judged_and_not_held_to_it(self):
        verdict = lambda ms, events: {"timing": {"device_ms": {"candidate": ms}}, "conditions": [{"name": "time_by_events", "value": events}]}
        found = clocks.off_device({"long": verdict(0.102, 0.1), "short": verdict(0.02, 0.01), "none": {"outcome": "rejected"}})
        self.assertEqual(found, [0.102 / 0.1 - 1, None])

    def test_one_odd_plain_process_of_three_is_not_the_truth(self):
        verdicts = {"long": {"timing": {"candidate_ms": 0.101}}, "slow": {"timing": {"candidate_ms": 0.11}}, "none": {"outcome": "rejected"}}
        plain = {"long": [(0.1, 0.1, 0.1), (0.1, 0.133, 0.1), (0.1, 0.099, 0.1)], "slow": [(0.1, 0.1, 0.1), (0.1, 0.12, 0.1), (0.1, 0.1, 0.1)],
                 "none": [(0.1, 0.1, 0.1)]}
        self.assertEqual(clocks.off_native(verdicts, plain), [0.101 / 0.1 - 1, 0.11 / 0.1 - 1])


if __name__ == "__main__":
    unittest.main()
