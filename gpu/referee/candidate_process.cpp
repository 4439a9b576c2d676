#include "gpu/referee/candidate_process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/process/core_use.hpp"
#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/candidate_walls.hpp"
#include "gpu/referee/clock.hpp"

namespace kernelmill {

namespace {

constexpr int64_t watch_slice_us = 5'000; // a dead process is noticed within this
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

} // namespace

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
  auto spec = candidate_walls(options, theirs.get(), printed->get());
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
  cpu_set_t set;
  if (::sched_getaffinity(pid_, sizeof set, &set) == 0) cores_ = std::max(1, CPU_COUNT(&set));
  return {};
}

expected<void> candidate_process::attach(int library, const std::string& function,
                                         const std::vector<shared_memory>& parameters) {
  if (auto ok = settle(candidate_end_wait_ms); !ok) return ok;
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
    setup.specs[i].places = from.places;
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
  // Where calls are handed over in rows, between the clock's two looks, nothing is asked before.
  auto cores = spinning_ ? std::nullopt : std::optional{cores_so_far()};
  if (rested) page.sequence.store(sequence_, std::memory_order_release);
  double started = now_seconds();
  if (!rested) page.sequence.store(sequence_, std::memory_order_release);
  rested ? rest_.go_on() : futex_wake(&page.sequence);
  awake_time awake{started, cores};
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
    spent = awake.look(now_seconds(), spent > unwatched_seconds && is_held(), cores_so_far());
    lost_seconds_ += awake.lost() - lost;
    bool late = awake.late(deadline_ms * 1e-3, seconds_without_core(pid_));
    if (late || !child_.running()) return give_up(before + 1, started, late ? deadline_ms : 0);
  }
}

// Only who has a core can take it from the referee: what a process worked while the referee had
// none is no time that the machine took.
core_seconds candidate_process::cores_so_far() const {
  return {cpu_seconds() / cores_, seconds_without_core(::getpid())};
}

// On a CPU no candidate can stop itself (seccomp). On a GPU, whose filter lets ioctl() through,
// that is not shown. Nobody can freeze the group that he is in.
bool candidate_process::is_held() const {
  return (!on_gpu() && is_stopped(pid_)) || is_frozen(pid_);
}

bool candidate_process::begin_batch(uint32_t number, double patience, int deadline_ms) {
  gate_forced_ = false;
  gate_patience_ = 0;
  gate_ = number;
  bool ok = run(candidate_command::begin, {static_cast<int64_t>(number)}, deadline_ms).has_value();
  if (number != 0) gate_patience_ = patience;
  return ok;
}

bool candidate_process::end_batch(uint32_t number, int deadline_ms) {
  bool ok = run(candidate_command::end, {static_cast<int64_t>(number)}, deadline_ms).has_value();
  gate_patience_ = 0;
  return ok;
}

void candidate_process::force_gate() noexcept {
  control().batch.open.store(gate_, std::memory_order_release);
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
    (void)child_.wait(candidate_end_wait_ms);
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

} // namespace kernelmill
