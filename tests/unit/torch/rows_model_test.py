"""Whole measurements on a model of a GPU's rows: what honest candidates are charged, and what others gain.
Microseconds."""

import math
import random
import statistics
import types
import unittest
import unittest.mock

try:
    import torch
    from fakes import BusyBench, judgement
    from kernelmill_torch.rows import Gateless
    from kernelmill_torch.watch import Free, Row
except ImportError:
    torch, BusyBench = None, object

BLOCKS = 8
TRIES = 12
OPENING, BESIDES, FENCE, LOOP = 115, 25, 5, 1  # of a gate, of a row, of Python for a fence, of the loop around calls
NOISE = 3


class Modelled:
    """A process whose calls take so long to launch, in kernels of so much work. Its first launch of a row is colder. It
    launches once for several calls, and work of calls side by side is less. Rows of several calls behind a gate have
    work as they like; with infinite work none can wait there. One that `hides` says by turns that it is done before its
    work there is over."""

    def __init__(
        self, launch, work, kernels=1, colder=40, at_once=1, beside=None, behind_gate=None, hides=False, scatter=0
    ):
        self.launch, self.work, self.kernels, self.colder, self.at_once = launch, work, kernels, colder, at_once
        self.beside, self.behind_gate, self.hides, self.scatter = beside or work, behind_gate, hides, scatter
        self.arena = types.SimpleNamespace(move=lambda: None, poison=lambda _count: None)
        self.waited = 0.0

    def output(self):
        return ""

    def seconds(self, count, is_gated, is_apart):
        work = self.work + 1 if is_apart else self.beside if count > 1 else self.work
        if is_gated and self.behind_gate == math.inf:
            raise Gateless
        if self.behind_gate and is_gated and count > 1 and not is_apart:
            return self.behind_gate * count
        end = 0.0 if is_gated else self.colder + self.launch / self.kernels
        for i in range(count):
            launched = self.colder + (i // self.at_once + 1) * self.launch + (i + 1) * LOOP + is_apart * i * FENCE
            end = max(end + work, 0.0 if is_gated else launched + work / self.kernels)
        return end

    @property
    def call(self):
        return max(self.launch + LOOP, self.work)


class ModelledBench(BusyBench):
    def __init__(self, baseline, dice, late_when_empty):
        super().__init__([True] * 9999)
        self.device, self.admitted, self.baseline, self.dice = "cuda", types.SimpleNamespace(others=[]), baseline, dice
        self.dice_behind_gate = random.Random(1)  # of rows of several calls
        empty = (BESIDES + late_when_empty * baseline.colder) * 1e-6
        self.free = Free(fixed=empty, most_fixed=1.5 * empty + 60e-6, besides=1e-3, limit=2e-3)
        self.is_aside, self.outputs, self.samples, self.changed_inputs = True, [], None, []
        self.hidden = False
        self.gives_inputs = self.shares_arena = False
        self.known_fixed = {False: empty}

    def prepare_kind(self, _kind):
        pass

    def make_room(self):
        pass

    def noise(self, dice=None):
        return abs((dice or self.dice).gauss(0, NOISE))

    def row(self, process, count, _seconds, _contents, is_gated=False, _seed=0, is_apart=False):
        dice = self.dice_behind_gate if is_gated and count > 1 and not is_apart else self.dice
        work, taking = (
            process.seconds(count, is_gated, is_apart),
            300 + self.noise(dice) + (process.scatter and dice.uniform(0, process.scatter)),
        )
        if is_gated and process.hides:
            self.hidden = not self.hidden
            work, taking = (1, taking + work) if self.hidden else (work, taking)
        took = (OPENING if is_gated else BESIDES) + work + self.noise(dice)
        return Row(calls=took * 1e-6, flushing=0.5, taking=taking * 1e-6)

    def learn_opening(self, *_):
        return (OPENING + self.noise()) * 1e-6


@unittest.skipIf(torch is None, "there is no torch here")
class Measurements(unittest.TestCase):
    def paid(self, baseline, proven=False, length=0, late_when_empty=0.7, **candidate):
        """What a candidate is paid, times what it is worth, in the middle; how often it is charged. `proven`: as its
        interval's low end. `length`: in rows of so many calls. `late_when_empty`: as much of its late launches has a
        row without calls."""
        ratios, charged = [], 0
        for seed in range(TRIES):
            dice = random.Random(seed)
            x = judgement(ModelledBench(Modelled(**baseline), dice, late_when_empty))
            x.process, x.audit = Modelled(**{"colder": 40 + dice.uniform(-5, 5), **candidate}), lambda *_: None
            x.row_length = length or max(2, min(32, int(2000 / x.bench.baseline.call)))
            with unittest.mock.patch("os.urandom", random.Random(seed).randbytes):  # the order of rows
                blocks = [x.block() for _ in range(BLOCKS)]
            last = blocks[-1]
            cold = last["proven_cold" if proven else "cold"]
            reference, own = (
                max(seconds - last["fixed"] - none, 0.1 * seconds)
                for seconds, none in (
                    (statistics.median(s for one in blocks for s in one[side]), none)
                    for side, none in zip(("reference", "candidate"), cold)
                )
            )
            ratios.append(reference / (own + last["beside"]) * x.process.call / x.bench.baseline.call)
            charged += last["beside"] > 0
        return statistics.median(ratios), charged

    def test_copies_are_charged_nothing(self):
        for model in (
            {"launch": 12, "work": 16},
            {"launch": 28, "work": 16},
            {"launch": 30, "work": 3},
            {"launch": 30, "work": 60, "kernels": 3},
            {"launch": 500, "work": 200, "kernels": 100},
        ):
            paid, charged = self.paid(model, **model)
            self.assertAlmostEqual(paid, 1, delta=0.02)
            self.assertEqual(charged, 0, model)

    def test_what_is_faster_is_charged_nothing(self):
        for baseline, candidate in (
            ({"launch": 20, "work": 200, "kernels": 2}, {"launch": 8, "work": 100}),
            ({"launch": 20, "work": 200, "kernels": 2}, {"launch": 8, "work": 10}),  # a fence takes half of it
            ({"launch": 12, "work": 16}, {"launch": 28, "work": 15, "colder": 60}),
        ):  # Triton
            self.assertEqual(self.paid(baseline, **candidate)[1], 0, candidate)

    def test_late_first_launches_are_free_where_the_gpu_limits_calls(self):
        for baseline, candidate in (
            ({"launch": 15, "work": 500}, {"launch": 30, "work": 500, "colder": 150}),  # Triton
            ({"launch": 15, "work": 140}, {"launch": 30, "work": 68, "colder": 170}),
            ({"launch": 15, "work": 500, "colder": 100}, {"launch": 15, "work": 500, "colder": 100}),
        ):
            paid, charged = self.paid(baseline, **candidate)
            self.assertAlmostEqual(paid, 1, delta=0.02)
            self.assertEqual(charged, 0, candidate)

    def test_no_candidate_is_paid_for_the_baselines_late_launches(self):
        late = {"launch": 15, "work": 250, "colder": 85}
        for baseline, candidate in (
            (late, {"launch": 15, "work": 250, "colder": 0}),
            (late, {"launch": 15, "work": 125, "colder": 0}),
            ({"launch": 60, "work": 250, "colder": 150, "kernels": 5}, {"launch": 15, "work": 50, "colder": 40}),
            ({"launch": 15, "work": 140, "colder": 85}, {"launch": 15, "work": 140, "colder": 0}),
        ):
            most = 1.01 + min(0.05, 2.5 / candidate["work"])  # 20 us of a row of eight calls are not known
            self.assertLess(self.paid(baseline, proven=True, **candidate)[0], most, (baseline, candidate))

    def test_no_candidate_is_paid_for_them_that_lets_nothing_wait_behind_the_gate(self):
        for work in 250, 125:
            gateless = {"launch": 15, "work": work, "colder": 0, "behind_gate": math.inf}
            self.assertLess(
                self.paid({"launch": 15, "work": 250, "colder": 85}, proven=True, **gateless)[0], 1.05
            )  # the model's empty rows are late, too

    def test_no_candidate_is_paid_for_them_in_rows_of_one_call(self):
        """Of long calls, and of problems whose buffers fill the memory."""
        for work in 70, 250:
            late = {"launch": 15, "work": work, "colder": 85}
            for own in {"colder": 5}, {"colder": 5, "behind_gate": math.inf}, {}:
                self.assertLess(self.paid(late, proven=True, length=1, **{**late, **own})[0], 1.03, (work, own))
        for work, share in (500, 0.7), (500, 0), (2100, 0.7), (2100, 0), (16000, 0):
            late = {"launch": 15, "work": work, "colder": 85}
            for own in (
                {"colder": 5},
                {"colder": 5, "behind_gate": math.inf},
                {"colder": 5, "hides": True},
                {"colder": 5, "scatter": 150},
                {},
            ):
                self.assertLess(
                    self.paid(late, proven=True, length=1, late_when_empty=share, **{**late, **own})[0],
                    1.005,
                    (work, share, own),
                )
            self.assertGreater(
                self.paid(late, proven=True, length=1, late_when_empty=share, **late)[0], 0.9
            )  # of a copy
            fast = {"launch": 8, "work": work / 20, "colder": 40}
            self.assertLess(self.paid(late, proven=True, length=1, late_when_empty=share, **fast)[0], 1.02)
        self.assertGreater(
            self.paid({"launch": 15, "work": 2100, "colder": 85}, proven=True, length=1, **fast)[0], 0.95
        )

    def test_what_is_done_in_one_row_and_hidden_in_another_is_done(self):
        late = {"launch": 15, "work": 250, "colder": 85}
        for work, most in (250, 1.02), (50, 1.06):  # as without that
            self.assertLess(
                self.paid(late, proven=True, **{**late, "work": work, "colder": 0, "hides": True})[0], most, work
            )

    def test_launches_that_take_longer_than_the_work_are_paid(self):
        for candidate in ({"launch": 60, "work": 20}, {"launch": 48, "work": 40}):
            self.assertAlmostEqual(self.paid({"launch": 15, "work": 60}, **candidate)[0], 1, delta=0.03)

    def test_what_they_hide_is_a_small_part_of_the_work(self):
        for work in 400, 40, 4:
            candidate = {"launch": 1.1 * work, "work": work, "colder": 0}
            # Launches that take longer than the work are hidden: of 5.4 us the GPU works 4.
            self.assertLess(
                self.paid({"launch": 15, "work": 400}, proven=True, **candidate)[0], 1.17 if work > 4 else 1.5
            )
            if work > 4:
                self.assertLess(self.paid({"launch": 15, "work": 400}, **candidate)[0], 1.16)

    def test_no_candidate_is_paid_by_what_rows_behind_the_gate_say(self):
        for launch, work in (30, 12), (30, 24), (15, 25), (15, 60), (15, 240), (15, 500):
            model = {"launch": launch, "work": work}
            call = max(launch + LOOP, work)
            for own in 0.87, 0.95, 1.2:
                self.assertLess(self.paid(model, proven=True, **model, behind_gate=own * call)[0], 1.02, (model, own))
            for known in 0.95, 1.05, 1.5:  # a candidate that makes the baseline's longer
                self.assertLess(self.paid({**model, "behind_gate": known * call}, **model)[0], 1.02, (model, known))

    def test_a_candidate_that_makes_calls_together_or_side_by_side_gains_next_to_nothing(self):
        small, large = {"launch": 30, "work": 3}, {"launch": 20, "work": 400}
        for baseline, candidate in (
            (small, {**small, "at_once": 2}),
            (small, {**small, "at_once": 32}),
            (large, {**large, "beside": 370}),
            (large, {**large, "beside": 100}),
            ({"launch": 20, "work": 60}, {"launch": 20, "work": 60, "beside": 22}),
        ):
            paid, charged = self.paid(baseline, **candidate)
            self.assertLess(paid, 1.2 if candidate.get("at_once") == 2 else 1.02, candidate)
            self.assertGreater(charged, TRIES / 2)


if __name__ == "__main__":
    unittest.main()
