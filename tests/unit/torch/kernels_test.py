"""Whose kernels ran, and whether a module may compile when it is called."""

import unittest

from kernelmill_torch import kernels

TRITON = """import triton
import triton.language as tl

@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    pass
"""
CUDA = '''source = r"""
template <class T> __global__ void __launch_bounds__(256) relu_kernel(const T* x, T* y, int n) {}
"""
'''


class OwnKernels(unittest.TestCase):
    def test_of_one_language(self):
        self.assertEqual(kernels.own_kernels(TRITON + CUDA, "triton"), {"add_kernel"})
        self.assertEqual(kernels.own_kernels(TRITON + CUDA, "cuda"), {"relu_kernel"})

    def test_of_all(self):
        self.assertEqual(kernels.own_kernels(TRITON + CUDA, "any"), {"add_kernel", "relu_kernel"})

    def test_share_of_the_time_without_copies(self):
        profile = [["void relu_kernel<float>(float const*, float*, int)", 30.0], ["ampere_sgemm_128x64", 10.0],
                   ["Memcpy DtoD (Device -> Device)", 100.0]]
        self.assertEqual(kernels.own_share(profile, {"relu_kernel"}), 0.75)
        self.assertEqual(kernels.own_share([], {"relu_kernel"}), 0.0)


class CompilesWhenCalled(unittest.TestCase):
    def test_what_compiles_at_its_first_call(self):
        self.assertTrue(kernels.may_compile_when_called(TRITON))
        self.assertTrue(kernels.may_compile_when_called("model = torch.compile(model)"))
        self.assertTrue(kernels.may_compile_when_called("model = torch.jit.script(model)"))

    def test_what_was_built_before_it(self):
        self.assertFalse(kernels.may_compile_when_called(CUDA))
        self.assertFalse(kernels.may_compile_when_called("return torch.relu(x)"))


if __name__ == "__main__":
    unittest.main()
