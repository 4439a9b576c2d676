#include "gpu/candidate/checked_calls.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gpu/candidate/any_function.hpp"
#include "gpu/candidate/lone_calls.hpp"

namespace kernelmill {

namespace {

bool fail(const char* what) {
  std::fprintf(stderr, "kernelmill-candidate: failed to %s\n", what);
  return false;
}

struct checked_run {
  const char* file = nullptr;
  size_t bytes = 0;
  void* entry = nullptr;
  void* buffers[max_arguments] = {};

  bool open();
  bool take(const lone_case& x);
  void call(const lone_case& x) const;
  void give_back();
};

bool checked_run::open() {
  struct stat about {};
  if (::fstat(lone_calls, &about) != 0 || static_cast<size_t>(about.st_size) < sizeof(lone_file))
    return fail("read the calls");
  bytes = static_cast<size_t>(about.st_size);
  void* calls = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, lone_calls, 0);
  if (calls == MAP_FAILED) return fail("map the calls");
  file = static_cast<const char*>(calls);
  const auto& head = *reinterpret_cast<const lone_file*>(file);
  if (head.magic != lone_magic || head.cases > lone_cases) return fail("read the calls");
  auto path = "/proc/self/fd/" + std::to_string(lone_program);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(::dlerror());
  entry = ::dlsym(library, head.function);
  return entry != nullptr || fail("find the task's function");
}

bool checked_run::take(const lone_case& x) {
  for (size_t i = 0; i < max_arguments; ++i) {
    const auto& from = x.buffers[i];
    if (from.bytes == 0) continue;
    if (from.contents > bytes || (from.contents != 0 && from.bytes > bytes - from.contents))
      return fail("find the contents");
    // The alignment that the contract promises; the size is not rounded to it.
    if (::posix_memalign(&buffers[i], buffer_alignment, from.bytes) != 0)
      return fail("allocate a buffer");
    if (from.contents != 0) std::memcpy(buffers[i], file + from.contents, from.bytes);
  }
  return true;
}

void checked_run::call(const lone_case& x) const {
  int64_t a[max_arguments];
  for (size_t i = 0; i < max_arguments; ++i)
    a[i] = buffers[i] != nullptr ? reinterpret_cast<int64_t>(buffers[i]) : x.values[i];
  for (uint32_t i = 0; i < x.calls; ++i) call_any(entry, a);
}

void checked_run::give_back() {
  for (auto& x : buffers) {
    std::free(x);
    x = nullptr;
  }
}

} // namespace

int make_checked_calls() {
  static checked_run all;
  if (!all.open()) return exit_setup_failed;
  const auto& head = *reinterpret_cast<const lone_file*>(all.file);
  for (uint64_t i = 0; i < head.cases; ++i) {
    if (!all.take(head.list[i])) return exit_setup_failed;
    all.call(head.list[i]);
    all.give_back();
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", checked_calls_end);
  return 0;
}

} // namespace kernelmill
