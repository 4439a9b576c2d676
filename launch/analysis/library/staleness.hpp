#pragma once

// Whether a verdict was made under what holds today: the task's files, the program with its rules,
// the driver and the compilers.

#include <map>
#include <string>
#include <vector>

#include "launch/analysis/library/kernel_library.hpp"

namespace kernelmill::library {

/// This machine and this installation. What is empty is not known and is not compared.
struct conditions_today {
  std::string program;                         ///< build_id()
  std::string hardware;                        ///< "NVIDIA H200": a kernel's device begins so
  std::string driver;                          ///< of its GPU
  std::map<std::string, std::string> versions; ///< as kernel::versions
  std::map<std::string, std::string> tasks;    ///< digests by id, of the tasks that are installed
};

struct staleness {
  std::vector<std::string> reasons;      ///< empty: it is not stale
  std::vector<std::string> not_compared; ///< what of it cannot be said here
  std::string next;                      ///< the command that judges it again; empty: not stale

  bool is_stale() const noexcept { return !reasons.empty(); }
};

staleness staleness_of(const kernel& x, const conditions_today& today);

/// Adds "stale", "stale_reasons", "not_compared" and "next" to a kernel's document.
void add_staleness(nlohmann::ordered_json& to, const staleness& x);

} // namespace kernelmill::library
