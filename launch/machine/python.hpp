#pragma once

// The Python interpreter that has torch. It is asked once, by running it, and only when a task of
// the contract `torch` is there: importing torch takes seconds.

#include <string>

#include "messages/error.hpp"

namespace kernelmill {

struct found_python {
  std::string path;    ///< absolute; not resolved, because a virtual environment is known by it
  std::string version; ///< "3.11.2"
  std::string torch;   ///< "2.11.0+cu130"
  std::string cuda;    ///< that torch was built for, "13.0"; empty: none
  std::string triton;  ///< version, or empty
};

/// Asks `wanted`, a path or a name on PATH, and no other; when it is empty, the first that
/// imports torch of $KERNELMILL_PYTHON, python3 on PATH and /usr/bin/python3. What it learns, this
/// process keeps for its toolchain (ask_python). Fails with
/// "python_missing" (configuration), which names every one that was asked and what it said.
expected<found_python> find_python(const std::string& wanted);

/// "python 3.11.2, torch 2.11.0+cu130 (CUDA 13.0), triton 3.6.0".
std::string describe(const found_python& x);

} // namespace kernelmill
