// The tasks of configs/tasks, as far as they are for a GPU: what is wrong there must show on
// machines that have none.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "gpu/task/device_fill.hpp"
#include "gpu/task/task.hpp"

using namespace kernelmill;

namespace shipped_tasks_test {

std::string tasks_root() {
  const char* root = std::getenv("KERNELMILL_SOURCE_DIR");
  if (root == nullptr) throw std::runtime_error("KERNELMILL_SOURCE_DIR is not set; run by ctest");
  return std::string{root} + "/configs/tasks";
}

// Every task of a kernel in CUDA, loaded and made ready for it; not those in Python.
std::vector<task> gpu_tasks() {
  std::vector<task> result;
  auto ids = list_tasks(tasks_root());
  if (!ids) throw std::runtime_error(render(ids.error()));
  for (const auto& id : *ids) {
    auto x = load_task(tasks_root(), id);
    if (!x) throw std::runtime_error(render(x.error()));
    if ((*x)->contract != contract_kind::native || !(*x)->names("cuda")) continue;
    judging_terms terms;
    terms.backend = "cuda";
    auto here = on_terms(**x, terms);
    if (!here) throw std::runtime_error(render(here.error()));
    result.push_back(**here);
  }
  return result;
}

bool has(const task& x, const char* file) {
  return std::filesystem::is_regular_file(x.directory + "/" + file);
}

TEST(shipped_tasks, some_are_for_a_gpu) {
  EXPECT_FALSE(gpu_tasks().empty());
}

TEST(shipped_tasks, those_for_a_gpu_bring_a_reference_and_a_baseline_for_it) {
  for (const auto& x : gpu_tasks()) {
    EXPECT_TRUE(has(x, "reference.cu")) << x.id;
    EXPECT_TRUE(has(x, "baseline.cu")) << x.id;
  }
}

TEST(shipped_tasks, those_in_python_run_on_cpu_and_gpu) {
  auto ids = list_tasks(tasks_root());
  ASSERT_TRUE(ids) << render(ids.error());
  size_t count = 0;
  for (const auto& id : *ids) {
    auto loaded = load_task(tasks_root(), id);
    ASSERT_TRUE(loaded) << render(loaded.error());
    const auto& x = *loaded;
    if (x->contract != contract_kind::torch) continue;
    ++count;
    bool of_gpu = x->torch.language == "cuda" || x->torch.language == "triton";
    EXPECT_TRUE((of_gpu || x->names("cpu")) && x->names("cuda")) << id;
    EXPECT_EQ(missing_of_problem(x->torch.code), "") << id;
    EXPECT_FALSE(x->prompt.empty()) << id;
  }
  EXPECT_GE(count, 7u);
}

TEST(shipped_tasks, those_with_a_starter_have_one_for_a_gpu) {
  for (const auto& x : gpu_tasks()) {
    if (x.verb == "port") continue; // which has it in the language that it leaves
    EXPECT_EQ(has(x, "starter.cu"), has(x, "starter.cpp")) << x.id;
    EXPECT_EQ(x.starter.empty(), !has(x, "starter.cpp")) << x.id;
  }
}

TEST(shipped_tasks, a_gpu_can_make_the_inputs_of_its_timed_shape) {
  for (const auto& x : gpu_tasks())
    for (const auto& arg : x.arguments) {
      if (arg.fill.empty()) continue; // a scalar or an output
      const auto& fill = fill_of(arg, x.timed);
      EXPECT_TRUE(find_device_fill(fill, arg.type)) << x.id << ": " << arg.name << " is " << fill;
    }
}

TEST(shipped_tasks, the_shape_for_a_gpu_moves_more_than_the_one_for_a_cpu) {
  for (const auto& x : gpu_tasks()) {
    auto cpu = load_task(tasks_root(), x.id);
    ASSERT_TRUE(cpu) << render(cpu.error());
    auto small = (*cpu)->bytes.evaluate((*cpu)->timed.scalars);
    auto large = x.bytes.evaluate(x.timed.scalars);
    ASSERT_TRUE(small && large) << x.id;
    EXPECT_GT(*large, *small) << x.id;
  }
}

// A wavefront has 64 lanes on some AMD GPUs, so what CUDA's and HIP's
// kernels share must not speak of lanes at all; hipcc_test compiles it.
TEST(shipped_tasks, those_for_hip_share_no_source_that_depends_on_the_width_of_a_warp) {
  size_t shared = 0;
  for (const auto& x : gpu_tasks()) {
    if (std::find(x.backends.begin(), x.backends.end(), "hip") == x.backends.end()) continue;
    for (const std::string stem : {"reference", "baseline", "starter"}) {
      auto own = has(x, (stem + ".hip").c_str());
      auto name = stem + (own ? ".hip" : ".cu");
      if (stem == "starter" && !has(x, name.c_str())) continue;
      std::ifstream in{x.directory + "/" + name};
      std::string text{std::istreambuf_iterator<char>{in}, {}};
      EXPECT_FALSE(text.empty()) << x.id << " lacks " << name;
      shared += own ? 0 : 1;
      if (own) continue;
      for (auto* word :
           {"__shfl", "__ballot", "__any", "__all", "__match", "__reduce", "__syncwarp",
            "__activemask", "warpSize", "cooperative_groups", "asm", "cuda", "% 32", "& 31"})
        EXPECT_EQ(text.find(word), text.npos) << x.id << "/" << name << ": " << word;
    }
  }
  EXPECT_GE(shared, 10u);
}

} // namespace shipped_tasks_test
