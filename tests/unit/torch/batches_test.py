"""Which batches are made again, on which contents, and when calls are timed with their launches."""

import types
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch.batches import BASELINE, CANDIDATE, Batches, NotQueued, Order, OutOfReach, Sample
    from kernelmill_torch.buffers import BufferSet
    from kernelmill_torch.contents import OWN
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.judged import Judged

SETS = 8


class FakeProcess:
    def __init__(self):
        self.asked, self.reach = [], types.SimpleNamespace(moved=lambda: False)

    def ask(self, message, _seconds):
        self.asked.append(message)
        return {}

    def go_on(self):
        pass


class FakeBench:
    device, is_random, shares_arena, lib, baseline_seed = "cuda", False, False, None, 1
    baseline_tells = True

    def __init__(self):
        self.layout, self.baseline, self.drawn = types.SimpleNamespace(sets=SETS), FakeProcess(), 0
        self.prepared = []

    def start_baseline(self, *_):
        return self.baseline

    def close_baseline(self):
        self.baseline = FakeProcess()

    def blame_problem(self, e):
        return Fault("configuration", "bad_problem", e.message)

    def make_room(self):
        pass

    def prepare_kind(self, kind):
        self.prepared.append(kind)

    def draw(self, seeds, kind):
        self.drawn += len(seeds)
        return [[kind, self.drawn] for _ in seeds]


class FakeJudged:
    def __init__(self):
        self.process, self.rules, self.wrong, self.kind = FakeProcess(), [], {}, OWN
        self.tried = {OWN}

    def left(self):
        return 10.0

    def find(self, rule, _severity, _evidence):
        self.rules.append(rule)

    def wrong_in_time(self, bad, is_tried):
        return Judged.wrong_in_time(self, bad, is_tried)

    def count_bad(self, _drawn, _outputs, _seed, _known):
        return self.wrong.get(self.kind, 0)


@unittest.skipIf(torch is None, "there is no torch here")
class Made(unittest.TestCase):
    def setUp(self):
        self.batches = Batches(FakeBench(), None, lambda: None, is_direct=False)
        self.batches.is_settled, self.batches.judgement = True, FakeJudged()
        self.batches.run, self.batches.are_near, self.batches.reach_outputs = self.run_one, lambda *_: False, None
        self.fails, self.ran = [], []  # what the next batches raise; side, calls, whether direct

    def run_one(self, name, side, contents):
        self.ran.append((name, contents, side.is_direct))
        if self.fails:
            raise self.fails.pop(0)
        contents.outputs[name] = [BufferSet([], []) for _ in contents.drawn]
        return Sample(len(contents.drawn))

    def make(self, name, number, patterns=(OWN,), calls=SETS):
        return self.batches.make(name, Order(list(patterns), calls, number))

    def test_both_sides_of_a_number_have_the_same_inputs_and_another_number_has_others(self):
        for name, number in (CANDIDATE, 1), (BASELINE, 1), (BASELINE, 2), (CANDIDATE, 2):
            self.make(name, number)
        a, b, c, d = (contents.drawn for _, contents, _ in self.ran)
        self.assertEqual((a, c), (b, d))
        self.assertFalse({tuple(x) for x in a} & {tuple(x) for x in c})

    def test_a_batch_has_at_least_three_quarters_of_its_calls(self):
        counts = {self.make(BASELINE, i)["calls"] for i in range(100)}
        self.assertEqual((min(counts), max(counts)), (SETS * 3 // 4, SETS))
        self.assertEqual(self.make(BASELINE, 101, calls=1)["calls"], 1)

    def test_patterns_have_equal_parts_of_a_batch(self):
        self.make(BASELINE, 1, ["signs", "held", "far"])
        kinds = self.ran[0][1].kinds
        self.assertEqual(list(dict.fromkeys(kinds)), ["signs", "held", "far"])
        self.assertLessEqual(max(map(kinds.count, kinds)) - min(map(kinds.count, kinds)), 1)
        self.assertEqual(self.batches.bench.prepared, ["signs", "held", "far"])

    def test_each_pattern_has_a_call_however_few_there_are(self):
        for number in range(20):
            self.make(BASELINE, number, ["signs", "held", "far"], calls=1)
            self.assertEqual(sorted(self.ran[-1][1].kinds), ["far", "held", "signs"])

    def test_calls_that_cannot_be_queued_are_fewer_and_then_timed_with_their_launches(self):
        said = []
        for number in range(4):
            self.fails = [NotQueued()] if number < 3 else []
            said.append(self.make(CANDIDATE, number))
        self.assertEqual([x["disturbed"] for x in said], [True, True, True, False])
        self.assertEqual([direct for _, _, direct in self.ran], [False, False, False, True])
        self.assertLess(len(self.ran[2][1].drawn), SETS)
        self.assertFalse(self.make(BASELINE, 9)["direct"])  # which a candidate does not choose

    def test_a_pair_of_which_one_side_could_not_be_queued_is_made_again(self):
        self.make(BASELINE, 1)
        self.fails, self.batches.judgement.wrong = [NotQueued()], {OWN: 3}
        self.assertTrue(self.make(CANDIDATE, 1)["disturbed"])
        self.assertEqual(self.batches.judgement.rules, [])

    def test_while_no_candidate_is_there_it_is_made_again_at_once(self):
        self.batches.judgement, self.fails = None, [NotQueued()]
        self.assertFalse(self.make(BASELINE, 1)["disturbed"])
        self.assertEqual(len(self.ran), 2)

    def test_outputs_that_cannot_be_read_are_copied_in_the_candidates_time(self):
        self.batches.reach_outputs = lambda *_: None
        for number in range(7):
            self.fails = [OutOfReach()] if number < 6 else []
            self.make(CANDIDATE, number)
        self.assertTrue(self.batches.side(CANDIDATE).is_copied)
        self.assertEqual(self.batches.judgement.rules, ["outputs_out_of_reach"])
        self.assertEqual(self.batches.judgement.process.asked, [{"op": "copy", "into": "arena"}])

    def test_what_is_wrong_where_it_was_queued_is_made_again_with_its_launches(self):
        self.make(BASELINE, 1)
        self.batches.judgement.wrong = {OWN: 3}
        said = self.make(CANDIDATE, 1)
        self.assertTrue(said["disturbed"] and said["direct"])
        self.make(BASELINE, 2)
        with self.assertRaises(Fault) as caught:
            self.make(CANDIDATE, 2)
        self.assertEqual(caught.exception.category, "wrong_result")
        self.assertEqual(self.batches.judgement.rules, ["wrong_when_timed"])

    def test_whose_outputs_were_read_again_has_them_read_there(self):
        self.batches.reach_outputs = lambda *_: None
        for number in range(20):
            self.fails = [OutOfReach()] if number % 3 < 2 else []
            self.make(CANDIDATE, number)
        self.assertFalse(self.batches.side(CANDIDATE).is_copied)

    def test_a_batch_on_a_cpu_that_waited_for_a_core_is_made_again_as_often_as_the_baselines(self):
        x = self.batches
        self.assertLess(sum(x.is_excused(CANDIDATE) for _ in range(20)), 5)  # chance, and no more
        x.waited = {BASELINE: 4, CANDIDATE: 0}
        self.assertTrue(all(x.is_excused(CANDIDATE) for _ in range(4)))
        x.waited = {BASELINE: 40, CANDIDATE: 40}
        self.assertFalse(x.is_excused(BASELINE))  # a busy machine is timed, too

    def test_what_is_wrong_on_a_pattern_is_a_wrong_result(self):
        self.batches.side(CANDIDATE).is_direct = True
        self.batches.judgement.wrong = {"held": 3}
        self.make(CANDIDATE, 1, ["signs", "held"])
        with self.assertRaises(Fault) as caught:
            self.make(BASELINE, 1, ["signs", "held"])
        self.assertEqual((caught.exception.cls, caught.exception.category), ("candidate", "wrong_result"))
        self.assertEqual(self.batches.judgement.rules, [])

    def test_a_baseline_that_fails_is_no_fault_of_the_candidates(self):
        self.fails = [Fault("candidate", "runtime_error", "no")]
        with self.assertRaises(Fault) as caught:
            self.make(BASELINE, 1)
        self.assertEqual(caught.exception.cls, "configuration")
