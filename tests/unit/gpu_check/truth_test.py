import argparse
import importlib.util
import os
import pathlib
import tempfile
import time
import unittest
from unittest import mock

from gpu_check import clocks, common, truth, truth_device, truth_findings, truth_native, truth_problems


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


def known(candidate, reference):
    """Of one sitting."""
    return truth_findings.known_by("call", "x", [{"x": {"call": (candidate, reference, reference / candidate)}}])


def verdict(paid, kinds=(), **more):
    """`kinds`: (ratio, calls), the problem's own first, of a reference of 1 ms."""
    own = kinds[0][0] if kinds else paid
    kinds = [
        {"name": str(i), "reference_ms": 1.0, "candidate_ms": 1 / ratio, "calls": calls}
        for i, (ratio, calls) in enumerate(kinds)
    ]
    return {
        "outcome": "accepted",
        "timing": {
            "measured": True,
            "clock_asked": "call",
            "call_ms": {"candidate": 1 / own, "reference": 1.0},
            "kinds": kinds,
            "speedup": {"estimate": paid, "low": 0.9 * paid, "high": 1.1 * paid},
        },
    } | more


DOUBT = {"outcome": "accepted", "timing": {"measured": False}}


class Comparing(unittest.TestCase):
    def off(self, found, kind):
        return [words for off, most, words in found.found[f"call: {kind}"] if abs(off) > most]

    def test_speedups_and_times_are_held_against_truth(self):
        found = truth_findings.Findings("torch")
        found.compare("call", verdict(2.0), known(0.5, 1.01), "softmax triton")
        self.assertEqual({len(x) for x in found.found.values()}, {1, 2})
        self.assertFalse(any(self.off(found, x) for x in ("times", "ratio of the two times", "speedup that is paid")))
        found.compare("call", verdict(2.0), known(0.5, 1.5), "softmax copy")
        for kind in ("ratio of the two times", "speedup that is paid", "copies"):
            self.assertEqual(self.off(found, kind), ["softmax copy"])

    def test_what_is_paid_for_other_contents_is_not_held_against_a_plain_process(self):
        found = truth_findings.Findings("native")
        slow = verdict(1.1, [(2.0, 50), (1.1, 50)], integrity={"findings": [{"rule": "depends_on_contents"}]})
        slow["timing"]["call_ms"] = {"candidate": 1.0, "reference": 1.1}  # the torch lane's: of what is paid
        found.compare("call", slow, known(0.5, 1.0), "softmax persistent")
        self.assertNotIn("call: speedup that is paid", found.found)
        self.assertEqual(self.off(found, "ratio of the two times"), [])
        self.assertEqual(found.slower_contents, ["softmax persistent"])

    def test_what_lies_between_two_sittings_is_not_off(self):
        found = truth_findings.known_by(
            "call",
            "softmax copy",
            [{"softmax copy": {"call": (x, 1.0, 1.0 / x)}} for x in (0.5, 0.8)] + [{}, {"softmax copy": None}],
        )
        self.assertEqual(
            (found.candidate.low, found.candidate.high, found.ratio.low, found.ratio.high), (0.5, 0.8, 1.25, 2.0)
        )
        self.assertEqual(found.sittings, 2)
        self.assertEqual([found.candidate.off(x) for x in (0.5, 0.7, 0.8)], [0.0] * 3)
        self.assertAlmostEqual(found.candidate.off(0.4), -0.2)
        self.assertAlmostEqual(found.candidate.off(1.0), 0.25)
        self.assertIsNone(truth_findings.known_by("call", "softmax twice", [{}]))
        self.assertIsNone(truth_findings.known_by("device", "x", [{"x": {"device": None, "call": (1, 1, 1)}}]))

    def test_calls_that_launches_limit_are_held_by_their_interval(self):
        call, work = known(0.025, 0.014), known(0.011, 0.013)
        self.assertTrue(truth_findings.launches_limit(call, work))
        self.assertTrue(truth_findings.launches_limit(known(0.011, 0.025), known(0.011, 0.013)))
        self.assertFalse(truth_findings.launches_limit(known(0.0115, 0.0135), work))
        self.assertFalse(truth_findings.launches_limit(call, None))
        for paid, holds in (0.6, True), (0.5, False):  # of 0.56, give or take a tenth of it
            found = truth_findings.Findings("torch")
            found.compare("call", verdict(paid), call, "softmax copy", limited=True)
            self.assertEqual((list(found.found), [x[1] for x in found.limited]), ([], [holds]))
            with mock.patch.object(truth_findings, "promise") as said:
                found.promise(1, 1)
            self.assertEqual(said.call_args_list[-1].args[0], holds)
            self.assertIn("softmax copy", said.call_args_list[-1].args[1])

    def test_so_are_those_that_they_limit_while_the_host_is_slow(self):
        """Seen on an H100: calls of 15 µs, that the host queued in 9.5 to 15 by the minute."""
        sittings = [
            {"gelu a": {"host": (9.5, 9, 0)}, "gelu b": {"host": (20.0, 9, 0)}, "softmax a": {"host": (9.0, 9, 0)}},
            {"gelu a": {"host": (15.0, 9, 0)}, "gelu b": {"host": (30.0, 9, 0)}, "softmax a": None},
        ]
        slower = truth_findings.slower_host(sittings)
        self.assertAlmostEqual(slower["gelu"], 45 / 29.5)
        self.assertAlmostEqual(slower["softmax"], (45 / 29.5 + 1) / 2)  # the median of both
        self.assertEqual(truth_findings.slower_host([{"native": {"call": (1, 1, 1)}}]), {})
        call, work, host = known(0.0156, 0.0156), known(0.0152, 0.0152), known(0.0095, 0.0095)
        self.assertFalse(truth_findings.launches_limit(call, work, host))
        self.assertTrue(truth_findings.launches_limit(call, work, host, 1.5))
        self.assertFalse(truth_findings.launches_limit(known(0.048, 0.048), known(0.047, 0.047), host, 1.5))

    def test_the_middle_verdict_of_a_module_counts_and_single_ones_are_told(self):
        found = truth_findings.Findings("native")
        for paid in (2.0, 2.3, 1.99):
            found.compare("call", verdict(paid), known(0.5, 1.0), "softmax copy")
        holds, words = found.words_of("call: speedup that is paid", found.found["call: speedup that is paid"])
        self.assertTrue(holds)
        self.assertIn("1 of 1 within", words)
        self.assertIn("the middle of up to 3 verdicts (single ones: 2 of 3)", words)
        found.compare("call", verdict(2.3), known(0.5, 1.0), "softmax copy")
        found.compare("call", verdict(2.3), known(0.5, 1.0), "softmax copy")
        self.assertFalse(found.words_of("call: speedup that is paid", found.found["call: speedup that is paid"])[0])

    def test_no_time_is_missing(self):
        found = truth_findings.Findings("torch")
        found.compare("call", DOUBT, known(1.0, 2.0), "softmax copy")
        self.assertEqual(found.missing, [("call", "softmax copy")])
        self.assertEqual(found.off_modules(), {"softmax copy"})

    def test_a_module_in_doubt_once_with_times_in_other_verdicts_is_told(self):
        for again, holds in ((verdict(2.0), True), (DOUBT, False)):
            found = truth_findings.Findings("native")
            for one in (DOUBT, again):
                found.compare("call", one, known(0.5, 1.0), "softmax copy")
            with mock.patch.object(truth_findings, "promise") as said:
                found.promise(1, 1)
            said = [x.args for x in said.call_args_list if "no verdict has a time" in x.args[1]]
            self.assertEqual([x[0] for x in said], [holds])
            self.assertIn("softmax copy by call", said[0][1])

    def test_fewer_than_half_prove_nothing(self):
        for judged, holds in ((47, True), (32, False)):
            found = truth_findings.Findings("torch")
            found.compare("call", verdict(2.0), known(0.5, 1.0), "softmax triton")
            with mock.patch.object(truth_findings, "promise") as said:
                found.promise(judged, 65)
            self.assertEqual(all(x.args[0] for x in said.call_args_list), holds)

    def test_the_words_name_what_is_off_and_how_many_were_compared_by_their_own_contents(self):
        found = truth_findings.Findings("torch")
        found.other_contents = [("call", "a b"), ("device", "a b")]
        holds, words = found.words_of(
            "call: speedup that is paid", [(0.01, 0.03, "a b"), (-0.07, 0.06, "c d"), (0.2, 0.03, "e f")]
        )
        self.assertFalse(holds)
        self.assertIn("1 of 3 within", words)
        self.assertIn("(1 of them by their own contents alone); off: e f +20.0 %, c d -7.0 %", words)


class OtherContents(unittest.TestCase):
    """Ratios and calls of verdicts of 2026-11-26 on an H200."""

    SOFTMAX = [(0.300, 128), (0.232, 64), (0.430, 64), (0.397, 64), (0.386, 128)]  # softmax_4096x4096 otherwise
    NOISE = [
        (0.354, 192),
        (0.409, 64),
        (0.452, 64),
        (0.418, 64),
        (0.419, 64),
        (0.413, 64),
        (0.436, 128),
        (0.488, 64),
        (0.444, 64),
    ]

    def own(self, paid, kinds, module="otherwise", most=0.03):
        return truth_findings.own_speedup_alone(verdict(paid, kinds), module, most)

    def test_a_quarter_of_the_calls_beyond_what_is_paid_explains_it(self):
        self.assertAlmostEqual(self.own(0.343, self.SOFTMAX), 0.300)
        self.assertAlmostEqual(
            self.own(1.669, [(1.730, 72), (1.610, 16), (1.639, 13), (1.670, 14), (1.643, 15)]), 1.730
        )  # histogram_copies
        self.assertIsNone(self.own(0.343, [(0.300, 384), (0.430, 64)]))  # one odd row

    def test_what_is_paid_beyond_all_kinds_is_an_error(self):
        self.assertIsNone(self.own(0.5, self.SOFTMAX))
        self.assertIsNone(self.own(0.25, self.SOFTMAX))  # partly alone lies there, a seventh of the calls

    def test_kinds_that_differ_by_less_than_the_limit_explain_nothing(self):
        self.assertIsNone(self.own(1.01, [(1.0, 50), (1.02, 50)]))

    def test_short_calls_and_the_same_code_are_never_excused(self):
        self.assertIsNone(self.own(0.433, self.NOISE, "triton", 0.06))  # gelu_1024x1024, where contents cost nothing
        for module in ("copy", "twice", "three_times", "gelu_baseline"):
            self.assertIsNone(self.own(0.343, self.SOFTMAX, module))

    def test_the_excused_are_compared_by_their_own_and_listed(self):
        found = truth_findings.Findings("torch")
        found.compare("call", verdict(0.343, self.SOFTMAX), known(1 / 0.296, 1.0), "softmax_4096x4096 otherwise")
        self.assertTrue(all(abs(off) <= most for off, most, _ in found.found["call: speedup that is paid"]))
        self.assertEqual(found.other_contents, [("call", "softmax_4096x4096 otherwise")])


class Sittings(unittest.TestCase):
    def test_verdicts_come_before_further_sittings(self):
        self.assertEqual(truth_native.spare_for(200, 60, 20), (20, 20))
        before, after = truth_native.spare_for(60 * truth_native.VERDICT_S + 25, 60, 20)
        self.assertAlmostEqual(before, 5)
        self.assertAlmostEqual(after, 20)
        self.assertEqual(truth_native.spare_for(10, 60, 20), (0, 0))

    def test_what_events_do_not_see_has_no_device_time(self):
        self.assertEqual(
            truth_native.times_of((1, 2, 2.5), (1, 4, 5)), {"alone_ms": 1, "device": (2, 4, 2), "call": (2.5, 5, 2)}
        )
        self.assertIsNone(truth_native.times_of((1, 1, 2.5), (1, 4, 5))["device"])

    def test_a_sitting_ends_in_time_and_says_none_of_what_failed(self):
        times = {"a.so": (1, 2, 2), "b.so": None, "r.so": (1, 4, 4)}
        rows, libraries = [("t a", "t"), ("t b", "t")], {"t a": "a.so", "t b": "b.so", "t": "r.so"}
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(truth_native, "OUT", pathlib.Path(folder)),
            mock.patch.object(truth_native, "PlainTimer") as timer,
        ):
            timer.return_value.__enter__.return_value.time = lambda task, library, calls: times[library]
            found = truth_native.sit("native", 1, rows, libraries, float("inf"))
            self.assertEqual(found, {"t a": {"alone_ms": 1, "device": (2, 4, 2), "call": (2, 4, 2)}, "t b": None})
            self.assertEqual(truth_native.sit("native", 2, rows, libraries, 0), {})
            self.assertEqual([x.kwargs["has_guards"] for x in timer.call_args_list], [False, True])

    def test_torch_has_the_hosts_own_time(self):
        row = {"problem": "p", "alone_ms": 1, "device_ms": 1, "device_ratio": 1, "call_ms": 1, "call_ratio": 1}
        found = truth.sitting_of([row | {"module": "model", "host_ms": 0.5}, row | {"module": "copy", "host_ms": 0.25}])
        self.assertEqual(found["p copy"]["host"], (0.25, 0.5, 2.0))

    def test_torch_has_ratios_of_neighbouring_rows(self):
        row = {"problem": "p", "alone_ms": 1, "device_ms": None, "device_ratio": None}
        found = truth.sitting_of(
            [
                row | {"module": "model", "call_ms": 2, "call_ratio": 1},
                row | {"module": "copy", "call_ms": 1, "call_ratio": 1.9},
                row | {"problem": "q", "module": "copy"},
            ]
        )
        self.assertEqual(found["p copy"], {"alone_ms": 1, "device": None, "call": (1, 2, 1.9)})
        self.assertEqual(set(found), {"p model", "p copy"})


class Compiled(unittest.TestCase):
    def test_modules_are_judged_three_times_between_the_sittings_and_what_is_off_then_two_more_times(self):
        rows = [(name, "native/gelu", "f.cu", "native") for name in ("gelu copy", "gelu twice")]
        steps, said, shown = [], [], []
        times = {"alone_ms": 1.0, "device": None, "call": (1.0, 1.0, 1.0)}
        speedups = {"gelu copy": [1.0, 1.1, 1.0], "gelu twice": [1.1, 1.0, 1.05, 1.0, 1.0]}

        def sit(_contract, number, some, _libraries, _until):
            steps.append((number, [x[0] for x in some]))
            return {x[0]: times for x in some}

        def verdicts(_name, mine, options, seconds, **_):
            steps.append(("judged", [x[0] for x in mine]))
            for name, *_ in mine:
                yield verdict(speedups[" ".join(name.split()[:2])].pop(0)) | {"name": name}

        common.options = argparse.Namespace(clocks=["call"], problems=[], backend="cuda")
        with (
            mock.patch.object(truth_native, "prepare", lambda _contract: (rows, {})),
            mock.patch.object(truth_native, "sit", sit),
            mock.patch.object(truth, "verdicts_of", verdicts),
            mock.patch.object(common, "honest", []),
            mock.patch.object(truth, "say", shown.append),
            mock.patch.object(truth_native, "say", shown.append),
            mock.patch.object(truth_findings, "say", shown.append),
            mock.patch.object(truth_findings, "promise", lambda holds, words: said.append((holds, words))),
        ):
            truth.check_compiled_truth("native", time.monotonic() + 1000)
        names = ["gelu copy", "gelu twice"]
        self.assertEqual(
            steps,
            [
                (1, names),
                (2, names),
                ("judged", [f"{x} {n}" for n in range(3) for x in names]),
                (3, names[::-1]),
                ("judged", ["gelu twice 0", "gelu twice 1"]),
            ],
        )
        self.assertTrue(all(holds for holds, _ in said), said)
        self.assertIn("2 of 2 modules judged", said[0][1])
        self.assertIn("2 of 2 within 3 %", " ".join(words for _, words in said))
        self.assertIn("by the middle of up to 5 verdicts (single ones: 5 of 8)", " ".join(words for _, words in said))


class Torch(unittest.TestCase):
    def test_what_is_off_is_judged_two_more_times_and_sat_beside_once_more(self):
        steps, said, shown, speedups = [], [], [], {"p twice": [0.6, 0.5, 0.51], "q copy": [1.0], "q twice": [0.5]}
        rows = [
            {"problem": problem, "module": module, "file": "f.py", "task": f"torch/{problem}"}
            for problem, module in (("p", "model"), ("p", "twice"), ("q", "model"), ("q", "copy"), ("q", "twice"))
        ]

        def plain(some, number, _seconds):
            steps.append((number, sorted({x["problem"] for x in some})))
            return {
                f"{x['problem']} {x['module']}": {
                    "alone_ms": 1.0,
                    "device": None,
                    "call": (1.0, 1.0, 1.0) if x["module"] == "copy" else (2.0, 1.0, 0.5),
                }
                for x in some
                if x["module"] != "model"
            }

        def verdicts(_name, mine, options, seconds, **_):
            steps.append(("judged", [x[0] for x in mine]))
            for name, *_ in mine:
                yield verdict(speedups[" ".join(name.split()[:2])].pop(0)) | {"name": name}

        common.options = argparse.Namespace(clocks=["call"], problems=[], modules=[], backend="cuda")
        with (
            mock.patch.object(truth, "write_problems", lambda: ("root", rows)),
            mock.patch.object(truth, "plain_times", plain),
            mock.patch.object(truth, "verdicts_of", verdicts),
            mock.patch.object(common, "honest", []),
            mock.patch.object(truth, "say", shown.append),
            mock.patch.object(truth_native, "say", shown.append),
            mock.patch.object(truth_findings, "say", shown.append),
            mock.patch.object(truth_findings, "promise", lambda holds, words: said.append((holds, words))),
        ):
            truth.check_torch_truth(time.monotonic() + 1000)
        self.assertEqual(
            steps,
            [
                (1, ["p", "q"]),
                ("judged", ["p twice", "q copy", "q twice"]),
                (2, ["p", "q"]),
                ("judged", ["p twice 0", "p twice 1"]),
                (3, ["p"]),
            ],
        )
        self.assertTrue(all(holds for holds, _ in said), said)
        self.assertIn("single ones: 4 of 5", " ".join(words for _, words in said))


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
        source = (
            "// scratch: tops[4 * rows]\n// launch: first<<<dim3(rows, 2), 256, 4 * cols>>>(x, tops, cols)\n"
            'extern "C" __global__ void first(const float4* __restrict__ x, float *tops, int cols) {\n}\n'
        )
        spec = {
            "arguments": [
                {"name": "x", "type": "f32", "role": "input"},
                {"name": "rows", "type": "i32", "role": "scalar"},
                {"name": "cols", "type": "i32", "role": "scalar"},
            ]
        }
        with mock.patch.object(truth_device, "task_spec", lambda task: spec):
            text = truth_device.launcher(source, "t", "/tmp/x.cubin")
        for part in (
            '"/tmp/x.cubin"',
            "solve(const float* x, int rows, int cols)",
            "auto a0 = (void*)(x);",
            "auto a1 = (void*)(tops);",
            "auto a2 = (int)(cols);",
            "void* given[] = {&a0, &a1, &a2};",
            "dim3(dim3(rows, 2)), dim3(256), unsigned(4 * cols)",
        ):
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
            program.write_text(
                '#!/bin/sh\nn=0\n[ "$1" = --guards ] && n=10\n'
                "while read -r line; do n=$((n + 1)); case $line in *end*) exit 1;; *none*) echo failed;; "
                "*) echo $n 2 3;; esac; done\n"
            )
            os.chmod(program, 0o755)
            with mock.patch.object(clocks, "sizes_of", lambda task: ["1"]), clocks.PlainTimer(program) as timer:
                self.assertEqual(
                    [timer.time("t", x) for x in ("a.so", "none.so", "b.so", "end.so", "c.so")],
                    [(1, 2, 3), None, (3, 2, 3), None, (1, 2, 3)],
                )
            with (
                mock.patch.object(clocks, "sizes_of", lambda task: ["1"]),
                clocks.PlainTimer(program, has_guards=True) as timer,
            ):
                self.assertEqual(timer.time("t", "a.so"), (11, 2, 3))


if __name__ == "__main__":
    unittest.main()
