"""A user's own model becomes tasks, and an answer goes back into it."""

import importlib.util
import json
import os
import tempfile
import unittest

if importlib.util.find_spec("torch"):
    import torch
    from kernelmill_torch import model_patch, model_source, model_tasks
    from kernelmill_torch.model_trace import NotUsable

MODEL = """
import math

import torch
import torch.nn as nn

WIDTH = 32


class Attention(nn.Module):
    def __init__(self, width, heads, bias=True):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        w = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(c // self.heads), -1)
        return self.out((w @ v).transpose(1, 2).reshape(n, t, c))


class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.embed = nn.Embedding(50, WIDTH)
        self.layers = nn.ModuleList(Attention(WIDTH, heads=4) for _ in range(depth))
        self.gate = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())

    def forward(self, ids):
        x = self.embed(ids)
        for i, layer in enumerate(self.layers):
            x = x + layer(x if i == 0 else x[:, :8])[:, :8].mean()
        return self.gate(x)


def other():
    return Net(1)


def model():
    return Net(2).eval()


def inputs():
    return torch.randint(0, 50, (3, 16))


if __name__ == "__main__":
    raise SystemExit("a program")
"""
ANSWER = """
import math
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        w = torch.softmax(q @ k.transpose(-1, -2) * (1 / math.sqrt(8)), -1)
        return self.out((w @ v).transpose(1, 2).reshape(n, t, c))
"""


@unittest.skipUnless(importlib.util.find_spec("torch"), "this Python has no torch")
class ModelTasks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, text, name="mine.py"):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def tasks(self, text=MODEL, share=0.01, entry="model"):
        made = model_tasks.Tasks(self.write(text), entry, share).make()
        return {x["id"]: x["files"] for x in made["tasks"]}, made["refused"]

    def test_the_whole_and_hot_parts_are_tasks(self):
        tasks, refused = self.tasks()
        self.assertIn("model/mine/whole", tasks)
        part = tasks["model/mine/Attention"]
        document = json.loads(part["task.json"])
        self.assertEqual(document["source"], "own")
        self.assertEqual([x["set"] for x in document["variants"]], [{"INPUT_0": [3, 8, 32]}])
        self.assertIn("super().__init__(32, heads=4)\n        self.eval()", part["problem.py"])
        self.assertIn("INPUT_0 = (3, 16, 32)", part["problem.py"])
        self.assertNotIn("class Net", part["problem.py"])
        self.assertNotIn("def other", tasks["model/mine/whole"]["problem.py"])
        self.assertIn("arguments that are no plain values", [x["reason"] for x in refused])

    def test_each_problem_runs_by_itself(self):
        tasks, _ = self.tasks()
        for name, files in tasks.items():
            space = {"__name__": "problem"}
            exec(files["problem.py"], space)
            found = space["Model"](*space["get_init_inputs"]())(*space["get_inputs"]())
            self.assertIsInstance(found, torch.Tensor, name)

    def test_the_share_decides(self):
        self.assertEqual(list(self.tasks(share=2.0)[0]), ["model/mine/whole"])

    def test_an_answer_goes_back_with_the_parameters_of_what_it_replaces(self):
        tasks, _ = self.tasks()
        path = os.path.join(self.folder, "mine.py")
        made = model_patch.patched(ANSWER, tasks["model/mine/Attention"]["problem.py"], path)
        self.assertEqual(made["whole"], "model/mine/whole")
        own, new = {"__name__": "own"}, {"__name__": "patched"}
        exec(MODEL, own)
        exec(made["text"], new)
        torch.manual_seed(5)
        wanted = own["model"]()
        torch.manual_seed(5)
        found = new["ModelNew"]()
        kinds = [type(x).__name__ for x in found.modules()]
        self.assertEqual(kinds.count("Attention"), 0)
        self.assertFalse(any(x.training for x in found.model.layers))
        ids = own["inputs"]()
        with torch.no_grad():
            self.assertLess(float((found(ids) - wanted(ids)).abs().max()), 1e-5)

    def test_an_answer_with_other_parameters_is_refused(self):
        tasks, _ = self.tasks()
        made = model_patch.patched(
            ANSWER.replace("32, 96", "32, 97"),
            tasks["model/mine/Attention"]["problem.py"],
            os.path.join(self.folder, "mine.py"),
        )
        space = {"__name__": "patched"}
        exec(made["text"], space)
        with self.assertRaisesRegex(RuntimeError, "other parameters"):
            space["ModelNew"]()

    def test_a_task_of_another_file_takes_no_answer(self):
        tasks, _ = self.tasks()
        problem = tasks["model/mine/Attention"]["problem.py"]
        with self.assertRaisesRegex(ValueError, "made of mine.py"):
            model_patch.patched(ANSWER, problem, self.write(MODEL, "other.py"))
        with self.assertRaisesRegex(ValueError, "was not made of a model"):
            model_patch.patched(ANSWER, "import torch\n", self.write(MODEL))

    def test_what_is_no_model_is_named(self):
        for text, words in (
            ("def inputs():\n    return 1\n", "it defines no model"),
            ("import torch\nmodel = torch.nn.Linear(2, 2)\n", "it defines no inputs"),
            ("def model():\n    return 7\ndef inputs():\n    return 1\n", "no nn.Module"),
            ("def model():\n    raise ValueError('here')\n", "here"),
            ("raise ValueError('at import')\n", "at import"),
            (MODEL.replace("(3, 16))", "(3, 16)), [1]"), "gives a list"),
            (MODEL.replace("(0, 50,", "(50, 51,"), "fails on inputs"),
            ("import beside\n" + MODEL, "imports beside from beside it"),
            (MODEL.replace("return self.gate(x)", "return {'y': x}"), "it gives a dict"),
            (MODEL.replace("return self.gate(x)", "return self.gate(x)[: int(x.abs().sum() * 1000) % 3]"), ""),
        ):
            self.write("X = 1\n", "beside.py")
            if not words:
                continue
            with self.assertRaises(NotUsable, msg=text[-200:]) as caught:
                self.tasks(text)
            self.assertIn(words, str(caught.exception))

    def test_parts_that_cannot_be_taken_are_named(self):
        inside = MODEL.replace(
            "def model():\n    return Net(2).eval()",
            "def model():\n    class Inner(Attention):\n        pass\n"
            "    made = Net(1)\n    made.layers[0] = Inner(WIDTH, 4)\n    return made",
        )
        reasons = {x["reason"] for x in self.tasks(inside)[1]}
        self.assertIn("a class inside of a function", reasons)
        pairs = MODEL.replace("layer(x if i == 0 else x[:, :8])", "layer((x, x))").replace(
            "n, t, c = x.shape", "x = x[0]\n        n, t, c = x.shape"
        )
        self.assertIn("arguments that are no tensors", {x["reason"] for x in self.tasks(pairs)[1]})

    def test_a_slice_of_a_module_has_what_a_name_needs_and_no_more(self):
        text = "import a\nX = 1\nY = X + 1\n@a.b\ndef f():\n    return Y\ndef g():\n    return f\nZ = 3\n"
        self.assertEqual(
            model_source.needed_of(text, {"f"}), "import a\nX = 1\nY = X + 1\n\n\n@a.b\ndef f():\n    return Y\n"
        )


if __name__ == "__main__":
    unittest.main()
