#include "gpu/toolchain/torch_toolchain.hpp"

#include <algorithm>

#include "gpu/toolchain/compiler_run.hpp"
#include "tests/unit/toolchain/torch_fixture.hpp"

namespace kernelmill {
namespace torch_toolchain_test {

using testing::HasSubstr;
using testing::Not;

constexpr const char* with_extension = R"(
import torch
from torch.utils.cpp_extension import load_inline
source = """
torch::Tensor thrice(torch::Tensor x) {
  TORCH_CHECK(x.dim() == 1, "one dimension, not ", x.dim());
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = 3 * from[i];
  return y;
}
"""
extension = load_inline(name="thrice_ext", cpp_sources=source, functions=["thrice"],
                        extra_cflags=["-O2", "-fplugin=/tmp/x.so"], extra_ldflags=["-lm", "-L/etc"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.thrice(x)
)";

// A task with one key more, and the constant `size`.
void write_task(const std::string& folder, const char* key, const char* value) {
  nlohmann::json document{{"id", std::filesystem::path{folder}.filename().string()},
                          {"title", "A problem"},
                          {"verb", "optimize"},
                          {"operator_family", "elementwise"},
                          {"contract", "torch"}};
  document[key] = nlohmann::json::parse(value);
  std::ofstream{folder + "/task.json"} << document.dump();
  std::ofstream{folder + "/prompt.md"} << "Make it fast.\n";
  std::ofstream{folder + "/problem.py"}
      << "class Model: pass\nsize = 7\ndef get_inputs():\n    return []\n"
         "def get_init_inputs():\n    return [size]\n";
}

class torch_toolchain_on_cpu : public torch_fixture {
protected:
  // What `code` prints in a fresh interpreter in the sandbox, with the library beside it.
  std::string run_python(const std::string& code, const std::string& library) {
    auto file = memory_file(library);
    compiler_job job;
    job.argv = {python_.executable, "-I", "-B", "/build/use.py"};
    job.environment = python_environment();
    job.mounts = python_mounts(python_);
    job.files = {{file->get(), "/build/extension.so"}};
    job.source_name = "use.py";
    job.source = code;
    job.address_space = no_limit;
    auto outcome = run_compiler(walls_, job);
    return outcome ? outcome->text : outcome.error().message;
  }
};

TEST_F(torch_toolchain_on_cpu, packs_a_module_without_extensions) {
  auto built = build(plain_model);
  ASSERT_TRUE(built.open()->getCompiled()) << message(built);
  EXPECT_THAT(built.open()->getToolchain().cStr(), HasSubstr("torch "));
  auto made = artifact(built);
  EXPECT_EQ(made.source, plain_model);
  EXPECT_TRUE(made.extensions.empty());
  EXPECT_TRUE(build(plain_model).open()->getCached());
}

TEST_F(torch_toolchain_on_cpu, builds_an_extension_that_a_fresh_interpreter_imports) {
  auto built = build(with_extension);
  ASSERT_TRUE(built.open()->getCompiled()) << message(built);
  EXPECT_THAT(built.open()->getLog().cStr(),
              HasSubstr("ignored in extra_cflags: -fplugin=/tmp/x.so"));
  EXPECT_THAT(built.open()->getLog().cStr(), HasSubstr("ignored in extra_ldflags: -L/etc"));
  auto made = artifact(built);
  ASSERT_EQ(made.extensions.size(), 1u);
  EXPECT_EQ(made.extensions[0].name, "thrice_ext");
  EXPECT_EQ(made.extensions[0].key.size(), 64u);
  auto said = run_python(R"(
import importlib.util, torch
spec = importlib.util.spec_from_file_location("thrice_ext", "/build/extension.so")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.thrice(torch.tensor([1.0, 2.0])).tolist())
try:
    module.thrice(torch.zeros(2, 2))
except RuntimeError as problem:
    print(str(problem).splitlines()[0])
)",
                         made.extensions[0].library);
  EXPECT_THAT(said, HasSubstr("[3.0, 6.0]"));
  EXPECT_THAT(said, HasSubstr("one dimension, not 2"));
}

TEST_F(torch_toolchain_on_cpu, names_the_line_of_a_python_error) {
  auto built = build("import torch\nclass ModelNew(:\n  pass\n");
  EXPECT_EQ(category(built), "compile_error") << message(built);
  EXPECT_THAT(message(built), HasSubstr("<candidate>:2"));
  ASSERT_EQ(built.open()->getDiagnostics().size(), 1u);
  EXPECT_EQ(built.open()->getDiagnostics()[0].getLine(), 2u);
  built = build("import torch\n\nx = undefined_name\n");
  EXPECT_EQ(category(built), "import_error") << message(built);
  EXPECT_THAT(message(built), HasSubstr("<candidate>:3: NameError"));
  EXPECT_THAT(message(built), HasSubstr("undefined_name"));
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::CANDIDATE);
  EXPECT_TRUE(build("import torch\n\nx = undefined_name\n").open()->getCached());
  EXPECT_EQ(category(build("import torch\nclass Model(torch.nn.Module): pass\n")), "missing_model");
}

TEST_F(torch_toolchain_on_cpu, tells_compiler_errors_with_lines_of_the_inline_source) {
  auto built = build(R"(
import torch
from torch.utils.cpp_extension import load_inline
load_inline("broken", "int first;\nint f() { return missing_name; }", functions=["f"])
class ModelNew(torch.nn.Module): pass
)");
  EXPECT_EQ(category(built), "compile_error") << message(built);
  EXPECT_THAT(message(built), HasSubstr("broken.cpp_sources:2: "));
  EXPECT_THAT(message(built), HasSubstr("missing_name"));
}

TEST_F(torch_toolchain_on_cpu, finds_functions_that_are_defined_nowhere) {
  auto built = build(R"(
import torch
from torch.utils.cpp_extension import load_inline
load_inline("absent", "torch::Tensor g(torch::Tensor x);", functions=["g"])
class ModelNew(torch.nn.Module): pass
)");
  EXPECT_EQ(category(built), "compile_error") << message(built);
  EXPECT_THAT(message(built), HasSubstr("undefined reference to g(at::Tensor)"));
}

TEST_F(torch_toolchain_on_cpu, refuses_cuda_sources) {
  auto built = build(R"(
import torch
from torch.utils.cpp_extension import load_inline
load_inline("relu", "void f();", cuda_sources="__global__ void k() {}", functions=["f"])
class ModelNew(torch.nn.Module): pass
)");
  EXPECT_EQ(category(built), "compile_error");
  EXPECT_THAT(message(built), HasSubstr("this backend has no CUDA"));
}

TEST_F(torch_toolchain_on_cpu, records_what_a_constructor_asks_for) {
  temporary_directory task;
  std::ofstream{task.path() + "/problem.py"}
      << "secret = 'the reference'\ndef get_init_inputs():\n    return [7, 'word']\n";
  auto built = build(R"(
import torch, os
from torch.utils.cpp_extension import load_inline
class ModelNew(torch.nn.Module):
    def __init__(self, number, word):
        super().__init__()
        if any("problem" in x for x in os.listdir(os.path.dirname(__file__))): raise SystemExit
        load_inline(f"made_{number}_{word}", "int f() { return 1; }", functions=["f"])
)",
                     0, task.path());
  ASSERT_TRUE(built.open()->getCompiled()) << message(built);
  auto made = artifact(built);
  ASSERT_EQ(made.extensions.size(), 1u);
  EXPECT_EQ(made.extensions[0].name, "made_7_word");
}

TEST_F(torch_toolchain_on_cpu, records_visible_variants_and_knows_of_no_hidden_one) {
  temporary_directory task;
  write_task(
      task.path(), "variants",
      R"([{"name": "shown", "set": {"size": 9}}, {"name": "odd", "set": {"size": 11}, "hidden": true}])");
  auto built = build(R"(
import torch
from torch.utils.cpp_extension import load_inline
class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        load_inline(f"made_{size}", "int f() { return 1; }", functions=["f"])
)",
                     0, task.path());
  ASSERT_TRUE(built.open()->getCompiled()) << message(built);
  std::vector<std::string> names;
  for (const auto& x : artifact(built).extensions) names.push_back(x.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("made_7", "made_9"));
}

TEST_F(torch_toolchain_on_cpu, records_a_function_where_the_task_takes_one) {
  temporary_directory task;
  write_task(task.path(), "entry", R"({"function": "run", "takes": "tuple"})");
  auto source = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
                "load_inline('made', 'int f() { return 1; }', functions=['f'])\n"
                "def run(inputs):\n    return inputs[0]\n";
  auto built = build(source, 0, task.path());
  ASSERT_TRUE(built.open()->getCompiled()) << message(built);
  EXPECT_EQ(artifact(built).extensions.size(), 1u);
  auto lacks = build("def other(inputs):\n    return inputs[0]\n", 0, task.path());
  EXPECT_EQ(category(lacks), "missing_model");
  EXPECT_THAT(message(lacks), HasSubstr("function run, or a class ModelNew"));
  EXPECT_EQ(category(build(source)), "missing_model") << "no task asks for a function";
}

// torch 2.11 asks for it when it makes a random tensor without memory.
TEST_F(torch_toolchain_on_cpu, names_the_user_of_its_sandbox) {
  EXPECT_EQ(run_python("import getpass; print(getpass.getuser())", ""), "candidate\n");
}

TEST_F(torch_toolchain_on_cpu, calls_an_interpreter_without_torch_a_fault_of_the_configuration) {
  toolchain_options x;
  x.python = "/usr/bin/false";
  x.cache_directory = cache_.path() + "/build";
  toolchain_.emplace(walls_, x);
  auto built = build(plain_model);
  EXPECT_EQ(category(built), "python_missing");
  EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION);
}

// As with Debian's python3-torch and without libtorch-dev.
TEST_F(torch_toolchain_on_cpu, calls_missing_headers_of_torch_a_fault_of_the_machine) {
  temporary_directory machine;
  std::filesystem::permissions(machine.path(), std::filesystem::perms{0755});
  std::filesystem::create_directories(machine.path() + "/bin");
  auto compiler = machine.path() + "/bin/g++";
  std::ofstream{compiler} << "#!/bin/sh\ncase \" $* \" in *\" -c \"*)\n"
                             "  echo 'main.cpp:1:10: fatal error: torch/extension.h: No such file "
                             "or directory'\n  exit 1 ;;\nesac\nexec /usr/bin/g++ \"$@\"\n";
  std::filesystem::permissions(compiler, std::filesystem::perms{0755});
  toolchain_options x;
  x.python = interpreter();
  x.compiler = compiler;
  x.cache_directory = cache_.path() + "/build";
  toolchain_.emplace(walls_, x);
  for (int i = 0; i < 2; ++i) {
    auto built = build(with_extension);
    EXPECT_EQ(category(built), "toolchain_missing") << message(built);
    EXPECT_EQ(built.open()->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
    EXPECT_THAT(built.open()->getFault().getHint().cStr(), HasSubstr("libtorch-dev"));
    EXPECT_FALSE(built.open()->getCached());
  }
  auto probed = toolchain_->probe(contract_kind::torch);
  ASSERT_FALSE(probed);
  EXPECT_THAT(probed.error().hint, HasSubstr("libtorch-dev"));
}

TEST_F(torch_toolchain_on_cpu, has_nothing_against_how_an_editor_saved_a_module) {
  std::string text = "\xef\xbb\xbf";
  for (const auto* c = plain_model; *c != 0; ++c) text += *c == '\n' ? "\r\n" : std::string{*c};
  auto built = build(text);
  ASSERT_TRUE(built.open()->getCompiled()) << message(built);
  EXPECT_EQ(artifact(built).source, plain_model);
}

class torch_toolchain_on_cuda : public torch_fixture {
protected:
  torch_toolchain_on_cuda() : torch_fixture("cuda") {}
};

TEST_F(torch_toolchain_on_cuda, builds_a_kernel_and_says_what_it_needs) {
  auto built = build(R"PY(
import torch
from torch.utils.cpp_extension import load_inline
cuda = """
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.f ? x[i] : 0.f;
}
torch::Tensor relu_cuda(torch::Tensor x) {
  auto y = torch::empty_like(x);
  relu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
relu = load_inline("relu", "torch::Tensor relu_cuda(torch::Tensor x);", cuda, functions=["relu_cuda"],
                   extra_cuda_cflags=["-O3", "--use_fast_math", "-gencode", "arch=compute_70,code=sm_70"])
anchor = torch.zeros(3, device="cuda").cuda()
class ModelNew(torch.nn.Module):
    def forward(self, x): return relu.relu_cuda(x)
)PY");
  ASSERT_TRUE(built.open()->getCompiled()) << message(built);
  ASSERT_EQ(built.open()->getKernels().size(), 1u);
  EXPECT_THAT(built.open()->getKernels()[0].getName().cStr(), HasSubstr("relu_kernel"));
  EXPECT_GT(built.open()->getKernels()[0].getRegisters(), 0u);
  EXPECT_EQ(artifact(built).extensions.size(), 1u);
}

constexpr const char* with_triton = R"(
import torch, triton, triton.language as tl
@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
)";

TEST_F(torch_toolchain_on_cuda, compiles_triton_ahead_or_says_why_not) {
  if (python_.triton.empty()) GTEST_SKIP() << "no Triton";
  temporary_directory task;
  auto build_for = [&](const std::string& inputs) {
    std::ofstream{task.path() + "/problem.py"} << "import torch\ndef get_init_inputs(): return []\n"
                                               << "def get_inputs(): " << inputs << "\n";
    return build(with_triton, 0, task.path());
  };
  auto built = build_for("return [torch.randn(4096)]");
  auto files = artifact(built).triton_files;
  EXPECT_TRUE(std::any_of(files.begin(), files.end(), [](auto& x) {
    return x.first.ends_with("double_kernel.cubin");
  })) << message(built);
  built = build_for("raise ValueError('no shapes')");
  EXPECT_TRUE(artifact(built).triton_files.empty());
  EXPECT_THAT(message(built), HasSubstr("ValueError: no shapes"));
}

} // namespace torch_toolchain_test
} // namespace kernelmill
