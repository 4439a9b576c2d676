"""Extensions that were built ahead, put where the module loads them from."""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

from kernelmill_torch import artifact
from kernelmill_torch import extension_request as er


class Loader:
    """In place of the loader of libraries: a module keeps its library's path."""

    def __init__(self, name, path):
        self.name, self.path = name, path

    def create_module(self, _spec):
        return None

    def exec_module(self, module):
        module.path = self.path


class TwoOfOneName(unittest.TestCase):
    def test_each_is_as_written_and_what_is_loaded_is_not_written_over(self):
        requests = [er.normalize_inline(name="ext", cpp_sources=x, functions="f") for x in ("int f();", "long f();")]
        found = artifact.Artifact(b"", {er.key(x): ("ext", x["sources"][0]["text"].encode()) for x in requests})
        self.addCleanup(sys.modules.pop, "ext", None)
        given = []
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch.object(er, "install", given.append):
                artifact.offer_extensions(found, folder)
            with unittest.mock.patch("importlib.machinery.ExtensionFileLoader", Loader):
                modules = [given[0](x) for x in requests]
                self.assertIs(given[0](requests[0]), modules[0])
            self.assertEqual([pathlib.Path(x.path).read_text() for x in modules], ["int f();", "long f();"])


if __name__ == "__main__":
    unittest.main()
