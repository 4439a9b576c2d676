"""Which baseline a wish becomes, what torch.compile leaves for the next process, and what it refuses."""

import os
import tempfile
import types
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import baselines, compiled, native
    from kernelmill_torch.baselines import EAGER, Baseline, Kept, Wish
    from kernelmill_torch.faults import Fault

REFUSES = "torch.compile refuses the model"


def has_compiler():
    return torch is not None and hasattr(torch, "compile")


class FakeProcess:
    def __init__(self, fails=None, said=None):
        self.fails, self.said, self.asked, self.closed = fails, said or {}, [], False

    def ask(self, message, _seconds, _descriptors=()):
        self.asked.append(message)
        if self.fails and message["op"] in self.fails:
            raise self.fails[message["op"]]
        return self.said

    def close(self):
        self.closed = True


class FakePool:
    def __init__(self, *processes):
        self.waiting, self.names = list(processes), []

    def take(self, who):
        self.names.append(who)
        return self.waiting.pop(0)


class FakeBench:
    device, place, float32, own_arena, is_random = "cpu", "cpu", "ieee", None, True

    def __init__(self, path):
        self.problem = types.SimpleNamespace(path=path, text="problem", constants=None, dtype=None, mutates=())
        self.attached, self.closed = [], 0

    def attach(self, process, _arena, name, _seed, _place, _seconds, mode="", kept=-1):
        self.attached.append((name, mode, kept >= 0))
        process.ask({"op": "build"}, 1.0)

    def close_baseline(self):
        self.closed += 1


@unittest.skipIf(torch is None, "there is no torch here")
class Which(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(setattr, Kept, "folder", Kept.folder)
        self.addCleanup(Baseline.refused.clear)
        Kept.folder = self.folder.name + "/kept"
        path = self.folder.name + "/problem.py"
        with open(path, "w") as file:
            file.write("")
        self.bench = FakeBench(path)
        self.baseline = Baseline(self.bench)
        self.baseline.call_first = lambda *_: None

    def start(self, kind, *processes):
        self.baseline.use(Wish(kind))
        return self.baseline.start(FakePool(*processes), 1, 5.0)

    def test_the_problems_own_model(self):
        process = FakeProcess()
        self.assertIs(self.start(EAGER, process), process)
        self.assertEqual((self.baseline.used, self.baseline.note), (EAGER, ""))
        self.assertEqual(self.bench.attached, [("Model", "", False)])

    def test_what_was_compiled_once_is_given_to_the_next(self):
        def keeps(process):
            ask = process.ask

            def asked(message, seconds, descriptors=()):
                if message["op"] == "compiled":
                    os.write(descriptors[0], b"files")
                return ask(message, seconds, descriptors)

            process.ask = asked
            return process

        said = {"graphs": 1, "breaks": [], "kept": True}
        self.start("compile", keeps(FakeProcess(said=said)))
        self.assertEqual((self.baseline.used, self.baseline.note), ("compile", ""))
        with open(Kept.path(self.baseline.key()), "rb") as file:
            self.assertEqual(file.read(), b"files")
        self.start("compile", FakeProcess(said=said))
        self.assertEqual(self.bench.attached, [("Model", "default", False), ("Model", "default", True)])
        self.start("compile_max_autotune", FakeProcess(said=said))
        self.assertEqual(self.bench.attached[-1], ("Model", "max-autotune-no-cudagraphs", False))

    def test_what_is_refused_is_timed_as_it_is_and_tried_once(self):
        refusing = FakeProcess(fails={"compiled": Fault("candidate", "runtime_error", "NotCompiled: no graph\nmore")})
        self.start("compile", refusing, FakeProcess())
        self.assertTrue(refusing.closed)
        self.assertEqual(self.baseline.used, EAGER)
        self.assertEqual(self.baseline.note, f"{REFUSES}: NotCompiled: no graph")
        self.start("compile", FakeProcess())
        self.assertEqual(self.baseline.used, EAGER)
        self.assertEqual([mode for _, mode, _ in self.bench.attached], ["default", "", ""])

    def test_what_the_machine_is_at_fault_for_is_no_refusal(self):
        lost = Fault("infrastructure", "python_failed", "gone")
        with self.assertRaises(Fault):
            self.start("compile", FakeProcess(fails={"compiled": lost}))
        self.assertEqual(Baseline.refused, {})

    def test_several_graphs_are_told(self):
        self.start("compile", FakeProcess(said={"graphs": 3, "breaks": ["a print"], "kept": False}))
        self.assertEqual(self.baseline.note, "torch.compile made 3 graphs of the model: a print")
        self.assertFalse(os.path.exists(Kept.path(self.baseline.key())))

    def test_another_wish_ends_the_process_and_the_same_keeps_it(self):
        self.baseline.use(Wish("compile"))
        self.baseline.use(Wish("compile"))
        self.assertEqual(self.bench.closed, 1)
        self.baseline.use(Wish("file", -1, "a"))
        self.baseline.use(Wish("file", -1, "b"))
        self.assertEqual(self.bench.closed, 3)

    def test_the_key_is_of_all_that_the_compiler_sees(self):
        self.baseline.use(Wish("compile"))
        keys = {self.baseline.key()}
        for name, value in (("text", "other"), ("constants", {"n": 2}), ("dtype", "float16"), ("mutates", (0,))):
            setattr(self.bench.problem, name, value)
            keys.add(self.baseline.key())
        self.bench.float32 = "tf32"
        keys.add(self.baseline.key())
        self.assertEqual(len(keys), 6)

    def test_old_files_make_room(self):
        self.addCleanup(setattr, baselines, "FOLDER_BYTES", baselines.FOLDER_BYTES)
        baselines.FOLDER_BYTES = 10
        for at, key in enumerate(("a", "b", "c")):
            fd = native.memory_file("kept", 0)
            os.write(fd, b"12345")
            Kept.put(key, fd)
            os.close(fd)
            os.utime(Kept.path(key), (at, at))
        Kept.make_room()
        self.assertEqual(sorted(os.listdir(Kept.folder)), ["b.tar", "c.tar"])


@unittest.skipIf(torch is None, "there is no torch here")
class Compiled(unittest.TestCase):
    def test_files_come_back_where_they_were_but_for_locks(self):
        with tempfile.TemporaryDirectory() as folder:
            self.addCleanup(setattr, compiled, "DIRECTORIES", compiled.DIRECTORIES)
            compiled.DIRECTORIES = (folder + "/inductor", folder + "/none")
            os.makedirs(folder + "/inductor/ab")
            for name in ("ab/code.py", "ab/code.lock"):
                with open(f"{folder}/inductor/{name}", "w") as file:
                    file.write(name)
            fd = native.memory_file("kept", 0)
            self.assertTrue(compiled.pack(fd))
            os.remove(folder + "/inductor/ab/code.py")
            os.remove(folder + "/inductor/ab/code.lock")
            compiled.unpack(fd)
            self.assertEqual(os.listdir(folder + "/inductor/ab"), ["code.py"])
            os.ftruncate(fd, 100)  # what is damaged is compiled anew
            compiled.unpack(fd)
            os.close(fd)

    @unittest.skipIf(has_compiler(), "this torch has torch.compile")
    def test_a_torch_without_a_compiler_says_so(self):
        with self.assertRaisesRegex(compiled.NotCompiled, "has no torch.compile"):
            compiled.compile_model(torch.nn.ReLU(), "default", -1)

    @unittest.skipUnless(has_compiler(), "this torch has no torch.compile, which came with 2.0")
    def test_a_model_is_compiled_and_gives_the_same(self):
        model, x = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()), torch.rand(2, 8)
        made = compiled.compile_model(model, "default", -1)
        with torch.no_grad():
            self.assertTrue(torch.allclose(made(x), model(x)))
        fd = native.memory_file("kept", 0)
        found = compiled.facts(fd)
        self.assertEqual((found["graphs"], found["breaks"], found["kept"]), (1, [], True))
        self.assertGreater(os.fstat(fd).st_size, 0)
        os.close(fd)


if __name__ == "__main__":
    unittest.main()
