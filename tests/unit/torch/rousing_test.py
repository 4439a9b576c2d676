import unittest

from kernelmill_torch.rousing import Rousing


class RestedGpu:
    """Whose clock rises while it works."""

    def __init__(self, highest=1980.0, rises_after=1.6):
        self.highest, self.rises_after, self.works = highest, rises_after, 0.0

    def work(self):
        self.works += 0.01

    def rouse(self, rousing):
        rousing.rouse(self.work, lambda: 345.0 if self.works < self.rises_after else self.highest, lambda: self.works)
        return self.works


class RousingTest(unittest.TestCase):
    def test_works_until_the_clock_is_up(self):
        rousing, gpu = Rousing(1980.0), RestedGpu()
        first = gpu.rouse(rousing)
        self.assertTrue(1.6 <= first < 1.7)
        self.assertLess(gpu.rouse(rousing) - first, 0.02)

    def test_waits_once_for_a_clock_that_is_held_down_or_unknown(self):
        for nominal, highest in ((1980.0, 1200.0), (0.0, 1980.0)):
            rousing, gpu = Rousing(nominal), RestedGpu(highest)
            first = gpu.rouse(rousing)
            self.assertTrue(2.5 < first < 2.6)
            self.assertEqual(rousing.known, highest)
            self.assertLess(gpu.rouse(rousing) - first, 0.02)

    def test_works_once_where_the_clock_is_unknown(self):
        rousing, works = Rousing(1980.0), []
        rousing.rouse(lambda: works.append(1), lambda: 0.0, lambda: 0.0)
        self.assertEqual(len(works), 1)


if __name__ == "__main__":
    unittest.main()
