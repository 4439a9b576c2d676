import re
import unittest

from gpu_check import profiles


def kernel(name, told):
    return {"kernel": f"{name}(const float *)", "cards": [{"bottleneck": told}] if told else []}


class Rows(unittest.TestCase):
    def test_a_flaw_must_be_told_by_its_own_name(self):
        rows = profiles.judged_rows(
            [
                kernel("flaw__fp64__poly", "fp64"),
                kernel("flaw__fp64__other", "compute"),
                kernel("flaw__atomics__x", None),
            ]
        )
        self.assertEqual([x[4] for x in rows], [True, False, False])
        self.assertEqual(rows[2][2], "nothing")

    def test_a_clean_kernel_may_have_a_limit_and_no_flaw(self):
        rows = profiles.judged_rows(
            [
                kernel("clean__compute__hash", "memory_bandwidth"),
                kernel("clean__compute__hash", "tail"),
                kernel("fill", "tail"),
            ]
        )
        self.assertEqual([(x[1], x[2], x[4]) for x in rows], [("none", "none", True), ("none", "tail", False)])

    def test_the_table_counts_each_kernel_once(self):
        rows = profiles.judged_rows(
            [
                kernel("flaw__tail__a", "tail"),
                kernel("flaw__tail__b", "latency"),
                kernel("clean__compute__c", "compute"),
            ]
        )
        lines = profiles.confusion(rows)
        self.assertIn("1=latency 2=none 3=tail", lines[0])
        self.assertEqual([line.split() for line in lines[2:]], [["none", ".", "1", "."], ["tail", "1", ".", "1"]])


class Ncu(unittest.TestCase):
    def test_a_metric_that_is_refused_is_left_out(self):
        words = ["ncu", "--csv", "--metrics=a__b.sum,c__d.avg,e__f.ratio"]
        text = "==ERROR== Failed to find metric c__d.avg\nthe program: metric a__b.sum\n"
        self.assertEqual(profiles.refused_metrics(text), {"c__d.avg"})
        self.assertEqual(profiles.metrics_of(profiles.without(words, {"c__d.avg"})), ["a__b.sum", "e__f.ratio"])

    def test_passes_are_read_from_its_words(self):
        self.assertEqual(profiles.most_passes('"f" - 0: 0%....100% - 9 passes\n"g" - 1: 100% - 1 pass\n'), 9)
        self.assertEqual(profiles.most_passes(""), 0)


class Kernels(unittest.TestCase):
    """The programs for the GPU, as text: this machine has none."""

    def test_each_kernel_is_launched_and_there_are_enough(self):
        text = profiles.PROFILE_KERNELS.read_text()
        kernels = re.findall(r"__global__ void (?:__launch_bounds__\([^)]*\) )?((?:flaw|clean)__\w+)\(", text)
        self.assertEqual(len(kernels), len(set(kernels)))
        self.assertGreaterEqual(sum(x.startswith("flaw__") for x in kernels), 20)
        self.assertGreaterEqual(sum(x.startswith("clean__") for x in kernels), 10)
        for name in kernels:
            self.assertIn(f"{name}<<<", text)

    def test_planted_faults_have_a_twin_without(self):
        text = profiles.SANITIZER_KERNELS.read_text()
        bad, good = (sorted(re.findall(rf"void {sort}__(\w+)\(", text)) for sort in ("bad", "good"))
        self.assertEqual(bad, good)
        self.assertEqual(len(bad), 12)
        for name in bad:
            self.assertIn(f"PAIR({name})", text)
            self.assertIn(name.split("__")[0], profiles.TOOLS)


if __name__ == "__main__":
    unittest.main()
