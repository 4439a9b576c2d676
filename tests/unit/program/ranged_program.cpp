// A program with ranges of NVTX, as its headers make them, and work of a GPU that is not there.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

namespace {

using any_function = void (*)();
any_function core[16];
any_function* core_table[17];
any_function core2[16];
any_function* core2_table[17];

int table_of(int module, any_function*** table, unsigned* size) {
  *table = module == 1 ? core_table : core2_table;
  *size = 16;
  return module == 1 || module == 5;
}

struct {
  size_t size;
  int (*table)(int, any_function***, unsigned*);
} callbacks{sizeof callbacks, table_of};

const void* export_table(uint32_t id) {
  return id == 1 ? &callbacks : nullptr;
}

void push(const char* name) {
  reinterpret_cast<int (*)(const char*)>(core[9])(name);
}
void pop() {
  reinterpret_cast<int (*)()>(core[11])();
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "exit") == 0) std::exit(4);
  if (argc > 1 && std::strcmp(argv[1], "_exit") == 0) _exit(0);
  for (int i = 0; i < 16; ++i) {
    core_table[i] = &core[i];
    core2_table[i] = &core2[i];
  }
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
  if (library == nullptr || argc < 2) return 2;
  auto begin = reinterpret_cast<int (*)(const void* (*)(uint32_t))>(
      dlsym(library, "InitializeInjectionNvtx2"));
  if (begin == nullptr || begin(export_table) != 1) return 3;
  void* cupti = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
  if (cupti == nullptr) return 4;
  auto work = reinterpret_cast<void (*)(uint32_t, uint64_t)>(dlsym(cupti, "fake_work"));
  work(10, 1'000);
  push("timed");
  work(10, 20'000);
  push("other");
  work(10, 300'000);
  pop();
  pop();
  push("other");
  work(10, 4'000'000);
  work(1, 50'000'000);
  pop();
  return 0;
}

// What a candidate may not have: the test asks that it is told.
extern "C" int puts(const char*) {
  return 0;
}
