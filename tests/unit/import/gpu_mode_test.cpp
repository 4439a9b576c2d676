// Problems of GPU MODE's form, written here, become tasks.

#include "launch/import/gpu_mode_text.hpp"
#include "tests/unit/import/suite_folder.hpp"

namespace kernelmill {
namespace gpu_mode_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string types =
    "import torch\nfrom typing import TypeVar\n"
    "input_t = TypeVar(\"input_t\", bound=tuple[torch.Tensor, torch.Tensor])\n";
const std::string shapes =
    "lang: \"py\"\ndescription: |\n  Double it.\n"
    "tests:\n  - {\"size\": 8, \"seed\": 1}\n  - {\"size\": 16, \"seed\": 2}\n"
    "benchmarks:\n  - {\"size\": 64, \"seed\": 3}\n"
    "  - {\"size\": 64, \"seed\": 4}\n  - {\"size\": 128, \"seed\": 5}\n";
const std::string reference =
    "import torch\nfrom task import input_t, output_t\n"
    "from utils import (\n    make_match_reference,\n    DeterministicContext)\n\n"
    "def ref_kernel(data: input_t) -> output_t:\n  with DeterministicContext():\n"
    "    x, y = data\n    y[...] = 2 * x\n    return y\n\n"
    "def generate_input(size: int, seed: int) -> input_t:\n"
    "  g = torch.Generator(device='cuda')\n  g.manual_seed(seed)\n"
    "  x = torch.randn(size, device=\"cuda\", generator=g)\n"
    "  y = torch.empty(size, device=\"cuda\").contiguous()\n  return x, y\n\n"
    "check_implementation = make_match_reference(ref_kernel, rtol=1e-3, atol=2e-4)\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

class gpu_mode : public test::suite_folder {
protected:
  void problem(const std::string& name, const std::string& yaml = shapes,
               const std::string& code = reference, const std::string& task = types) {
    write("problems/" + name + "/task.yml", yaml);
    write("problems/" + name + "/task.py", task);
    if (!code.empty()) write("problems/" + name + "/reference.py", code);
  }
  suite_task only(const suite_options& options = {}) {
    auto reading = read("gpu-mode", options);
    EXPECT_TRUE(reading) << render(reading.error());
    if (!reading || reading->tasks.size() != 1) return {};
    return reading->tasks[0];
  }
};

TEST_F(gpu_mode, a_problem_is_a_task_with_benchmarks_and_tests_as_shapes) {
  problem("set/double");
  auto task = only();
  auto x = load(task);
  ASSERT_TRUE(x);
  EXPECT_EQ(x->id, "gpu-mode/set/double");
  EXPECT_EQ(x->source, "reference-kernels");
  EXPECT_EQ(x->prompt, "Problem set/double of GPU MODE.\n\nDouble it.\n\n");
  auto document = document_of(task);
  EXPECT_EQ(document["mutates"], nlohmann::json::array({1}));
  EXPECT_EQ(document["entry"]["takes"], "tuple");
  EXPECT_EQ(document["tolerance"]["relative"], 1e-3);
  EXPECT_EQ(document["tolerance"]["absolute"], 2e-4);
  // 64 comes twice, with other seeds only.
  ASSERT_EQ(document["variants"].size(), 3u);
  EXPECT_EQ(document["variants"][0],
            nlohmann::json::parse(
                "{\"name\": \"benchmark2\", \"set\": {\"AXIS_case\": 1}, \"timed\": true}"));
  EXPECT_FALSE(document["variants"][1].contains("timed"));
  EXPECT_THAT(x->torch.code,
              AllOf(HasSubstr("device=DEVICE"), HasSubstr("seed=seed"),
                    HasSubstr("CASES = [\n    {\"size\": 64},\n    {\"size\": 128},\n"),
                    Not(HasSubstr("from utils")), Not(HasSubstr("from task"))));
}

TEST_F(gpu_mode, an_output_that_the_reference_does_not_write_is_written_for_it) {
  problem("double", shapes, replaced(reference, "y[...] = 2 * x", "y = 2 * x"));
  auto task = only();
  EXPECT_EQ(document_of(task)["mutates"], nlohmann::json::array({1}));
  EXPECT_THAT(file_of(task, "problem.py"),
              HasSubstr("output = output.to(data[1].dtype)\n        data[1].copy_(output)"));
}

TEST_F(gpu_mode, memory_that_is_filled_is_no_output) {
  auto code = replaced(reference, "y[...] = 2 * x\n    return y", "return x + y");
  problem("add", shapes, replaced(code, ").contiguous()\n", ")\n  y.uniform_(0, 1)\n"));
  EXPECT_FALSE(document_of(only()).contains("mutates"));
}

TEST_F(gpu_mode, one_tensor_is_handed_over_as_it_is) {
  auto code = replaced(reference, "    x, y = data\n    y[...] = 2 * x\n    return y",
                       "    return 2 * data");
  problem("one", shapes, replaced(code, "return x, y", "return x.contiguous()"));
  auto task = only();
  EXPECT_EQ(document_of(task)["entry"]["takes"], "arguments");
  EXPECT_THAT(file_of(task, "problem.py"), HasSubstr("ref_kernel(*data)"));
}

TEST_F(gpu_mode, a_bound_that_is_no_number_is_left_to_the_honest_mode) {
  problem("scaled", shapes, replaced(reference, "rtol=1e-3", "rtol=1e-3 * size"));
  auto task = only();
  EXPECT_FALSE(document_of(task).contains("tolerance"));
  EXPECT_TRUE(load(task));
}

TEST_F(gpu_mode, shapes_are_chosen_from_benchmarks_and_tests) {
  problem("double");
  auto document = document_of(only({{"--shapes", "2"}}));
  ASSERT_EQ(document["variants"].size(), 1u);
  EXPECT_EQ(document["variants"][0]["name"], "test0");
}

TEST_F(gpu_mode, hostile_problems_are_refused_one_by_one) {
  problem("good");
  problem("cpp", replaced(shapes, "\"py\"", "cu"));
  problem("wrong", replaced(shapes, "lang: \"py\"", "lang: {a: [1]}"));
  problem("no_yaml", "lang: [py\n");
  problem("bomb", "a: &a [1,1]\nb: &b [*a,*a]\nlang: \xff\n");
  problem("list", "- 1\n");
  problem("several", shapes + "multi_gpu: true\n");
  problem("no_tests", replaced(shapes, "tests:", "others:"));
  problem("words", replaced(shapes, "{\"size\": 8, \"seed\": 1}", "words"));
  problem("nested", replaced(shapes, "\"size\": 8", "\"size\": {\"a\": 8}"));
  problem("no_code", shapes, "");
  problem("empty", shapes, "import torch\n");
  problem("bytes", shapes, reference + "# \xff\n");
  problem("amd", shapes, "import aiter\n" + reference);
  problem("helper", shapes, replaced(reference, "DeterministicContext)", "run_shell)"));
  problem("property", shapes,
          replaced(reference, "check_implementation = make_match_reference",
                   "def check_implementation(data, output):\n  return True, ''\nother = f"));
  problem("dictionary", shapes, reference, replaced(types, "tuple[", "tuple[dict, "));
  std::filesystem::create_directories(root_ + "/suite/problems/link");
  std::filesystem::create_symlink("/etc/passwd", root_ + "/suite/problems/link/task.yml");
  auto reading = read("gpu-mode");
  ASSERT_TRUE(reading) << render(reading.error());
  EXPECT_EQ(reading->tasks.size(), 1u);
  auto fate = [&](const std::string& name) { return fate_of(*reading, name); };
  EXPECT_EQ(fate("good"), "imported");
  EXPECT_EQ(fate("cpp"), "its language is C++");
  EXPECT_EQ(fate("wrong"), "its task.yml names no language");
  EXPECT_EQ(fate("no_yaml"), "its task.yml is no YAML");
  EXPECT_EQ(fate("bomb"), "its task.yml is no YAML");
  EXPECT_EQ(fate("list"), "its task.yml is no mapping");
  EXPECT_EQ(fate("several"), "it needs several GPUs");
  EXPECT_EQ(fate("no_tests"), "its task.yml lacks a list of tests");
  EXPECT_EQ(fate("words"), "its task.yml has a shape that is no mapping");
  EXPECT_EQ(fate("nested"), "its task.yml has a shape of other than plain values");
  EXPECT_THAT(fate("no_code"), HasSubstr("reference.py is missing"));
  EXPECT_EQ(fate("empty"), "it lacks generate_input or ref_kernel");
  EXPECT_EQ(fate("bytes"), "its text is no UTF-8");
  EXPECT_THAT(fate("amd"), HasSubstr("aiter"));
  EXPECT_EQ(fate("helper"), "it needs another function of utils.py");
  EXPECT_EQ(fate("property"), "its check is no comparison with the reference");
  EXPECT_THAT(fate("dictionary"), HasSubstr("other than tensors"));
  EXPECT_THAT(fate("link"), HasSubstr("cannot be read"));
}

TEST_F(gpu_mode, a_submission_needs_no_file_of_types_beside_it) {
  auto made = kernelmill::gpu_mode::without_task_types;
  EXPECT_EQ(made("import torch\nfrom task import input_t, output_t\n\nx = 1"),
            "import torch\ninput_t = output_t = object\n\nx = 1");
  EXPECT_EQ(made("from task import input_t  # types\r\n"), "input_t = object  # types\r\n");
  for (const char* other :
       {"from tasks import input_t\n", "from task import *\n", "  from task import a\n",
        "s = 'from task import a'\n", "from task import a; b\n", "", "\n\n"})
    EXPECT_EQ(made(other), other);
}

} // namespace gpu_mode_test
} // namespace kernelmill
