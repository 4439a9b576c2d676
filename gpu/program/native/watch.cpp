// Loaded before a program's own code (LD_PRELOAD): tells the referee how the program's main ended,
// which functions of libraries the program has replaced, and what a GPU's clock says of ranges and
// kernels. It shares its process with code that is not trusted, so that nothing it says is believed
// alone; it makes the cheap tricks visible: a process that ends before its main returns says so, or
// says nothing.

#include "gpu/program/native/watch.hpp"

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <dlfcn.h>
#include <elf.h>
#include <fnmatch.h>
#include <link.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#define KM_SHOWN extern "C" __attribute__((visibility("default")))

namespace kernelmill::watch {

namespace {

constexpr size_t most_patterns = 128;
constexpr size_t most_replaced = 64;

// What the referee asks for: lines of the variable KERNELMILL_PROGRAM.
//   descriptor, secret, mode, path of CUPTI or -, then "+GLOB" and "-GLOB"
struct wishes {
  int descriptor = -1;
  char secret[65] = "";
  char mode[16] = "";
  char cupti[PATH_MAX] = "";
  char patterns[8192] = "";
  const char* include[most_patterns] = {};
  const char* exclude[most_patterns] = {};
  size_t includes = 0;
  size_t excludes = 0;
};

wishes wanted;
pid_t own_pid = 0;
bool is_shell = false;
bool told_end = false;

int (*real_main)(int, char**, char**) = nullptr;

// Copies a line and returns what is behind it.
const char* take_line(const char* from, char* into, size_t room) {
  size_t n = strcspn(from, "\n");
  size_t kept = n < room ? n : room - 1;
  memcpy(into, from, kept);
  into[kept] = 0;
  return from[n] == '\n' ? from + n + 1 : from + n;
}

void read_wishes(const char* text) {
  char number[16];
  text = take_line(text, number, sizeof number);
  text = take_line(text, wanted.secret, sizeof wanted.secret);
  text = take_line(text, wanted.mode, sizeof wanted.mode);
  text = take_line(text, wanted.cupti, sizeof wanted.cupti);
  strncpy(wanted.patterns, text, sizeof wanted.patterns - 1);
  for (char* line = wanted.patterns; *line != 0;) {
    char* end = line + strcspn(line, "\n");
    char* next = *end == '\n' ? end + 1 : end;
    *end = 0;
    if (*line == '+' && wanted.includes < most_patterns)
      wanted.include[wanted.includes++] = line + 1;
    if (*line == '-' && wanted.excludes < most_patterns)
      wanted.exclude[wanted.excludes++] = line + 1;
    line = next;
  }
  wanted.descriptor = atoi(number);
}

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// -- functions of libraries that the program defines itself ---------------------------------------

uint32_t symbol_count(const uint32_t* gnu_hash, const uint32_t* hash) {
  if (hash != nullptr) return hash[1];
  if (gnu_hash == nullptr) return 0;
  uint32_t buckets = gnu_hash[0];
  uint32_t first = gnu_hash[1];
  const uint32_t* bucket = reinterpret_cast<const uint32_t*>(
      reinterpret_cast<const uint64_t*>(gnu_hash + 4) + gnu_hash[2]);
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i)
    if (bucket[i] > last) last = bucket[i];
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

// Pointers of a dynamic section are relocated by glibc, except in the vdso.
template <class T>
const T* place(const dl_phdr_info& x, uint64_t address) {
  return reinterpret_cast<const T*>(address >= x.dlpi_addr ? address : address + x.dlpi_addr);
}

int look_at_program(dl_phdr_info* x, size_t, void*) {
  // The first object is the program itself.
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < x->dlpi_phnum; ++i)
    if (x->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(x->dlpi_addr + x->dlpi_phdr[i].p_vaddr);
  if (dynamic == nullptr) return 1;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* hash = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    auto at = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) symbols = place<ElfW(Sym)>(*x, at);
    if (dynamic->d_tag == DT_STRTAB) names = place<char>(*x, at);
    if (dynamic->d_tag == DT_GNU_HASH) gnu_hash = place<uint32_t>(*x, at);
    if (dynamic->d_tag == DT_HASH) hash = place<uint32_t>(*x, at);
  }
  if (symbols == nullptr || names == nullptr) return 1;
  size_t told = 0;
  auto count = symbol_count(gnu_hash, hash);
  for (uint32_t i = 1; i < count && told < most_replaced; ++i) {
    const auto& s = symbols[i];
    auto type = ELF64_ST_TYPE(s.st_info);
    auto binding = ELF64_ST_BIND(s.st_info);
    const char* name = names + s.st_name;
    if (s.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
    // Templates and inline functions of C++ are in many objects, and weak in all of them.
    if (binding == STB_WEAK && strncmp(name, "_Z", 2) == 0) continue;
    if (dlsym(RTLD_NEXT, name) == nullptr) continue;
    report("replaced %.200s", name);
    ++told;
  }
  return 1;
}

// -- the end --------------------------------------------------------------------------------------

void tell_end(const char* how, int code) {
  if (getpid() != own_pid || told_end || is_shell) return;
  told_end = true;
  report_times(strcmp(wanted.mode, "kernels") == 0);
  report("end %s %d", how, code);
}

int watched_main(int argc, char** argv, char** environment) {
  int code = real_main(argc, argv, environment);
  tell_end("returned", code & 0xff);
  return code;
}

// Before every constructor of the program, since it is loaded after this library.
__attribute__((constructor)) void begin() {
  char* text = getenv("KERNELMILL_PROGRAM");
  if (text == nullptr) return;
  own_pid = getpid();
  read_wishes(text);
  char program[PATH_MAX] = "";
  auto n = readlink("/proc/self/exe", program, sizeof program - 1);
  if (n > 0) program[n] = 0;
  const char* name = base_name(program);
  for (const char* shell : {"sh", "dash", "bash", "busybox", "env", "make", "tar", "cp", "time"})
    is_shell = is_shell || strcmp(name, shell) == 0;
  if (is_shell) {
    // What it starts needs the variable; nothing of its own may be read by what it has started.
    prctl(PR_SET_DUMPABLE, 0);
    return;
  }
  memset(text, 'x', strlen(text));
  unsetenv("KERNELMILL_PROGRAM");
  report("begin %.200s", name);
  dl_iterate_phdr(look_at_program, nullptr);
  if (strcmp(wanted.mode, "kernels") == 0 || strcmp(wanted.mode, "gpu") == 0 ||
      strcmp(wanted.mode, "region") == 0)
    open_activity(wanted.cupti);
}

} // namespace

bool counts(const char* name) {
  for (size_t i = 0; i < wanted.excludes; ++i)
    if (fnmatch(wanted.exclude[i], name, 0) == 0) return false;
  for (size_t i = 0; i < wanted.includes; ++i)
    if (fnmatch(wanted.include[i], name, 0) == 0) return true;
  return wanted.includes == 0;
}

void report(const char* words, ...) {
  if (wanted.descriptor < 0) return;
  char line[1024];
  int head = snprintf(line, sizeof line, "%s %d ", wanted.secret, static_cast<int>(own_pid));
  va_list list;
  va_start(list, words);
  int size = vsnprintf(line + head, sizeof line - static_cast<size_t>(head) - 1, words, list);
  va_end(list);
  size_t end = static_cast<size_t>(head) + static_cast<size_t>(size < 0 ? 0 : size);
  if (end > sizeof line - 2) end = sizeof line - 2;
  line[end++] = '\n';
  // One write below PIPE_BUF, so that lines of several processes do not mix.
  while (::write(wanted.descriptor, line, end) < 0 && errno == EINTR) continue;
}

} // namespace kernelmill::watch

using namespace kernelmill::watch;

KM_SHOWN int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                               void (*init)(), void (*fini)(), void (*rtld_fini)(),
                               void* stack_end) {
  using start =
      int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  auto real = reinterpret_cast<start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  real_main = main;
  return real(watched_main, argc, argv, init, fini, rtld_fini, stack_end);
}

KM_SHOWN __attribute__((noreturn)) void exit(int code) {
  tell_end("exit", code & 0xff);
  auto real = reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, "exit"));
  real(code);
  __builtin_unreachable();
}
