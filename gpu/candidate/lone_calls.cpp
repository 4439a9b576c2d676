#include "gpu/candidate/lone_calls.hpp"

#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gpu/candidate/any_function.hpp"
#include "gpu/candidate/device_code.hpp"
#include "gpu/candidate/gpu_memory.hpp"

namespace kernelmill {

namespace {

class lone_run {
public:
  int run();

private:
  bool open();
  bool open_code();
  bool open_library(const char* function);
  bool take(const lone_case& x);
  bool call(const lone_case& x);
  bool call_library(const lone_case& x);
  bool launch(const lone_case& x);
  void mark(const char* symbol);
  void enter(const lone_case& x);
  void give_back();
  bool fail(const char* what);

  gpu_memory device_;
  device_code* code_ = nullptr;
  const char* file_ = nullptr;
  size_t bytes_ = 0;
  device_program* program_ = nullptr;
  void* entry_ = nullptr; // of a library; then there is no code_
  bool marked_ = false;
  cuda::device_pointer buffers_[max_arguments] = {};
};

bool lone_run::fail(const char* what) {
  std::fprintf(stderr, "kernelmill-candidate: failed to %s\n", what);
  return false;
}

bool lone_run::open() {
  struct stat about {};
  if (::fstat(lone_calls, &about) != 0 || static_cast<size_t>(about.st_size) < sizeof(lone_file))
    return fail("read the calls");
  bytes_ = static_cast<size_t>(about.st_size);
  void* calls = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, lone_calls, 0);
  if (calls == MAP_FAILED) return fail("map the calls");
  file_ = static_cast<const char*>(calls);
  const auto& head = *reinterpret_cast<const lone_file*>(file_);
  if (head.magic != lone_magic || head.cases > lone_cases) return fail("read the calls");
  marked_ = head.marked != 0;
  if (!device_.open()) return fail(device_.problem());
  return head.function[0] != 0 ? open_library(head.function) : open_code();
}

bool lone_run::open_library(const char* function) {
  auto path = "/proc/self/fd/" + std::to_string(lone_program);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(::dlerror());
  entry_ = ::dlsym(library, function);
  return entry_ != nullptr || fail("find the task's function");
}

bool lone_run::open_code() {
  void* program =
      ::mmap(nullptr, program_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, lone_program, 0);
  if (program == MAP_FAILED) return fail("map the program");
  program_ = static_cast<device_program*>(program);
  alignas(device_code) static char room[sizeof(device_code)];
  code_ = new (room) device_code{device_.cuda()};
  if (!code_->open(lone_program)) return fail(code_->problem());
  const char* missing = nullptr;
  if (code_->load(missing) != 0) return fail(missing != nullptr ? missing : code_->problem());
  return true;
}

bool lone_run::take(const lone_case& x) {
  const auto& cuda = device_.cuda();
  for (size_t i = 0; i < max_arguments; ++i) {
    const auto& from = x.buffers[i];
    if (from.bytes == 0) continue;
    if (from.contents > bytes_ || (from.contents != 0 && from.bytes > bytes_ - from.contents))
      return fail("find the contents");
    if (cuda.allocate(&buffers_[i], from.bytes) != 0) return fail("allocate a buffer");
    if (from.contents != 0 &&
        cuda.copy_to_device(buffers_[i], file_ + from.contents, from.bytes) != 0)
      return fail("deliver an input");
  }
  return true;
}

void lone_run::enter(const lone_case& x) {
  int64_t a[max_arguments];
  for (size_t i = 0; i < max_arguments; ++i)
    a[i] = buffers_[i] != 0 ? static_cast<int64_t>(buffers_[i]) : x.values[i];
  call_any(entry_, a);
}

// "cuProfilerStart" or "cuProfilerStop": nobody knows how many kernels a library launches, so that
// ncu cannot count past the calls that only wake the GPU. Without a profiler it does nothing.
void lone_run::mark(const char* symbol) {
  if (!marked_) return;
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return;
  if (void* found = ::dlsym(driver, symbol)) (void)reinterpret_cast<int (*)()>(found)();
}

bool lone_run::call(const lone_case& x) {
  return entry_ == nullptr ? launch(x) : call_library(x);
}

bool lone_run::call_library(const lone_case& x) {
  for (uint32_t i = 0; i < x.calls; ++i) {
    bool last = i + 1 == x.calls;
    if (last && marked_) {
      if (device_.synchronize() != 0) return fail(device_.problem());
      mark("cuProfilerStart");
    }
    enter(x);
  }
  int result = device_.synchronize();
  mark("cuProfilerStop");
  return result == 0 || fail(device_.problem());
}

bool lone_run::launch(const lone_case& x) {
  static const int64_t nowhere_else[max_arguments] = {};
  char* bases[max_arguments];
  for (size_t i = 0; i < max_arguments; ++i) bases[i] = reinterpret_cast<char*>(buffers_[i]);
  program_->launches = x.launches;
  std::memcpy(program_->plan, x.plan, sizeof x.plan);
  for (uint32_t i = 0; i < x.calls; ++i)
    if (code_->launch(bases, nowhere_else) != 0) return fail(code_->problem());
  if (code_->synchronize() != 0) return fail(code_->problem());
  return true;
}

void lone_run::give_back() {
  for (auto& x : buffers_) {
    if (x != 0) (void)device_.cuda().free(x);
    x = 0;
  }
}

int lone_run::run() {
  if (!open()) return exit_setup_failed;
  const auto& head = *reinterpret_cast<const lone_file*>(file_);
  for (uint64_t i = 0; i < head.cases; ++i) {
    if (!take(head.list[i])) return exit_setup_failed;
    if (!call(head.list[i])) return exit_device_lost;
    give_back();
  }
  return 0;
}

} // namespace

int make_lone_calls() {
  static lone_run all;
  return all.run();
}

} // namespace kernelmill
