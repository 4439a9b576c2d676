"""Which functions are kernels of a language beside Triton, and by what names the GPU shows them."""

import ast
import unittest

from kernelmill_torch import kernels, languages

GLUON = """import triton
from triton.experimental import gluon as g
from triton.experimental.gluon import jit as made

@g.jit
def first(x): pass

@made(noinline=True)
def second(x): pass

@triton.jit
def plain(x): pass

@gluon.jit
def unbound(x): pass
"""
CUTE = """import cutlass.cute as cute
import cutlass

@cute.kernel
def add(x): pass

@cutlass.cute.kernel
def mul(x): pass

@cute.jit
def host(x): add(x).launch(grid=[1, 1, 1], block=[1, 1, 1])

class Work:
    @cute.kernel
    def kernel(self, x): pass
"""
CUTILE = """import cuda.tile as ct

@ct.kernel
def add(x, TILE: ct.Constant[int]): pass

@ct.function
def helper(x): pass
"""
TILELANG = """import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[1])
def make(n):
    @T.prim_func
    def main(x: T.Tensor((n,), "float32")): pass
    return main
"""
HELION = """import helion
import helion.language as hl

@helion.kernel(config=helion.Config(block_sizes=[64]))
def add(x): pass

@helion.jit
def mul(x): pass
"""
SHOWN = {
    "gluon": (GLUON, {"first", "second"}, ["first", "second"], ["plain", "unbound", "first_1", "void first(float*)"]),
    "cute_dsl": (
        CUTE,
        {"add", "mul", "kernel"},
        [
            "kernel_cutlass_add_tensorptrf32gmemalign16o1_",
            "kernel_cutlass_kernel___main__Work_object_at__0",
            "kernel_cutlass_mul",
        ],
        [
            "add",
            "kernel_cutlass_host_",
            "kernel_cutlass_address_",
            "cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4",
        ],
    ),
    "cutile": (CUTILE, {"add"}, ["add_K1_A1f32", "add"], ["adder", "helper_K1_A1f32", "void add(float*)"]),
    "tilelang": (TILELANG, {"make", "main"}, ["main_kernel", "make_kernel_1"], ["main", "maintain_kernel"]),
    "helion": (
        HELION,
        {"add", "mul"},
        ["_helion_add", "_helion_mul_1"],
        ["add", "_helion_adder", "triton_poi_fused_add_0"],
    ),
}


class Languages(unittest.TestCase):
    def test_a_kernel_is_what_the_languages_own_decorator_marks(self):
        for name, (source, own, _, _) in SHOWN.items():
            self.assertEqual(set(kernels.own_kernels(source, name)), own, name)
            for other in SHOWN.keys() - {name}:
                self.assertEqual(set(kernels.own_kernels(source, other)), set(), (name, other))

    def test_what_the_gpu_shows_of_them_is_theirs(self):
        for name, (source, _, ours, theirs) in SHOWN.items():
            own = kernels.own_kernels(source, name)
            self.assertEqual([x for x in ours + theirs if kernels.is_own(x, own, name)], ours, name)

    def test_a_name_that_another_language_has_too_counts_for_neither(self):
        """A kernel of plain Triton or CUDA must not pass for one that is never launched."""
        twice = GLUON + "\n@triton.jit\ndef first(x): pass\n"
        self.assertEqual(set(kernels.own_kernels(twice, "gluon")), {"first", "second"} - {"first"})
        source = CUTE + 'text = "__global__ void kernel_cutlass_add_(float* x) {}"\n'
        self.assertEqual(set(kernels.own_kernels(source, "cute_dsl")), {"mul", "kernel"})

    def test_an_import_alone_makes_no_kernel(self):
        source = "import helion\nimport torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
        self.assertEqual(set(kernels.own_kernels(source, "helion")), set())

    def test_what_is_missing_is_told_with_how_it_is_had(self):
        one = languages.Language("no_such_module_here", "no-such-package", (), "{}", "1.2")
        self.assertFalse(one.is_installed())
        self.assertEqual(one.install, "pip install 'no-such-package>=1.2'")
        self.assertFalse(languages.Language("no_such.module.here", "x", (), "{}").is_installed())
        self.assertLessEqual(set(languages.missing()), set(languages.LANGUAGES))

    def test_paths_of_decorators_come_from_imports(self):
        tree = ast.parse("from a import b as c\nimport d.e\nimport f.g as h\nfrom . import i\n@c.x(1)\ndef k(): pass\n")
        paths = languages.imported(tree)
        self.assertEqual(paths, {"c": "a.b", "d": "d", "h": "f.g"})
        self.assertEqual(languages.path_of(tree.body[-1].decorator_list[0], paths), "a.b.x")

    def test_first_calls_of_each_may_compile(self):
        for source, *_ in SHOWN.values():
            self.assertTrue(kernels.may_compile_when_called(source), source)


if __name__ == "__main__":
    unittest.main()
