"""What the recorder reads out of a source and an exception. No candidate runs here."""

import ast
import unittest

from kernelmill_torch import record


class Reading(unittest.TestCase):
    def test_definitions_are_found(self):
        for text in ("class ModelNew: pass", "ModelNew = 1", "if 1:\n  class ModelNew: pass"):
            self.assertTrue(record.defines(ast.parse(text), "ModelNew"))
        self.assertFalse(record.defines(ast.parse("x = ModelNew"), "ModelNew"))

    def test_a_placeholder_raises_when_called(self):
        module = record.Placeholder("relu")
        function = module.relu_cuda
        with self.assertRaises(record.NotBuilt):
            function(1)
        self.assertFalse(hasattr(module, "__path__"))

    def test_a_problem_names_the_candidates_line(self):
        try:
            exec(compile("x = 1\nraise KeyError('a')\n", "/build/candidate.py", "exec"), {})
        except KeyError as problem:
            said = record.describe(problem, "/build/candidate.py")
        self.assertEqual((said["type"], said["line"]), ("KeyError", 2))
        self.assertNotIn("/build", said["traceback"])

    def test_a_recorder_keeps_each_request_once_and_sixteen_at_most(self):
        recorder = record.Recorder()
        make = lambda i: record.extension_request.normalize_inline(name=f"e{i}", cpp_sources="")
        for i in range(record.MOST_EXTENSIONS):
            recorder.answer(make(i))
            recorder.answer(make(i))
        self.assertEqual(len(recorder.requests), 16)
        with self.assertRaises(record.extension_request.RequestError):
            recorder.answer(make(17))


if __name__ == "__main__":
    unittest.main()
