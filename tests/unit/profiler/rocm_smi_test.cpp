// rocm-smi. Names of fields are those of ROCm 4.3, 6.0, 6.1 and 6.3 (rocm-smi 1.4 to 3.0).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/rocm_smi.hpp"

using namespace kernelmill;
using testing::HasSubstr;

namespace rocm_smi_test {

const std::string rocm_6_0 = R"smi(WARNING: AMD GPU device(s) is/are in a low-power state.

{
    "card0": {
        "Device ID": "0x738c", "Temperature (Sensor edge) (C)": "53.0",
        "Temperature (Sensor junction) (C)": "55.0", "Temperature (Sensor memory) (C)": "N/A",
        "mclk clock speed:": "(1200Mhz)", "mclk clock level:": "0",
        "sclk clock speed:": "(300Mhz)", "sclk clock level:": "0", "sclk clock level": "0 (300Mhz)",
        "Max Graphics Package Power (W)": "290.0", "Average Graphics Package Power (W)": "36.0",
        "GPU use (%)": "7", "GPU memory use (%)": "2", "VRAM Total Memory (B)": "34342961152",
        "VRAM Total Used Memory (B)": "6750208", "Card series": "Instinct MI100"
    },
    "card1": {"GPU use (%)": 99.5},
    "system": {"Driver version": "6.3.6"}
})smi";

TEST(RocmSmi, JsonOfSeveralGpusIsRead) {
  ASSERT_TRUE(is_rocm_smi(rocm_6_0));
  auto x = read_rocm_smi(rocm_6_0);
  EXPECT_EQ(x.tool, trace_tool::rocm_smi);
  EXPECT_EQ(x.problem, trace_problem::none);
  ASSERT_EQ(x.readings.size(), 2u);
  const auto& gpu = x.readings[0];
  EXPECT_EQ(gpu.card, "card0");
  EXPECT_EQ(gpu.name, "Instinct MI100");
  EXPECT_EQ(gpu.edge_celsius, 53);
  EXPECT_EQ(gpu.junction_celsius, 55);
  EXPECT_FALSE(gpu.memory_celsius) << "N/A is missing";
  EXPECT_EQ(gpu.core_mhz, 300);
  EXPECT_EQ(gpu.memory_mhz, 1200);
  EXPECT_EQ(gpu.use, 7);
  EXPECT_EQ(gpu.memory_activity, 2);
  EXPECT_EQ(gpu.power_watts, 36);
  EXPECT_EQ(gpu.power_limit_watts, 290);
  EXPECT_EQ(gpu.memory_bytes, 34342961152);
  EXPECT_EQ(gpu.memory_used_bytes, 6750208);
  EXPECT_EQ(x.readings[1].use, 99.5);
  EXPECT_FALSE(x.readings[1].power_watts);
}

TEST(RocmSmi, NewerNamesOfFieldsAreRead) {
  auto x = read_rocm_smi(R"smi({"card0": {"Device Name": "Navi 22", "GFX Version": "gfx1031",
      "Card Series": "Radeon RX 6700 XT", "GPU Memory Read/Write Activity (%)": "3",
      "GPU Memory Allocated (VRAM%)": "12", "Current Socket Graphics Package Power (W)": "20.358"}})smi");
  const auto& gpu = x.readings.at(0);
  EXPECT_EQ(gpu.name, "Radeon RX 6700 XT");
  EXPECT_EQ(gpu.architecture, "gfx1031");
  EXPECT_EQ(gpu.memory_activity, 3);
  EXPECT_EQ(gpu.power_watts, 20.358);
}

TEST(RocmSmi, CsvIsReadByTheNamesOfItsColumns) {
  std::string text =
      "WARNING: AMD GPU device(s) is/are in a low-power state.\n\n"
      "device,Temperature (Sensor edge) (C),sclk clock speed:,Current Socket Graphics Package "
      "Power (W),GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series,GFX "
      "Version\n"
      "card0,54.0,(600Mhz),20.358,2,536870912,511442944,AMD Radeon 8060S Graphics,gfx1151\n"
      "card1,40.0,(2400Mhz),100.0,97,17163091968,8581545984,AMD Radeon RX 9070 XT,gfx1201\r\n";
  ASSERT_TRUE(is_rocm_smi(text));
  auto x = read_rocm_smi(text);
  ASSERT_EQ(x.readings.size(), 2u);
  EXPECT_EQ(x.readings[0].edge_celsius, 54);
  EXPECT_EQ(x.readings[0].core_mhz, 600);
  EXPECT_EQ(x.readings[1].use, 97);
  EXPECT_EQ(x.readings[1].memory_used_bytes, 8581545984);
  EXPECT_EQ(x.readings[1].architecture, "gfx1201");
}

TEST(RocmSmi, TablesThatFollowEachOtherAreOfTheSameGpus) {
  auto x = read_rocm_smi("device,GPU use (%)\ncard0,42%\ncard1,17\n\n"
                         "device,Temperature (Sensor edge) (C)\ncard0,72.5\ncard1,69.0\n");
  ASSERT_EQ(x.readings.size(), 2u);
  EXPECT_EQ(x.readings[0].use, 42);
  EXPECT_EQ(x.readings[1].edge_celsius, 69);
}

TEST(RocmSmi, BrokenTextsAreAProblem) {
  for (std::string text : {std::string{}, std::string{"{\"card0\": {\"GPU use (%)\": \"1\""},
                           std::string{"device,GPU use (%)\n"}, std::string{"{\"card0\": [1]}"},
                           "{\"card0\":" + std::string(1 << 20, '['), std::string{"card0,1\n"}}) {
    auto x = read_rocm_smi(text);
    EXPECT_EQ(x.problem, trace_problem::no_gpus) << text.substr(0, 40);
    EXPECT_FALSE(x.words.empty());
  }
  EXPECT_FALSE(is_rocm_smi("==PROF== Connected to process\n"));
}

TEST(RocmSmi, ValuesThatAreNoneAreMissing) {
  auto x =
      read_rocm_smi(R"smi({"card0": {"GPU use (%)": "nan", "Average Graphics Package Power (W)":
      "1e400", "VRAM Total Memory (B)": null, "sclk clock speed:": "()",
      "Temperature (Sensor edge) (C)": ["45"]}})smi");
  const auto& gpu = x.readings.at(0);
  EXPECT_FALSE(gpu.use || gpu.power_watts || gpu.memory_bytes || gpu.core_mhz || gpu.edge_celsius);
}

} // namespace rocm_smi_test
