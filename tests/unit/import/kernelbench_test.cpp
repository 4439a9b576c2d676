// Problems of KernelBench's form, written here, become tasks.

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/task.hpp"
#include "launch/import/kernelbench.hpp"
#include "launch/import/task_writer.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace kernelbench_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::string code = "import transformers\nclass Model: pass\ndef get_inputs(): return []\n"
                         "def get_init_inputs(): return []\n";

std::string line(uint32_t level, uint32_t id, const std::string& name,
                 const std::string& text = code) {
  return nlohmann::json{{"level", level}, {"problem_id", id}, {"name", name}, {"code", text}}
             .dump() +
         "\n";
}

class kernelbench : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernelmill-import-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string write(const std::string& name, const std::string& text) {
    auto path = root_ + "/" + name;
    fs::create_directories(fs::path{path}.parent_path());
    std::ofstream{path} << text;
    return path;
  }
  error trouble(const std::string& text) {
    auto x = read_kernelbench(write("bad.jsonl", text));
    return x ? error{fault_class::none, {}, {}, {}} : x.error();
  }

  std::string root_;
};

TEST_F(kernelbench, lines_come_in_the_order_of_level_and_number) {
  auto path = write("problems.jsonl", line(2, 1, "1_Conv_ReLU") + "\n" + line(1, 19, "19_ReLU") +
                                          line(1, 2, "2_Matmul.py") + line(1, 3, "Tanh"));
  auto all = read_kernelbench(path);
  ASSERT_TRUE(all) << render(all.error());
  std::vector<std::string> ids;
  for (const auto& x : *all) ids.push_back(x.id());
  EXPECT_THAT(ids,
              testing::ElementsAre("kernelbench/level1/2_Matmul", "kernelbench/level1/3_Tanh",
                                   "kernelbench/level1/19_ReLU", "kernelbench/level2/1_Conv_ReLU"));
}

TEST_F(kernelbench, a_checkout_gives_the_same_as_its_folder) {
  write("KernelBench/level1/19_ReLU.py", code);
  write("KernelBench/level1/__init__.py", "");
  write("KernelBench/level4/1_gpt2.py", code);
  write("KernelBench/levels/2_No.py", code);
  for (const auto& path : {root_, root_ + "/KernelBench"}) {
    auto all = read_kernelbench(path);
    ASSERT_TRUE(all) << render(all.error());
    ASSERT_EQ(all->size(), 2u);
    EXPECT_EQ(all->front().id(), "kernelbench/level1/19_ReLU");
    EXPECT_EQ(all->front().code, code);
    EXPECT_EQ(all->back().level, 4u);
  }
}

TEST_F(kernelbench, errors_name_file_and_line) {
  auto good = line(1, 1, "1_A");
  auto x = trouble(good + "\n{\"level\": 1,");
  EXPECT_EQ(x.category, "bad_problem");
  EXPECT_THAT(x.message, AllOf(HasSubstr("bad.jsonl, line 3"), HasSubstr("no JSON")));
  EXPECT_THAT(trouble("[]\n").message, HasSubstr("line 1: it is no object"));
  EXPECT_THAT(trouble(good + "{\"level\": 1, \"problem_id\": 2, \"name\": \"2_B\"}\n").message,
              HasSubstr("line 2: code is missing"));
  EXPECT_THAT(trouble(line(1, 2, "2_B", "class Model: pass\n")).message,
              HasSubstr("line 1: it defines no get_inputs"));
  EXPECT_THAT(trouble(line(0, 2, "2_B")).message, HasSubstr("level is 0"));
  EXPECT_THAT(trouble(line(1, 2, "../../2_B")).message, HasSubstr("no folder may have"));
  EXPECT_THAT(trouble(good + good).message, HasSubstr("line 2: it is the second problem"));
  EXPECT_THAT(trouble("\n").message, HasSubstr("holds no problem"));
  EXPECT_EQ(read_kernelbench(root_ + "/nowhere").error().category, "missing_file");
  fs::create_directories(root_ + "/empty");
  EXPECT_EQ(read_kernelbench(root_ + "/empty").error().category, "missing_file");
}

TEST_F(kernelbench, a_name_says_what_a_problem_is_about) {
  auto family = [](uint32_t level, const char* name) {
    return operator_family_of({level, 1, name, {}, {}});
  };
  EXPECT_EQ(family(1, "1_Square_matrix_multiplication_"), "matmul");
  EXPECT_EQ(family(1, "5_Matrix_scalar_multiplication"), "elementwise");
  EXPECT_EQ(family(1, "19_ReLU"), "activation");
  EXPECT_EQ(family(1, "23_Softmax"), "activation");
  EXPECT_EQ(family(1, "38_L1Norm_"), "normalization");
  EXPECT_EQ(family(1, "41_Max_Pooling_1D"), "pooling");
  EXPECT_EQ(family(1, "49_Max_reduction_over_a_dimension"), "reduction");
  EXPECT_EQ(family(1, "82_conv_depthwise_2D"), "convolution");
  EXPECT_EQ(family(1, "89_cumsum"), "scan");
  EXPECT_EQ(family(1, "94_MSELoss"), "loss");
  EXPECT_EQ(family(1, "97_ScaledDotProductAttention"), "attention");
  EXPECT_EQ(family(2, "9_Matmul_Subtract"), "fusion");
  EXPECT_EQ(family(3, "9_ResNet18"), "network");
  EXPECT_EQ(family(3, "31_VisionAttention"), "attention");
}

TEST_F(kernelbench, a_problem_becomes_a_task_that_loads) {
  auto all = read_kernelbench(write("p.jsonl", line(2, 7, "7_Conv3d_ReLU_", code)));
  ASSERT_TRUE(all);
  auto writer = task_writer::open(root_ + "/tasks");
  ASSERT_TRUE(writer) << render(writer.error());
  auto outcome = writer->write(all->front().id(), task_files_of(all->front()), false);
  ASSERT_TRUE(outcome) << render(outcome.error());
  EXPECT_EQ(*outcome, import_outcome::imported);
  auto loaded = load_task(root_ + "/tasks", "kernelbench/level2/7_Conv3d_ReLU_");
  ASSERT_TRUE(loaded) << render(loaded.error());
  const auto& x = *loaded;
  EXPECT_TRUE(x->contract == contract_kind::torch);
  EXPECT_EQ(x->title, "Conv3d ReLU");
  EXPECT_EQ(x->difficulty, "medium");
  EXPECT_EQ(x->torch.level, 2u);
  EXPECT_EQ(x->torch.problem_id, 7u);
  EXPECT_EQ(x->torch.code, code);
}

TEST_F(kernelbench, a_model_of_the_network_needs_its_configuration_here) {
  const std::string model =
      "from transformers import AutoModelForCausalLM, AutoConfig\n\nclass Model:\n"
      "  def __init__(self, model_name, config):\n    self.model = "
      "AutoModelForCausalLM.from_pretrained(self.model_name, config=self.config)\n\n"
      "model_name = \"some/net\"\nconfig = AutoConfig.from_pretrained(model_name)\n"
      "def get_inputs(): return []\ndef get_init_inputs(): return [model_name, config]\n";
  auto path = write("p.jsonl", line(4, 1, "1_net", model) + line(1, 1, "1_A"));
  auto reading = read_kernelbench_suite(path, {});
  ASSERT_TRUE(reading) << render(reading.error());
  EXPECT_EQ(reading->tasks.size(), 1u);
  EXPECT_THAT(reading->refused.at(0).reason, HasSubstr("--models DIR"));
  auto with = [&](const std::string& config) {
    if (!config.empty()) write("models/some/net/config.json", config);
    return read_kernelbench_suite(path, {{"--models", root_ + "/models"}, {"--level", "4"}});
  };
  EXPECT_THAT(with("")->refused.at(0).cause, HasSubstr("config.json"));
  EXPECT_THAT(with("[1]")->refused.at(0).cause, HasSubstr("model_type"));
  EXPECT_THAT(with(std::string(9999, '['))->refused.at(0).cause, HasSubstr("too deep"));
  reading = with("{\"model_type\": \"gpt2\", \"tied\": true, \"n\": null}");
  ASSERT_EQ(reading->tasks.size(), 1u);
  auto code = reading->tasks[0].files[1].text;
  EXPECT_THAT(code, AllOf(HasSubstr("AutoModelForCausalLM.from_config(self.config)"),
                          HasSubstr("AutoConfig.for_model(**CONFIGURATION)"),
                          HasSubstr("CONFIGURATION = {\"model_type\": \"gpt2\", \"tied\": True, "
                                    "\"n\": None}\nmodel_name = ")));
}

TEST_F(kernelbench, types_are_those_of_the_problem_unless_one_is_asked_for) {
  auto precision = [](const std::string& text, const std::string& asked = {}) {
    for (const auto& file : task_files_of({1, 1, "1_Exp", text, {}}, asked))
      if (file.name == "task.json")
        return nlohmann::json::parse(file.text).at("precision").get<std::string>();
    return std::string{};
  };
  EXPECT_EQ(precision(code), "fp32");
  EXPECT_EQ(precision(std::string{code} + "# x.to(torch.bfloat16)\n"), "own");
  EXPECT_EQ(precision(std::string{code} + "# x.to(torch.bfloat16)\n", "fp32"), "fp32");
  EXPECT_EQ(precision(code, "bf16"), "bf16");
}

TEST_F(kernelbench, a_task_is_replaced_only_when_asked_and_then_whole) {
  auto write_task = [&](const std::string& text, bool replace) {
    auto writer = task_writer::open(root_ + "/tasks");
    return *writer->write("a/b", {{"one", text}, {"two", "2"}}, replace);
  };
  EXPECT_EQ(write_task("1", false), import_outcome::imported);
  EXPECT_EQ(write_task("1", false), import_outcome::unchanged);
  EXPECT_EQ(write_task("new", false), import_outcome::kept);
  std::ofstream{root_ + "/tasks/a/b/stale"} << "x";
  EXPECT_EQ(write_task("new", true), import_outcome::replaced);
  EXPECT_FALSE(fs::exists(root_ + "/tasks/a/b/stale"));
  std::ifstream in{root_ + "/tasks/a/b/one"};
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>{in}, {}}), "new");
  // Nothing is left of the drafts.
  EXPECT_EQ(std::distance(fs::directory_iterator{root_ + "/tasks"}, {}), 1);
}

} // namespace kernelbench_test
} // namespace kernelmill
