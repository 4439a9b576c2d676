// `inspect` of CUDA and of Python modules, as users call it. nvdisasm is asked where PATH has one.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {
namespace inspect_command_test {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

bool has_nvcc() {
  return ::access("/usr/local/cuda/bin/nvcc", X_OK) == 0;
}

// With the PATH of this test, in place of the small one that programs have in tests.
program_options with_path() {
  const char* path = std::getenv("PATH");
  return {{}, {}, {std::string{"PATH="} + (path != nullptr ? path : "/usr/bin:/bin")}};
}

std::string words(const json& list) {
  std::string result;
  for (const auto& x : list) result += x.get<std::string>() + "\n";
  return result;
}

constexpr const char* device_kernel = R"(// launch: sum_rows<<<rows, 128>>>(x, y, cols)
extern "C" __global__ void sum_rows(const float* x, float* y, int cols) {
  __shared__ float part[128];
  double sum = 0;
  for (int j = threadIdx.x; j < cols; j += 128) sum += x[(long)blockIdx.x * cols + j];
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int j = 1; j < 128; ++j) sum += part[j];
    y[blockIdx.x] = sum;
  }
}
)";

constexpr const char* copier = R"(__global__ void copied(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[i];
}
)";

json inspected(const std::string& file, const std::string& text,
               std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"inspect", write_file(file, text), "--arch", "sm_90",
                                     "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto x = kernelmill(arguments, with_path());
  auto d = x.document();
  EXPECT_TRUE(d.is_object()) << x.err;
  return d;
}

json named(const json& list, const std::string& what) {
  for (const auto& one : list)
    if (one["what"] == what) return one;
  ADD_FAILURE() << "no " << what << " in " << list;
  return {};
}

// -- section quality ------------------------------------------------------------------------------

TEST(inspect_quality, counts_widths_double_precision_and_barriers_with_their_lines) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  auto d = inspected("copier.cu", copier, {"--section", "quality"});
  ASSERT_EQ(d["quality"].size(), 1u) << d;
  auto x = d["quality"][0];
  EXPECT_EQ(x["name"], "copied(float4 const*, float4*, int)");
  auto loads = named(x["accesses"], "global loads");
  EXPECT_EQ(loads["bits"], (json{{"128", 1}}));
  EXPECT_EQ(loads["wide_share"], 1);
  EXPECT_EQ(loads["lines"], (json{{{"line", 4}, {"instructions", 1}}}));
  EXPECT_EQ(x["spills"]["store_bytes"], 0);
  EXPECT_EQ(x["takes_doubles"], false);
  EXPECT_EQ(x["loops"], json::array());
  EXPECT_EQ(named(x["kinds"], "tensor cores")["instructions"], 0);
  EXPECT_FALSE(d.contains("triview")) << "one section was asked for";

  auto sums = inspected("sums.cu", device_kernel, {"--section", "quality"})["quality"][0];
  EXPECT_GT(named(sums["kinds"], "double precision")["instructions"], 0);
  EXPECT_EQ(named(sums["kinds"], "barriers")["lines"][0]["line"], 7);
  EXPECT_FALSE(sums["loops"].empty());
  EXPECT_TRUE(sums["takes_doubles"].is_null()) << "extern \"C\" tells no types";
}

TEST(inspect_quality, has_text_for_people) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  auto x = kernelmill(
      {"inspect", write_file("copier.cu", copier), "--arch", "sm_90", "--section", "quality"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("copied(float4 const*, float4*, int)"),
                           HasSubstr("1 of 128 bits; 100 % of 64 bits or more; line 4"),
                           HasSubstr("tensor cores        none"), HasSubstr("loops")));
}

// -- section profile ------------------------------------------------------------------------------

TEST(inspect_profile, tells_what_the_build_does_and_says_what_is_missing) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  auto d = inspected("copier.cu", copier, {"--section", "profile", "--block", "1024"});
  auto x = d["profile"];
  EXPECT_GT(x["counters"]["copied(float4 const*, float4*, int)/registers"], 0) << d;
  EXPECT_EQ(x["counters"]["copied(float4 const*, float4*, int)/theoretical_occupancy"], 100);
  EXPECT_EQ(x["block_threads"], 1024);
  EXPECT_TRUE(x["task"].is_null());
  EXPECT_TRUE(x["roofline"].empty() || x["roofline"].contains("peak_flops"));
  EXPECT_THAT(words(x["missing"]),
              AllOf(HasSubstr("hardware counters"), HasSubstr("nothing was run"),
                    HasSubstr("no task is named (--task)"),
                    HasSubstr("blocks of 1024 threads (--block)")));
}

TEST(inspect_profile, of_a_task_has_its_launches_and_its_arithmetic_intensity) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  auto d =
      inspected("sums.cu", device_kernel, {"--section", "profile", "--task", "native/row_sum"});
  auto x = d["profile"];
  EXPECT_EQ(x["task"], "native/row_sum");
  EXPECT_EQ(x["shape"], "rows=8192 cols=8192");
  EXPECT_EQ(x["counters"]["launches"], 1) << d;
  EXPECT_EQ(x["counters"]["sum_rows/block_threads"], 128);
  EXPECT_EQ(x["counters"]["sum_rows/grid_blocks"], 8192);
  EXPECT_EQ(x["counters"]["sum_rows/static_shared"], 512);
  EXPECT_NEAR(x["roofline"]["arithmetic_intensity"]["value"].get<double>(), 0.25, 0.001);
  EXPECT_THAT(words(x["missing"]), Not(HasSubstr("--block")));
  auto text = kernelmill({"inspect", write_file("sums.cu", device_kernel), "--arch", "sm_90",
                          "--section", "profile", "--task", "native/row_sum"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("(tier 0)"), HasSubstr("sum_rows: "),
                              HasSubstr("roofline: 0.25 flop/B"), HasSubstr("missing: ")));
}

// -- live registers -------------------------------------------------------------------------------

TEST(inspect_triview, has_live_registers_where_nvdisasm_is) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  auto d = inspected("copier.cu", copier);
  if (d["sass"].empty()) {
    EXPECT_THAT(words(d["missing"]), HasSubstr("SASS: "));
    EXPECT_TRUE(d["triview"][0]["rows"][0]["live_registers"].is_null());
    GTEST_SKIP() << "no nvdisasm on this machine";
  }
  EXPECT_EQ(d["missing"], json::array());
  uint32_t most = 0;
  for (const auto& row : d["triview"][0]["rows"]) {
    EXPECT_EQ(row["sass"].size(), row["sass_live_registers"].size());
    if (row["live_registers"].is_number()) most = std::max<uint32_t>(most, row["live_registers"]);
  }
  EXPECT_GE(most, 6u) << "a float4 and an address";
  EXPECT_EQ(d["quality"][0]["live_registers"]["most"], most);
  EXPECT_LE(most, d["build"]["kernels"][0]["registers"]);
  auto text =
      kernelmill({"inspect", write_file("copier.cu", copier), "--arch", "sm_90"}, with_path());
  EXPECT_THAT(text.out, AllOf(HasSubstr("(before SASS: live registers)"),
                              HasSubstr("[" + std::to_string(most) + " live]")));
}

// -- Python modules -------------------------------------------------------------------------------

// A Python whose torch records sources and nothing else, so that no torch must be installed.
std::string standin_python() {
  auto folder = scratch() + "/standin";
  auto made = run_program({"/usr/bin/python3", "-m", "venv", "--without-pip", folder});
  if (made.code != 0) return {};
  for (const auto& x : std::filesystem::directory_iterator{folder + "/lib"})
    std::ofstream{x.path() / "site-packages" / "standin.pth"}
        << source_file("tests/integration/cli/standin_torch") << "\n";
  return folder + "/bin/python";
}

constexpr const char* module_text = R"(import torch
from torch.utils import cpp_extension

relu = """__global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
"""
module = cpp_extension.load_inline(name="relu_mod", cpp_sources="", cuda_sources=relu, functions=[],
                                   no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    pass
)";

TEST(inspect_module, has_each_cuda_source_by_its_own_lines) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  auto python = standin_python();
  if (python.empty()) GTEST_SKIP() << "python3 makes no environment: apt install python3-venv";
  auto d = inspected("answer.py", module_text, {"--python", python});
  ASSERT_EQ(d["compiled"], true) << d;
  ASSERT_EQ(d["triview"].size(), 1u) << d;
  EXPECT_EQ(d["triview"][0]["of"], "relu_mod.cuda_sources");
  EXPECT_EQ(d["triview"][0]["name"], "relu(float const*, float*, int)");
  std::string of_line_3;
  for (const auto& row : d["triview"][0]["rows"])
    if (row["line"] == 3) {
      EXPECT_THAT(row["source"], HasSubstr("fmaxf"));
      of_line_3 = words(row["ptx"]);
    }
  EXPECT_THAT(of_line_3,
              AllOf(HasSubstr("ld.global"), HasSubstr("max.f32"), HasSubstr("st.global")));
  EXPECT_EQ(d["quality"][0]["of"], "relu_mod.cuda_sources");
  EXPECT_EQ(named(d["quality"][0]["accesses"], "global loads")["lines"][0]["line"], 3);
  EXPECT_GT(d["profile"]["counters"]["relu(float const*, float*, int)/registers"], 0);
}

TEST(inspect_module, that_fails_shows_its_own_words) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  auto python = standin_python();
  if (python.empty()) GTEST_SKIP() << "python3 makes no environment: apt install python3-venv";
  auto d =
      inspected("broken.py", "import torch\nraise ValueError('not today')\n", {"--python", python});
  EXPECT_EQ(d["compiled"], false);
  EXPECT_THAT(d["log"].get<std::string>(), HasSubstr("ValueError: not today"));
  auto none = inspected("plain.py", "import torch\nclass ModelNew(torch.nn.Module):\n    pass\n",
                        {"--python", python});
  EXPECT_EQ(none["compiled"], true);
  EXPECT_THAT(words(none["missing"]), HasSubstr("the module gives no CUDA source to torch"));
}

TEST(inspect_module, answers_no_task_of_another_contract) {
  auto x = kernelmill(
      {"inspect", write_file("answer.py", module_text), "--task", "native/row_sum", "--json"});
  EXPECT_EQ(x.code, 2);
  EXPECT_EQ(x.fault()["category"], "unsupported_contract");
}

// It compiles as CUDA, too, and every section of it would be empty.
TEST(inspect_source, of_a_cpu_is_refused_before_a_compiler_is_asked) {
  const std::string plain = "extern \"C\" void solve(const float*, float*, int, int) {}\n";
  auto x = kernelmill({"inspect", write_file("plain.cpp", plain), "--json"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.fault()["message"].get<std::string>(), HasSubstr("defines no kernel of a GPU"));
  EXPECT_THAT(x.fault()["hint"].get<std::string>(), HasSubstr("kernelmill build"));
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  EXPECT_THAT(words(inspected("plain.cu", plain)["missing"]), HasSubstr("plain.cu defines none"));
  EXPECT_THAT(words(inspected("sums.cu", device_kernel)["missing"]),
              Not(HasSubstr("defines none")));
}

// -- docs/reference/documents.md ------------------------------------------------------------------

std::string page() {
  std::ifstream in{source_file("docs/reference/documents.md")};
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Keys of a document and of the objects in it. Those of maps are names of kernels and numbers.
void gather(const json& x, std::set<std::string>& keys) {
  static const std::set<std::string> maps{"counters", "mix", "bits", "roofline"};
  if (x.is_array())
    for (const auto& one : x) gather(one, keys);
  if (!x.is_object()) return;
  for (const auto& [key, value] : x.items()) {
    keys.insert(key);
    if (!maps.contains(key)) gather(value, keys);
  }
}

TEST(documents_page, names_every_key_of_inspect_and_of_build) {
  if (!has_nvcc()) GTEST_SKIP() << "no nvcc on this machine";
  std::set<std::string> keys;
  gather(inspected("sums.cu", device_kernel), keys);
  auto built = kernelmill(
      {"build", write_file("sums.cu", device_kernel), "--arch", "sm_90", "--assembly", "--json"});
  ASSERT_TRUE(built.document().is_object()) << built.err;
  gather(built.document(), keys);
  EXPECT_THAT(keys, Contains("listing"));
  auto text = page();
  for (const auto& key : keys) EXPECT_THAT(text, HasSubstr("`" + key + "`"));
}

TEST(documents_page, names_every_key_of_bench) {
  auto file =
      write_file("kernel.cpp", "extern \"C\" void solve(const float*, float*, int, int) {}\n");
  auto x = kernelmill({"bench", "--task", "native/row_sum", "--json", "--evaluations", "1",
                       "--shapes", "one_row", file});
  ASSERT_TRUE(x.document().is_object()) << x.err;
  std::set<std::string> keys;
  gather(x.document(), keys);
  EXPECT_THAT(keys, Contains("candidate_gb_per_s"));
  auto text = page();
  for (const auto& key : keys) EXPECT_THAT(text, HasSubstr("`" + key + "`"));
}

} // namespace inspect_command_test
} // namespace kernelmill::test
