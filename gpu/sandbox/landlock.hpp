#pragma once

// What a filter of system calls cannot tell apart: which file is opened for writing, and whose
// memory. A candidate for a GPU may open files for writing, because its driver does; where
// Kernelmill does not run as root, the init of its sandbox belongs to the same user and has the
// outer filter alone, so whoever wrote to its memory would be rid of the inner one. The sandbox
// therefore hides /proc/1, and this is the second lock on that door.

#include "messages/error.hpp"

namespace kernelmill {

/// Puts this thread, and those that it will start, into a Landlock domain, for good: they open
/// files for writing below /dev, /tmp and their own directory of /proc alone, and reach memory,
/// environment and descriptors of no process outside the domain, through /proc or otherwise. It
/// sets no_new_privs. Costs 20 us; devices need nothing more.
/// With `may_rename`, files may also be moved between directories below /tmp, which a kernel since
/// 5.19 can allow; a domain forbids it otherwise.
/// Returns false, having changed nothing, where the kernel has no Landlock (before 5.13, not built
/// in, or refused by a container); fails with "landlock_failed" where it has one that errs.
/// REQUIRES: no other thread exists yet, a driver's included: they would stay outside, and all
/// threads write to the same memory.
expected<bool> enter_candidate_landlock(bool may_rename = false);

} // namespace kernelmill
