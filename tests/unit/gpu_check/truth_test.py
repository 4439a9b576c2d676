import argparse
import importlib.util
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from gpu_check import clocks, common, truth, truth_device, truth_native, truth_problems


class Problems(unittest.TestCase):
    def test_there_are_twelve_with_four_modules_each(self):
        self.assertGreaterEqual(len(truth_problems.ALL), 12)
        for name in truth_problems.ALL:
            text, modules = truth_problems.text_of(name)
            compile(text, name, "exec")
            self.assertGreaterEqual(len(modules), 4)
            for module, source in modules.items():
                compile(source, f"{name} {module}", "exec")
                self.assertIn("class ModelNew(nn.Module)", source)

    def test_names_choose(self):
        self.assertEqual(len(truth_problems.chosen(["softmax"])), 4)
        self.assertEqual(len(truth_problems.chosen(["3"])), 3)
        self.assertEqual(truth_problems.chosen(), list(truth_problems.ALL))


class Comparing(unittest.TestCase):
    def test_speedups_and_times_are_held_against_truth(self):
        found = truth.Findings("torch")
        verdict = {"outcome": "accepted", "timing": {"measured": True, "clock_asked": "device", "candidate_ms": 1.0, "reference_ms": 2.0,
                                                     "device_ms": {"candidate": 1.0, "reference": 2.0},
                                                     "speedup": {"estimate": 2.0, "low": 1.9, "high": 2.1}}}
        found.compare("device", verdict, truth.Known.of(1.0, 2.02), "softmax triton")
        self.assertEqual({len(x) for x in found.found.values()}, {1, 2})
        self.assertTrue(all(off <= most for rows in found.found.values() for off, most, _ in rows))
        found.compare("device", verdict, truth.Known.of(1.0, 3.0), "softmax copy")
        self.assertFalse(all(off <= most for rows in found.found.values() for off, most, _ in rows))
        self.assertIn("device: copies", found.found)

    def test_what_is_paid_for_other_contents_is_not_held_against_events(self):
        found = truth.Findings("native")
        verdict = {"outcome": "accepted", "integrity": {"findings": [{"rule": "depends_on_contents"}]},
                   "timing": {"measured": True, "clock_asked": "call", "call_ms": {"candidate": 1.0, "reference": 2.0},
                              "speedup": {"estimate": 1.1, "low": 1.0, "high": 1.2}}}
        found.compare("call", verdict, truth.Known.of(1.0, 2.0), "softmax persistent")
        self.assertNotIn("call: speedup that is paid", found.found)
        self.assertIn("call: ratio of the two times", found.found)
        self.assertEqual(found.other_contents, ["softmax persistent"])

    def test_what_lies_between_two_sittings_is_not_off(self):
        known = truth.known_by("call", "softmax copy", [
            {("softmax", "copy"): {"call_ms": x, "call_ratio": 1.0 / x}, ("softmax", "model"): {"call_ms": 1.0}} for x in (0.5, 0.8)])
        self.assertEqual((known.candidate.low, known.candidate.high, known.ratio.low, known.ratio.high), (0.5, 0.8, 1.25, 2.0))
        self.assertEqual([known.candidate.off(x) for x in (0.5, 0.7, 0.8)], [0.0] * 3)
        self.assertAlmostEqual(known.candidate.off(0.4), -0.2)
        self.assertAlmostEqual(known.candidate.off(1.0), 0.25)
        self.assertIsNone(truth.known_by("call", "softmax twice", [{}]))

    def test_no_time_is_missing(self):
        found = truth.Findings("torch")
        found.compare("device", {"outcome": "rejected", "timing": {"measured": False}}, truth.Known.of(1.0, 2.0), "softmax copy")
        self.assertEqual(found.missing, ["softmax copy"])


class Sources(unittest.TestCase):
    def test_native_twice(self):
        text = truth_native.twice('extern "C" void solve(const float* x, int n) {\n}\n')
        self.assertEqual(text.count("once(x, n);"), 2)
        self.assertEqual(text.count('extern "C"'), 1)

    def test_native_twice_of_what_does_not_use_an_argument(self):
        text = truth_native.twice('extern "C" void solve(const int* x, int /*pages*/, int n) {\n}\n')
        self.assertIn('extern "C" void solve(const int* x, int unused_1, int n)', text)
        self.assertEqual(text.count("once(x, unused_1, n);"), 2)

    def test_launches_twice(self):
        self.assertEqual(truth_native.launched_twice("// launch: k<<<1, 2>>>(x)\n").count("launch:"), 2)
        self.assertIsNone(truth_native.launched_twice("// launch: k<<<1, 2>>>(x)\n" * 5))

    def test_device_code_is_launched_as_its_lines_say(self):
        source = ("// scratch: tops[4 * rows]\n// launch: first<<<dim3(rows, 2), 256, 4 * cols>>>(x, tops, cols)\n"
                  'extern "C" __global__ void first(const float4* __restrict__ x, float *tops, int cols) {\n}\n')
        spec = {"arguments": [{"name": "x", "type": "f32", "role": "input"}, {"name": "rows", "type": "i32", "role": "scalar"},
                              {"name": "cols", "type": "i32", "role": "scalar"}]}
        with mock.patch.object(truth_device, "task_spec", lambda task: spec):
            text = truth_device.launcher(source, "t", "/tmp/x.cubin")
        for part in ('"/tmp/x.cubin"', "solve(const float* x, int rows, int cols)", "auto a0 = (void*)(x);", "auto a1 = (void*)(tops);", "auto a2 = (int)(cols);",
                     "void* given[] = {&a0, &a1, &a2};", "dim3(dim3(rows, 2)), dim3(256), unsigned(4 * cols)"):
            self.assertIn(part, text)

    def test_arguments_are_parted_where_no_bracket_is_open(self):
        self.assertEqual(truth_device.split("dim3(a, b), 256, f(c, d)"), ["dim3(a, b)", "256", "f(c, d)"])


class Time(unittest.TestCase):
    def test_each_task_has_one_clock_unless_they_are_named(self):
        candidates = [(f"p{i} {module}", f"task{i}", "file") for i in range(4) for module in ("copy", "twice")]
        with mock.patch.object(common, "options", argparse.Namespace(clocks=[])):
            found = truth.by_turns(candidates)
        self.assertEqual({x[1] for x in found["device"]}, {"task0", "task2"})
        self.assertEqual(sorted(found["device"] + found["call"]), sorted(candidates))
        with mock.patch.object(common, "options", argparse.Namespace(clocks=["call"])):
            self.assertEqual(truth.by_turns(candidates), {"call": candidates})

    @unittest.skipUnless(importlib.util.find_spec("torch"), "there is no torch")
    def test_rows_of_long_calls_have_few(self):
        from gpu_check import truth_timer
        self.assertEqual([truth_timer.calls_of(64, x) for x in (0.01, 1.0, 2.0, 31.0, 93.0)], [64, 64, 50, 3, 3])

    def test_one_process_times_all_and_another_comes_after_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "timer"
            program.write_text("#!/bin/sh\nn=0\nwhile read -r line; do n=$((n + 1)); case $line in *end*) exit 1;; *none*) echo failed;; "
                               "*) echo $n 2 3;; esac; done\n")
            os.chmod(program, 0o755)
            with mock.patch.object(clocks, "sizes_of", lambda task: ["1"]), clocks.PlainTimer(program) as timer:
                self.assertEqual([timer.time("t", x) for x in ("a.so", "none.so", "b.so", "end.so", "c.so")],
                                 [(1, 2, 3), None, (3, 2, 3), None, (1, 2, 3)])


if __name__ == "__main__":
    unittest.main()
