"""Which files of a task's folder are read."""

import os
import tempfile
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch.problem import BadProblem, Problem

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.randn(1024)]
"""


@unittest.skipIf(torch is None, "there is no torch here")
class TaskFiles(unittest.TestCase):
    def folder(self):
        result = tempfile.TemporaryDirectory()
        self.addCleanup(result.cleanup)
        with open(os.path.join(result.name, "problem.py"), "w") as file:
            file.write(PROBLEM)
        return result.name

    def test_a_link_out_of_the_folder_is_refused_by_name(self):
        folder, elsewhere = self.folder(), self.folder()
        path = os.path.join(folder, "problem.py")
        os.rename(path, os.path.join(folder, "real.py"))
        os.symlink("real.py", path)
        self.assertEqual(Problem(folder, "cpu").text, PROBLEM)
        for target in os.path.join(elsewhere, "problem.py"), "/etc/passwd", "/dev/zero", folder:
            os.unlink(path)
            os.symlink(target, path)
            with self.assertRaises(BadProblem) as raised:
                Problem(folder, "cpu")
            self.assertEqual(raised.exception.category, "bad_task")
            self.assertIn(path, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
