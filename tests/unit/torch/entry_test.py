"""A function in place of ModelNew."""

import importlib.util
import types
import unittest

if importlib.util.find_spec("torch"):
    import torch
    from kernelmill_torch import entry


@unittest.skipUnless(importlib.util.find_spec("torch"), "this Python has no torch")
class Entry(unittest.TestCase):
    @staticmethod
    def module(**names):
        result = types.ModuleType("candidate")
        vars(result).update(names)
        return result

    def test_one_that_takes_arguments_gets_each(self):
        module = self.module(run=lambda a, b: (a + b, b))
        entry.adopt(module, "run:arguments")
        self.assertEqual(module.ModelNew()(1, 2), (3, 2))
        self.assertIsInstance(module.ModelNew(), torch.nn.Module)

    def test_one_that_takes_a_tuple_gets_all(self):
        module = self.module(custom_kernel=lambda data: data)
        entry.adopt(module, "custom_kernel:tuple")
        self.assertEqual(module.ModelNew()(1, 2), (1, 2))

    def test_what_has_a_model_keeps_it(self):
        kind = type("ModelNew", (), {})
        module = self.module(run=len, ModelNew=kind)
        entry.adopt(module, "run:arguments")
        self.assertIs(module.ModelNew, kind)

    def test_what_has_neither_or_may_not_gets_none(self):
        for names, asked in (({"run": 1}, "run:arguments"), ({"run": len}, ""), ({}, "run:tuple")):
            module = self.module(**names)
            entry.adopt(module, asked)
            self.assertFalse(hasattr(module, "ModelNew"), asked)


if __name__ == "__main__":
    unittest.main()
