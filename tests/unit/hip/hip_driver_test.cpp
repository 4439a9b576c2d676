// The AMD filling of the table of GPU functions, and what a candidate's process does with it, on a
// library that fake_hip.cpp stands in for. No AMD GPU has run this.

#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/candidate/device_code.hpp"
#include "gpu/candidate/gpu_batch.hpp"
#include "gpu/candidate/gpu_memory.hpp"
#include "gpu/cuda/call_fence.hpp"
#include "gpu/cuda/driver.hpp"
#include "tests/unit/hip/fake_hip.hpp"

namespace kernelmill {
namespace hip_driver_test {

using testing::HasSubstr;
using testing::StartsWith;

class hip_driver : public testing::Test {
protected:
  void SetUp() override {
    auto opened = cuda::open_driver(cuda::gpu_api::hip);
    ASSERT_TRUE(opened) << render(opened.error());
    hip_ = *opened;
    auto* library = ::dlopen(hip_->path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ask(calls_, library, "fake_hip_calls");
    ask(pretend_, library, "fake_hip_pretend");
    ask(fail_launch_, library, "fake_hip_fail_launch");
    ask(blocked_, library, "fake_hip_blocked");
    pretend_(70'200'000);
  }

  template <class Function>
  void ask(Function& into, void* library, const char* name) {
    into = reinterpret_cast<Function>(::dlsym(library, name));
    ASSERT_NE(into, nullptr) << name << " of " << hip_->path
                             << ": that is not the library of this test";
  }

  // As the referee makes a buffer and hands it over.
  int exported_buffer(size_t bytes, cuda::device_pointer& base) {
    const cuda::allocation_properties how;
    cuda::memory_handle handle = 0;
    int descriptor = -1;
    EXPECT_EQ(hip_->memory_create(&handle, bytes, &how, 0), 0);
    EXPECT_EQ(hip_->memory_export(&descriptor, handle, cuda::posix_descriptor, 0), 0);
    EXPECT_EQ(hip_->address_reserve(&base, bytes, 0, 0, 0), 0);
    EXPECT_EQ(hip_->memory_map(base, bytes, 0, handle, 0), 0);
    const cuda::access_description access;
    EXPECT_EQ(hip_->set_access(base, bytes, &access, 1), 0);
    EXPECT_EQ(hip_->memory_release(handle), 0);
    return descriptor;
  }

  void expect_shared_buffer();

  const cuda::driver* hip_ = nullptr;
  int (*calls_)(const char*) = nullptr;
  void (*pretend_)(int) = nullptr;
  void (*fail_launch_)(int) = nullptr;
  int (*blocked_)() = nullptr;
};

constexpr size_t unit = 2 << 20;

TEST_F(hip_driver, is_filled_and_says_where_it_is_from) {
  EXPECT_EQ(hip_->api, cuda::gpu_api::hip);
  EXPECT_THAT(hip_->path, HasSubstr("libamdhip64.so"));
  EXPECT_EQ(*cuda::open_driver(cuda::gpu_api::hip), hip_);
  EXPECT_EQ(hip_->name_of(719), "hipErrorLaunchFailure");
  EXPECT_EQ(hip_->context_record, nullptr);
  EXPECT_EQ(hip_->function_parameter, nullptr);
}

TEST_F(hip_driver, asks_for_attributes_by_the_numbers_of_hip) {
  auto value = [&](int which) {
    int result = -1;
    EXPECT_EQ(hip_->device_attribute(&result, which, 0), 0) << which;
    return result;
  };
  EXPECT_EQ(value(cuda::attribute_multiprocessors), 304);
  EXPECT_EQ(value(cuda::attribute_clock_khz), 2'100'000);
  EXPECT_EQ(value(cuda::attribute_l2_bytes), 4 << 20);
  EXPECT_EQ(value(cuda::attribute_memory_clock_khz), 1'300'000);
  EXPECT_EQ(value(cuda::attribute_memory_bus_bits), 8192);
  EXPECT_EQ(value(cuda::attribute_major) * 10 + value(cuda::attribute_minor), 94);
  int unknown = 0;
  EXPECT_EQ(hip_->device_attribute(&unknown, 1, 0), cuda::not_supported);
}

TEST_F(hip_driver, has_no_cache_to_take_back_and_no_limit_to_lift) {
  EXPECT_EQ(hip_->reset_persisting_l2(), cuda::not_supported);
  EXPECT_EQ(hip_->function_set(nullptr, cuda::function_max_dynamic_shared, 1 << 16),
            cuda::not_supported);
}

void hip_driver::expect_shared_buffer() {
  cuda::device_pointer base = 0;
  int descriptor = exported_buffer(unit, base);
  ASSERT_GE(descriptor, 0);
  gpu_memory candidate;
  ASSERT_TRUE(candidate.open(cuda::gpu_api::hip)) << candidate.problem();
  auto* there = static_cast<uint32_t*>(candidate.map(descriptor, unit, true));
  ASSERT_NE(there, nullptr) << candidate.problem();
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1) << "it closes the descriptor";
  ASSERT_EQ(hip_->fill_words(base, 0x5eed, unit / 4, nullptr), 0);
  EXPECT_EQ(there[unit / 4 - 1], 0x5eedu);
  there[7] = 42;
  uint32_t seen = 0;
  ASSERT_EQ(hip_->copy_to_host(&seen, base + 28, sizeof seen), 0);
  EXPECT_EQ(seen, 42u);
  EXPECT_EQ(candidate.synchronize(), 0);
}

TEST_F(hip_driver, memory_of_the_referee_is_the_candidates_too) {
  expect_shared_buffer();
}

TEST_F(hip_driver, before_rocm_7_1_a_descriptor_is_taken_by_its_address) {
  pretend_(60'300'000);
  expect_shared_buffer();
}

TEST_F(hip_driver, an_import_that_fails_is_told_by_its_name) {
  gpu_memory candidate;
  ASSERT_TRUE(candidate.open(cuda::gpu_api::hip));
  EXPECT_EQ(candidate.map(1 << 20, unit, true), nullptr);
  EXPECT_THAT(candidate.problem(), HasSubstr("import a buffer (hipErrorInvalidValue)"));
}

class hip_code : public hip_driver {
protected:
  void SetUp() override {
    hip_driver::SetUp();
    file_ = ::memfd_create("program", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file_, program_file_bytes), 0);
    auto* at = ::mmap(nullptr, program_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    ASSERT_NE(at, MAP_FAILED);
    program_ = static_cast<device_program*>(at);
    std::strcpy(static_cast<char*>(at) + program_cubin_at, "code object");
    program_->launches = 1;
    auto& launch = program_->plan[0];
    std::strcpy(launch.kernel, "twice");
    launch.grid[0] = 2;
    launch.block[0] = 64;
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.arguments = 3;
    launch.list[0] = {program_argument_kind::tensor, 0, 0};
    launch.list[1] = {program_argument_kind::tensor, 1, 0};
    launch.list[2] = {program_argument_kind::value, 0, 100};
  }

  void TearDown() override {
    if (program_ != nullptr) ::munmap(program_, program_file_bytes);
    ::close(file_);
  }

  int file_ = -1;
  device_program* program_ = nullptr;
};

TEST_F(hip_code, device_code_is_loaded_and_launched) {
  device_code code{*hip_};
  ASSERT_TRUE(code.open(file_)) << code.problem();
  const char* missing = nullptr;
  ASSERT_EQ(code.load(missing), 0) << code.problem();
  float x[128], y[128] = {};
  for (int i = 0; i < 128; ++i) x[i] = static_cast<float>(i);
  char* bases[max_arguments] = {reinterpret_cast<char*>(x), reinterpret_cast<char*>(y)};
  const int64_t offsets[max_arguments] = {};
  ASSERT_EQ(code.launch(bases, offsets), 0) << code.problem();
  EXPECT_EQ(code.synchronize(), 0);
  EXPECT_EQ(y[99], 198.0f);
  EXPECT_EQ(y[100], 0.0f);
  ASSERT_EQ(code.load(missing), 0); // the next candidate's
  EXPECT_EQ(calls_("hipModuleUnload"), 1);
}

TEST_F(hip_code, a_kernel_that_is_not_there_is_named) {
  std::strcpy(program_->plan[0].kernel, "thrice");
  device_code code{*hip_};
  ASSERT_TRUE(code.open(file_));
  const char* missing = nullptr;
  EXPECT_NE(code.load(missing), 0);
  EXPECT_STREQ(missing, "thrice");
  EXPECT_THAT(code.problem(), HasSubstr("hipErrorNotFound"));
}

TEST_F(hip_code, a_launch_that_fails_is_told_by_its_name) {
  device_code code{*hip_};
  ASSERT_TRUE(code.open(file_));
  const char* missing = nullptr;
  ASSERT_EQ(code.load(missing), 0);
  char* bases[max_arguments] = {};
  const int64_t offsets[max_arguments] = {};
  fail_launch_(719);
  EXPECT_EQ(code.launch(bases, offsets), 719);
  EXPECT_THAT(code.problem(), StartsWith("launch twice<<<dim3(2, 1, 1), dim3(64, 1, 1), 0>>>"));
  EXPECT_THAT(code.problem(), HasSubstr("hipErrorLaunchFailure"));
}

TEST_F(hip_code, a_batch_waits_for_its_gate_and_is_timed_between_events) {
  alignas(64) static char page[page_bytes];
  auto* words = reinterpret_cast<batch_words*>(page + 64);
  gpu_batch batch{*hip_};
  device_code code{*hip_};
  ASSERT_TRUE(code.open(file_));
  const char* missing = nullptr;
  ASSERT_EQ(code.load(missing), 0);
  program_->plan[0].list[2].value = 0; // of no elements
  char* bases[max_arguments] = {};
  const int64_t offsets[max_arguments] = {};
  ASSERT_EQ(batch.begin(page, words, code.stream(), 3), 0);
  EXPECT_EQ(blocked_(), 1) << "the gate is shut";
  ASSERT_EQ(code.launch(bases, offsets), 0);
  ASSERT_EQ(code.launch(bases, offsets), 0);
  ASSERT_EQ(batch.end(code.stream(), 3), 0);
  batch.note_seconds();
  EXPECT_EQ(words->completed, 3u);
  EXPECT_DOUBLE_EQ(words->inside, 2e-3); // its clock counts launches
}

TEST_F(hip_driver, calls_are_kept_apart_by_the_default_stream) {
  cuda::call_fence fence{*hip_};
  int before = calls_("hipEventRecord on the default stream");
  EXPECT_EQ(fence.set(), 0);
  EXPECT_EQ(calls_("hipEventRecord on the default stream"), before + 1);
}

TEST_F(hip_driver, a_library_that_lacks_a_function_is_told_by_the_functions_name) {
  cuda::driver other;
  EXPECT_THAT(cuda::fill_hip_driver(other, ::dlopen("libc.so.6", RTLD_NOW)), StartsWith("hip"));
  EXPECT_EQ(cuda::fill_hip_driver(other, ::dlopen(hip_->path.c_str(), RTLD_NOW)), nullptr);
}

} // namespace hip_driver_test
} // namespace kernelmill
