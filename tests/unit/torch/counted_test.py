"""Kernels are counted where a model that asks torch is told that nobody profiles it."""

import threading
import types
import unittest
from unittest import mock

import torch
import torch.profiler  # noqa: F401, whose flag a model can read

from kernelmill_torch import counted
from kernelmill_torch.faults import Fault
from kernelmill_torch.referee import Referee


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
        count.events = [event("mine", "DeviceType.CUDA", 2000), event("theirs", "DeviceType.CUDA", 5000), event("mine", "DeviceType.CUDA", 4000),
                        event("aten::add", "DeviceType.CPU", 9000)]
        count.ended.set()
        self.assertEqual(count.stop(), [["mine", 6.0], ["theirs", 5.0]])

    def test_of_an_older_torch(self):
        self.assertEqual(counted.microseconds_of(types.SimpleNamespace(duration_us=lambda: 7)), 7.0)

    def test_where_torch_cannot_count_it_is_told(self):
        with mock.patch.object(counted, "_prepare_profiler", side_effect=RuntimeError("no CUPTI")):
            with self.assertRaisesRegex(RuntimeError, "no CUPTI"):
                counted.Count().start()


SOURCE = "@triton.jit\ndef mine(x):\n    pass\n"


class Share(unittest.TestCase):
    def found(self, kernels=(), in_calls=None, at_the_end=None, no_contents=False):
        """[(rule, severity)] where the calls, or the end of the count, end in a fault of this category, or memory lacks for contents."""
        rules, steps = [], []

        def ask(message, _seconds):
            steps.append(message["op"])
            if message.get("over") and at_the_end:
                raise Fault("candidate", at_the_end, "ended")
            return {"kernels": list(kernels)}

        def call(*_given):
            steps.append("calls")
            if in_calls:
                raise Fault("candidate", in_calls, "ended")

        def draw(seeds):
            if no_contents:
                raise MemoryError
            return [[x] for x in seeds]

        arena = types.SimpleNamespace(place=7, move=lambda: steps.append("move"), fill=lambda contents: steps.append(contents))
        process = types.SimpleNamespace(ask=ask, call=call, stop=lambda: steps.append("stop"), arena=arena, place=0)
        bench = types.SimpleNamespace(layout=types.SimpleNamespace(sets=2), draw=draw, synchronize=lambda: None)
        x = types.SimpleNamespace(process=process, left=lambda: 10.0, bench=bench, number=lambda _what, i: i,
                                  find=lambda rule, severity, _words: rules.append((rule, severity)))
        Referee.measure_share(types.SimpleNamespace(options={"language": "triton", "level": 1}, source=SOURCE), x, {})
        if not no_contents:  # which it must not see before it may run, and which lie where it looks
            self.assertEqual(steps[:6], ["stop", "move", [[0], [1]], "copy", "profile", "calls"])
            self.assertEqual(process.place, 7)
        return rules

    def test_whose_own_kernels_have_the_time_is_let_be(self):
        self.assertEqual(self.found([["mine", 9.0], ["softmax_forward", 1.0]]), [])
        self.assertEqual(self.found([["mine", 1.0], ["softmax_forward", 9.0]]), [("decoy_kernel", "critical")])
        self.assertEqual(self.found([["softmax_forward", 9.0]]), [("framework_fallback", "critical")])

    def test_who_fails_while_kernels_are_counted_is_no_warning(self):
        self.assertEqual(self.found(in_calls="runtime_error"), [("decoy_kernel", "critical")])

    def test_what_may_be_ours_is(self):
        for category in ("out_of_memory", "timed_out", "time_spent", "killed_outside", "crashed"):
            self.assertEqual(self.found(in_calls=category), [("no_profile", "warning")], category)
        self.assertEqual(self.found(no_contents=True), [("no_profile", "warning")])
        self.assertEqual(self.found(at_the_end="runtime_error"), [("no_profile", "warning")])


if __name__ == "__main__":
    unittest.main()
