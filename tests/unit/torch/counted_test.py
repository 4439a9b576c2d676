"""Kernels are counted where a model that asks torch is told that it is not profiled."""

import threading
import types
import unittest
from unittest import mock

import torch
import torch.profiler  # noqa: F401, whose flag a model can read
from kernelmill_torch import counted, kernel_share
from kernelmill_torch.faults import Fault
from kernelmill_torch.problem import BadProblem
from kernelmill_torch.processes import OWN_FAULTS


def seems_profiled() -> bool:
    """All that Python and torch tell a model of it."""
    flag = getattr(torch.autograd.profiler, "_is_profiler_enabled", False)
    named = [x for x in threading.enumerate() if x is not threading.main_thread()]
    return bool(torch._C._autograd._profiler_enabled() or flag or named)


def event(name: str, place: str, ns: int):
    return types.SimpleNamespace(name=lambda: name, device_type=lambda: place, duration_ns=lambda: ns)


class Counted(unittest.TestCase):
    def test_a_model_is_not_told_though_torch_counts(self):
        enabled = []

        def enable(*given):
            real(*given)
            enabled.append(torch._C._autograd._profiler_enabled())

        real = counted._enable_profiler
        count = counted.Count(counted.ProfilerActivity.CPU)
        with mock.patch.object(counted, "_enable_profiler", enable):
            count.start()
        self.assertEqual((enabled, seems_profiled()), ([True], False))
        torch.softmax(torch.ones(4, 4), 1)
        self.assertEqual(count.stop(), [])  # no GPU's

    def test_a_count_can_follow_another(self):
        for _ in range(2):
            counted.start()
            self.assertEqual(counted.stop(), [])

    def test_kernels_of_the_gpu_are_told_with_the_time_of_all_their_calls(self):
        count = counted.Count()
        count.events = [
            event("mine", "DeviceType.CUDA", 2000),
            event("theirs", "DeviceType.CUDA", 5000),
            event("mine", "DeviceType.CUDA", 4000),
            event("aten::add", "DeviceType.CPU", 9000),
        ]
        count.ended.set()
        self.assertEqual(count.stop(), [["mine", 6.0], ["theirs", 5.0]])

    def test_of_an_older_torch(self):
        self.assertEqual(counted.microseconds_of(types.SimpleNamespace(duration_us=lambda: 7)), 7.0)

    def test_where_torch_cannot_count_it_is_told(self):
        with mock.patch.object(counted, "_prepare_profiler", side_effect=RuntimeError("no CUPTI")):
            with self.assertRaisesRegex(RuntimeError, "no CUPTI"):
                counted.Count().start()


SOURCE = "@triton.jit\ndef mine(x):\n    pass\n"


class Told:
    """A candidate of which is written down what is done to it. What its calls end in, one after another,
    is in `in_calls`: the category of a fault, or nothing."""

    def __init__(self, kernels=(), in_calls=(), at_the_end=None, in_draw=None, in_synchronize=None, alive=True):
        self.kernels, self.in_calls, self.at_the_end, self.in_draw, self.is_alive = (
            list(kernels),
            list(in_calls),
            at_the_end,
            in_draw,
            alive,
        )
        self.rules, self.steps = [], []
        arena = types.SimpleNamespace(place=7, move=lambda: self.steps.append("move"), fill=self.steps.append)
        self.process = types.SimpleNamespace(
            ask=self.ask,
            call=self.call,
            stop=lambda: self.steps.append("stop"),
            arena=arena,
            place=0,
            alive=lambda: self.is_alive,
            ended=lambda: Fault("candidate", "crashed", "ended"),
        )
        self.bench = types.SimpleNamespace(
            layout=types.SimpleNamespace(sets=2),
            draw=self.draw,
            synchronize=lambda: self.end_in(in_synchronize),
            make_room=lambda: self.steps.append("room"),
            release=lambda: self.steps.append("release"),
        )

    @staticmethod
    def end_in(problem):
        if problem is not None:
            raise problem

    def ask(self, message, _seconds):
        self.steps.append(message["op"])
        if message.get("over") and self.at_the_end:
            raise Fault("candidate", self.at_the_end, "ended")
        return {"kernels": self.kernels}

    def call(self, *_given):
        self.steps.append("calls")
        category = self.in_calls.pop(0) if self.in_calls else None
        if category:
            raise Fault("candidate", category, "ended")

    def draw(self, seeds):
        self.end_in(self.in_draw)
        return [[x] for x in seeds]

    def left(self):
        return 10.0

    def number(self, _what, index):
        return index

    def find(self, rule, severity, _words):
        self.rules.append((rule, severity))


class Share(unittest.TestCase):
    def found(self, *given, **more):
        """[(rule, severity)], and no share where there are no kernels."""
        x = Told(*given, **more)
        said = kernel_share.measure(x, SOURCE, "triton", 1)
        self.assertEqual(said == {}, x.rules[:1] == [("no_profile", "warning")] or any(x.in_calls) or not x.kernels)
        return x.rules

    def test_calls_are_made_on_contents_that_it_has_not_seen_with_the_room_that_rows_have(self):
        x = Told([["mine", 1.0]])
        kernel_share.measure(x, SOURCE, "triton", 1)
        self.assertEqual(x.steps, ["stop", "move", [[0], [1]], "room", "copy", "profile", "calls", "profile"])
        self.assertEqual(x.process.place, 7)

    def test_whose_own_kernels_have_the_time_is_let_be(self):
        self.assertEqual(self.found([["mine", 9.0], ["softmax_forward", 1.0]]), [])
        self.assertEqual(self.found([["mine", 1.0], ["softmax_forward", 9.0]]), [("decoy_kernel", "critical")])
        self.assertEqual(self.found([["softmax_forward", 9.0]]), [("framework_fallback", "critical")])
        self.assertEqual(self.found([["Memcpy DtoD", 9.0]]), [("framework_fallback", "critical")])

    def test_where_nothing_was_counted_no_candidate_fell_back(self):
        self.assertEqual(self.found([]), [("no_profile", "warning")])

    def test_a_candidate_that_fails_while_kernels_are_counted_is_no_warning(self):
        for category in OWN_FAULTS - {"out_of_memory"}:
            self.assertEqual(self.found(in_calls=[category]), [("decoy_kernel", "critical")], category)

    def test_a_candidate_that_lacks_memory_has_all_there_is_and_one_try_more(self):
        x = Told([["mine", 9.0]], ["out_of_memory"])
        self.assertEqual(kernel_share.measure(x, SOURCE, "triton", 1)["kernel_share"], 1.0)
        self.assertEqual((x.rules, x.steps[-4:]), ([], ["calls", "release", "calls", "profile"]))
        self.assertEqual(self.found(in_calls=["out_of_memory"] * 2), [("no_profile", "warning")])
        self.assertEqual(self.found(in_calls=["out_of_memory", "runtime_error"]), [("decoy_kernel", "critical")])

    def test_what_may_be_ours_is(self):
        for category in ("timed_out", "time_spent", "killed_outside", "crashed"):
            self.assertEqual(self.found(in_calls=[category]), [("no_profile", "warning")], category)
        self.assertEqual(self.found(at_the_end="runtime_error"), [("no_profile", "warning")])

    def test_what_fails_before_its_calls_costs_no_other_a_verdict(self):
        for problem in (
            MemoryError(),
            BadProblem("bad_problem", "get_inputs() failed"),
            RuntimeError("CUDA out of memory"),
        ):
            self.assertEqual(self.found(in_draw=problem), [("no_profile", "warning")])
            self.assertEqual(self.found(in_synchronize=problem), [("no_profile", "warning")])

    def test_a_candidate_that_is_gone_is_told_nothing(self):
        x = Told(alive=False)
        kernel_share.measure(x, SOURCE, "triton", 1)
        self.assertEqual((x.rules, x.steps), ([("no_profile", "warning")], []))

    def test_a_candidate_that_was_ended_for_want_of_memory_is_not_tried_again(self):
        x = Told(in_calls=["out_of_memory"])
        x.call = lambda *_given: setattr(x, "is_alive", False) or Told.call(x)
        x.process.call = x.call
        kernel_share.measure(x, SOURCE, "triton", 1)
        self.assertEqual((x.rules, x.steps[-1]), ([("no_profile", "warning")], "calls"))


if __name__ == "__main__":
    unittest.main()
