#include "gpu/referee/candidate_process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/process/awake_time.hpp"
#include "gpu/process/core_use.hpp"
#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/clock.hpp"

namespace kernelmill {

namespace {

constexpr uint64_t address_space_limit = uint64_t{3} << 30; // thread stacks and arenas reserve much
constexpr uint64_t memory_limit = uint64_t{1} << 30;        // tensors are charged to the referee
constexpr uint64_t printed_limit = uint64_t{1} << 20;
constexpr uint64_t gpu_memory_limit = uint64_t{8} << 30; // a context takes 1 GiB or so by itself
constexpr uint64_t gpu_file_limit = uint64_t{64} << 20;
constexpr size_t printed_kept = 4096;
constexpr int64_t watch_slice_us = 5'000; // a dead process is noticed within this
constexpr int end_wait_ms = 2'000;
constexpr double longest_spin_seconds = 0.1;
constexpr uint32_t spins_between_looks = 500; // at the clock
constexpr double unwatched_seconds = 0.25;    // of a call: looking takes a core, too
constexpr int attach_wait_ms = 10'000;        // mapping gigabytes of a GPU takes its time

expected<descriptor> make_printed_file() {
  // A file, not a pipe: what is printed never blocks the candidate and costs the referee nothing
  // during a call; RLIMIT_FSIZE ends a flood.
  descriptor file{::memfd_create("kernelmill-output", MFD_CLOEXEC)};
  if (!file)
    return infrastructure_error("shared_memory",
                                std::string{"failed to create a memfd: "} + std::strerror(errno));
  return file;
}

// One GPU and nothing else of the driver. It reserves addresses without end, so that limit goes;
// what it may take of real memory, the cgroup limits where there is one.
void add_gpu(sandbox_spec& spec, const candidate_options& options) {
  spec.argv.emplace_back("gpu");
  spec.environment.emplace_back("CUDA_CACHE_DISABLE=1");
  for (auto& variable : small_context_environment()) spec.environment.push_back(variable);
  spec.devices = gpu_device_nodes(options.gpu_node);
  auto folder = options.driver.substr(0, options.driver.rfind('/'));
  bool visible = folder.starts_with("/usr/lib") || folder.starts_with("/lib") ||
                 folder.starts_with("/usr/local/lib");
  if (!visible && !folder.empty()) {
    spec.mounts.push_back({folder, "/driver", false});
    spec.environment.emplace_back("LD_LIBRARY_PATH=/driver");
  }
  spec.limits.address_space = no_limit;
  spec.limits.open_files = 1024;
  spec.limits.file_size = gpu_file_limit;
  spec.memory_bytes = gpu_memory_limit;
  spec.process_count = 256;
}

sandbox_spec walls_for(const candidate_options& options, int socket, int printed) {
  sandbox_spec spec;
  spec.argv = {"/kernelmill-candidate"};
  // Passive: threads that spin after a parallel region would slow whoever is timed next.
  spec.environment = {"OMP_NUM_THREADS=" + std::to_string(options.threads),
                      "OMP_WAIT_POLICY=passive", "OMP_DYNAMIC=false", "LC_ALL=C"};
  spec.mounts = {{options.program, "/kernelmill-candidate", false}};
  spec.descriptors = {{printed, 1}, {printed, 2}, {socket, candidate_socket}};
  spec.cpus = options.cpus;
  spec.limits.address_space = address_space_limit;
  spec.limits.file_size = printed_limit;
  spec.limits.open_files = 64;
  spec.memory_bytes = memory_limit;
  spec.process_count = 64;
  spec.tmpfs_bytes = uint64_t{16} << 20;
  spec.may_exec = false;
  if (!options.gpu_node.empty()) add_gpu(spec, options);
  return spec;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string{"SIG"} + name : "signal " + std::to_string(signal);
}

// Keeps what a terminal and a JSON reader can take.
std::string cleaned(std::string_view text) {
  std::string result;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\t' || (byte >= 0x20 && byte < 0x7f))
      result += c;
    else if (byte >= 0x80)
      result += '?';
  }
  return result;
}

} // namespace

std::vector<std::string> gpu_device_nodes(const std::string& gpu_node) {
  std::vector<std::string> result;
  for (const std::string& node :
       {gpu_node, std::string{"/dev/nvidiactl"}, std::string{"/dev/nvidia-uvm"},
        std::string{"/dev/nvidia-uvm-tools"}})
    if (::access(node.c_str(), F_OK) == 0) result.push_back(node);
  return result;
}

std::vector<std::string> small_context_environment() {
  return {"CUDA_DEVICE_MAX_CONNECTIONS=2", "CUDA_DEVICE_MAX_COPY_CONNECTIONS=1"};
}

// -- starting ---------------------------------------------------------------------------------

candidate_process::candidate_process(sandboxed_child child, descriptor socket, descriptor printed,
                                     shared_page page, uint64_t address_limit)
    : child_(std::move(child)), socket_(std::move(socket)), printed_(std::move(printed)),
      page_(std::move(page)), address_limit_(address_limit) {
  // nop
}

expected<candidate_process> candidate_process::start(sandbox& walls,
                                                     const candidate_options& options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return infrastructure_error("io", std::string{"failed to make a socket pair: "} +
                                          std::strerror(errno));
  descriptor ours{ends[0]};
  descriptor theirs{ends[1]};
  int on = 1; // the kernel then attaches the sender's pid as we see it
  ::setsockopt(ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  auto printed = make_printed_file();
  KM_TRY(printed);
  auto page = shared_page::create(page_bytes);
  KM_TRY(page);
  auto spec = walls_for(options, theirs.get(), printed->get());
  auto child = walls.start(spec);
  KM_TRY(child);
  return candidate_process{std::move(*child), std::move(ours), std::move(*printed),
                           std::move(*page), spec.limits.address_space};
}

expected<void> candidate_process::await_byte(char wanted, int deadline_ms) {
  auto fail = [&](const std::string& cause) {
    auto said = output();
    return infrastructure_error("sandbox_failed",
                                "failed to start a candidate process: " + cause +
                                    (said.empty() ? "" : ": " + said),
                                "`kernelmill doctor` tries each layer of the sandbox");
  };
  if (!wait_readable(socket_.get(), deadline_ms))
    return fail("it is not up after " + std::to_string(deadline_ms) + " ms");
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char area[CMSG_SPACE(sizeof(ucred))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = area;
  message.msg_controllen = sizeof area;
  if (::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC) != 1 || byte != wanted)
    return fail("it ended at once");
  for (auto* x = CMSG_FIRSTHDR(&message); x != nullptr; x = CMSG_NXTHDR(&message, x)) {
    if (x->cmsg_level != SOL_SOCKET || x->cmsg_type != SCM_CREDENTIALS) continue;
    ucred who{};
    std::memcpy(&who, CMSG_DATA(x), sizeof who);
    pid_ = who.pid;
  }
  return {};
}

expected<void> candidate_process::settle(int deadline_ms) {
  if (pid_ != 0) return {};
  if (auto ok = await_byte('r', deadline_ms); !ok) return ok;
  if (pid_ <= 0)
    return infrastructure_error("sandbox_failed", "failed to find the pid of a candidate process");
  rest_ = standstill{pid_};
  return {};
}

expected<void> candidate_process::attach(int library, const std::string& function,
                                         const std::vector<shared_memory>& parameters) {
  if (auto ok = settle(end_wait_ms); !ok) return ok;
  attach_message setup{};
  setup.magic = attach_magic;
  setup.parameters = static_cast<uint32_t>(parameters.size());
  function.copy(setup.function, sizeof setup.function - 1);
  std::vector<int> descriptors{page_.descriptor(), library};
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& from = parameters[i];
    capacities_.push_back(from.capacity);
    if (from.descriptor < 0) continue;
    setup.specs[i].kind = from.writable ? parameter_kind::writable : parameter_kind::readable;
    setup.specs[i].capacity = from.capacity;
    descriptors.push_back(from.descriptor);
  }
  iovec part{&setup, sizeof setup};
  alignas(cmsghdr) char area[CMSG_SPACE(sizeof(int) * (max_arguments + 2))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = area;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
  auto* entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
  std::memcpy(CMSG_DATA(entry), descriptors.data(), sizeof(int) * descriptors.size());
  if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof setup))
    return infrastructure_error("sandbox_failed",
                                "failed to hand the buffers to a candidate process: it has ended");
  return await_byte('a', attach_wait_ms);
}

// -- running ----------------------------------------------------------------------------------

std::optional<double> candidate_process::run(candidate_command command,
                                             const std::vector<int64_t>& values, int deadline_ms) {
  if (ending_) return std::nullopt;
  auto& page = control();
  uint32_t before = sequence_++;
  std::copy(values.begin(), values.end(), page.values);
  page.command = command;
  loading_ = loading_ || command == candidate_command::load;
  bool rested = rest_.stopped();
  if (rested) page.sequence.store(sequence_, std::memory_order_release);
  double started = now_seconds();
  if (!rested) page.sequence.store(sequence_, std::memory_order_release);
  rested ? rest_.go_on() : futex_wake(&page.sequence);
  awake_time awake{started};
  double spent = 0;
  for (;;) {
    uint32_t done = page.done.load(std::memory_order_acquire);
    // Being woken takes 0.15 ms on a virtual machine: a tenth of what is measured.
    double spin =
        gate_patience_ > 0 ? std::min(gate_patience_, longest_spin_seconds) : longest_spin_seconds;
    while (done != sequence_ && spinning_ && now_seconds() - started < spin)
      if (spin_until_changed(&page.done, done, spins_between_looks))
        done = page.done.load(std::memory_order_acquire);
    if (done == sequence_) return now_seconds() - started;
    // Whatever else stands there was written by the candidate; wait for it to change.
    futex_wait(&page.done, done, watch_slice_us);
    if (page.done.load(std::memory_order_acquire) == sequence_) return now_seconds() - started;
    if (gate_patience_ > 0 && now_seconds() - started > gate_patience_) force_gate();
    note_memory();
    if (rest_.gone()) rest_.release_waiter(); // it tells how
    double lost = awake.lost();
    spent = awake.look(now_seconds(), spent > unwatched_seconds && is_held());
    lost_seconds_ += awake.lost() - lost;
    bool late = spent > deadline_ms * 1e-3;
    if (late || !child_.running()) return give_up(before + 1, started, late ? deadline_ms : 0);
  }
}

// On a CPU no candidate can stop itself (seccomp). On a GPU its driver's timers could do it.
bool candidate_process::is_held() const {
  return !on_gpu() && is_stopped(pid_);
}

bool candidate_process::close_gate(double patience, int deadline_ms) {
  gate_forced_ = false;
  bool ok = run(candidate_command::close, {static_cast<int64_t>(++gate_)}, deadline_ms).has_value();
  gate_patience_ = patience;
  return ok;
}

std::optional<double> candidate_process::release(int deadline_ms) {
  gate_patience_ = 0;
  return run(candidate_command::release, {static_cast<int64_t>(gate_)}, deadline_ms);
}

void candidate_process::force_gate() noexcept {
  control().gate.store(gate_, std::memory_order_release);
  futex_wake(&control().gate);
  gate_forced_ = true;
  gate_patience_ = 0;
}

std::optional<double> candidate_process::give_up(uint32_t sequence, double started,
                                                 int deadline_ms) {
  // It may have said so between the last look and its end.
  double elapsed = now_seconds() - started;
  if (control().done.load(std::memory_order_acquire) == sequence && deadline_ms == 0)
    return elapsed;
  if (deadline_ms > 0) {
    child_.kill();
    (void)child_.wait(end_wait_ms);
    // On a busy machine the kernel may need longer to hand out the memory than a call may take.
    auto fault = exhausted()
                     ? memory_fault()
                     : error{fault_class::candidate, "timed_out",
                             fmt::format("the candidate did not return within {} ms", deadline_ms),
                             "look for an endless loop, a deadlock or far too much work"};
    ending_ = candidate_ending{std::move(fault), false};
    return std::nullopt;
  }
  conclude();
  return std::nullopt;
}

void candidate_process::note_memory() noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/statm", pid_);
  descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
  char text[64] = {};
  if (!file || read_retrying(file.get(), text, sizeof text - 1) <= 0) return;
  char* next = text;
  uint64_t size = std::strtoull(next, &next, 10) * page_bytes;
  uint64_t resident = std::strtoull(next, &next, 10) * page_bytes;
  uint64_t shared = std::strtoull(next, &next, 10) * page_bytes;
  largest_size_ = std::max(largest_size_, size);
  largest_resident_ = std::max(largest_resident_, resident - std::min(resident, shared));
}

double candidate_process::cpu_seconds() const noexcept {
  return processor_seconds(pid_);
}

// -- endings ----------------------------------------------------------------------------------

void candidate_process::conclude() {
  auto status = child_.wait(end_wait_ms);
  if (!status) {
    auto fault = status.error(); // such as the end of the spawner, and of all that it had started
    if (loading_ && fault.category == "timeout")
      fault = {fault_class::candidate, "crashed", "the candidate did not end", {}};
    ending_ = candidate_ending{std::move(fault), false};
    return;
  }
  const auto& page = control();
  // A write that faults inside a mapping can only have met an input.
  bool inside = page.fault_parameter < capacities_.size() && page.fault_offset >= 0 &&
                static_cast<uint64_t>(page.fault_offset) < capacities_[page.fault_parameter];
  bool wrote_input = page.remark == candidate_remark::fault && page.fault_writes != 0 && inside;
  ending_ = candidate_ending{describe(*status), wrote_input && status->code != 0};
}

bool candidate_process::exhausted() const {
  return child_.out_of_memory() || control().remark == candidate_remark::memory_exhausted ||
         (!on_gpu() && largest_size_ > address_limit_ / 10 * 8) ||
         (!on_gpu() && largest_resident_ > memory_limit / 2);
}

error candidate_process::memory_fault() const {
  return out_of_memory_fault(on_gpu() ? gpu_memory_limit : memory_limit, on_gpu());
}

error candidate_process::describe(const exit_status& status) const {
  // bubblewrap passes a signal of its child on as 128 + signal.
  int signal = status.signal != 0 ? status.signal : status.code > 128 ? status.code - 128 : 0;
  // Only until then are exit code and words those of our own program.
  if (!loading_)
    return {fault_class::infrastructure, "sandbox_failed",
            "failed to keep a candidate process: it ended before it was given a candidate: " +
                output(),
            "`kernelmill doctor` tries each layer of the sandbox"};
  if (signal == SIGXFSZ || printed_bytes() >= printed_limit)
    return {fault_class::candidate, "output_flood",
            fmt::format("the candidate printed {} bytes or more and was ended", printed_limit),
            "print nothing from a kernel"};
  if (status.code == exit_device_lost) return describe_device_error();
  if (status.code == exit_launch_refused)
    return {fault_class::candidate, "bad_launch", "the GPU refused to " + remark_text(),
            "check threads, registers and shared memory of a block against the GPU's limits"};
  if (exhausted()) return memory_fault();
  if (signal == SIGKILL)
    return {fault_class::infrastructure, "killed",
            "failed to keep a candidate process: something outside its sandbox ended it",
            "does the machine have memory left? its kernel log says whom it ended"};
  if (signal != 0) return describe_signal(signal);
  return {fault_class::candidate, "exited",
          fmt::format("the candidate ended the process with exit code {}", status.code),
          "return from the function instead"};
}

std::string candidate_process::remark_text() const {
  char text[sizeof control().text];
  std::memcpy(text, control().text, sizeof text);
  text[sizeof text - 1] = 0;
  return cleaned(text);
}

error candidate_process::describe_device_error() const {
  return device_fault(remark_text());
}

error candidate_process::describe_signal(int signal) const {
  error result{
      fault_class::candidate, "crashed", "the candidate crashed with " + signal_name(signal), {}};
  const auto& page = control();
  if (signal == SIGSYS) {
    result.message += ": it made a system call that is not allowed";
    result.hint = "compute only: no processes, files or sockets";
  }
  if ((signal == SIGSEGV || signal == SIGBUS) && page.remark == candidate_remark::fault) {
    result.message += page.fault_writes != 0 ? " writing " : " reading ";
    result.message += fault_place();
    result.hint = "check every index against the shape";
  }
  return result;
}

std::string candidate_process::fault_place() const {
  const auto& page = control();
  size_t index = page.fault_parameter;
  if (index >= names_.size() || index >= capacities_.size())
    return fmt::format("address {:#x}", static_cast<uint64_t>(page.fault_offset));
  if (page.fault_offset < 0) return "before the start of " + names_[index];
  if (static_cast<uint64_t>(page.fault_offset) >= capacities_[index])
    return "beyond the end of " + names_[index];
  return names_[index];
}

std::optional<error> candidate_process::load_fault() const {
  auto said = remark_text();
  switch (control().remark) {
    case candidate_remark::loaded: return std::nullopt;
    case candidate_remark::missing_symbol:
      return error{fault_class::candidate, "missing_symbol",
                   said.empty() ? "the library does not define the function of the task"
                                : "the device code does not define the kernel " + said,
                   said.empty() ? "define it as extern \"C\" with the exact name"
                                : "define it as extern \"C\" __global__ with the exact name"};
    case candidate_remark::launch_refused:
      return error{fault_class::candidate, "bad_launch", said,
                   "give as many arguments as the kernel has: pointers and integers"};
    default:
      return error{
          fault_class::candidate, "load_failed", "failed to load the candidate: " + said, {}};
  }
}

uint64_t candidate_process::printed_bytes() const {
  auto end = ::lseek(printed_.get(), 0, SEEK_END);
  return end > 0 ? static_cast<uint64_t>(end) : 0;
}

std::string candidate_process::output() const {
  char text[printed_kept];
  auto got = ::pread(printed_.get(), text, sizeof text, 0);
  return got > 0 ? cleaned({text, static_cast<size_t>(got)}) : std::string{};
}

} // namespace kernelmill
