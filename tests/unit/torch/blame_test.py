"""No word of a process that has loaded a candidate decides whose fault something was; a control does."""

import gc
import time
import types
import unittest
import unittest.mock
import weakref

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import referee as referee_module
    from kernelmill_torch.baselines import Wish
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.judged import Judged
    from kernelmill_torch.processes import Process
    from kernelmill_torch.referee import Referee


class FakeProcess:
    waited = 0.0

    def __init__(self, words="", works=True):
        self.words, self.works, self.killed, self.is_working = words, works, False, False

    def output(self):
        return self.words

    def kill(self):
        self.killed = True

    def ends(self, _seconds):
        return not self.is_working

    def close(self, working=0.0):
        return not self.is_working

    def stop(self):
        pass

    arena = types.SimpleNamespace(fill=lambda _contents: None, place=0)

    def row(self, _count, _seconds):
        if not self.works:
            raise Fault("candidate", "crashed", "the problem's own model was ended by SIGBUS")


class FakeBench:
    """Its own model runs in a fresh process, or does not."""

    looks_again = False
    unfit = ()

    def __init__(self, works):
        self.works, self.device, self.baseline_seed, self.started = works, "cpu", 1, 0
        self.beside = types.SimpleNamespace(wish=Wish())

    def release(self):
        pass

    def held_bytes(self):
        return 0

    def _allocated(self):
        return 0

    def is_too_much(self, taken, free, total):
        return Bench.is_too_much(self, taken, free, total)

    def close_baseline(self):
        pass

    def make_room(self):
        pass

    def start_own_model(self, _pool, _seed, _seconds):
        self.started += 1
        return FakeProcess(works=self.works)

    def draw(self, seeds):
        return seeds

    def synchronize(self):
        pass


def referee(control_works, loaded=True):
    x = Referee(None, None, "cpu", 0)
    x.judgement = Judged(FakeBench(control_works), None, {"seconds": 60})
    x.judgement.process, x.judgement.loaded = FakeProcess("words"), loaded
    return x


@unittest.skipIf(torch is None, "there is no torch here")
class Settled(unittest.TestCase):
    def settled(self, problem, control_works, loaded=True):
        x = referee(control_works, loaded)
        fault = x.settled(problem)
        return fault.cls, fault.category

    def test_a_gpu_that_others_have_filled_is_not_the_candidates_doing(self):
        """Seen on an H100: tasks of the other contracts had 64 of its 79 GiB,
        and a small problem's referee found 16 MiB."""
        for given_back, category in (1 << 29, "gpu_memory"), (40 << 30, "disturbed_referee"):
            x, free = referee(control_works=True), [(1 << 24, 79 << 30)] + 2 * [((1 << 24) + given_back, 79 << 30)]
            x.device, x.judgement.bench.needed = "cuda", 1 << 30
            x.judgement.bench.share, x.judgement.bench.admitted = 1 << 30, types.SimpleNamespace(full=3 << 30)
            with unittest.mock.patch.object(referee_module, "memory_of_gpu", lambda _lib: free.pop(0)):
                fault = x.settled(Fault("infrastructure", "gpu_memory", ""))
            self.assertEqual(fault.category, category)

    def test_a_candidate_that_takes_the_referees_part_of_a_large_problem_has_not_left_it_to_others(self):
        """Of 80 GiB 60 are in use while a problem is judged, 8 of them a candidate's share, and 5 are as good as
        needed. What we hold ourselves is none of others': neither what the three share, nor the baseline's, nor what is
        kept of other problems."""
        for free, given_back, held, ours, category in (
            (1, 61, 0, 0, "disturbed_referee"),
            (49, 12, 0, 0, "disturbed_referee"),
            (53, 8, 0, 0, "gpu_memory"),
            (1, 40, 0, 0, "gpu_memory"),
            (1, 46, 0, 0, "disturbed_referee"),
            (1, 40, 19, 0, "disturbed_referee"),
            (1, 30, 19, 10, "disturbed_referee"),
            (1, 8, 19, 32, "gpu_memory"),
            (55, 20, 0, 0, "disturbed_referee"),
            (64, 12, 0, 0, "gpu_memory"),
        ):
            x, closed = referee(control_works=True), []
            bench, other = x.judgement.bench, types.SimpleNamespace(close=lambda: closed.append("another"))
            x.device, bench.needed, bench.share, bench.held_bytes = (
                "cuda",
                44 << 30,
                8 << 30,
                lambda held=held: held << 30,
            )
            bench.admitted = types.SimpleNamespace(full=60 << 30)
            bench.close_baseline = lambda: closed.append("baseline")
            x.benches = {("other", ""): other, ("this", ""): bench}

            def memory(_lib):
                now = (
                    free + given_back * (x.judgement.process is None) + ours * ({"another", "baseline"} <= set(closed))
                )
                return now << 30, 80 << 30

            with unittest.mock.patch.object(referee_module, "memory_of_gpu", memory):
                self.assertEqual(x.settled(Fault("infrastructure", "gpu_memory", "")).category, category)
            self.assertEqual(list(x.benches.values()), [bench])

    def test_a_candidate_that_does_not_end_is_a_fault_and_no_failure_of_the_referee(self):
        x = referee(control_works=True)
        x.device, x.judgement.process.close = "cuda", lambda **_: False
        with unittest.mock.patch.object(referee_module, "memory_of_gpu", lambda _lib: (1, 2)):
            self.assertEqual(x.settled(Fault("infrastructure", "gpu_memory", "")).category, "gpu_stuck")

    def test_what_looks_like_the_machine_is_the_candidates_where_the_control_works(self):
        no_thread = "RuntimeError: can't start new thread"
        for category, message in (
            ("crashed", ""),
            ("exited", ""),
            ("out_of_memory", ""),
            ("timed_out", ""),
            ("runtime_error", no_thread),
        ):
            fault = Fault("candidate", category, message)
            self.assertEqual(self.settled(fault, True), ("candidate", category))
            self.assertEqual(self.settled(fault, False), ("infrastructure", "control_failed"))

    def test_a_fault_of_ours_beside_a_candidate_is_its_own_where_the_control_works(self):
        for problem in (
            Fault("infrastructure", "gpu_memory", ""),
            Fault("configuration", "bad_problem", ""),
            Fault("infrastructure", "gpu_lost", ""),
            MemoryError(),
            KeyError("allocations"),
        ):
            self.assertEqual(self.settled(problem, True), ("candidate", "disturbed_referee"))
            self.assertNotEqual(self.settled(problem, False)[0], "candidate")

    def test_nothing_that_ran_out_of_memory_is_held_while_it_is_asked_whose_fault_that_was(self):
        class Inputs:
            pass

        held = []

        def fails():
            inputs = Inputs()
            held.append(weakref.ref(inputs))
            raise RuntimeError("out of memory")

        def fails_in_other_words():
            inputs = Inputs()
            held.append(weakref.ref(inputs))
            try:
                fails()
            except RuntimeError as e:
                raise MemoryError(str(e)) from e

        x, seen = referee(control_works=True), []
        x.control_works = lambda _judgement: seen.append([one() for one in held]) or True
        gc.disable()
        self.addCleanup(gc.enable)
        try:
            fails_in_other_words()
        except MemoryError as e:
            x.settled(e)
        self.assertEqual(seen, [[None, None]])

    def test_what_was_seen_to_be_another_programs_stays_so(self):
        self.assertEqual(self.settled(Fault("infrastructure", "gpu_stuck", ""), True), ("infrastructure", "gpu_stuck"))

    def test_a_candidate_that_kept_the_gpu_at_work_until_time_was_over_spent_it(self):
        for settles, rests, spent_by in (
            ([False, True], True, "candidate"),
            ([False, True], False, "infrastructure"),
            ([True, True], True, "infrastructure"),
            ([False, False], True, "infrastructure"),
        ):
            x = referee(False)
            x.judgement.bench.device, x.judgement.bench.flushes_settle = "cuda", lambda: settles.pop(0)
            x.judgement.bench.rests = lambda: rests  # or others pause for a moment
            process = x.judgement.process
            self.assertEqual(x.settled(Fault("infrastructure", "time_spent", "")).cls, spent_by)
            self.assertEqual(process.killed, len(settles) == 0)

    def test_a_candidate_that_then_takes_its_time_to_go_is_not_waited_for(self):
        x = referee(False)
        x.judgement.bench.device, x.judgement.bench.flushes_settle = "cuda", lambda: False
        x.judgement.process.is_working = True
        self.assertEqual(x.settled(Fault("infrastructure", "time_spent", "")).category, "timed_out")

    def test_before_anything_was_loaded_no_candidate_is_blamed(self):
        self.assertEqual(
            self.settled(Fault("infrastructure", "python_failed", ""), True, loaded=False),
            ("infrastructure", "python_failed"),
        )

    def test_what_is_plainly_the_candidates_needs_no_control(self):
        x = referee(True)
        x.settled(Fault("candidate", "wrong_result", ""))
        self.assertEqual(x.judgement.bench.started, 0)
        self.assertIsNotNone(x.judgement.process)

    def test_the_candidate_is_gone_when_the_control_runs(self):
        x = referee(True)
        process = x.judgement.process
        x.settled(Fault("candidate", "crashed", ""))
        self.assertTrue(process.killed)
        self.assertIsNone(x.judgement.process)
        self.assertEqual(x.judgement.words, "words")

    def test_one_that_takes_its_time_to_go_is_at_fault_without_a_control(self):
        for problem in (Fault("candidate", "crashed", ""), Fault("infrastructure", "gpu_memory", "")):
            x = referee(False)
            x.judgement.process.is_working = True
            self.assertEqual(x.settled(problem).cls, "candidate")
            self.assertEqual(x.judgement.bench.started, 0)

    def test_one_that_came_before_and_takes_its_time_is_no_reason_to_blame_without_a_control(self):
        for category in "crashed", "out_of_memory":
            x, former = referee(control_works=True), FakeProcess()
            former.is_working, former.close = True, lambda **_: True
            x.ending = [former]
            x.settled(Fault("candidate", category, ""))
            self.assertEqual((x.judgement.bench.started, x.ending.count(former)), (1, 0))

    def test_nor_for_what_it_does_on_the_gpu(self):
        x, former = referee(True), FakeProcess()
        former.is_working, former.close = True, lambda **_: True
        x.ending, x.judgement.bench.device = [former], "cuda"
        x.judgement.bench.flushes_settle = lambda: former not in x.ending
        self.assertEqual(x.settled(Fault("infrastructure", "time_spent", "")).cls, "infrastructure")


@unittest.skipIf(torch is None, "there is no torch here")
class JudgedOnceMore(unittest.TestCase):
    """A candidate that finds too little memory beside what is kept of other problems."""

    def judged(self, lingers=False, fault=("candidate", "out_of_memory"), former=False):
        x, seen, now = Referee(None, None, "cpu", 0), [], [1000.0]

        class Short(Judged):
            def load(self, _artifact):
                seen.append(self)
                self.process, self.loaded = FakeProcess(), True
                self.process.is_working, self.process.waited = lingers, 5.0
                now[0] += 5.0
                raise Fault(*fault, "")

        x.benches = {} if former else {("other", ""): types.SimpleNamespace(close=lambda: None)}
        x.ending = [FakeProcess()] if former else []
        x.bench = lambda *_: FakeBench(True)
        x.options, x.deadline = {"directory": "some", "seconds": 60}, now[0] + 60
        with (
            unittest.mock.patch.object(referee_module, "Judgement", Short),
            self.assertRaises(Fault),
            unittest.mock.patch("time.monotonic", lambda: now[0]),
        ):  # no time passes but in load()
            x.judge_with_room()
        return seen

    def test_has_no_more_time(self):
        first, second = self.judged()
        self.assertEqual(first.deadline, second.deadline)

    def test_in_both_looks_what_it_made_us_wait_is_held_against_all_of_the_time(self):
        first, second = self.judged()
        self.assertEqual([(x.seconds, x.waited) for x in (first, second)], [(60, 5.0), (60, 5.0)])

    def test_also_beside_a_former_candidate_that_was_ending(self):
        self.assertEqual(len(self.judged(former=True)), 2)

    def test_also_where_the_problems_own_model_has_found_too_little(self):
        self.assertEqual(len(self.judged(fault=("infrastructure", "gpu_memory"))), 2)
        self.assertEqual(len(self.judged(fault=("infrastructure", "gpu_lost"))), 1)

    def test_only_when_it_has_made_way(self):
        self.assertEqual(len(self.judged(lingers=True)), 1)


@unittest.skipIf(torch is None, "there is no torch here")
class TimeThatFormerOnesTook(unittest.TestCase):
    def test_is_not_held_against_the_next_candidate(self):
        x = Referee(None, unittest.mock.Mock(), "cpu", 0)
        x.bench = lambda *_: types.SimpleNamespace(device="cpu", is_random=False, baseline_seed=0, unfit=())
        x.pool = unittest.mock.Mock(**{"take.return_value": unittest.mock.Mock(waited=0.0)})
        x.options, x.source, x.artifact, x.deadline = {"seconds": 60, "directory": "p"}, "", -1, time.monotonic() + 60
        x.await_memory = lambda: setattr(x, "deadline", time.monotonic())  # as if that had taken all of it
        with self.assertRaises(Fault) as raised:
            x.judge()
        self.assertEqual((raised.exception.cls, raised.exception.category), ("infrastructure", "time_spent"))


@unittest.skipIf(torch is None, "there is no torch here")
class Words(unittest.TestCase):
    def told(self, error):
        return Process.told(Process.__new__(Process), error).category

    def test_a_process_names_only_faults_of_a_candidate(self):
        self.assertEqual(self.told({"category": "wrong_shape"}), "wrong_shape")
        for category in ("infrastructure", "sandbox_failed", "rows_are_ninety_seven", ["out_of_memory"], None, {}):
            self.assertEqual(self.told({"category": category}), "runtime_error")

    def test_what_is_printed_after_the_first_hidden_trial_is_not_kept(self):
        x = referee(True).judgement
        x.seal()
        x.process.words = "the hidden shape is 97"
        x.seal()
        x.put_away_into([])
        self.assertEqual(x.words, "words")


@unittest.skipIf(torch is None, "there is no torch here")
class Memory(unittest.TestCase):
    def benches(self, short):
        """Which are there, and which were made, once a second problem was short of memory as often."""
        x, made, short = Referee(None, None, "cpu", 0), [], list(short)

        def make(_lib, _device, directory, _precision, _told=None, _mutates=(), _constants=None):
            made.append(directory)
            return types.SimpleNamespace(
                needed=1, was_short_of_memory=short.pop(0), close=lambda: None, told=lambda: None
            )

        with unittest.mock.patch.object(referee_module, "Bench", make):
            x.bench({"directory": "a"})
            x.bench({"directory": "b"})
        return [name for name, _ in x.benches], made

    def test_of_a_candidate_that_is_ending_is_waited_for_where_it_lacks(self):
        for free, expected in (30, []), (60, ["ending"]):
            x = Referee(None, None, "cuda", 0)
            x.ending = ["ending"]
            x.await_ended = x.ending.clear
            with unittest.mock.patch.object(referee_module, "memory_of_gpu", lambda _lib: (free << 30, 80 << 30)):
                x.await_memory()
            self.assertEqual(x.ending, expected)

    def test_what_is_kept_of_other_problems_does_not_decide_by_what_one_is_judged(self):
        self.assertEqual(self.benches([False, False]), (["a", "b"], ["a", "b"]))
        self.assertEqual(self.benches([False, True, False]), (["b"], ["a", "b", "b"]))
        self.assertEqual(self.benches([True, True, True]), (["b"], ["a", "b", "b"]))


if __name__ == "__main__":
    unittest.main()
