"""What a row is: what comes in which order, what it gives, what it costs besides its calls."""

import types
import unittest
import unittest.mock

try:
    import torch
    from kernelmill_torch import native
    from kernelmill_torch import rows as rows_module
    from kernelmill_torch.arena import Arena
    from kernelmill_torch.bench import Bench
    from kernelmill_torch.buffers import BufferSet, Layout, TensorSpec
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.rows import Gateless, has_changed
    from kernelmill_torch.watch import Free, Row
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "there is no torch here")
class LengthOfARow(unittest.TestCase):
    """Of a GPU's rows, which take a while whatever their length."""

    def length(self, one, sets=16, besides=150e-6):
        bench = Bench.__new__(Bench)
        bench.device, bench.layout = "cuda", Layout([], [], sets=sets)
        bench.row = lambda _process, count, _seconds, contents: Row(calls=besides + len(contents) * one)
        return bench.calibrate(None, 1.0, [[]] * sets)

    def test_what_a_row_takes_besides_its_calls_does_not_shorten_it(self):
        self.assertEqual(self.length(100e-6, sets=64), 20)
        self.assertEqual(self.length(100e-6), 16)
        self.assertEqual(self.length(200e-6), 10)

    def test_a_row_of_long_calls_is_twice_as_long(self):
        self.assertEqual(self.length(500e-6), 8)
        self.assertEqual(self.length(3e-3), 1)

    def test_a_long_call_is_a_row(self):
        self.assertEqual(self.length(5e-3), 1)
        self.assertEqual(self.length(100e-6, sets=1), 1)


class TimedReach:
    """Finds the outputs of `process` at once, when it was asked where they lie, or never."""

    def __init__(self, process, found):
        self.process, self.found = process, found
        self.unknown, self.is_fleeting, self.is_shared = [1], False, False

    def take(self, _number, count):
        self.process.done.append("read")
        return [BufferSet([], [torch.tensor([77], dtype=torch.uint8)])] * count if self.found == "at once" else None

    def may_learn(self):
        return self.found == "when asked"

    def learn(self, _names):
        self.found = "at once"

    def forget(self):
        self.process.done.append("forget")


class TimedProcess:
    """Its arena has two sets of one input and one output, each a byte (and what aligns it)."""

    def __init__(self, done, found="at once"):
        self.done, self.reach, self.is_queued = done, TimedReach(self, found), True
        byte = TensorSpec((1,), (1,), torch.uint8)
        self.arena = Arena(None, "cpu", Layout([byte], [byte], sets=2))

    def wake(self, _seconds):
        self.done.append("wake")
        return 0.25, 0.0

    def call(self, command, _first, _count, _seconds, spin=0, seed=0):
        self.done.append({native.CALL: "call", native.COPY: "copy", native.TURN: "turn", native.WARM: "warm"}[command])
        return {native.CALL: 1.0, native.COPY: 1.0, native.TURN: 0.0625, native.WARM: 1.0}[command]

    def queue(self, _count, _seconds, _seed, _command):
        self.done.append("queue")
        return self.is_queued

    def release(self, _seconds, is_queued):
        self.done.append("release" if is_queued else "release at last")
        return 0.75

    def alive(self):
        return True

    def ask(self, message, _seconds):
        self.done.append(message["op"])
        return {}

    def halt(self):
        self.done.append("halt")

    def stop(self):
        self.done.append("stop")

    def number(self):
        return 1


def bench_of(device, done):
    bench = Bench.__new__(Bench)
    byte = TensorSpec((1,), (1,), torch.uint8)
    bench.device, bench.layout, bench.shares_inputs = device, Layout([byte], [byte], sets=2), False
    bench.sets_bytes, bench.places, bench.call_seconds, bench.decoy = 1 << 20, None, 0.0, contents_of(3)[0]
    bench.wake_core = lambda: done.append("core")
    bench.reveal = lambda arena, contents: (done.append("reveal"), arena.fill(contents), (0.5, 0.375))[2]
    bench.look = lambda: done.append("look") or 0.125
    bench.synchronize = lambda: None
    return bench


def contents_of(*numbers):
    return [[torch.tensor([x], dtype=torch.uint8)] for x in numbers]


@unittest.skipIf(torch is None, "there is no torch here")
class PartsOfARow(unittest.TestCase):
    def row(self, device, found="at once"):
        done = []
        bench = bench_of(device, done)
        return bench.row(TimedProcess(done, found), 1, 1.0, contents_of(1)), done, bench

    def test_on_a_gpu_contents_come_right_before_the_calls(self):
        row, done, bench = self.row("cuda")
        self.assertEqual(done, ["core", "wake", "warm", "reveal", "turn", "call", "halt", "look", "read", "stop"])
        self.assertGreater(row.taking, 0.0)  # work might go on until the outputs are read
        self.assertEqual(
            row._replace(taking=0.0), Row(revealing=0.5, turning=0.0625, calls=1.0, looking=0.125, flushing=0.375)
        )
        self.assertEqual(int(bench.outputs[0].outputs[0]), 77)

    def test_behind_a_gate_calls_are_there_before_contents_and_run_after_them(self):
        done = []
        row = bench_of("cuda", done).row(TimedProcess(done), 1, 1.0, contents_of(1), True)
        self.assertEqual(done, ["core", "wake", "queue", "reveal", "release", "halt", "look", "read", "stop"])
        self.assertEqual(row._replace(taking=0.0), Row(revealing=0.5, calls=0.75, looking=0.125, flushing=0.375))

    def test_a_candidate_that_waits_for_the_gpu_behind_the_gate_is_let_go_on_with_its_contents(self):
        done = []
        process = TimedProcess(done)
        process.is_queued = False
        with self.assertRaises(Gateless):
            bench_of("cuda", done).row(process, 1, 1.0, contents_of(1), True)
        self.assertEqual(done, ["core", "wake", "queue", "reveal", "release at last", "stop"])

    def test_a_candidate_that_was_told_to_end_behind_the_gate_used_up_its_time(self):
        process = TimedProcess([])
        process.is_queued = False

        def release(_seconds, _is_queued):
            raise Fault("candidate", "timed_out", "was still busy")  # and may not have ended yet

        process.release = release
        with self.assertRaises(Fault):
            bench_of("cuda", []).row(process, 1, 1.0, contents_of(1), True)

    def test_other_contents_are_there_whole_before_anybody_is_called_on_them(self):
        done = []
        bench, process = bench_of("cuda", done), TimedProcess(done)
        bench.synchronize = lambda: done.append(int(process.arena.sets[0].inputs[0]))
        bench.row(process, 1, 1.0, contents_of(1))
        self.assertEqual(done[:4], [3, "core", "wake", "warm"])

    def test_on_a_cpu_no_candidate_is_awake_when_they_come_nor_when_outputs_are_read(self):
        row, done, _ = self.row("cpu")
        self.assertEqual(done, ["reveal", "core", "wake", "call", "halt", "look", "stop", "read"])
        self.assertEqual(row._replace(looking=0.0, taking=0.0), Row(waking=0.25, calls=1.0, flushing=0.375))

    def test_a_candidate_that_has_to_go_on_to_give_its_outputs_pays_for_that(self):
        row, done, _ = self.row("cuda", "when asked")
        self.assertEqual(done[-6:], ["stop", "export", "halt", "look", "read", "stop"])
        self.assertGreater(row.fetching, 0.0)
        row, done, bench = self.row("cuda", "never")
        self.assertEqual(done[-5:], ["stop", "copy", "halt", "look", "stop"])
        self.assertGreater(row.fetching, 0.0)
        self.assertEqual(len(bench.outputs), 1)

    def test_a_candidate_that_fails_stands_still_while_memory_is_given_back_and_contents_are_drawn(self):
        for is_gated, fails in (False, "call"), (False, "wake"), (True, "queue"), (True, "release"):
            done = []
            bench, process = bench_of("cuda", done), TimedProcess(done)
            with unittest.mock.patch.object(process, fails, side_effect=Fault("candidate", "out_of_memory", "")):
                with self.assertRaises(Fault):
                    bench.row(process, 1, 1.0, contents_of(1), is_gated)
            self.assertEqual(done[-1], "stop")
            process.alive = lambda: False
            with unittest.mock.patch.object(process, fails, side_effect=Fault("candidate", "timed_out", "")):
                with self.assertRaises(Fault):
                    bench.row(process, 1, 1.0, contents_of(1), is_gated)
            self.assertEqual(done.count("stop"), 1)

    def test_what_moves_is_looked_for_in_each_row(self):
        done = []
        process = TimedProcess(done)
        process.reach.is_fleeting = True
        bench_of("cuda", done).row(process, 1, 1.0, contents_of(1))
        self.assertEqual(done[0], "forget")

    def test_outputs_in_the_memory_of_inputs_are_told_where_the_model_makes_new_ones(self):
        for model_does, told in (False, True), (True, False):
            bench, process = bench_of("cuda", []), TimedProcess([])
            bench.shares_inputs, process.reach.is_shared = model_does, True
            bench.row(process, 1, 1.0, contents_of(1))
            self.assertEqual(bench.gives_inputs, told)

    def test_outputs_are_put_aside_unless_they_are_too_large(self):
        for room, aside in (1 << 20, True), (0, False):
            bench, mine = bench_of("cuda", []), [BufferSet([], [torch.ones(1)])]
            bench.sets_bytes = room
            self.assertTrue(bench.take(mine))
            mine[0].outputs[0].fill_(2.0)
            self.assertEqual(
                (float(bench.outputs[0].outputs[0]), bench.is_aside), (1.0, True) if aside else (2.0, False)
            )
            self.assertEqual(bench.samples is None, aside)
        self.assertEqual([has_changed(bench.samples, mine)], [True])

    def inputs_when_copied(self, **which):
        """What a process finds in the inputs of both sets when it copies what one of them gave."""
        bench, found, seen = bench_of("cuda", []), [], []
        process, change = TimedProcess([], which.pop("found", "never")), which.pop("change", 0)
        sets = process.arena.sets
        vars(bench).update(which)

        def call(what, _first, _count, _seconds, spin=0, seed=0):
            if what == native.COPY:
                found.extend(int(one.inputs[0]) for one in sets)
            elif what in (native.CALL, native.WARM):
                seen.append(int(sets[0].inputs[0]))
                sets[0].inputs[0].add_(change)
            return 1.0

        process.call = call
        sets[1].inputs[0].fill_(9)
        bench.row(process, 1, 1.0, contents_of(5))
        self.assertEqual(seen, [3, 5])  # first what will not be asked for again
        self.assertEqual(bench.decoy, contents_of(5)[0])
        result = list(found), bench.changed_inputs
        with unittest.mock.patch.object(rows_module, "MOST_KEPT", 1):  # bytes; a set has 2
            bench.row(process, 1, 1.0, contents_of(7))
        self.assertEqual(bench.decoy, contents_of(5)[0])
        return result

    def test_inputs_are_not_there_for_the_copying(self):
        self.assertEqual(self.inputs_when_copied(), ([0xA7, 9], []))
        self.assertEqual(self.inputs_when_copied(shares_inputs=True), ([5, 9], []))  # outputs may lie in them

    def test_on_a_cpu_inputs_are_not_there_when_outputs_are_read(self):
        for model_does, there in (False, 0xA7), (True, 1):
            bench, process, found = bench_of("cpu", []), TimedProcess([]), []
            bench.shares_inputs, read = model_does, process.reach.take
            process.reach.take = lambda *which: (found.append(int(process.arena.sets[0].inputs[0])), read(*which))[1]
            bench.row(process, 1, 1.0, contents_of(1))
            self.assertEqual((found, bench.changed_inputs), ([there], []))  # a second mapping of them is no copy

    def test_inputs_that_were_changed_are_known(self):
        self.assertEqual(self.inputs_when_copied(change=1), ([0xA7, 9], [0]))
        self.assertEqual(self.inputs_when_copied(change=1, found="at once"), ([], [0]))


@unittest.skipIf(torch is None, "there is no torch here")
class LearningCosts(unittest.TestCase):
    def costs(self, known=None, factor=1.0):
        bench = Bench.__new__(Bench)
        bench.device, bench.known, bench.known_fixed = "cuda", known if known is not None else {}, {}
        process = types.SimpleNamespace(arena=types.SimpleNamespace(poison=lambda _count: None, move=lambda: None))
        looks = iter([9.0, 1.0, 1.25, 1.0, 1.25, 1.0, 1.25])  # the first row is not like the others

        def row(_process, count, *_):
            if not count:
                return Row(calls=0.25, flushing=5.0)
            return Row(revealing=2.0, calls=4.0, taking=factor * next(looks), flushing=6.0)

        bench.row = row
        return bench.learn_costs(process, 1, 1.0, [[]]), bench.free

    def test_free_is_the_longest(self):
        flushes, free = self.costs()
        self.assertEqual(flushes, [6.0] * 7 + [5.0] * 7)
        most = 0.375 + rows_module.SLACK
        self.assertEqual(free, Free(fixed=0.25, most_fixed=most, besides=3.25, limit=4.5))

    def test_it_is_called_before_for_a_millisecond_at_most(self):
        bench = Bench.__new__(Bench)
        for seconds, calls in (0.0, 1), (1e-5, rows_module.WARM_CALLS), (1e-4, 10), (1e-3, 1), (4e-3, 1):
            bench.call_seconds = seconds
            self.assertEqual(bench.warm_calls(), calls)

    def test_a_baseline_that_was_made_slow_has_no_more_besides_than_it_once_had(self):
        bench = Bench.__new__(Bench)
        bench.device, bench.known, bench.known_fixed = "cuda", {}, {}
        process = types.SimpleNamespace(arena=types.SimpleNamespace(poison=lambda _count: None))

        def fixed(slow):
            bench.row = lambda _process, count, *_: Row(calls=1e-4 + slow + 1e-4 * count)
            bench.learn_costs(process, 16, 1.0, [[]] * 16)
            return bench.free.fixed

        self.assertAlmostEqual(fixed(0.0), 1e-4)
        self.assertAlmostEqual(fixed(5e-4), 1.5e-4 + rows_module.SLACK)

    def test_what_once_took_less_is_not_free_at_any_length(self):
        known = {}
        self.costs(known)
        self.assertEqual(self.costs(known, factor=100)[1].limit, 4.5)
        self.assertEqual(self.costs(known, factor=0.5)[1].limit, 3.75)


if __name__ == "__main__":
    unittest.main()
