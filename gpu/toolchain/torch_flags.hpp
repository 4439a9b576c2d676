#pragma once

// Which of a candidate's compiler and linker flags are taken: shapes that cannot name a file, a
// program or a plugin. The others are left out and named in the log; a build rarely needs them.

#include <string>
#include <vector>

namespace kernelmill {

struct chosen_flags {
  std::vector<std::string> taken;
  std::vector<std::string> ignored;
};

/// Of extra_cflags, for g++.
chosen_flags choose_host_flags(const std::vector<std::string>& flags);

/// Of extra_cuda_cflags, for nvcc. Architectures are left out: the toolchain's own is built.
chosen_flags choose_cuda_flags(const std::vector<std::string>& flags);

/// Of extra_ldflags: "-lNAME" of CUDA's and the C library's own libraries that lie in one of
/// `folders` (or belong to the C library).
chosen_flags choose_link_flags(const std::vector<std::string>& flags,
                               const std::vector<std::string>& folders);

/// "sm_90a" where `architecture` is "sm_90" and the flags ask for it, else `architecture`.
std::string wanted_architecture(const std::vector<std::string>& cuda_flags,
                                const std::string& architecture);

} // namespace kernelmill
