"""Requests of extensions: equal calls are equal requests, bad ones are refused."""

import os
import tempfile
import unittest

from kernelmill_torch import extension_request as er

try:
    import torch.utils.cpp_extension as cpp_extension
except Exception:  # no torch here
    cpp_extension = None


class Normalizing(unittest.TestCase):
    def test_a_string_and_a_list_of_it_are_one_request(self):
        one = er.normalize_inline(name="a", cpp_sources="int f();", functions="f")
        two = er.normalize_inline(name="a", cpp_sources=["int f();"], functions=["f"], verbose=True)
        self.assertEqual(er.key(one), er.key(two))
        self.assertEqual(one["functions"], {"f": "f"})
        self.assertEqual([s["name"] for s in one["sources"]], ["main.cpp"])

    def test_docstrings_and_several_sources_are_kept(self):
        request = er.normalize_inline(
            name="a",
            cpp_sources=["x", "y"],
            cuda_sources=("p", "q"),
            functions={"f": "what it does"},
            extra_cflags=["-O3"],
            extra_cuda_cflags="-lineinfo",
            with_cuda=True,
        )
        self.assertEqual(
            request["sources"], [{"name": "main.cpp", "text": "x\ny"}, {"name": "cuda.cu", "text": "p\nq"}]
        )
        self.assertEqual(request["functions"], {"f": "what it does"})
        self.assertEqual(request["cuda_cflags"], ["-lineinfo"])

    def test_what_changes_the_product_changes_the_key(self):
        plain = er.key(er.normalize_inline(name="a", cpp_sources=""))
        for change in (
            {"extra_cflags": ["-O3"]},
            {"functions": []},
            {"no_implicit_headers": True},
            {"extra_ldflags": ["-lm"]},
            {"is_python_module": False},
            {"cuda_sources": "x"},
        ):
            other = er.normalize_inline(**{"name": "a", "cpp_sources": "", **change})
            self.assertNotEqual(plain, er.key(other))

    def test_the_key_is_of_canonical_json(self):
        request = er.normalize_inline(name="a", cpp_sources="")
        self.assertEqual(er.key(request), er.key(dict(reversed(list(request.items())))))
        self.assertEqual(len(er.key(request)), 64)

    def test_bad_arguments_are_refused(self):
        for bad in (
            {"name": 1},
            {"cpp_sources": 3},
            {"functions": [1]},
            {"nonsense": True},
            {"sycl_sources": "x"},
            {"extra_cflags": {"a": 1}},
        ):
            with self.assertRaises(er.RequestError):
                er.normalize_inline(**{"name": "a", "cpp_sources": "", **bad})

    def test_files_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.cu")
            with open(path, "w") as file:
                file.write("text")
            request = er.normalize_files(name="a", sources=[path], build_directory=folder)
            self.assertEqual(request["sources"], [{"name": "k.cu", "text": "text"}])
            with open(os.path.join(folder, "k.cuh"), "w") as file:
                file.write('#include "other.h"\n#include "/etc/passwd"\n')
            with open(os.path.join(folder, "other.h"), "w") as file:
                file.write("int n;")
            with open(path, "w") as file:
                file.write('#include "k.cuh"\n#include <vector>\n#include "../x.h"\n#include "absent.h"\n')
            request = er.normalize_files(name="a", sources=path)
            self.assertEqual([s["name"] for s in request["sources"]], ["k.cu", "k.cuh", "other.h"])
            with self.assertRaises(er.RequestError):
                er.normalize_files(name="a", sources=path + "x")


@unittest.skipIf(cpp_extension is None, "torch cannot be imported")
class Installing(unittest.TestCase):
    def setUp(self):
        self.saved = cpp_extension.load_inline, cpp_extension.load

    def tearDown(self):
        cpp_extension.load_inline, cpp_extension.load = self.saved

    def test_calls_are_recorded_as_torch_binds_them(self):
        seen = []
        er.install(lambda request: seen.append(request) or "module")
        self.assertEqual(cpp_extension.load_inline("a", "int f();", functions=["f"]), "module")
        self.assertEqual(
            cpp_extension.load_inline(name="a", cpp_sources="int f();", functions="f", no_implicit_headers=False),
            "module",
        )
        self.assertEqual(er.key(seen[0]), er.key(seen[1]))
        with self.assertRaises(er.RequestError):
            cpp_extension.load_inline()


if __name__ == "__main__":
    unittest.main()
