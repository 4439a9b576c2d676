#pragma once

// System-call filters. Two are stacked on a candidate: bubblewrap installs the outer one, which
// must still let it exec the candidate program; that program installs the inner one itself, just
// before it loads what a policy wrote. A filter cannot be taken off again.

#include "messages/base/descriptor.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// The outer filter, for everything that runs in a sandbox: no new namespaces, no mounts, no
/// sockets of its own, no tracing of others, none of the rarely used doors into the kernel.
/// Refused calls fail with EPERM. Returns a memory file of BPF, at its start.
/// With a GPU, Unix sockets are let through: its driver does not start without.
/// With loopback, TCP and UDP too; in a network of its own they lead nowhere else.
expected<descriptor> sandbox_seccomp_program(bool with_gpu = false, bool with_loopback = false);

/// The same for Python that runs a candidate, which shall not be able to end as if somebody outside
/// had killed it: no limits of processor time, and no signals that pretend to be the kernel's.
expected<descriptor> python_seccomp_program(bool with_gpu);

/// The inner filter, for this process and all its threads, for good: an allow-list of what
/// computing needs (memory, threads, clocks, reading files, traffic on descriptors that are open
/// already). No exec, no fork, no file for writing, no signal to others, no change of affinity or
/// priority; anything else fails with EPERM, and foreign architectures end the process.
/// Takes about 1 ms; sets no_new_privs. With a GPU, what its driver needs as well: device calls,
/// and opening files for writing. Which ones, a filter cannot tell: enter_candidate_landlock()
/// does, and the sandbox hides /proc/1.
expected<void> enter_candidate_seccomp(bool with_gpu = false);

} // namespace kernelmill
