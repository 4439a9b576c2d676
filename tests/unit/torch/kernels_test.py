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


SAID = '''"""@triton.jit
def at(x): pass
__global__ void at(float* x) {}
"""
# __global__ void void_(
# @triton.jit
# def cutlass(x): pass
import triton as tr

@tr.autotune(configs=[], key=[])
@tr.jit
# what it does
def real(x):
    "__global__ void native(float* x) {}"

class Model:
    """__global__ void c10(float* x) {}"""
    @jit(do_not_specialize=["n"])
    def inner(x): pass
    @torch.jit.script
    def scripted(x): pass

source = "/* __global__ void cub( */ // __global__ void thrust(\\n" \\
    "char s[] = \\"__global__ void std(\\"; __global__ void mine(float* x) {}"
template = f"__global__ void __launch_bounds__({BLOCK}) own(int x) {{}} __global__ void {BLOCK}_other(int x) {{}}"
compiled = build(b"extern \\"C\\" __global__ void plain(int x) {}")
'''


class OwnKernels(unittest.TestCase):
    def test_of_one_language(self):
        self.assertEqual(kernels.own_kernels(TRITON + CUDA, "triton"), {"add_kernel"})
        self.assertEqual(kernels.own_kernels(TRITON + CUDA, "cuda"), {"relu_kernel"})

    def test_of_all(self):
        self.assertEqual(kernels.own_kernels(TRITON + CUDA, "any"), {"add_kernel", "relu_kernel"})

    def test_comments_and_docstrings_define_none(self):
        self.assertEqual(kernels.own_kernels(SAID, "triton"), {"real", "inner"})
        self.assertEqual(kernels.own_kernels(SAID, "cuda"), {"mine", "own", "plain"})

    def test_kernels_of_a_file_that_the_module_writes(self):
        self.assertEqual(kernels.own_kernels(f"write({TRITON!r})", "triton"), {"add_kernel"})

    def test_named_as_inductor_names_its_own_where_it_cannot_run(self):
        source = TRITON
        names = {"triton_poi_fused_add_relu_0", "triton_red__3", "triton_"}
        for name in names:
            source += f"\n@triton.jit\ndef {name}(x):\n    pass\n"
        self.assertEqual(kernels.own_kernels(source, "triton"), names | {"add_kernel"})
        for compiles in (
            "model = torch.compile(Model())",
            "from torch import compile as c",
            "getattr(torch, 'compile')(Model())",
            "torch._dynamo.optimize('inductor')",
            "from torch._inductor.compile_fx import compile_fx as c",
        ):
            self.assertEqual(kernels.own_kernels(f"{source}\n{compiles}", "triton"), {"add_kernel"}, compiles)
        for does_not in (
            "# torch.compile",
            "import re\nWORD = re.compile('x')",
            "from torch._inductor.runtime import triton_helpers",
            "optimizer.optimize()",
        ):
            self.assertEqual(kernels.own_kernels(f"{source}\n{does_not}", "triton"), names | {"add_kernel"}, does_not)

    def test_attributes_of_kernels(self):
        for attributes in (
            "void __cluster_dims__(2, 1, 1) __launch_bounds__(f(256), 2)",
            "static void",
            "__maxnreg__(64) void",
            "__attribute__((noinline)) void",
            "void",
            "__launch_bounds__(1'024) void",
        ):
            self.assertEqual(
                kernels.own_kernels(f'source = "__global__ {attributes} mine(float* x) {{}}"', "cuda"),
                {"mine"},
                attributes,
            )

    def test_long_sources_take_no_longer_than_they_are_long(self):
        for text in (
            "@jit" + "\n" * 300_000,
            "__global__ " * 30_000,
            "__global__ __a__(" + "(" * 100_000,
            "@jit(" * 60_000,
        ):
            self.assertEqual(kernels.own_kernels(f"source = {text!r}", "any"), set())

    def test_what_cannot_be_parsed_defines_none(self):
        for source in ("def x(:", "\0", "-" * 99999 + "1"):
            self.assertEqual(kernels.own_kernels(source, "any"), set())

    def test_a_task_that_wants_no_language_is_not_asked(self):
        self.assertTrue({"any", "torch"}.isdisjoint(kernels.LANGUAGES))

    def test_share_of_the_time_without_copies(self):
        profile = [
            ["void relu_kernel<float>(float const*, float*, int)", 30.0],
            ["ampere_sgemm_128x64", 10.0],
            ["Memcpy DtoD (Device -> Device)", 100.0],
        ]
        self.assertEqual(kernels.own_share(profile, {"relu_kernel"}, "cuda"), 0.75)
        self.assertEqual(kernels.own_share([], {"relu_kernel"}, "cuda"), 0.0)


ATEN = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, "
    "3ul> >(int, at::nat"
)  # cut off
RETURNS = "std::enable_if<((4)>(2)), void>::type at::native::(anonymous namespace)::relu<4>(float*)"
# Words of names that a function may have, too.
WORDS = {
    "at",
    "native",
    "void",
    "anonymous",
    "namespace",
    "std",
    "enable_if",
    "type",
    "cutlass",
    "Kernel2",
    "vectorized_elementwise_kernel",
    "relu",
    "float",
    "cub",
    "DeviceReduceKernel",
    "mine",
}
MADE = [
    "ampere_sgemm_128x64_tn",
    "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize32x32x8_stage3",
    "cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4",
    "nvjet_tst_64x8_64x16_4x1_v_bz_TNT",
    "gemmSN_NN_kernel",
    "cudnn_infer_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v0",
    "cudnn_generated_oss_sdpa_sm90_fprop",
]


class OwnOnes(unittest.TestCase):
    def own(self, names, own, language="cuda"):
        return [x for x in names if kernels.is_own(x, own, language)]

    def test_a_kernel_is_its_name_alone(self):
        theirs = [
            ATEN,
            RETURNS,
            "void cutlass::Kernel2<cutlass_80_simt>(int)",
            "void at_cuda_detail::cub::DeviceReduceKernel<int>(int)",
            "void other<mine>(mine*, float)",
        ]
        for language in kernels.LANGUAGES:
            self.assertEqual(self.own(theirs, WORDS, language), [])

    def test_of_the_module_by_whatever_name(self):
        ours = [
            "void mine<float>(float const*)",
            "mine(float*)",
            "mine",
            "void (anonymous namespace)::mine<(int)4, (bool)1>(float*)",
            "void ours::mine<(4)>(2)>(int)",
            "std::enable_if<((4)>(2)), void>::type mine<4>(c10::Half*)",
            "void mine<at::native::Op<flo",
        ]
        self.assertEqual(self.own(ours, {"mine"}), ours)

    def test_of_triton(self):
        self.assertEqual(
            self.own(["mine", "mine_0d1d2de3", "mine_0", "other", "void mine<float>(float*)"], {"mine"}, "triton"),
            ["mine", "mine_0d1d2de3"],
        )

    def test_what_libraries_and_compilers_make_is_no_candidates(self):
        for language in kernels.LANGUAGES:
            self.assertEqual(
                self.own(MADE + [x + "_0d1d" for x in MADE], {*MADE, *(x + "_0d1d" for x in MADE)}, language), []
            )
        for name in ("triton_poi_fused_add_relu_0", "triton_"):
            self.assertFalse(kernels.is_own(name, {name}, "cuda"), name)
            self.assertTrue(kernels.is_own(name, {name}, "triton"), name)
        aten = (
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*, "
            "float const*, int)"
        )
        theirs = [
            aten,
            "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const> > >(int)",
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
        ]
        named_alike = {"softmax_warp_forward", "dot_kernel", "fmha_cutlassF_f32_aligned_64x64_rf_sm80"}
        theirs += [
            "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_f16>(int)",
            "void cutlass_cudnn_infer::Kernel<int>(int)",
        ]
        named_alike |= {"Kernel"}
        self.assertEqual(
            self.own(theirs + ["void softmax_warp_forward<float, 8>(float*)", "dot_kernel(float*)"], named_alike),
            ["void softmax_warp_forward<float, 8>(float*)", "dot_kernel(float*)"],
        )

    def test_names_like_those_of_libraries_are_ones_own(self):
        ours = [
            "triton_softmax_kernel",
            "triton_per_token_quantize",
            "ampere_softmax",
            "gemm_kernel",
            "cutlass_like_gemm",
            "sm90_matmul",
        ]
        self.assertEqual(self.own(ours, set(ours), "triton"), ours)
        ours = ["hopper_gemm_128x128(float*)", "void cutlass_like_gemm_128x128<float>(float*)", "gemmk1_kernel(float*)"]
        self.assertEqual(self.own(ours, {"hopper_gemm_128x128", "cutlass_like_gemm_128x128", "gemmk1_kernel"}), ours)

    def test_a_name_is_read_whatever_it_is(self):
        for name in (
            "cudnn_" + "ada_" * 22 + "1" * 97 + "x" + "1" * 97 + "-_0d",
            "cutlass" + "_1x" * 90 + "-",
            "ampere_" + "1x" * 140 + "-",
        ):
            self.assertEqual([kernels.is_own(name, {"mine"}, "cuda") for _ in range(100)], [False] * 100)
        for name in ("", " ", "(", ">>>)", "a<b(c", "<" * 300, "operator>(x)", "::"):
            self.assertFalse(kernels.is_own(name, {"mine"}, "cuda"))


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
