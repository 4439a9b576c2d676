#pragma once

#include <string>
#include <string_view>

namespace kernelmill::exports {

/// Which split a task is in: its own, or by the SHA-256 of its id one task in ten is in "dev". It
/// depends on nothing else. Where runs of one export differ, dev wins: see dataset.cpp.
std::string split_of(std::string_view task, std::string_view own);

/// How PROVENANCE.json and data cards say it.
inline constexpr std::string_view split_rule = "a task's own `split`, else by the SHA-256 of its "
                                               "id: one task in ten is in dev; where runs differ, "
                                               "dev wins";

} // namespace kernelmill::exports
