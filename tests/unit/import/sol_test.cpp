// Definitions and workloads of SOL-ExecBench's form, written here, become tasks.

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/import/sol/data_set.hpp"
#include "launch/import/sol/inputs.hpp"
#include "launch/import/sol/task.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::sol {
namespace sol_test {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json; // inputs keep their order
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

json row_scale() {
  return json{{"name", "row_scale"},
              {"op_type", "rmsnorm"},
              {"axes",
               {{"rows", {{"type", "var"}}},
                {"cols", {{"type", "const"}, {"value", 64}}},
                {"half", {{"type", "expr"}, {"expression", "cols // 2"}}}}},
              {"inputs",
               {{"x", {{"shape", {"rows", "cols"}}, {"dtype", "bfloat16"}}},
                {"scale", {{"shape", nullptr}, {"dtype", "float32"}}}}},
              {"outputs", {{"y", {{"shape", {"rows", "half"}}, {"dtype", "bfloat16"}}}}},
              {"reference", "import torch\n\ndef run(x, scale):\n    return x[:, ::2] * scale\n"}};
}

json at_rows(int rows, const std::string& uuid, double scale = 0.5) {
  return json{
      {"axes", {{"rows", rows}}},
      {"inputs", {{"x", {{"type", "random"}}}, {"scale", {{"type", "scalar"}, {"value", scale}}}}},
      {"uuid", uuid}};
}

class sol_import : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernelmill-sol-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    auto path = fs::path{root_} / name;
    fs::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary} << text;
  }
  void problem(const std::string& folder, const json& definition, std::vector<json> workloads) {
    write(folder + "/definition.json", definition.dump());
    std::string lines;
    for (const auto& x : workloads) lines += x.dump() + "\n";
    write(folder + "/workload.jsonl", lines);
  }
  suite_reading read(const suite_options& options = {}, family suite = family::sol) {
    auto result = read_data_set(root_, options, suite);
    EXPECT_TRUE(result) << (result ? "" : render(result.error()));
    return result.value_or(suite_reading{});
  }
  static std::string file(const suite_task& x, const std::string& name) {
    for (const auto& one : x.files)
      if (one.name == name) return one.text;
    return {};
  }
  // What a problem is left out for.
  std::string cause_of(const json& definition, std::vector<json> workloads) {
    problem("hostile/p", definition, std::move(workloads));
    auto result = read();
    EXPECT_TRUE(result.tasks.empty());
    return result.refused.empty() ? "" : result.refused.front().cause;
  }

  std::string root_;
};

TEST_F(sol_import, a_problem_becomes_a_task_with_its_other_workloads_as_timed_variants) {
  problem("L1/row_scale", row_scale(), {at_rows(8, "first"), at_rows(512, "second", 2)});
  auto all = read();
  ASSERT_EQ(all.tasks.size(), 1u);
  EXPECT_TRUE(all.refused.empty());
  const auto& x = all.tasks.front();
  EXPECT_EQ(x.id, "sol-execbench/L1/row_scale");
  auto document = json::parse(file(x, "task.json"));
  EXPECT_EQ(document["operator_family"], "normalization");
  EXPECT_EQ(document["source"], "sol-execbench");
  EXPECT_EQ(document["entry"]["function"], "run");
  EXPECT_EQ(document["tolerance"]["matched"], 0.99);
  ASSERT_EQ(document["variants"].size(), 1u);
  EXPECT_EQ(document["variants"][0]["name"], "second");
  EXPECT_EQ(document["variants"][0]["set"], (json{{"AXIS_rows", 512}, {"VALUE_scale", 2.0}}));
  EXPECT_FALSE(document["variants"][0].contains("tolerance"));
  auto code = file(x, "problem.py");
  EXPECT_THAT(code, testing::StartsWith(row_scale()["reference"].get<std::string>()));
  EXPECT_THAT(code,
              AllOf(HasSubstr("AXIS_rows = 8\n"), HasSubstr("AXIS_half = int(AXIS_cols // 2)\n"),
                    HasSubstr("VALUE_scale = 0.5\n"),
                    HasSubstr("torch.randn((AXIS_rows, AXIS_cols), dtype=torch.bfloat16)"),
                    HasSubstr("return run(x, scale)")));
}

TEST_F(sol_import, a_workload_of_its_own_tolerance_keeps_it) {
  auto strict = at_rows(16, "strict");
  strict["tolerance"] = {{"max_atol", 1e-3}, {"max_error_cap", 5}};
  auto checks = at_rows(32, "checks");
  checks["checks"] = json::array({{{"type", "numeric"}, {"output", "y"}, {"max_atol", 0.5}}});
  problem("L1/p", row_scale(), {at_rows(8, "first"), strict, checks});
  auto document = json::parse(file(read().tasks.front(), "task.json"));
  EXPECT_EQ(document["variants"][0]["tolerance"],
            (json{{"absolute", 1e-3}, {"relative", 1e-2}, {"matched", 0.99}, {"largest", 5.0}}));
  EXPECT_EQ(document["variants"][1]["tolerance"]["matched"], 1.0);
}

TEST_F(sol_import, a_tolerance_of_another_kind_is_counted_and_the_task_is_taken) {
  auto other = at_rows(8, "first");
  other["checks"] = json::array({{{"type", "topk_routing"}, {"ids_output", "y"}}});
  problem("L1/p", row_scale(), {other});
  auto all = read();
  ASSERT_EQ(all.tasks.size(), 1u);
  EXPECT_FALSE(json::parse(file(all.tasks.front(), "task.json")).contains("tolerance"));
  ASSERT_EQ(all.refused.size(), 1u);
  EXPECT_EQ(all.refused.front().reason, "the suite's tolerance");
}

TEST_F(sol_import, a_data_set_of_flashinfer_is_found_by_its_folders) {
  write("definitions/rmsnorm/row_scale.json", row_scale().dump());
  json trace{{"definition", "row_scale"}, {"workload", at_rows(8, "first")}, {"solution", nullptr}};
  write("workloads/rmsnorm/row_scale.jsonl", trace.dump() + "\r\n\n");
  auto all = read({}, family::flashinfer);
  ASSERT_EQ(all.tasks.size(), 1u);
  EXPECT_EQ(all.tasks.front().id, "flashinfer-trace/rmsnorm/row_scale");
  auto document = json::parse(file(all.tasks.front(), "task.json"));
  EXPECT_EQ(document["tolerance"]["matched"], 1.0);
  EXPECT_EQ(document["source"], "flashinfer-trace");
}

TEST_F(sol_import, filters_choose_definitions_workloads_and_the_first) {
  auto other = row_scale();
  other["name"] = "gemm";
  other["op_type"] = "gemm";
  problem("L1/a", row_scale(), {at_rows(8, "a"), at_rows(16, "b"), at_rows(32, "c")});
  problem("L1/b", other, {at_rows(8, "a")});
  EXPECT_EQ(read({{"--op", "gemm"}}).tasks.size(), 1u);
  auto chosen = read({{"--definition", "row_*"}, {"--workloads", "2"}, {"--first", "c"}});
  ASSERT_EQ(chosen.tasks.size(), 1u);
  auto document = json::parse(file(chosen.tasks.front(), "task.json"));
  ASSERT_EQ(document["variants"].size(), 1u);
  EXPECT_EQ(document["variants"][0]["name"], "a");
  EXPECT_THAT(file(chosen.tasks.front(), "problem.py"), HasSubstr("AXIS_rows = 32\n"));
  EXPECT_FALSE(read_data_set(root_, {{"--workloads", "none"}}, family::sol));
}

TEST_F(sol_import, inputs_are_drawn_by_their_types_and_names) {
  auto x = row_scale();
  x["inputs"] = json::object();
  auto add = [&](const char* name, const char* type, const json& shape) {
    x["inputs"][name] = {{"shape", shape}, {"dtype", type}};
  };
  json two{"cols", "cols"};
  add("a_fp8", "float8_e4m3fn", two);
  add("b_fp4", "float4_e2m1", two);
  add("c_int", "int8", two);
  add("d_bool", "bool", two);
  add("attention_mask", "float32", two);
  add("q_norm_weight", "bfloat16", json{"cols"});
  add("q_proj", "bfloat16", two);
  add("rope_cos", "float32", two);
  add("row_std", "float32", json{"cols"});
  add("zero_d", "float32", json::array());
  problem("L1/p", x, {{{"axes", {{"rows", 1}}}, {"inputs", json::object()}, {"uuid", "u"}}});
  auto code = file(read().tasks.front(), "problem.py");
  EXPECT_THAT(code, AllOf(HasSubstr(".clamp_(-2.0, 2.0).to(torch.float8_e4m3fn)"),
                          HasSubstr("packed_fp4(torch.randn((AXIS_cols, AXIS_cols)))"),
                          HasSubstr("torch.randint(-128, 128, (AXIS_cols, AXIS_cols), "
                                    "dtype=torch.int8)"),
                          HasSubstr("torch.randint(0, 2, (AXIS_cols, AXIS_cols), "
                                    "dtype=torch.bool)")));
  EXPECT_THAT(code,
              AllOf(HasSubstr("causal_mask((AXIS_cols, AXIS_cols), torch.float32)"),
                    HasSubstr("1 + 0.1 * torch.randn((AXIS_cols,), dtype=torch.bfloat16)"),
                    HasSubstr("dtype=torch.bfloat16) / AXIS_cols ** 0.5"), HasSubstr("torch.cos("),
                    HasSubstr(".abs() + 0.1"), HasSubstr("torch.randn((), dtype=torch.float32)"),
                    HasSubstr("b_fp4.view(torch.float4_e2m1fn_x2)")));
}

TEST_F(sol_import, inputs_of_the_reference_s_own_function_are_taken_from_it) {
  auto x = row_scale();
  x["custom_inputs_entrypoint"] = "make";
  x["reference"] = "def make(axes, device): return {}\ndef run(x, scale): return {'y': x}\n";
  auto one = at_rows(8, "a");
  one["inputs"]["x"] = {{"type", "custom"}};
  problem("L1/p", x, {one});
  auto code = file(read().tasks.front(), "problem.py");
  EXPECT_THAT(code, AllOf(HasSubstr("made = make({\"rows\": AXIS_rows, \"cols\": AXIS_cols, "),
                          HasSubstr("made[\"x\"]"), HasSubstr("if isinstance(out, dict)")));
}

TEST_F(sol_import, a_reference_that_computes_gradients_may) {
  auto x = row_scale();
  x["reference"] = "def run(x, scale):\n    x.sum().backward()\n    return x.grad\n";
  problem("L1/p", x, {at_rows(8, "a")});
  EXPECT_THAT(file(read().tasks.front(), "problem.py"),
              HasSubstr("        with torch.enable_grad():\n            out = run(x, scale)\n"
                        "        return out\n"));
}

std::string safetensors(const json& head, size_t bytes) {
  auto text = head.dump();
  uint64_t length = text.size();
  std::string result(8, '\0');
  std::memcpy(result.data(), &length, 8);
  return result + text + std::string(bytes, '\1');
}

TEST_F(sol_import, a_stored_tensor_is_copied_under_the_hash_of_its_file) {
  auto x = row_scale();
  x["inputs"]["x"] = {{"shape", {"rows"}}, {"dtype", "int32"}};
  auto one = at_rows(3, "a");
  one["inputs"]["x"] = {{"type", "safetensors"}, {"path", "data/blob/p/a.st"}, {"tensor_key", "x"}};
  json head{{"x", {{"dtype", "I32"}, {"shape", {3}}, {"data_offsets", {0, 12}}}}};
  write("blob/p/a.st", safetensors(head, 12));
  problem("L1/p", x, {one});
  auto all = read();
  ASSERT_EQ(all.tasks.size(), 1u);
  ASSERT_EQ(all.tasks.front().files.size(), 5u);
  auto name = all.tasks.front().files.back().name;
  EXPECT_EQ(name.size(), 16 + std::strlen(".safetensors"));
  EXPECT_THAT(file(all.tasks.front(), "problem.py"),
              AllOf(HasSubstr("FILE_x = \"" + name + ":x\""),
                    HasSubstr("stored(FILE_x, torch.int32, (AXIS_rows,))")));
}

TEST_F(sol_import, stored_tensors_that_cannot_be_used_leave_a_workload_out) {
  auto x = row_scale();
  x["inputs"]["x"] = {{"shape", {"rows"}}, {"dtype", "int32"}};
  auto with = [](const std::string& path) {
    auto one = at_rows(3, path);
    one["inputs"]["x"] = {{"type", "safetensors"}, {"path", path}, {"tensor_key", "x"}};
    return one;
  };
  json long_one{{"x", {{"dtype", "I32"}, {"shape", {3}}, {"data_offsets", {0, 99999999999}}}}};
  json other{{"x", {{"dtype", "F32"}, {"shape", {3}}, {"data_offsets", {0, 12}}}}};
  write("secret/key.st", "secret");
  write("set/blob/long.st", safetensors(long_one, 12));
  write("set/blob/other.st", safetensors(other, 12));
  write("set/blob/lfs.st", "version https://git-lfs.github.com/spec/v1\n");
  write("set/blob/huge.st", std::string(8, '\xff'));
  fs::create_symlink(root_ + "/secret/key.st", root_ + "/set/blob/link.st");
  problem("set/L1/p", x,
          {with("../secret/key.st"), with("/etc/passwd"), with("blob/none.st"),
           with("blob/long.st"), with("blob/other.st"), with("blob/lfs.st"), with("blob/huge.st"),
           with("blob/link.st")});
  auto all = read_data_set(root_ + "/set", {}, family::sol);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->tasks.empty());
  std::vector<std::string> causes;
  for (const auto& one : all->refused) causes.push_back(one.cause);
  EXPECT_THAT(causes,
              testing::ElementsAre(HasSubstr("leads out"), HasSubstr("no path below"),
                                   HasSubstr("not there"), HasSubstr("does not lie in the file"),
                                   HasSubstr("not of type int32"), HasSubstr("Git LFS"),
                                   HasSubstr("no safetensors file"), HasSubstr("leads out"),
                                   HasSubstr("none of its workloads")));
}

// -- hostile files --------------------------------------------------------------------------------

TEST_F(sol_import, hostile_definitions_are_left_out_with_file_and_key) {
  auto with = [](const char* key, const json& value) {
    auto x = row_scale();
    x[json::json_pointer{key}] = value;
    return x;
  };
  std::vector<std::pair<json, const char*>> all{
      {with("/name", 7), "name is no text"},
      {with("/axes", json::array()), "axes is no object"},
      {with("/axes/rows", {{"type", "magic"}}), "axes.rows.type is \"magic\""},
      {with("/axes/cols/value", 1e300), "axes.cols.value is no size"},
      {with("/axes/cols/value", -1), "axes.cols.value is no size"},
      {with("/axes/half/expression", "cols // 0"), "it divides by zero"},
      {with("/axes/half/expression", "__import__('os')"), "axes.half.expression"},
      {with("/axes/half/expression", std::string(5000, '(')), "too long"},
      {with("/axes/half/expression", std::string(300, '(')), "nests too deep"},
      {with("/axes/half/expression", "9**9**9"), "too large"},
      {with("/inputs/x/dtype", "complex128"), "inputs.x.dtype is \"complex128\""},
      {with("/inputs/x/shape", {"rows", "depth"}), "names the axis \"depth\""},
      {with("/inputs/x/shape", "rows"), "inputs.x.shape is no list"},
      {with("/inputs/class", {{"shape", nullptr}, {"dtype", "bool"}}), "no name in Python"},
      {with("/inputs/x); import os; (y", {{"shape", nullptr}, {"dtype", "bool"}}),
       "no name in Python"},
      {with("/outputs/x", {{"shape", nullptr}, {"dtype", "bool"}}), "names x twice"},
      {with("/outputs", json::object()), "outputs is empty"},
      {with("/reference", "def walk(): pass"), "defines no run"},
      {with("/reference", "def run(x): pass\nclass Model: pass\n"), "has itself: class Model"},
      {with("/reference", std::string(1 << 19, 'x')), "longer than 256 KiB"},
      {with("/custom_inputs_entrypoint", "run; import os"), "custom_inputs_entrypoint"},
  };
  for (const auto& [definition, words] : all)
    EXPECT_THAT(cause_of(definition, {at_rows(8, "a")}), HasSubstr(words)) << words;
  auto lacking = row_scale();
  lacking.erase("inputs");
  EXPECT_THAT(cause_of(lacking, {at_rows(8, "a")}),
              AllOf(HasSubstr("p/definition.json"), HasSubstr("inputs is missing")));
}

TEST_F(sol_import, hostile_workloads_are_left_out_with_file_and_line) {
  auto with = [](const char* key, const json& value) {
    auto x = at_rows(8, "a");
    x[json::json_pointer{key}] = value;
    return x;
  };
  auto of_none = at_rows(8, "a");
  of_none["axes"].erase("rows");
  std::vector<std::pair<json, const char*>> all{
      {with("/axes/rows", "many"), "axes.rows is no size"},
      {with("/axes/rows", 1e30), "axes.rows is no size"},
      {with("/inputs/z", {{"type", "random"}}), "inputs.z is no input"},
      {with("/inputs/x", {{"type", "oracle"}}), "inputs.x.type is \"oracle\""},
      {with("/inputs/scale", {{"type", "scalar"}, {"value", "1; import os"}}),
       "inputs.scale.value"},
      {with("/inputs/x", {{"type", "custom"}}), "names no function"},
      {with("/tolerance", {{"max_atol", "inf"}}), "tolerance.max_atol is no number"},
      {with("/tolerance", {{"required_matched_ratio", 7}}), "no share above 0"},
      {with("/uuid", nullptr), "uuid is missing"},
      {with("/definition", "another"), "of another definition"},
      {of_none, "axes.rows is missing"},
      {json::array(), "no object"},
  };
  for (const auto& [workload, words] : all)
    EXPECT_THAT(cause_of(row_scale(), {workload}),
                AllOf(HasSubstr(words), HasSubstr("workload.jsonl, line 1")))
        << words;
}

TEST_F(sol_import, files_that_are_no_json_or_lead_away_are_left_out) {
  problem("a/good", row_scale(), {at_rows(8, "a")});
  write("a/deep/definition.json", std::string(100000, '['));
  write("a/bytes/definition.json", "\xff\xfe{\"name\": \"\xc3\x28\"}");
  write("a/empty/definition.json", "");
  problem("a/twin", row_scale(), {at_rows(8, "a")});
  write("outside/definition.json", row_scale().dump());
  fs::create_directories(root_ + "/a/link");
  fs::create_symlink(root_ + "/outside/definition.json", root_ + "/a/link/definition.json");
  fs::create_directory_symlink(root_, root_ + "/a/circle");
  auto all = read_data_set(root_ + "/a", {}, family::sol);
  ASSERT_TRUE(all) << render(all.error());
  EXPECT_EQ(all->tasks.size(), 1u);
  std::vector<std::string> reasons;
  for (const auto& one : all->refused) reasons.push_back(one.reason);
  EXPECT_THAT(reasons, testing::ElementsAre("malformed", "malformed", "malformed", "malformed",
                                            "named twice"));
  EXPECT_FALSE(read_data_set(root_ + "/nowhere", {}, family::sol));
}

TEST_F(sol_import, workloads_beyond_what_a_task_has_are_counted) {
  std::vector<json> many;
  for (int i = 0; i < 70; ++i) many.push_back(at_rows(i + 1, "w" + std::to_string(i)));
  many.push_back(at_rows(1, "again"));
  problem("L1/p", row_scale(), many);
  auto all = read();
  ASSERT_EQ(all.tasks.size(), 1u);
  EXPECT_EQ(json::parse(file(all.tasks.front(), "task.json"))["variants"].size(), 64u);
  EXPECT_EQ(all.refused.size(), 6u);
  EXPECT_EQ(all.refused.back().reason, "same shape");
}

TEST(sol_expression, sizes_are_calculated_as_python_does) {
  std::map<std::string, int64_t> axes{{"a", 7}, {"b", 2}};
  auto value = [&](const char* text) { return evaluate(text, axes).value_or(-999); };
  EXPECT_EQ(value("a // b * 2 + 1"), 7);
  EXPECT_EQ(value("-a // b"), -4);
  EXPECT_EQ(value("-a % b"), 1);
  EXPECT_EQ(value("2 ** 3 ** 2"), 512);
  EXPECT_EQ(value("-b ** 2"), -4);
  EXPECT_EQ(value("(a + 1) / b"), 4);
  EXPECT_EQ(value("a / b"), -999);
  EXPECT_EQ(value("a.b"), -999);
  EXPECT_EQ(value("a b"), -999);
}

} // namespace sol_test
} // namespace kernelmill::sol
