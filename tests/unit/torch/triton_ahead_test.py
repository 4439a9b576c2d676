"""What travels of Triton's cache, and, where Triton is installed, that the slot would find it there."""

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from kernelmill_torch import triton_ahead

CANDIDATE = """
import torch, triton, triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

@triton.jit
def add_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 1 + tl.load(x + at, mask=at < n), mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert x.is_cuda and x.device.type == "cuda"
        y, z = torch.empty_like(x), torch.empty(x.shape, device=x.device)
        double_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        with torch.cuda.device(x.device):
            add_kernel[(1,)](y, z, x.numel(), BLOCK=128)
        return z
"""

# In a process of its own: calls forward of the file argv[1] as the recorder does, and prints which kernels came out
# of the cache.
DRIVER = """
import importlib.util, json, os, sys
import torch
from kernelmill_torch import record, triton_ahead
from triton import knobs
seen = []
knobs.compilation.listener = lambda **x: seen.append([x["src"].name, x["cache_hit"]])
triton_ahead.DIRECTORY = sys.argv[2]
properties = record.gpu_properties("9.0")
record.pretend_cuda(properties)
spec = importlib.util.spec_from_file_location("candidate", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["candidate"] = module
spec.loader.exec_module(module)
triton_ahead.compile_forward([(module.ModelNew, [torch.empty(1 << 16, device="meta")])], sys.argv[1], "9.0", properties)
files = triton_ahead.cache_files()
print(json.dumps({"seen": sorted(seen), "files": files}))
"""


def has_triton() -> bool:
    """Triton 3.4 or newer: the test listens to its compiler."""
    if importlib.util.find_spec("triton") is None:
        return False
    import triton

    return hasattr(triton, "knobs")


class Shapes(unittest.TestCase):
    def compiled(self, *makers):
        """What was done, in order, with inputs that are the makers' positions."""
        done = []
        with contextlib.ExitStack() as stack:
            replaced = {
                "compile_instead_of_launching": lambda *_: None,
                "pretend_tensors": lambda *_: done.append("pretend"),
                "on_meta": contextlib.nullcontext,
            }
            for name, other in replaced.items():
                stack.enter_context(unittest.mock.patch.object(triton_ahead, name, other))
            calls = [(lambda make=make: make(done), [i]) for i, make in enumerate(makers)]
            triton_ahead.compile_forward(calls, "candidate.py", "9.0", None)
        return done

    @staticmethod
    def works(done):
        done.append("made")
        return done.append

    @staticmethod
    def fails(_done):
        raise ValueError("no such size")

    def test_all_models_are_made_before_tensors_pretend(self):
        self.assertEqual(self.compiled(self.works, self.works), ["made", "made", "pretend", 0, 1])

    def test_a_variant_that_fails_costs_the_others_nothing(self):
        self.assertEqual(self.compiled(self.works, self.fails, self.works), ["made", "made", "pretend", 0, 2])

    def test_a_model_that_fails_at_the_problems_own_shape_is_told(self):
        self.assertRaises(ValueError, self.compiled, self.fails, self.works)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.kept, triton_ahead.DIRECTORY = triton_ahead.DIRECTORY, self.folder + "/cache"

    def tearDown(self):
        triton_ahead.DIRECTORY = self.kept
        shutil.rmtree(self.folder)

    def test_come_back_as_they_were(self):
        os.makedirs(triton_ahead.DIRECTORY + "/AB")
        with open(triton_ahead.DIRECTORY + "/AB/relu.cubin", "wb") as file:
            file.write(b"\x00\xff")
        files = triton_ahead.cache_files()
        shutil.rmtree(triton_ahead.DIRECTORY)
        triton_ahead.put_files(files)
        with open(triton_ahead.DIRECTORY + "/AB/relu.cubin", "rb") as file:
            self.assertEqual(file.read(), b"\x00\xff")

    def test_that_are_too_much_are_no_silence(self):
        os.makedirs(triton_ahead.DIRECTORY + "/AB")
        with open(triton_ahead.DIRECTORY + "/AB/big.cubin", "wb") as file:
            file.truncate(triton_ahead.MOST_BYTES + 1)
        with self.assertRaisesRegex(ValueError, "32 MiB"):
            triton_ahead.cache_files()

    def test_do_not_leave_their_directory(self):
        for name in ("../x", "/etc/x", "a/../../x", "a/b/c", ".a/b", "a/.b", "a"):
            with self.assertRaises(ValueError, msg=name):
                triton_ahead.put_files({name: ""})
        self.assertEqual(os.listdir(self.folder), [])


@unittest.skipUnless(has_triton(), "this Python has no Triton")
class Ahead(unittest.TestCase):
    def compile(self, path, cache):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        run = subprocess.run(
            [sys.executable, "-c", DRIVER, path, cache], env=environment, capture_output=True, text=True, check=False
        )
        self.assertEqual(run.returncode, 0, run.stderr[-3000:])
        return json.loads(run.stdout)

    def test_the_slot_finds_what_was_compiled(self):
        with tempfile.TemporaryDirectory() as folder:
            for place in ("one", "two"):
                os.mkdir(f"{folder}/{place}")
                with open(f"{folder}/{place}/candidate.py", "w", encoding="utf-8") as file:
                    file.write(CANDIDATE)
            first = self.compile(f"{folder}/one/candidate.py", folder + "/cache")
            self.assertEqual(first["seen"], [["add_kernel", False], ["double_kernel", False], ["double_kernel", False]])
            self.assertTrue(any(x.endswith(".cubin") for x in first["files"]))
            self.assertTrue(any("launcher" in x for x in first["files"]))
            again = self.compile(f"{folder}/two/candidate.py", folder + "/cache")
            self.assertEqual({hit for _, hit in again["seen"]}, {True})

    def test_says_why_when_no_configuration_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/candidate.py", "w", encoding="utf-8") as file:
                file.write(CANDIDATE.replace("2 * tl.load", "2 * tl.absent"))
            with self.assertRaisesRegex(AssertionError, "absent"):
                self.compile(folder + "/candidate.py", folder + "/cache")


if __name__ == "__main__":
    unittest.main()
