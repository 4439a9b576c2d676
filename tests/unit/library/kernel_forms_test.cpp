// The files that each form makes of a verified kernel. tests/integration/cli/kernel_export_test.py
// builds and runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/kernel_forms/exported_kernel.hpp"

namespace kernelmill::kernel_forms {

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

exported_kernel kernel_of(const std::string& task, const std::string& backend,
                          const std::string& contract, const std::string& source) {
  auto loaded = load_task(std::string{KERNELMILL_TREE} + "/configs/tasks", task);
  EXPECT_TRUE(loaded) << loaded.error().message;
  judging_terms terms;
  terms.backend = backend;
  auto what = on_terms(**loaded, terms);
  EXPECT_TRUE(what) << what.error().message;
  exported_kernel x;
  x.what = *what;
  x.source = source;
  x.about.task = task;
  x.about.backend = backend;
  x.about.contract = contract;
  x.about.path = "runs/first";
  x.about.turn = "g0.e0.t1";
  x.about.toolchain = "nvcc 13.0 -O3 -arch=sm_90a";
  x.about.model = "a \"model\"\n# of a server";
  return x;
}

std::string bytes_of(const out_files& files, const std::string& path) {
  for (const auto& x : files)
    if (x.path == path) return x.bytes;
  ADD_FAILURE() << "there is no " << path;
  return {};
}

const char* const native = "extern \"C\" void solve(const float*, float*, int, int) {}\n";

TEST(kernel_forms, a_library_has_the_kernel_under_a_name_of_its_own) {
  auto files = native_module(kernel_of("native/row_sum", "cpu", "native", native));
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_THAT(bytes_of(*files, "src/row_sum.cpp"), HasSubstr("#define solve row_sum\n"));
  EXPECT_THAT(bytes_of(*files, "src/row_sum.h"),
              HasSubstr("void row_sum(const float* x, float* y, int rows, int cols);"));
  // 4 * 8 floats of the case `small`; outputs have no file.
  EXPECT_EQ(bytes_of(*files, "test/cases/small.x").size(), 128u);
  for (const auto& x : *files) {
    EXPECT_THAT(x.path, Not(HasSubstr("odd_tail"))) << "a hidden case";
    EXPECT_THAT(x.path, Not(HasSubstr(".y"))) << x.path;
  }
}

TEST(kernel_forms, a_function_of_the_candidate_keeps_its_name) {
  auto x = kernel_of("native/row_sum", "cpu", "native",
                     std::string{"static float row_sum(const float*);\n"} + native);
  EXPECT_EQ(x.name(), "row_sum_kernel");
  x.source = std::string{"static float row_sums(const float*);\n"} + native;
  EXPECT_EQ(x.name(), "row_sum");
}

TEST(kernel_forms, what_a_server_calls_itself_breaks_no_table_and_no_comment) {
  auto x = kernel_of("native/row_sum", "cpu", "native", native);
  EXPECT_EQ(x.model(), "a  model  # of a server");
  EXPECT_THAT(measured_text(x), HasSubstr("`a  model  # of a server`"));
}

TEST(kernel_forms, launch_lines_of_device_code_become_host_code) {
  auto x = kernel_of("native/row_sum", "cuda", "device",
                     "// scratch: partial[4 * rows * 8]\n"
                     "// launch: sums<<<dim3(8, rows), 256>>>(x, partial, rows, cols)\n"
                     "// launch: total<<<ceil_div(rows, 128), 128>>>(partial, y, rows)\n"
                     "extern \"C\" __global__ void sums(const float*, float*, int, int) {}\n"
                     "extern \"C\" __global__ void total(const float*, float*, int) {}\n");
  auto files = native_module(x);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_THAT(bytes_of(*files, "src/row_sum.cu"),
              AllOf(HasSubstr("cudaMallocAsync(reinterpret_cast<void**>(&partial_bytes)"),
                    HasSubstr("(x, any{partial_bytes}, rows, cols);"),
                    HasSubstr("static_cast<unsigned>(ceil_div(rows, 128))"),
                    HasSubstr("extern \"C\" void row_sum(const float* x, float* y")));
  EXPECT_THAT(bytes_of(*files, "CMakeLists.txt"), HasSubstr("row_sum_ARCHITECTURE 90a"));
}

TEST(kernel_forms, an_operator_of_the_hub_checks_the_tensors_that_it_is_given) {
  auto x = kernel_of("native/row_sum", "cuda", "native", native);
  x.licence = "Apache-2.0";
  auto files = hub_package(x);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_THAT(bytes_of(*files, "torch-ext/torch_binding.cpp"),
              AllOf(HasSubstr("row_sum(Tensor x, Tensor! y, int rows, int cols) -> ()"),
                    HasSubstr("x.numel() == (rows) * (cols)"), HasSubstr("CUDA_KERNEL")));
  EXPECT_THAT(bytes_of(*files, "build.toml"),
              AllOf(HasSubstr("name = \"row-sum\""), HasSubstr("backends = [\"cuda\"]"),
                    HasSubstr("src = [\"row_sum_kernel/row_sum.cu\"")));
  EXPECT_THAT(bytes_of(*files, "README.md"), HasSubstr("license: apache-2.0"));
}

TEST(kernel_forms, a_module_of_python_takes_the_function_that_a_task_allows) {
  auto x = kernel_of("torch/gelu_bias", "cpu", "torch", "def run(*x): pass\n");
  auto plain = torch_module(x);
  ASSERT_TRUE(plain);
  EXPECT_THAT(bytes_of(*plain, "gelu_bias/__init__.py"),
              AllOf(HasSubstr("class GeluBias(_Base)"), HasSubstr("_Base = _kernel.ModelNew")));
  auto other = std::make_shared<task>(*x.what);
  other->torch.entry = {"run", true};
  x.what = other;
  auto files = torch_module(x);
  ASSERT_TRUE(files);
  EXPECT_THAT(bytes_of(*files, "gelu_bias/__init__.py"), HasSubstr("return _kernel.run(inputs)"));
}

TEST(kernel_forms, hip_and_programs_have_no_form_yet) {
  auto hip = native_module(kernel_of("native/row_sum", "hip", "native", native));
  ASSERT_FALSE(hip);
  EXPECT_EQ(hip.error().category, "unsupported_backend");
  auto program = native_module(kernel_of("native/row_sum", "cpu", "program", native));
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().category, "unsupported_contract");
}

} // namespace

} // namespace kernelmill::kernel_forms
