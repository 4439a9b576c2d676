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


if __name__ == "__main__":
    unittest.main()
