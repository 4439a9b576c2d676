"""What is the problem's own model under other names, and what is not."""

import unittest

try:
    from kernelmill_torch.sameness import is_own_model
except ImportError:
    is_own_model = None

PROBLEM = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    """Relu of a linear layer."""
    def __init__(self, n: int, m: int):
        super(Model, self).__init__()
        self.linear = nn.Linear(n, m)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return torch.relu(y)

def get_inputs():
    return [torch.rand(64, 96)]
'''
ANSWER = PROBLEM.replace("Model", "ModelNew")


@unittest.skipIf(is_own_model is None, "there is no torch here")
class Sameness(unittest.TestCase):
    def test_the_model_under_other_names_with_flags_is_the_same(self):
        for answer in (
            ANSWER,
            ANSWER.replace("super(ModelNew, self)", "super()"),
            ANSWER.replace("y = self.linear(x)", "hidden = self.linear(x);").replace("relu(y)", "relu(hidden)"),
            ANSWER.replace("x: torch.Tensor", "a").replace("(x)", "(a)"),
            ANSWER.replace("import torch\n", "import torch\ntorch.backends.cudnn.benchmark = True\n", 1),
            ANSWER.replace("        y =", "        torch.backends.cuda.matmul.allow_tf32 = True\n        y ="),
            ANSWER.replace("import torch\n", "import torch\ntorch.set_float32_matmul_precision('high')\n", 1),
            ANSWER.replace("torch.nn as nn", "torch.nn as layers").replace("nn.", "layers."),
            PROBLEM + ANSWER,
            PROBLEM + "\nModelNew = Model\n",
            PROBLEM.replace("Model", "Net") + "\nclass ModelNew(Net):\n    pass\n",
            "BLOCK = 128\n\ndef rows(x, block=BLOCK):\n    return x // block\n" + ANSWER,
            ANSWER + "\nclass Tuned:\n    block = 128\n",
        ):
            self.assertTrue(is_own_model(answer, PROBLEM), answer)

    def test_a_function_may_repeat_one_of_the_problem(self):
        problem = (
            "import torch\n\ndef reference(x):\n    return torch.relu(x)\n\n"
            + "class Model(torch.nn.Module):\n    def forward(self, x):\n        return reference(x)\n"
        )
        own = "import torch\n\ndef run(inputs):\n    return torch.relu(inputs)\n"
        self.assertTrue(is_own_model(own, problem, "run"))
        self.assertTrue(is_own_model(own.replace("run", "reference") + "run = reference\n", problem, "run"))
        self.assertTrue(is_own_model(problem.replace("class Model", "class ModelNew"), problem, "run"))
        self.assertFalse(is_own_model(own, problem))
        self.assertFalse(is_own_model(own.replace("torch.relu(inputs)", "inputs.clamp(min=0)"), problem, "run"))

    def test_what_has_code_of_its_own_is_not(self):
        for answer in (
            ANSWER.replace("torch.relu(y)", "y.clamp(min=0)"),
            ANSWER.replace("return torch.relu(y)", "return torch.relu_(y)"),
            ANSWER + "\n_ = setattr(nn.Linear, 'forward', lambda self, x: x)\n",
            "@torch.jit.script\ndef fast(x):\n    return x\n" + ANSWER,
            PROBLEM + "\nclass ModelNew(Model):\n    def forward(self, x):\n        return self.linear(x)\n",
            PROBLEM.replace("Model", "Net") + "\nclass ModelNew(Net, metaclass=type):\n    pass\n",
            ANSWER + "\nnn.Linear.forward = lambda self, x: x\n",
            ANSWER.replace("import torch.nn as nn", "import fast.nn as nn"),
            "from triton import language as nn\n" + ANSWER,
            ANSWER.replace("import torch.nn as nn", "import torch.nn as nn\nimport torch.nn.quantized as nn"),
            ANSWER.replace("class ModelNew", "@torch.compile\nclass ModelNew"),
            "class ModelNew(",
            "",
        ):
            self.assertFalse(is_own_model(answer, PROBLEM), answer)
