#pragma once

// Loads and launches device code in a process that has nothing else of a candidate.

#include "gpu/candidate/device_program.hpp"
#include "gpu/cuda/driver.hpp"

namespace kernelmill {

/// Functions return the driver's error, 0 for none; problem() then says what failed.
/// Thread safety: none.
class device_code {
public:
  explicit device_code(const cuda::driver& cuda) : cuda_(cuda) {}

  /// Takes over the file and makes a stream. False when that fails.
  bool open(int descriptor);

  /// Forgets what was loaded, loads the cubin and finds its kernels. `missing` names the one that
  /// is not there.
  int load(const char*& missing);

  /// Launches all of the plan once. `bases` are the mapped tensors.
  int launch(char* const* bases, const int64_t* offsets);

  cuda::stream stream() const noexcept { return stream_; }
  int synchronize();
  const char* problem() const noexcept { return problem_; }

private:
  int check(const char* what, int code);
  int check_parameters(const program_launch& x, cuda::function kernel);
  struct scratch_memory {
    cuda::memory_handle handle = 0;
    cuda::device_pointer base = 0;
    cuda::device_pointer begin = 0; // of the buffer
    size_t capacity = 0;            // bytes
    size_t unit = 0;                // of allocation
    bool mapped = false;
  };
  int take_scratch();
  int take_scratch(size_t bytes, scratch_memory& x);
  void forget();

  const cuda::driver& cuda_;
  device_program* program_ = nullptr;
  cuda::module module_ = nullptr;
  cuda::function kernels_[program_launches] = {};
  scratch_memory scratch_[program_scratch];
  cuda::stream stream_ = nullptr;
  char problem_[300] = "";
};

} // namespace kernelmill
