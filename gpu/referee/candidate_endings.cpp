// What the end of a candidate process was: whose fault, and in which words.

#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "gpu/referee/candidate_faults.hpp"
#include "gpu/referee/candidate_process.hpp"
#include "gpu/referee/candidate_walls.hpp"
#include "messages/base/files.hpp"

namespace kernelmill {

namespace {

constexpr size_t printed_kept = 4096;

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
void candidate_process::conclude() {
  auto status = child_.wait(candidate_end_wait_ms);
  if (!status) {
    auto fault = status.error(); // such as the end of the spawner, and of all that it had started
    if (fault.category == "timeout") // bubblewrap is gone already
      fault = {fault_class::infrastructure, lost_spawner,
               "failed to learn how a candidate ended: kernelmill-spawner does not say it",
               "has something stopped kernelmill-spawner? The work is tried again"};
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
         (!on_gpu() && largest_resident_ > candidate_memory_limit / 2);
}

error candidate_process::memory_fault() const {
  return out_of_memory_fault(on_gpu() ? candidate_gpu_memory_limit : candidate_memory_limit,
                             on_gpu());
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
  if (signal == SIGXFSZ || printed_bytes() >= candidate_printed_limit)
    return {fault_class::candidate, "output_flood",
            fmt::format("the candidate printed {} bytes or more and was ended",
                        candidate_printed_limit),
            "print nothing from a kernel"};
  if (status.code == exit_device_lost) return describe_device_error();
  if (status.code == exit_launch_refused)
    return {fault_class::candidate, "bad_launch", "the GPU refused to " + remark_text(),
            "check threads, registers and shared memory of a block against the GPU's limits"};
  if (exhausted()) return memory_fault();
  if (signal == SIGKILL || child_.ended_from_outside())
    return {fault_class::infrastructure,
            child_.killed_for_memory() == false ? killed_outside : killed_by_somebody,
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
  return cleaned(read_first(printed_.get(), printed_kept));
}

} // namespace kernelmill
