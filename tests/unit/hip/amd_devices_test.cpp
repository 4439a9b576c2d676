// What the kernel's driver shows of AMD GPUs, read from files that were made up here.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "gpu/cuda/amd_devices.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace amd_devices_test {

namespace fs = std::filesystem;

void put(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path{path}.parent_path());
  std::ofstream{path} << text;
}

TEST(amd_gpus, are_those_nodes_that_have_an_architecture_in_the_order_of_their_numbers) {
  temporary_directory root;
  put(root.path() + "/0/properties", "cpu_cores_count 64\ngfx_target_version 0\n");
  put(root.path() + "/10/properties",
      "gfx_target_version 90402\ndrm_render_minor 129\nunique_id 0\n");
  put(root.path() + "/2/properties",
      "gfx_target_version 90010\ndrm_render_minor 128\nunique_id 11400714819323198485\n");
  put(root.path() + "/2/name", "aldebaran\n");
  put(root.path() + "/2/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68702699520\n");
  put(root.path() + "/odd/properties", "gfx_target_version 90010\n");
  auto all = cuda::amd_gpus(root.path());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].index, 0u);
  EXPECT_EQ(all[0].name, "AMD aldebaran");
  EXPECT_EQ(all[0].architecture, "gfx90a");
  EXPECT_EQ(all[0].uuid, "GPU-9e3779b97f4a7c15");
  EXPECT_EQ(all[0].node, "/dev/dri/renderD128");
  EXPECT_EQ(all[0].memory_bytes, 68702699520u);
  EXPECT_EQ(all[1].architecture, "gfx942");
  EXPECT_EQ(all[1].uuid, "1") << "without an id, by its number";
  EXPECT_TRUE(cuda::amd_gpus(root.path() + "/none").empty());
}

TEST(amd_gpus, files_that_say_nonsense_are_no_gpus) {
  temporary_directory root;
  put(root.path() + "/1/properties", "gfx_target_version minus\n");
  put(root.path() + "/2/properties", std::string(1 << 16, '\xff'));
  put(root.path() + "/3/properties", "gfx_target_version 999999999999999999999999\n");
  put(root.path() + "/4/properties", "");
  fs::create_directories(root.path() + "/5/properties");
  EXPECT_TRUE(cuda::amd_gpus(root.path()).empty());
}

TEST(amd_state, is_what_the_cards_files_say_and_0_where_they_say_nothing) {
  temporary_directory root;
  auto device = root.path() + "/renderD128/device";
  put(device + "/pp_dpm_sclk", "0: 500Mhz\n1: 1700Mhz *\n");
  put(device + "/pp_dpm_mclk", "0: 400Mhz *\n1: 1600Mhz\n");
  put(device + "/hwmon/hwmon3/power1_average", "93000000\n");
  put(device + "/hwmon/hwmon3/temp1_input", "41000\n");
  cuda::gpu which;
  which.node = "/dev/dri/renderD128";
  auto x = cuda::amd_state(which, root.path());
  EXPECT_EQ(x.clock_mhz, 1700u);
  EXPECT_EQ(x.memory_clock_mhz, 400u);
  EXPECT_EQ(x.milliwatts, 93000u);
  EXPECT_EQ(x.celsius, 41u);
  which.node = "/dev/dri/renderD200";
  x = cuda::amd_state(which, root.path());
  EXPECT_EQ(x.clock_mhz + x.memory_clock_mhz + x.milliwatts + x.celsius, 0u);
}

} // namespace amd_devices_test
} // namespace kernelmill
