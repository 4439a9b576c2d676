"""What is kept of a problem: memory that processes map, and what a look at it told."""

import os
import tempfile
import types
import unittest
import unittest.mock

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import admission
    from kernelmill_torch import bench as bench_module
    from kernelmill_torch import referee as referee_module
    from kernelmill_torch.arena import Arena
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.buffers import Layout, SharedMemory, TensorSpec
    from kernelmill_torch.judgement import Judgement


PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.randn(1024)]
"""


class Attached:
    """A process that notes which memory it was given."""

    def __init__(self):
        self.reach, self.memory = None, None

    def ask(self, message, _seconds, descriptors=()):
        if message["op"] == "buffers":
            self.memory = os.fstat(descriptors[0]).st_ino
        return {}

    def alive(self):
        return True

    def close(self):
        self.reach.close()


@unittest.skipIf(torch is None, "there is no torch here")
class Arenas(unittest.TestCase):
    def memories(self):
        """Those that a candidate and the baseline map, and what the bench notes of its problem."""
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "problem.py"), "w") as file:
                file.write(PROBLEM)
            bench = Bench(None, "cpu", directory, "fp32")
            self.addCleanup(bench.close)
            candidate = Attached()
            bench.attach(candidate, bench.arena, "ModelNew", 1, "cpu", 1.0)
            candidate.close()
            baseline = bench.start_baseline(types.SimpleNamespace(take=lambda _who: Attached()), 1, 1.0)
        return candidate.memory, baseline.memory, bench

    def test_the_baselines_contents_come_where_no_candidate_sees_them(self):
        candidate, baseline, bench = self.memories()
        self.assertNotEqual(candidate, baseline)
        before = bench.arena.memory.bytes.clone()
        contents = bench.draw([1, 2])
        bench.reveal(bench.own_arena, contents)
        self.assertEqual(bench.own_arena.find_changed(contents), [])
        self.assertTrue(torch.equal(bench.arena.memory.bytes, before))
        self.assertEqual((bench.notes, bench.shares_arena), ([], False))

    def test_narrow_inputs_come_there_bit_by_bit(self):
        arena = Arena(None, "cpu", Layout([TensorSpec((4,), (1,), torch.float16)], [], sets=1))
        given = torch.tensor([0x3C00, 0x7E00, 0x7E01, -1], dtype=torch.int16).view(torch.float16)  # 1, and three NaN
        copied = []

        def copy(into, what):  # a GPU's would give one NaN for all of them
            copied.extend(x.dtype for x in what)
            for to, x in zip(into, what):
                to.copy_(x)

        arena.device = "cuda"
        with unittest.mock.patch.object(torch, "_foreach_copy_", copy, create=True):
            arena.fill([[given]])
        self.assertEqual(copied, [torch.int16])
        self.assertEqual(arena.find_changed([[given]]), [])

    def test_nothing_is_left_there_for_the_next_candidate(self):
        arena = Arena(None, "cpu", Layout([], [TensorSpec((4096,), (1,), torch.uint8)], sets=3))
        theirs = SharedMemory.attach(None, "cpu", os.dup(arena.memory.fd), arena.memory.capacity)
        theirs.bytes.fill_(7)
        arena.memory.clear()
        self.assertEqual(int(arena.memory.bytes.count_nonzero()), 0)
        self.assertEqual(int(theirs.bytes.count_nonzero()), 0)
        arena.poison(1)
        self.assertEqual(int(theirs.bytes[0]), 0xA7)

    def test_a_problem_too_large_for_two_has_one_and_says_so(self):
        _, _, bench = self.memories()
        share, total = bench_module.SHARE_OF_MEMORY, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.addCleanup(setattr, bench_module, "SHARE_OF_MEMORY", share)
        bench_module.SHARE_OF_MEMORY = (bench.needed + 1) / total
        candidate, baseline, bench = self.memories()
        self.assertEqual(candidate, baseline)
        self.assertTrue(bench.shares_arena)
        self.assertEqual(bench.notes[-1], "too large for buffers of the baseline's own")


@unittest.skipIf(torch is None, "there is no torch here")
class SecondLookAtAProblem(unittest.TestCase):
    """A referee keeps some benches; of the others it knows what the look at their problem told."""

    def setUp(self):
        # Whether a look is whole is not to depend on how busy this machine is.
        for module, name, value in (bench_module, "READING_SECONDS", 60.0), (admission, "SECONDS", {"cpu": 60.0}):
            patch = unittest.mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def benches(self, digests, seconds=None):
        """Those of a referee that keeps one, asked for the same problem with these digests,
        and how many looks that took."""
        looks = []

        class Counted(Bench):
            def _measure(self):
                looks.append(self.directory)
                super()._measure()
                if seconds is not None:
                    self.is_known_whole &= seconds < bench_module.READING_SECONDS

        referee = referee_module.Referee(None, None, "cpu", 0)
        self.addCleanup(setattr, referee_module, "Bench", Bench)
        referee_module.Bench = Counted
        found = []
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "problem.py"), "w") as file:
                file.write(PROBLEM)
            for digest in digests:
                found.append(referee.bench({"directory": directory, "digest": digest, "precision": "fp32"}))
                referee.close_benches()
        return found, len(looks)

    def test_the_same_files_are_looked_at_once(self):
        (first, second), looks = self.benches(["a", "a"])
        self.assertEqual(looks, 1)
        for name in bench_module.TOLD:
            self.assertIs(getattr(second, name), getattr(first, name))
        for name in bench_module.TOLD_OF_PROBLEM:
            self.assertEqual(getattr(second.problem, name), getattr(first.problem, name))
        self.assertIn("large", second.admitted.names)

    def test_all_that_a_look_sets_is_told(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "problem.py"), "w") as file:
                file.write(PROBLEM)
            before = Bench(None, "cpu", directory, "fp32")
            after = Bench(None, "cpu", directory, "fp32", before.told())
            self.addCleanup(before.close)
            self.addCleanup(after.close)
        self.assertEqual(set(vars(before)), set(vars(after)))
        self.assertEqual(set(vars(before.problem)), set(vars(after.problem)))
        mine = {name: value for name, value in vars(before.problem).items() if isinstance(value, (bool, int, float))}
        self.assertEqual(mine, {name: getattr(after.problem, name) for name in mine})

    def test_what_processes_take_beside_us_is_arenas_parameters_and_what_a_run_needs(self):
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "problem.py"), "w") as file:
                file.write(
                    PROBLEM.replace(
                        "    def forward",
                        "    def __init__(self):\n        super().__init__()\n"
                        "        self.w = torch.nn.Parameter(torch.ones(1024))\n"
                        "        self.register_buffer('b', torch.ones(1024))\n    def forward",
                    ).replace("x + 1", "x + self.w + self.b")
                )
            bench = Bench(None, "cpu", directory, "fp32")
            self.addCleanup(bench.close)
        arenas = 2 * bench.layout.sets * bench.layout.set_bytes
        self.assertEqual(
            bench.share, bench_module.CONTEXT_BYTES + (2 + bench.layout.sets) * 4 * 1024
        )  # parameters, buffers, a row's outputs
        self.assertEqual(bench._beside(), arenas + 2 * bench.share + bench_module.FLUSH_BYTES)

    def test_other_files_and_those_without_a_digest_are_looked_at_again(self):
        self.assertEqual(self.benches(["a", "b"])[1], 2)
        self.assertEqual(self.benches(["", ""])[1], 2)

    def test_a_look_that_was_short_of_time_is_taken_again(self):
        self.assertEqual(self.benches(["a", "a"], seconds=100.0)[1], 2)


@unittest.skipIf(torch is None, "there is no torch here")
class TooMuchMemory(unittest.TestCase):
    def test_the_outputs_of_a_row_are_a_candidates_own_also_where_a_problem_needs_less(self):
        for taken, expected in (4, False), (5, False), (6, True):
            self.assertEqual(Bench.is_too_much(self.bench(5, 1, 20), taken << 30, 60 << 30, 80 << 30), expected)

    def bench(self, share, needed, full, looks_again=False, output=0):
        return types.SimpleNamespace(
            share=share << 30,
            needed=needed << 30,
            held_bytes=lambda: 0,
            _allocated=lambda: 0,
            looks_again=looks_again,
            layout=types.SimpleNamespace(outputs=[types.SimpleNamespace(bytes=output << 30)]),
            admitted=types.SimpleNamespace(full=full << 30),
        )

    def test_a_candidate_that_seems_wrong_chooses_no_ending_by_it(self):
        """KernelBench's 63 of level 1 on 80 GiB, with outputs of 8: what was wrong on hidden contents was looked at
        again in five times as much, and a candidate of 10 to 21 GiB, of which 9 are its share, ran the referee out of
        memory by that alone."""
        for taken, looks_again, expected in (10, False, False), (10, True, True), (21, True, True), (9, True, False):
            bench = self.bench(9, 27, 61, looks_again, output=8)
            self.assertEqual(Bench.is_too_much(bench, taken << 30, 78 << 30, 80 << 30), expected)

    def test_looks_again_until_it_was_found_out_or_another_candidate_comes(self):
        bench = Bench.__new__(Bench)
        with bench.again():
            self.assertTrue(bench.looks_again)
        self.assertFalse(bench.looks_again)
        with self.assertRaises(MemoryError), bench.again():
            raise MemoryError
        self.assertTrue(bench.looks_again)
        x = Judgement(
            types.SimpleNamespace(looks_again=True, device="cpu"),
            unittest.mock.Mock(),
            {"seconds": 60, "seed": "00"},
        )
        x.bench.baseline_seed, x.bench.use_parameters = 0, unittest.mock.Mock()
        x.load(-1)
        self.assertFalse(x.bench.looks_again)


@unittest.skipIf(torch is None, "there is no torch here")
class LossesOfLargeProblems(unittest.TestCase):
    def test_are_known_before_contents_of_a_row_are_drawn(self):
        for size, asked in (1 << 20, []), (2 << 30, ["signs"]):
            bench, done = Bench.__new__(Bench), []
            bench.layout, bench.losses = types.SimpleNamespace(set_bytes=size), done.append
            bench.prepare_kind("signs")
            self.assertEqual(done, asked)


@unittest.skipIf(torch is None, "there is no torch here")
class LeftInTheCache(unittest.TestCase):
    def left(self, read, written, calls, cache=1000):
        spec = lambda count: [TensorSpec((count,), (1,), torch.uint8)]
        return Layout(spec(read), spec(written), sets=8).left_to_write(cache, calls)

    def test_outputs_have_their_share_of_what_calls_move(self):
        self.assertEqual(self.left(3000, 1000, calls=8), 250)
        self.assertEqual(self.left(4000, 1, calls=8), 0)  # a sum
        self.assertEqual(self.left(100, 50, calls=2), 100)  # all that two calls write
        self.assertEqual(self.left(0, 0, calls=2), 0)


if __name__ == "__main__":
    unittest.main()
