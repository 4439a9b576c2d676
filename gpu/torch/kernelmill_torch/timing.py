"""A candidate against the clock: which rows come, by which clock and on which contents, and what they say."""

import os
from typing import Any, Callable, Iterator, Optional

from kernelmill_torch.apart_rows import FEWEST_QUEUED, ApartRows, Disturbed
from kernelmill_torch.contents import OWN, plan
from kernelmill_torch.faults import Fault
from kernelmill_torch.intercept import Intercept, without
from kernelmill_torch.looks import Looks, slow_times
from kernelmill_torch.problem import OUT_OF_MEMORY
from kernelmill_torch.processes import Process
from kernelmill_torch.quiet import BASELINE_SECONDS
from kernelmill_torch.rows import LEARNING_ROWS, Gateless
from kernelmill_torch.timed_rows import usual_of_few
from kernelmill_torch.watch import CANDIDATE, REFERENCE, Watch

APART_ROWS = 2  # of each, after a block
ALL_APART = 4
APART_IN_DOUBT = 12
QUEUED_ROWS = 2  # of each, after a block, whose launches are over when the clock starts
SHORT_OF = (
    "timed_out",
    "time_spent",
    "out_of_memory",
    "gpu_memory",
)  # what ends no verdict that is there already: who knows itself slow has no other by it
TOO_SHORT = 4  # times as many calls would fit into a row
MOST_GROWTHS = 2  # of a row that was too short
OTHER_PAIRS = 5  # by the clock that is not paid, after one that finds nothing warm
OTHER_ROWS = 4  # of each length, from which its costs are learned


class Timing(ApartRows):
    def __init__(self, *judged: Any, **options: Any):
        super().__init__(*judged, **options)
        self.held = False  # on the core where the timed processes take turns
        self.plan: Optional[Iterator[str]] = None  # kinds of the blocks to come
        self.looks: Optional[Looks] = None  # at the kinds that no block had yet

    def learn_quietly(self) -> None:
        """What rows of the baseline take by a clock, while no candidate is there that could make it more: once for each problem.
        Raises Fault."""
        bench, clock = self.bench, self.clock
        if clock in bench.learned or self.mode != "honest":
            return
        if bench.baseline_seed is None:
            bench.use_parameters(int.from_bytes(os.urandom(8), "little") >> 1)
        baseline = bench.start_baseline(self.pool, bench.baseline_seed, BASELINE_SECONDS)
        self.pool.settle()
        bench.rouse()
        contents = bench.draw([self.number("quiet", i) for i in range(bench.layout.sets)])
        try:
            bench.row(baseline, 1, BASELINE_SECONDS, contents[:1])
            self.take_core(baseline)
            self.row_length = bench.row_length or bench.calibrate(baseline, BASELINE_SECONDS, contents)
        except Fault as e:
            bench.close_baseline()
            raise bench.blame_problem(e) from None
        self.learn_costs(contents, BASELINE_SECONDS)
        for _ in range(MOST_GROWTHS):
            if not self.is_too_short():
                break
            self.row_length = bench.fitting(bench.call_seconds)
            self.learn_costs(contents, BASELINE_SECONDS)
        if bench.device == "cuda" and not self.is_gated:
            self.learn_gate(contents)
        if self.row_length != bench.row_length:  # by another clock nothing is known of rows of this length
            bench.learned.clear()
        if (
            self.is_gated
        ):  # who leaves the gate is timed with launches: what these cost is known before somebody can make it more
            self.is_gated = False
            self.learn_costs(contents, BASELINE_SECONDS)
            self.is_gated = True
        bench.learned.add(clock)
        bench.row_length, self.row_length = self.row_length, 0
        self.lap("baseline")

    def take_core(self, *timed: Process) -> bool:
        """Puts processes where they take turns, and not where the referee waits for them. False where that may not be."""
        core = self.core
        held = core is not None and core.take_turns(self.pool, *timed)
        self.bench.wake_core = core.wake if core is not None and held else lambda: None
        return held

    def is_too_short(self) -> bool:
        """Whether rows of the baseline are, by what its calls take in them: others may have had its core when the length was found."""
        return (
            self.mode == "honest"
            and not self.is_gated
            and self.bench.fitting(self.bench.call_seconds) >= TOO_SHORT * self.row_length
        )

    def learn_gate(self, contents: list) -> None:
        """What a row behind the gate begins with, and whether the baseline's calls can wait there: where they cannot, no candidate
        is to be told apart by that. Raises Fault, which is not the candidate's."""
        bench = self.bench

        def can(work: Callable[[], Any]) -> bool:
            try:
                self.again_where_it_counts_for_nothing(work)
                return True
            except Gateless:
                return False
            finally:
                self.not_queued = 0  # no row of a candidate's

        def row(count: int) -> Any:
            return bench.row(bench.baseline, count, BASELINE_SECONDS, contents[:count], True)

        try:
            bench.can_queue = can(self.baseline_opening) and can(lambda: row(1))
            bench.can_queue_rows = bench.can_queue and can(lambda: row(self.row_length))
        except Fault as e:
            raise self.fault_of_baseline(e) from None

    def prepare_timing(self) -> None:
        """Baseline up, both warm, row length and the cost of taking outputs known."""
        bench = self.bench
        baseline = bench.start_baseline(self.pool, bench.baseline_seed, self.left())
        self.pool.settle()
        bench.rouse()
        seeds = [self.number("warm", i) for i in range(bench.layout.sets)]
        bench.make_room()
        contents = bench.draw(seeds)
        seconds = max(self.left(), BASELINE_SECONDS)
        try:
            # Its threads come to life where the candidate's did, on any core.
            bench.row(baseline, 1, seconds, contents[:1])
            self.held = self.take_core(baseline, self.process)
            length = bench.row_length or bench.calibrate(baseline, seconds, contents)
        except Fault as e:
            raise self.fault_of_baseline(e) from None
        self.row_length = length if self.mode == "honest" else 1
        self.learn_costs(contents, seconds)
        if self.is_too_short():  # who is judged next has longer ones, which are found while nobody is there
            bench.row_length = 0
            bench.learned.clear()
        self.warm_up(seeds, contents)
        self.lap("baseline")

    def learn_costs(self, contents: list, seconds: float, times: int = LEARNING_ROWS) -> None:
        """What is learned while somebody else uses the GPU would be free for the candidate. Where the baseline's calls cannot
        be queued, there are fewer in a row; where none can, all are timed with their launches. Raises Fault."""

        def learn() -> tuple[list[float]]:
            try:
                return (
                    self.bench.learn_costs(
                        self.bench.baseline, self.row_length, seconds, contents, self.is_gated, times
                    ),
                )
            except Fault as e:
                raise self.fault_of_baseline(e) from None

        length = self.row_length
        while True:
            try:
                return self.quietly(learn)
            except Gateless:
                self.is_gated = self.row_length > 1
                self.row_length = self.row_length // 4 or 1 if self.is_gated else length

    def warm_up(self, seeds: list[int], contents: list) -> None:
        """The candidate's first row. Of one that gives its outputs in memory of its own, again and again, so that it is right call by
        call and not in a row, each call's are copied, in its time: as if it had returned new tensors. Raises Fault."""
        try:
            if self.is_right_in_a_row(seeds, contents) or self.is_right_with_copies(seeds, contents):
                return
            if self.is_gated:  # a stream of its own may not have waited
                raise Gateless
        except Gateless:
            self.leave_gate()
            return self.warm_up(seeds, contents)
        evidence = "right in all trials, but wrong when it was timed, where calls follow one another, also when each call's outputs are copied at once"
        self.find("wrong_when_timed", "critical", evidence)
        raise Fault(
            "candidate",
            "wrong_result",
            evidence,
            "order all work of a call on the current stream, and keep nothing that the next one overwrites",
        )

    def is_right_in_a_row(self, seeds: list[int], contents: list) -> bool:
        """Whether the outputs of a row are right. Raises Fault and Gateless."""
        bench, count, seed = self.bench, self.row_length, self.row_seed()
        bench.make_room()
        bench.row(self.process, count, min(self.left(), self.first_call_seconds), contents[:count], self.is_gated, seed)
        return count == 1 or self.count_bad(bench.draw(seeds[:count]), bench.outputs, seed) == 0

    def is_right_with_copies(self, seeds: list[int], contents: list) -> bool:
        """The same where each call's outputs are copied, as they are from now on if that makes them right. Raises Fault and Gateless."""
        if self.process.reach.moved() and self.is_right_in_a_row(seeds, contents):
            return True
        self.copy_outputs(True)
        if self.is_right_in_a_row(seeds, contents):
            self.process.reach.begin_anew()
            self.find(
                "outputs_in_one_place",
                "warning",
                "right call by call and not in a row, as outputs in one place again and again are: each "
                "call's are copied, which takes its time; return new tensors",
            )
            return True
        self.copy_outputs(False)
        return False

    def copy_outputs(self, is_copied: bool) -> None:
        self.process.ask({"op": "copy", "on": is_copied}, self.left())
        self.process.stop()

    def leave_gate(self) -> None:
        """From now on calls are timed with their launches. Raises Fault."""
        self.can_queue_both = False
        self.use_clock(False)
        self.learn_costs(
            self.bench.draw([self.number("warm", i) for i in range(self.row_length)]),
            max(self.left(), BASELINE_SECONDS),
        )

    def use_clock(self, is_gated: bool) -> None:
        self.is_gated, self.watch, self.rows, self.long_rows = is_gated, Watch(), {}, [0, 0]
        self.intercept, self.looks = Intercept(), None
        self.forget_apart()

    @property
    def clock(self) -> str:
        return "device" if self.is_gated else "call"

    def other_clock(self) -> Optional[dict[str, Any]]:
        """Seconds a call by the clock that is not paid, of a few pairs; nothing where it cannot be had. Raises Fault."""
        if self.bench.device != "cuda" or not self.row_length or self.bench.is_random:
            return None
        self.kind = OWN
        self.use_clock(not self.is_gated)
        wanted, length = self.clock, self.row_length
        pairs = []
        try:
            contents = self.bench.draw([self.number("other", i) for i in range(length)])
            self.learn_costs(contents, max(self.left(), BASELINE_SECONDS), OTHER_ROWS)
            while self.clock == wanted and len(pairs) <= OTHER_PAIRS:
                pairs.append(self.undisturbed_pair(len(pairs) % 2 == 0))
        except (Gateless, *OUT_OF_MEMORY):
            return None
        except Fault as e:
            if e.category not in SHORT_OF:
                raise
            return None
        if self.clock != wanted:
            return None
        # Other programs only ever make a row longer; here are few.
        reference, candidate = (sorted(x)[len(x) // 4] for x in zip(*pairs[1:]))
        self.learn_work()
        fixed, _ = self.fixed()
        calls = without(fixed, reference), without(fixed, candidate)
        reference, candidate = (seconds - cold for seconds, cold in zip(calls, self.cold(calls)))
        return {"clock": wanted, "reference": reference, "candidate": candidate}

    def learn_work(self) -> None:
        """Rows behind the gate, so many as tell, or as there is time for. Raises Fault."""
        try:
            self.queue_rows(FEWEST_QUEUED)
        except (Disturbed, *OUT_OF_MEMORY):
            pass
        except Fault as e:
            if e.category not in SHORT_OF:
                raise

    def next_kind(self) -> str:
        """Of contents. The plan is a matter of the secret, so that a replay has the same."""
        if self.looks is not None and self.looks.doubted:
            return self.looks.doubted[0]
        if self.plan is None:
            self.plan = plan(self.kinds, self.plan_dice("kinds"))
        return next(self.plan)

    def block(self, kind: str = "") -> dict[str, Any]:
        """Two pairs of rows, one in either order; which comes first nobody can know. Both have contents of one kind, that is
        asked for or comes next in the plan. Seconds a call, of which `fixed` are no call's in any row until now, give or take
        `fixed_error`, and `cold` none in the reference's and the candidate's: what their first launches take longer, and what of that is proven. `apart` are seconds of one of the candidate's calls that were kept apart, `beside` those that
        lie beside other calls or are saved by making them together, `cost` what the baseline's calls take more when they are kept apart."""
        self.seal()
        if not self.row_length:
            self.prepare_timing()
        self.kind = kind or self.next_kind()
        reference_first = os.urandom(1)[0] % 2 == 0
        pairs: list[tuple[float, float]] = []

        def take() -> list[list[float]]:
            mark = self.watch.mark()
            try:
                pairs[:] = self.undisturbed_pair(reference_first), self.undisturbed_pair(not reference_first)
                if self.are_long(flushes := self.watch.flushes(mark)):
                    return flushes  # all of it will be done again
                self.keep_apart()
                self.look_at_kinds()
            except Gateless:  # both pairs of a block are timed by one clock
                self.leave_gate()
                return take()
            except Disturbed as e:
                return [[e.seconds]]
            return self.watch.flushes(mark)

        self.quietly(take)
        if (seconds := self.watch.long_before_candidate(self.bench.longest_flush())) is not None:
            self.background_work(self.long_flush(seconds, "before the candidate's rows alone"))
        for rule, evidence in self.watch.findings():
            self.find(rule, "critical", evidence)
        if fetching := self.watch.fetching():
            self.find(
                "outputs_out_of_reach",
                "warning",
                "the outputs cannot be read where they lie: their memory is freed in "
                "between, or not of cudaMalloc. What it takes to fetch them counts as the candidate's time, "
                f"{fetching * 1e3:.3f} ms a row",
            )
        if self.held and self.process is not None and not self.core.has(self.process):
            self.find(
                "left_its_core", "critical", "the candidate left the core on which it and the baseline take turns"
            )
        fixed, error = self.fixed()
        apart, beside, cost = self.kept_apart()
        alone, together = self.made_together()
        if together > beside:
            apart, beside = alone, together
        beside = self.to_parity(beside)
        return {
            "reference": [x[0] for x in pairs],
            "candidate": [x[1] for x in pairs],
            "calls": 2 * self.row_length,
            "fixed": fixed,
            "fixed_error": error,
            "cold": list(self.cold()),
            "proven_cold": list(self.proven_cold()),
            "apart": apart,
            "beside": beside,
            "cost": cost,
            "held": self.held,
            "clock": self.clock,
            "kind": self.kind,
            "kinds": 1 + len(self.kinds),
            "unmet": self.looks.left,
            "seen": self.seen(),
        }

    def keep_apart(self) -> None:
        """Rows that show whether calls run side by side, or are made together; by few nobody is charged. On a CPU one call is
        over when the next begins. Raises Fault and Gateless."""
        if self.kind != OWN:
            return
        self.queue_rows(QUEUED_ROWS)
        if self.row_length < 2:
            return
        for _ in range(min(APART_ROWS, ALL_APART - len(self.alone[CANDIDATE]))):
            self.rows_of_one()
        while len(self.alone[CANDIDATE]) < APART_IN_DOUBT and (
            self.made_together(in_doubt=True)[1] > 0 or self.baseline_waits()
        ):
            self.rows_of_one()
        while self.may_be_launches():
            self.queued_rows_of_one()
        while (
            0 < len(self.alone_queued[CANDIDATE]) < APART_IN_DOUBT
            and self.can_queue_one
            and self.made_together(in_doubt=True)[1] > 0
        ):
            self.queued_rows_of_one()
            if len(self.alone[CANDIDATE]) < APART_IN_DOUBT:
                self.rows_of_one()
        if self.bench.device != "cuda":
            return
        for _ in range(min(APART_ROWS, ALL_APART - len(self.apart[CANDIDATE]))):
            self.rows_apart()
        while self.may_be_fences():
            self.queued_row_apart()
        while len(self.apart[CANDIDATE]) < APART_IN_DOUBT and self.kept_apart(in_doubt=True)[1] > 0:
            self.rows_apart()

    def look_at_kinds(self) -> None:
        """At those that no block had, once there was one of the problem's own. Raises Fault and Gateless."""
        if self.looks is None:
            self.looks = Looks(self.kinds, self.plan_dice("looks"))
        self.looks.met(self.kind)
        if own := self.rows.get(OWN):
            timed = self.kind
            try:
                self.looks.look(
                    usual_of_few(own[CANDIDATE]), self.fixed()[0], slow_times(own[REFERENCE]), self.seconds_alone
                )
            finally:
                self.kind = timed
