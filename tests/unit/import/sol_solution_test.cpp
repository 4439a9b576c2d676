// Solutions of SOL-ExecBench's form become modules in Python.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/import/sol/solution.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::sol {
namespace sol_solution_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

definition halves() {
  json x{{"name", "halves"},
         {"axes",
          {{"rows", {{"type", "var"}}},
           {"hidden", {{"type", "var"}}},
           {"cols", {{"type", "const"}, {"value", 64}}},
           {"half", {{"type", "expr"}, {"expression", "rows // 2"}}}}},
         {"inputs", {{"x", {{"shape", {"rows", "cols"}}, {"dtype", "float32"}}}}},
         {"outputs", {{"y", {{"shape", {"half", "cols"}}, {"dtype", "float32"}}}}},
         {"reference", "def run(x): return x[::2]\n"}};
  return read_definition(x.dump(), "definition.json").value();
}

json solution_in(const char* language, const char* entry, const json& sources) {
  return json{{"name", "s"},
              {"definition", "halves"},
              {"author", "a"},
              {"spec",
               {{"languages", {language}},
                {"target_hardware", {"LOCAL"}},
                {"entry_point", entry},
                {"destination_passing_style", false}}},
              {"sources", sources}};
}

json python_solution() {
  return solution_in("triton", "kernel.py::go",
                     {{{"path", "kernel.py"}, {"content", "def go(x): return x[::2]"}}});
}

std::string module_of(const json& x) {
  auto result = read_solution(x.dump(), "solution.json", halves());
  return result ? result->module : result.error().category + ": " + result.error().message;
}

TEST(sol_solution, one_file_of_python_stays_and_is_wrapped) {
  auto text = module_of(python_solution());
  EXPECT_THAT(text, testing::StartsWith("def go(x): return x[::2]\n"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("solution_entry = go\n"), HasSubstr("def run(*inputs):"),
                    HasSubstr("out = solution_entry(*inputs)"), Not(HasSubstr("torch.zeros"))));
}

TEST(sol_solution, outputs_that_it_is_handed_are_made_of_the_inputs_axes) {
  auto x = python_solution();
  x["spec"].erase("destination_passing_style"); // true where nothing is said
  EXPECT_THAT(module_of(x),
              AllOf(HasSubstr("torch.zeros((int(inputs[0].shape[0] // 2), 64, ), "
                              "dtype=torch.float32, device=device)"),
                    HasSubstr("solution_entry(*inputs, *outputs)\n    return outputs[0]")));
}

TEST(sol_solution, an_output_s_axis_that_no_input_has_is_refused_by_name) {
  json x{{"name", "halves"},
         {"axes", {{"k", {{"type", "var"}}}, {"rows", {{"type", "var"}}}}},
         {"inputs", {{"x", {{"shape", {"rows"}}, {"dtype", "float32"}}}}},
         {"outputs", {{"y", {{"shape", {"k"}}, {"dtype", "float32"}}}}},
         {"reference", "def run(x): return x\n"}};
  auto what = read_definition(x.dump(), "d").value();
  auto s = python_solution();
  s["spec"]["destination_passing_style"] = true;
  auto result = read_solution(s.dump(), "solution.json", what);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().category, "unsupported_solution");
  EXPECT_THAT(result.error().message, HasSubstr("no input has their axis k"));
}

TEST(sol_solution, several_files_are_written_and_imported) {
  auto x = solution_in("pytorch", "pkg/main.py::go",
                       {{{"path", "pkg/main.py"}, {"content", "from pkg import other\n"}},
                        {{"path", "pkg/other.py"}, {"content", "text = 'line\\n'\n"}}});
  EXPECT_THAT(module_of(x), AllOf(HasSubstr("\"pkg/other.py\": \"text = 'line\\\\n'\\n\""),
                                  HasSubstr("importlib.import_module(\"pkg.main\").go")));
}

TEST(sol_solution, one_that_computes_gradients_may) {
  auto x = python_solution();
  x["sources"][0]["content"] = "def go(x):\n    x.sum().backward()\n    return x.grad";
  EXPECT_THAT(module_of(x), HasSubstr("@torch.enable_grad()\ndef run(*inputs):"));
}

TEST(sol_solution, cuda_is_built_by_load_with_its_flags) {
  auto x = solution_in("cuda_cpp", "kernel.cu::run",
                       {{{"path", "kernel.cu"}, {"content", "#include \"k.h\"\n"}},
                        {{"path", "k.h"}, {"content", "#pragma once\n"}}});
  x["spec"]["compile_options"] = {{"cuda_cflags", {"-O3", "-std=c++17"}}};
  EXPECT_THAT(module_of(x), AllOf(HasSubstr("sources=[os.path.join(FOLDER, \"kernel.cu\"), ]"),
                                  HasSubstr("extra_cuda_cflags=[\"-O3\", \"-std=c++17\"]"),
                                  HasSubstr("extra_ldflags=[\"-lcuda\"]"), HasSubstr("built.run")));
}

TEST(sol_solution, what_cannot_be_taken_is_refused_by_name) {
  auto of = [](const char* language, const char* content) {
    return solution_in(language, "k.cu::run", {{{"path", "k.cu"}, {"content", content}}});
  };
  EXPECT_THAT(module_of(of("cuda", "x")), HasSubstr("its binding is tvm-ffi"));
  EXPECT_THAT(module_of(of("cutlass", "#include <cutlass/gemm.h>")), HasSubstr("CUTLASS"));
  EXPECT_THAT(module_of(of("cuda_cpp", "#include <tvm/ffi/function.h>")), HasSubstr("tvm-ffi"));
  auto bound = of("cuda", "x");
  bound["spec"]["binding"] = "torch";
  EXPECT_THAT(module_of(bound), HasSubstr("load("));
  EXPECT_THAT(
      module_of(solution_in("fortran", "k.py::run", {{{"path", "k.py"}, {"content", "x"}}})),
      HasSubstr("unsupported_solution: failed to take solution.json: its language is fortran"));
}

TEST(sol_solution, hostile_solutions_name_the_key) {
  auto with = [](const char* key, const json& value) {
    auto x = python_solution();
    x[json::json_pointer{key}] = value;
    return module_of(x);
  };
  EXPECT_THAT(with("/sources/0/path", "../../etc/cron.d/x"), HasSubstr("may not be written"));
  EXPECT_THAT(with("/sources/0/path", "/etc/passwd"), HasSubstr("may not be written"));
  EXPECT_THAT(with("/sources/0/path", "a\"b.py"), HasSubstr("may not be written"));
  EXPECT_THAT(with("/sources", json::array()), HasSubstr("sources is no list of 1 to 32"));
  EXPECT_THAT(with("/sources/1", json{{"path", "./kernel.py"}, {"content", "x"}}),
              HasSubstr("names kernel.py twice"));
  EXPECT_THAT(with("/spec/entry_point", "kernel.py"), HasSubstr("not \"file::function\""));
  EXPECT_THAT(with("/spec/entry_point", "kernel.py::go; import os"),
              HasSubstr("names no function"));
  EXPECT_THAT(with("/spec/entry_point", "other.py::go"), HasSubstr("none of sources"));
  EXPECT_THAT(with("/spec/destination_passing_style", "yes"), HasSubstr("neither true nor false"));
  EXPECT_THAT(with("/spec/languages", 5), HasSubstr("languages is no list"));
  EXPECT_THAT(with("/definition", "other"), HasSubstr("it solves other, and the task is halves"));
  EXPECT_THAT(with("/spec/compile_options", {{"cflags", {1}}}), HasSubstr("cflags has"));
  auto bad = read_solution(std::string(9000, '{'), "s.json", halves());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().category, "bad_solution");
}

} // namespace sol_solution_test
} // namespace kernelmill::sol
