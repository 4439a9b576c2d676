"""Whose fault a baseline's failure is, what counts of rows that are disturbed, and what comes before a row."""

import unittest

try:
    import torch  # noqa: F401
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.judgement import RETAKES, Judgement
    from kernelmill_torch.processes import Fault, Row
except ImportError:
    torch = None


class Ended:
    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True


class FakeBench:
    """A bench whose baseline, once started again, runs or does not."""

    def __init__(self, alone_works):
        self.directory, self.baseline, self.baseline_seed, self.device = "problems/some", Ended(), 1, "cpu"
        self.alone_works = alone_works

    def close_baseline(self):
        if self.baseline is not None:
            self.baseline.close()
            self.baseline = None

    def start_baseline(self, _pool, _seed, _seconds):
        self.baseline = Ended()
        return self.baseline

    def fill(self, seeds):
        pass

    def row(self, _process, _count, _seconds):
        if not self.alone_works:
            raise Fault("candidate", "runtime_error", "IndexError")

    def longest_flush(self):
        return 1.0

    def blame_problem(self, e):
        return Bench.blame_problem(self, e)


def judgement(bench):
    result = Judgement(bench, None, None, {"seconds": 60, "seed": "00" * 32})
    result.process = Ended()
    return result


@unittest.skipIf(torch is None, "there is no torch here")
class BaselineFault(unittest.TestCase):
    def fault(self, category, alone_works):
        bench = FakeBench(alone_works)
        x = judgement(bench)
        first, candidate = bench.baseline, x.process
        fault = x.fault_of_baseline(Fault("candidate", category, "the problem's own model failed"))
        self.assertTrue(first.closed)  # it may be broken for good
        return fault, x, bench, candidate

    def test_what_fails_without_the_candidate_too_is_the_problems(self):
        fault, _, bench, _ = self.fault("runtime_error", alone_works=False)
        self.assertEqual((fault.cls, fault.category), ("configuration", "bad_problem"))
        self.assertIsNone(bench.baseline)

    def test_what_works_without_it_is_evaluated_again(self):
        fault, x, bench, candidate = self.fault("runtime_error", alone_works=True)
        self.assertEqual((fault.cls, fault.category), ("infrastructure", "baseline_disturbed"))
        self.assertTrue(candidate.closed)
        self.assertIsNone(x.process)
        self.assertFalse(bench.baseline.closed)

    def test_too_little_memory_is_ours(self):
        fault, _, _, candidate = self.fault("out_of_memory", alone_works=True)
        self.assertEqual((fault.cls, fault.category), ("infrastructure", "gpu_memory"))
        self.assertFalse(candidate.closed)


@unittest.skipIf(torch is None, "there is no torch here")
class DisturbedPairs(unittest.TestCase):
    def take(self, flushes, pairs):
        x = judgement(FakeBench(True))
        taken = iter(zip(flushes, pairs))

        def pair(_reference_first):
            flush, seconds = next(taken)
            x.flushes.append(flush)
            return seconds

        x.pair = pair
        return x.undisturbed_pair(True), len(list(taken))

    def test_the_first_that_is_not_disturbed_counts(self):
        pair, left = self.take([2.0, 0.5, 0.5], [(9.0, 9.0), (1.0, 2.0), (1.0, 1.0)])
        self.assertEqual((pair, left), ((1.0, 2.0), 1))

    def test_of_disturbed_ones_the_shortest_of_each_kind(self):
        pair, left = self.take([2.0] * RETAKES, [(3.0, 2.0), (1.0, 5.0), (4.0, 4.0)])
        self.assertEqual((pair, left), ((1.0, 2.0), 0))


class WatchedProcess:
    def __init__(self, name, done):
        self.name, self.done = name, done

    def rest(self):
        self.done.append("rest")


class WatchedBench:
    """Writes down what is done to it, and when."""

    def __init__(self, small):
        self.small, self.done = small, []
        self.device, self.places, self.latest_flush = "cpu", None, 0.0
        self.baseline, self.sets = WatchedProcess("baseline", self.done), ["live"]
        self.contents = []

    def make_room(self):
        self.done.append("room")

    def fill(self, seeds):
        self.done.append("fill")
        self.contents.append(seeds)

    def poison(self, _count):
        self.done.append("poison")

    def row(self, process, _count, _seconds):
        self.done.append(process.name)
        return Row(0.0, 1.0, 0.0)

    def sample(self, _count, _generator):
        self.done.append("sample")

    def put_aside(self, _count):
        self.done.append("aside")
        return ["aside"] if self.small else None

    def per_call(self, _row, _count):
        return 1.0


@unittest.skipIf(torch is None, "there is no torch here")
class WorkWhileStopped(unittest.TestCase):
    def rules(self, awake):
        bench = FakeBench(True)
        x = judgement(bench)
        x.row_length, x.awake = 1, awake
        x.undisturbed_pair = lambda _first: (1.0, 1.0)
        x.look_for_background_work = lambda: None
        x.block()
        return [f["rule"] for f in x.findings]

    def test_what_is_usual_is_found(self):
        self.assertEqual(self.rules([1e-3] * 4), ["ran_while_stopped"])

    def test_what_a_busy_machine_does_once_is_not(self):
        self.assertEqual(self.rules([1e-3, 0.0, 0.0, 2e-5]), [])
        self.assertEqual(self.rules([1e-3] * 3), [])


@unittest.skipIf(torch is None, "there is no torch here")
class OrderOfAPair(unittest.TestCase):
    def done(self, reference_first, small):
        bench = WatchedBench(small)
        x = judgement(bench)
        x.process, x.row_length = WatchedProcess("candidate", bench.done), 1
        audited = []
        x.audit = lambda seeds, sets, _sample: (audited.append(seeds), bench.done.append("audit of " + sets[0]))
        x.pair(reference_first)
        self.assertEqual(audited, [bench.contents[1 if reference_first else 0]])
        self.assertNotEqual(bench.contents[0], bench.contents[1])  # the baseline's outputs are no help
        return bench.done

    def test_what_comes_before_a_row_does_not_depend_on_whose_it_is(self):
        before = ["rest", "room", "fill", "poison"]
        self.assertEqual(self.done(True, small=True), [*before, "baseline", "sample", "aside", *before, "candidate",
                                                       "sample", "audit of live"])
        self.assertEqual(self.done(False, small=True), [*before, "candidate", "sample", "aside", *before, "baseline",
                                                        "audit of aside"])

    def test_what_is_too_large_to_put_aside_is_audited_before_it_is_written_again(self):
        done = self.done(False, small=False)
        self.assertLess(done.index("audit of live"), done.index("baseline"))
        self.assertEqual(sum(x.startswith("audit") for x in done), 1)


if __name__ == "__main__":
    unittest.main()
