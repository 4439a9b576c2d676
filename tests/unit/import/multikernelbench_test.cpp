// Problems of MultiKernelBench's form, written here, become tasks.

#include "tests/unit/import/suite_folder.hpp"

namespace kernelmill {
namespace multikernelbench_test {

using testing::HasSubstr;

const std::string head = "import torch\nclass Model(torch.nn.Module):\n  def forward(self, x):\n"
                         "    return x.exp()\ndef get_init_inputs():\n  return []\n";
const std::string plain = head + "def get_inputs():\n  return [torch.rand(8)]\n";
const std::string grouped = head + "def get_input_groups():\n  with open(\"x.json\") as f:\n"
                                   "    return [[torch.rand(len(line))] for line in f]\n";

std::string line(int length, const std::string& more = {}) {
  return "{\"inputs\": [{\"name\": \"x\", \"type\": \"tensor\", \"dtype\": \"float32\", "
         "\"shape\": [" +
         std::to_string(length) + "]" + more + "}]}\n";
}

class multikernelbench : public test::suite_folder {};

TEST_F(multikernelbench, each_file_of_a_category_is_a_task) {
  write("reference/activation/exp.py", plain);
  write("reference/reduce/sum.py", plain);
  write("reference/reduce/_helper.py", "");
  auto reading = read("multikernelbench");
  ASSERT_TRUE(reading) << render(reading.error());
  ASSERT_EQ(reading->tasks.size(), 2u);
  EXPECT_TRUE(reading->refused.empty());
  auto x = load(reading->tasks[1]);
  ASSERT_TRUE(x);
  EXPECT_EQ(x->id, "multikernelbench/reduce/sum");
  EXPECT_EQ(x->operator_family, "reduction");
  EXPECT_EQ(x->torch.code, plain);
}

TEST_F(multikernelbench, cases_become_shapes) {
  write("reference/level/exp.py", grouped);
  write("reference/level/exp.json", line(4) + line(512) + "\n" + line(1024) +
                                        line(1024, ", \"range\": [0, 1]") + line(2048) +
                                        line(4096));
  auto reading = read("multikernelbench", {{"--shapes", "3"}});
  ASSERT_TRUE(reading) << render(reading.error());
  ASSERT_EQ(reading->tasks.size(), 1u);
  auto document = document_of(reading->tasks[0]);
  // 4 is too small; 512 is the task's own, then come two of 1024, 2048 and 4096.
  ASSERT_EQ(document["variants"].size(), 2u);
  EXPECT_EQ(document["variants"][0]["set"], nlohmann::json::parse("{\"AXIS_case\": 1}"));
  EXPECT_EQ(document["variants"][1]["set"], nlohmann::json::parse("{\"AXIS_case\": 2}"));
  auto x = load(reading->tasks[0]);
  ASSERT_TRUE(x);
  EXPECT_THAT(x->torch.code, HasSubstr(grouped));
  EXPECT_EQ(x->torch.variants.size(), 2u);
  EXPECT_THAT(x->torch.code, HasSubstr("CASES = [\n    [1, \"{"));
}

TEST_F(multikernelbench, an_input_that_the_model_writes_to_is_said) {
  const std::string writing =
      "import torch\nclass Model(torch.nn.Module):\n"
      "  def forward(self, x: torch.Tensor, y: tuple[int, int] = (1, 2), z=None):\n"
      "    z = z.clone()\n    return x.scatter_(0, y, z)\n"
      "def get_init_inputs():\n  return []\ndef get_inputs():\n  return []\n";
  write("reference/index/scatter.py", writing);
  auto reading = read("multikernelbench");
  ASSERT_TRUE(reading) << render(reading.error());
  EXPECT_EQ(document_of(reading->tasks.at(0))["mutates"], nlohmann::json::array({0}));
}

// Each of these is refused, and the good one beside them is imported.
TEST_F(multikernelbench, hostile_files_are_refused_one_by_one) {
  write("reference/c/good.py", plain);
  write("reference/c/npu.py", plain + "import torch_npu\n");
  write("reference/c/bytes.py", plain + "# \xff\xfe\n");
  write("reference/c/long.py", plain + std::string(600 << 10, '#'));
  write("reference/c/no_model.py", "def get_inputs(): pass\ndef get_init_inputs(): pass\n");
  write("reference/c/no_cases.py", grouped);
  for (const auto& [name, text] : std::map<std::string, std::string>{
           {"number", "7\n"},
           {"deep", "{\"inputs\": " + std::string(5000, '[') + std::string(5000, ']') + "}\n"},
           {"wrong", "{\"inputs\": 3}\n"},
           {"words", "{\"inputs\": [\"x\"]}\n"},
           {"blank", "\n\n"},
           {"lists", "{\"inputs\": [{\"type\": \"tensor_list\"}]}\n"}}) {
    write("reference/c/" + name + ".py", grouped);
    write("reference/c/" + name + ".json", text);
  }
  write("reference/c/a b.py", plain);
  std::filesystem::create_symlink("/etc/passwd", root_ + "/suite/reference/c/link.py");
  std::filesystem::create_symlink("/etc", root_ + "/suite/reference/outside");
  auto reading = read("multikernelbench");
  ASSERT_TRUE(reading) << render(reading.error());
  EXPECT_EQ(reading->tasks.size(), 1u);
  EXPECT_EQ(reading->refused.size(), 13u);
  auto fate = [&](const std::string& name) { return fate_of(*reading, "c/" + name); };
  EXPECT_EQ(fate("good"), "imported");
  EXPECT_THAT(fate("npu"), HasSubstr("torch_npu"));
  EXPECT_THAT(fate("bytes"), HasSubstr("UTF-8"));
  EXPECT_THAT(fate("long"), HasSubstr("512 KiB"));
  EXPECT_THAT(fate("no_model"), HasSubstr("no class Model"));
  EXPECT_THAT(fate("no_cases"), HasSubstr("file of cases is missing"));
  EXPECT_THAT(fate("number"), HasSubstr("no object with inputs"));
  EXPECT_THAT(fate("deep"), HasSubstr("too deep"));
  EXPECT_THAT(fate("wrong"), HasSubstr("no object with inputs"));
  EXPECT_THAT(fate("words"), HasSubstr("no object"));
  EXPECT_THAT(fate("blank"), HasSubstr("empty"));
  EXPECT_THAT(fate("lists"), HasSubstr("list of tensors"));
  EXPECT_THAT(fate("link"), HasSubstr("cannot be read"));
}

TEST_F(multikernelbench, a_folder_without_problems_is_an_error) {
  EXPECT_EQ(read("multikernelbench").error().category, "missing_file");
  write("reference/c/readme.md", "");
  EXPECT_EQ(read("multikernelbench").error().category, "missing_file");
  EXPECT_EQ(read("multikernelbench", {{"--shapes", "0"}}).error().category, "usage");
}

} // namespace multikernelbench_test
} // namespace kernelmill
