#pragma once

// The Python interpreter that has torch, and the files of ours that it runs: what both sides of the
// contract `torch` (the toolchain and the slot) must know of them.

#include <string>
#include <vector>

#include "gpu/process/process.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "messages/error.hpp"

namespace kernelmill {

/// What an interpreter says of itself and its torch; see kernelmill_torch/python_facts.py.
struct python_facts {
  std::string executable; ///< sys.executable
  std::string version;    ///< "3.11.7"
  std::string prefix;
  std::string base_prefix;
  std::vector<std::string> path; ///< sys.path, isolated
  std::string torch;             ///< "2.11.0+cu130"
  std::string torch_directory;
  std::string torch_libraries;
  std::vector<std::string> torch_includes;
  std::string torch_cuda; ///< "13.0"; empty: a torch without CUDA
  std::string triton;     ///< empty: there is none
  std::string cuda_home;
  std::string extension_suffix; ///< ".cpython-311-x86_64-linux-gnu.so"
  std::string python_include;
  bool cxx11_abi = true;
};

/// The folder that holds the package kernelmill_torch: ../share/kernelmill/python beside this
/// program, else gpu/torch of the source tree. Empty when neither is there.
std::string python_package_directory();

/// Where the sandbox shows that folder.
inline constexpr const char* python_package_mount = "/kernelmill-python";

/// The path of libkernelmill-torch.so, which our Python processes open, and where a sandbox shows
/// it.
std::string native_library();
inline constexpr const char* native_library_mount = "/kernelmill-native/libkernelmill-torch.so";

/// Runs the interpreter once, outside the sandbox, and imports torch (2 to 6 s). Answers are kept
/// (python_answers.hpp), errors are not. Fails with "python_missing" (class configuration)
/// when it cannot be run or has no torch.
expected<python_facts> ask_python(spawner& processes, const std::string& interpreter);

/// Read-only mounts with which `facts.executable` runs inside a sandbox that shows /usr, with our
/// package at python_package_mount.
std::vector<bind_mount> python_mounts(const python_facts& facts);

/// The walls around kernelmill_torch/zygote.py, which walls in what it forks: all but what it runs,
/// its memory, and the environment besides PYTHONPATH.
sandbox_spec warm_process_walls(const python_facts& facts);

/// The environment in which our Python programs run, besides PATH.
std::vector<std::string> python_environment();

} // namespace kernelmill
