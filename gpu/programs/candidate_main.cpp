// kernelmill-candidate: runs one candidate, once, inside the sandbox. It is started before there
// is a candidate, closes the walls behind it and waits; then it maps the buffers, loads the
// library and calls it when told to. From the moment of loading, all of it is hostile.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>

#include "gpu/candidate/any_function.hpp"
#include "gpu/candidate/checked_calls.hpp"
#include "gpu/candidate/device_code.hpp"
#include "gpu/candidate/gpu_batch.hpp"
#include "gpu/candidate/gpu_memory.hpp"
#include "gpu/candidate/lone_calls.hpp"
#include "gpu/candidate/protocol.hpp"
#include "gpu/cuda/call_fence.hpp"
#include "gpu/sandbox/landlock.hpp"
#include "gpu/sandbox/seccomp.hpp"

namespace kernelmill {

namespace {

struct mapping {
  char* base = nullptr; // of the first byte; inaccessible pages on both sides of each place
  size_t size = 0;      // of a place
  size_t places = 1;

  size_t step() const { return size + page_bytes; }
  size_t total() const { return places * step() - page_bytes; }
};

control_page* control = nullptr;
attach_message setup;
mapping mappings[max_arguments];
int library_descriptor = -1;
gpu_memory* gpu = nullptr;         // null on a CPU slot
device_code* program = nullptr;    // of the contract `device`
gpu_batch* batch = nullptr;        // of a GPU
cuda::call_fence* fence = nullptr; // of a library on a GPU, between its calls
void* entry = nullptr;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "kernelmill-candidate: failed to %s: %s\n", what, std::strerror(errno));
  std::_Exit(exit_setup_failed);
}

// -- setting up -------------------------------------------------------------------------------

size_t receive_setup(int* descriptors, size_t limit) {
  iovec part{&setup, sizeof setup};
  alignas(cmsghdr) char area[CMSG_SPACE(sizeof(int) * (max_arguments + 2))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = area;
  message.msg_controllen = sizeof area;
  ssize_t got = -1;
  do got = ::recvmsg(candidate_socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  while (got < 0 && errno == EINTR);
  if (got == 0) std::_Exit(0); // the referee has no use for this process
  if (got != sizeof setup || setup.magic != attach_magic || setup.parameters > max_arguments)
    give_up("read the set-up");
  size_t count = 0;
  for (auto* x = CMSG_FIRSTHDR(&message); x != nullptr; x = CMSG_NXTHDR(&message, x)) {
    if (x->cmsg_type != SCM_RIGHTS) continue;
    count = (x->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (count > limit) give_up("take the descriptors");
    std::memcpy(descriptors, CMSG_DATA(x), count * sizeof(int));
  }
  return count;
}

// The tensor lies at the end of one of its places, flush against an inaccessible page.
mapping map_buffer(int descriptor, const parameter_spec& spec) {
  mapping result{nullptr, spec.capacity, spec.places};
  auto* room = static_cast<char*>(::mmap(nullptr, result.total() + 2 * page_bytes, PROT_NONE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (room == MAP_FAILED) give_up("reserve room for a buffer");
  result.base = room + page_bytes;
  bool writable = spec.kind == parameter_kind::writable;
  int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  for (size_t i = 0; i < result.places; ++i) {
    size_t start = i * result.step();
    if (::mmap(result.base + start, result.size, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
               descriptor, static_cast<off_t>(start)) == MAP_FAILED)
      give_up("map a buffer");
  }
  ::close(descriptor);
  return result;
}

void attach() {
  int descriptors[max_arguments + 2];
  size_t count = receive_setup(descriptors, max_arguments + 2);
  if (count < 2) give_up("take the descriptors");
  auto* page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      descriptors[0], 0);
  if (page == MAP_FAILED) give_up("map the control page");
  ::close(descriptors[0]);
  control = static_cast<control_page*>(page);
  library_descriptor = descriptors[1];
  size_t next = 2;
  for (uint32_t i = 0; i < setup.parameters; ++i) {
    auto kind = setup.specs[i].kind;
    if (kind == parameter_kind::scalar) continue;
    if (next >= count) give_up("take the descriptors");
    int descriptor = descriptors[next++];
    if (gpu == nullptr) {
      mappings[i] = map_buffer(descriptor, setup.specs[i]);
    } else {
      size_t size = setup.specs[i].capacity;
      auto* at = static_cast<char*>(gpu->map(descriptor, size, kind == parameter_kind::writable));
      if (at == nullptr) give_up(gpu->problem());
      mappings[i] = {at, size};
    }
  }
}

// Device code instead of a library: nothing of a candidate on this side.
void open_code() {
  alignas(device_code) static char room[sizeof(device_code)];
  program = new (room) device_code{gpu->cuda()};
  if (!program->open(library_descriptor)) give_up(program->problem());
}

// -- remarks: best effort, because what they watch can overwrite them --------------------------

void remark_exhausted() {
  control->remark = candidate_remark::memory_exhausted;
  throw std::bad_alloc{};
}

void on_fault(int signal, siginfo_t* info, void* context) {
  auto* address = static_cast<char*>(info->si_addr);
  control->remark = candidate_remark::fault;
  control->fault_signal = static_cast<uint32_t>(signal);
  control->fault_parameter = max_arguments;
  control->fault_offset = reinterpret_cast<int64_t>(address);
#if defined(__x86_64__)
  // Bit 1 of the page fault's error code: it was a write.
  auto code = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  control->fault_writes = static_cast<uint32_t>((code >> 1) & 1);
#else
  (void)context;
#endif
  for (uint32_t i = 0; i < setup.parameters; ++i) {
    auto* base = mappings[i].base;
    if (base == nullptr || address < base - page_bytes ||
        address >= base + mappings[i].total() + page_bytes)
      continue;
    auto step = static_cast<int64_t>(mappings[i].step());
    control->fault_parameter = i;
    control->fault_offset = address - base - control->values[i] / step * step;
  }
  // SA_RESETHAND: returning repeats the access, which now ends the process with its signal.
}

void watch_faults() {
  static char stack[16 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
  std::set_new_handler(remark_exhausted);
}

// -- commands ---------------------------------------------------------------------------------

void load_code() {
  const char* missing = nullptr;
  int result = program->load(missing);
  if (result < 0) {
    std::snprintf(control->text, sizeof control->text, "%s", program->problem());
    control->remark = candidate_remark::launch_refused;
    return;
  }
  bool ok = result == 0;
  std::snprintf(control->text, sizeof control->text, "%s", missing ? missing : program->problem());
  control->remark = ok        ? candidate_remark::loaded
                    : missing ? candidate_remark::missing_symbol
                              : candidate_remark::load_failed;
}

void load() {
  if (program != nullptr) return load_code();
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", library_descriptor);
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* cause = ::dlerror();
    std::snprintf(control->text, sizeof control->text, "%s", cause != nullptr ? cause : "unknown");
    control->remark = candidate_remark::load_failed;
    return;
  }
  entry = ::dlsym(library, setup.function);
  control->remark = entry != nullptr ? candidate_remark::loaded : candidate_remark::missing_symbol;
}

[[noreturn]] void lose_device(int result, const char* problem) {
  control->remark = candidate_remark::device_error;
  control->fault_signal = static_cast<uint32_t>(result);
  std::snprintf(control->text, sizeof control->text, "%s", problem);
  std::_Exit(exit_device_lost);
}

// The context survives a launch that is refused, but a process of which anything failed is
// replaced.
void expect_launched(int result) {
  if (result == 0) return;
  if (program->synchronize() != 0) lose_device(result, program->problem());
  control->remark = candidate_remark::launch_refused;
  std::snprintf(control->text, sizeof control->text, "%s", program->problem());
  std::_Exit(exit_launch_refused);
}

void find_bases(char** bases) {
  for (uint32_t i = 0; i < setup.parameters; ++i) bases[i] = mappings[i].base;
}

void call_code() {
  char* bases[max_arguments] = {};
  find_bases(bases);
  expect_launched(program->launch(bases, control->values));
}

// Device code has one stream. A library that leaves a capture open, or else has orders refused,
// would have calls that nothing keeps apart.
void set_fence() {
  if (gpu == nullptr || program != nullptr) return;
  if (fence == nullptr) {
    alignas(cuda::call_fence) static char room[sizeof(cuda::call_fence)];
    fence = new (room) cuda::call_fence{gpu->cuda()};
  }
  if (int result = fence->set(); result != 0)
    lose_device(result, "keep calls apart: the driver refused the order; is the "
                        "capture of a stream left open?");
}

cuda::stream stream_of_calls() {
  return program != nullptr ? program->stream() : nullptr;
}

void begin_batch() {
  if (gpu == nullptr) return;
  if (batch == nullptr) {
    alignas(gpu_batch) static char room[sizeof(gpu_batch)];
    batch = new (room) gpu_batch{gpu->cuda()};
  }
  auto number = static_cast<uint32_t>(control->values[0]);
  if (int result = batch->begin(control, &control->batch, stream_of_calls(), number); result != 0)
    lose_device(result, "begin a batch");
  if (number != 0) set_fence(); // streams that do not wait for the default stream wait, too
}

void end_batch() {
  if (batch == nullptr) return;
  set_fence(); // the default stream waits for all others
  if (int result = batch->end(stream_of_calls(), static_cast<uint32_t>(control->values[0]));
      result != 0)
    lose_device(result, "end a batch");
}

void finish();

void call() {
  if (program != nullptr) return call_code();
  if (entry == nullptr) return;
  int64_t a[max_arguments] = {};
  for (uint32_t i = 0; i < setup.parameters; ++i) {
    a[i] = control->values[i];
    if (mappings[i].base != nullptr) a[i] += reinterpret_cast<int64_t>(mappings[i].base);
  }
  call_any(entry, a);
}

// Also errors of what the candidate launched itself show here; the context is of no use then.
void finish() {
  if (gpu == nullptr) return;
  if (int result = gpu->synchronize(); result != 0) lose_device(result, gpu->problem());
  if (batch != nullptr) batch->note_seconds();
}

void obey(candidate_command command) {
  switch (command) {
    case candidate_command::load: return load();
    case candidate_command::call: call(); return finish();
    case candidate_command::launch: return call();
    case candidate_command::apart: call(); return set_fence();
    case candidate_command::finish: return finish();
    case candidate_command::begin: return begin_batch();
    case candidate_command::end: return end_batch();
    default: return;
  }
}

[[noreturn]] void serve() {
  uint32_t last = 0;
  for (;;) {
    if (!spin_until_changed(&control->sequence, last, control->spin)) {
      uint32_t now = control->sequence.load(std::memory_order_acquire);
      if (now == last) {
        futex_wait(&control->sequence, last, 0);
        continue;
      }
    }
    last = control->sequence.load(std::memory_order_acquire);
    obey(control->command);
    control->done.store(last, std::memory_order_release);
    futex_wake(&control->done);
  }
}

} // namespace

} // namespace kernelmill

int main(int argc, char** argv) {
  using namespace kernelmill;
  // Device code under a tool, whose library in this process needs more than the inner walls allow.
  // Nothing of a candidate runs on this side.
  if (argc > 1 && std::strcmp(argv[1], "lone") == 0) return make_lone_calls();
  // Before the driver starts threads, which would stay outside. A kernel without Landlock is no
  // reason to end: what it guards is hidden, too.
  if (!enter_candidate_landlock()) give_up("enter a Landlock domain");
  // Under sanitizers of the CPU. Their libraries, which the loader has started, need nothing that
  // the inner walls forbid.
  if (argc > 1 && std::strcmp(argv[1], "checked") == 0) {
    if (!enter_candidate_seccomp(false)) give_up("enter the inner seccomp filter");
    return make_checked_calls();
  }
  static gpu_memory device;
  const bool amd = argc > 1 && std::strcmp(argv[1], "amd") == 0;
  if (amd || (argc > 1 && std::strcmp(argv[1], "gpu") == 0)) {
    // A context takes 140 ms and more; it is made while nobody waits for this process.
    if (!device.open(amd ? cuda::gpu_api::hip : cuda::gpu_api::cuda)) give_up(device.problem());
    gpu = &device;
  }
  // The inner filter costs about 2 ms, so it is entered while nobody waits for this process; the
  // set-up below needs nothing that it forbids.
  if (!enter_candidate_seccomp(gpu != nullptr)) give_up("enter the inner seccomp filter");
  // One byte says that this process is up; its credentials tell the referee our pid out there.
  if (::send(candidate_socket, "r", 1, MSG_NOSIGNAL) != 1) return exit_setup_failed;
  attach();
  if (gpu != nullptr && setup.function[0] == 0) open_code();
  if (::send(candidate_socket, "a", 1, MSG_NOSIGNAL) != 1) return exit_setup_failed;
  ::close(candidate_socket);
  watch_faults();
  serve();
}
