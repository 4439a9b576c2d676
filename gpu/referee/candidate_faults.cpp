#include "gpu/referee/candidate_faults.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "gpu/sandbox/cgroup.hpp"

namespace kernelmill {

namespace {

// What ends any process when memory, a core, a thread or the GPU is missing: libgomp exits where it
// gets no thread, and a library that the machine cannot map does not load. The rest of a
// candidate's faults are its own by what the kernel or the referee saw.
constexpr auto machine_like =
    std::to_array<std::string_view>({"crashed", "device_error", "exited", "illegal_access",
                                     "load_failed", "out_of_memory", "timed_out"});

} // namespace

error out_of_memory_fault(uint64_t limit_bytes, bool on_gpu) {
  return {fault_class::candidate, "out_of_memory",
          fmt::format("the candidate wanted more than {} MiB of {}memory", limit_bytes >> 20,
                      on_gpu ? "the host's " : ""),
          "allocate no more than the size of the data"};
}

error device_fault(const std::string& said) {
  auto holds = [&](const char* text) { return said.find(text) != said.npos; };
  if (holds("OUT_OF_MEMORY"))
    return {fault_class::candidate, "out_of_memory",
            "the candidate wanted more of the GPU's memory than was free: failed to " + said,
            "allocate no more than the size of the data"};
  bool address = holds("ILLEGAL_ADDRESS") || holds("MISALIGNED");
  return {fault_class::candidate, address ? "illegal_access" : "device_error",
          "the candidate lost the GPU: failed to " + said,
          address ? "check every index against the shape, and that no host memory is used"
                  : "check launch sizes, asserts and traps"};
}

bool wants_control(const error& fault) {
  if (fault.cls == fault_class::candidate)
    return std::find(machine_like.begin(), machine_like.end(), fault.category) !=
           machine_like.end();
  return fault.cls == fault_class::infrastructure || fault.cls == fault_class::configuration;
}

bool is_end_by_others(const error& fault) {
  return fault.category == lost_spawner || fault.category == killed_outside ||
         fault.category == killed_by_somebody;
}

memory_kills memory_kills::now() {
  return {kills_for_memory(), kills_for_memory_anywhere()};
}

bool is_of_outsiders(const error& fault, const memory_kills& before) {
  if (fault.category == killed_outside) return true;
  auto now = memory_kills::now();
  if (fault.category == lost_spawner) return now.near && now.near == before.near;
  return fault.category == killed_by_somebody && now.anywhere && now.anywhere == before.anywhere;
}

error blamed(const error& fault, bool control_works) {
  bool accused = fault.cls == fault_class::candidate;
  if (accused == control_works) return fault;
  if (accused)
    return {fault_class::infrastructure, "control_failed",
            "failed to judge a candidate: the task's baseline fails in the same slot, too: " +
                fault.message,
            "`kernelmill doctor` tries the machine"};
  return {fault_class::candidate, disturbance,
          "what judges the candidate failed beside it and works without it: " + fault.message,
          "use no more memory, threads and time than the function needs"};
}

} // namespace kernelmill
