// Every command that judges takes the GPUs of CUDA_VISIBLE_DEVICES. The two GPUs are
// fake_nvml.cpp's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace visible_gpus_test {

using testing::HasSubstr;

program_result with_two_gpus(const std::vector<std::string>& arguments, const char* visible) {
  program_options options;
  auto folder = binary().substr(0, binary().rfind('/')) + "/fake_nvml";
  options.environment = {"LD_LIBRARY_PATH=" + folder};
  if (visible != nullptr)
    options.environment.push_back(std::string{"CUDA_VISIBLE_DEVICES="} + visible);
  return kernelmill(arguments, options);
}

std::string gpus_of_doctor(const char* visible) {
  std::string result;
  auto document = with_two_gpus({"doctor", "--json"}, visible).document();
  for (const auto& x : document["gpus"]) result += x["uuid"].get<std::string>() + " ";
  return result;
}

TEST(visible_gpus, are_those_that_doctor_lists) {
  EXPECT_EQ(gpus_of_doctor(nullptr), "GPU-0eee GPU-1eee ");
  EXPECT_EQ(gpus_of_doctor("1"), "GPU-1eee ");
  EXPECT_EQ(gpus_of_doctor("GPU-1,GPU-0"), "GPU-1eee GPU-0eee ");
  EXPECT_EQ(gpus_of_doctor("-1"), "");
}

TEST(visible_gpus, that_are_none_end_every_command_that_needs_one) {
  auto kernel = write_file("visible.cu", "extern \"C\" void solve() {}\n");
  auto batch = write_file("visible.ndjson", "");
  const std::vector<std::vector<std::string>> commands = {
      {"eval", "--task", "native/row_sum", "--backend", "cuda", "--json", kernel},
      {"judge", batch, "--backend", "cuda", "--json"},
      {"run", "quickstart", "evaluation.backend=cuda", "run.dir=" + scratch() + "/visible",
       "--json"},
      {"node", "--head", "127.0.0.1:1", "--insecure-loopback", "evaluation.backend=cuda", "--json"},
  };
  for (const auto& command : commands) {
    auto x = with_two_gpus(command, "7");
    EXPECT_EQ(x.code, 1) << command[0] << x.err;
    EXPECT_THAT(x.err, HasSubstr("\"no_gpu\"")) << command[0];
    EXPECT_THAT(x.err, HasSubstr("shows none of 2")) << command[0];
  }
}

TEST(visible_gpus, do_not_hold_one_that_is_named_and_hidden) {
  auto kernel = write_file("visible.cu", "extern \"C\" void solve() {}\n");
  auto x = with_two_gpus({"eval", "--task", "native/row_sum", "--gpu", "0", "--json", kernel}, "1");
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.fault()["message"].get<std::string>(), HasSubstr("CUDA_VISIBLE_DEVICES hides it"));
}

} // namespace visible_gpus_test

} // namespace kernelmill::test
