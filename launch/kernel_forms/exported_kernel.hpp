#pragma once

// A verified kernel on its way out of a store, and the files that each form makes of it. Plain
// functions on plain values: nothing is read or written here.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gpu/task/task.hpp"
#include "launch/analysis/library/kernel_library.hpp"

namespace kernelmill::kernel_forms {

struct exported_kernel {
  library::kernel about;
  std::string source;         ///< the candidate
  task_ptr what;              ///< the task, on the terms of the kernel's backend
  std::string reference;      ///< reference.cpp of a task in C++; of one in Python its problem.py
  std::string licence, terms; ///< of the task, by the gate that let the kernel out
  std::string licence_url;

  /// "row_sum": an identifier of C and Python, made of the task's id.
  std::string name() const;

  /// The task's title and the model's name as one line that ends no comment and no quotation.
  std::string title() const;
  std::string model() const;
};

struct out_file {
  std::string path; ///< below the folder
  std::string bytes;
};
using out_files = std::vector<out_file>;

/// A library with a C header, a CMakeLists.txt, a README and a test that compares it with the
/// reference on the task's visible cases. Errors: "unsupported_backend" (HIP),
/// "unsupported_contract" (`program`), "bad_launch".
expected<out_files> native_module(const exported_kernel& x);

/// A Python package with an nn.Module, and a test that compares it with the problem's own model.
expected<out_files> torch_module(const exported_kernel& x);

/// The folder of a kernel of Hugging Face's `kernels`. A kernel in Python comes with its build
/// folder; of one in C++ or CUDA `kernel-builder` makes that.
expected<out_files> hub_package(const exported_kernel& x);

/// The files of the kernel itself, which native_module() and hub_package() share: its function
/// under the name of the kernel, as C. "kernel.cpp" or "kernel.cu", below `folder`.
expected<out_files> native_sources(const exported_kernel& x, const std::string& folder);

/// "void row_sum(const float* x, float* y, int rows, int cols)"
std::string c_declaration(const exported_kernel& x);

/// What the README of every form says of the measurement, the conditions and the licence.
std::string measured_text(const exported_kernel& x);

} // namespace kernelmill::kernel_forms
