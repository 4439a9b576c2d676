#pragma once

#include <dlfcn.h>

namespace kernelmill::cuda {

/// Looks functions up in a library that ::dlopen opened.
class symbols {
public:
  explicit symbols(void* library) : library_(library) {
    // nop
  }

  template <class Function>
  symbols& find(Function*& into, const char* name) {
    into = reinterpret_cast<Function*>(::dlsym(library_, name));
    complete_ = complete_ && into != nullptr;
    return *this;
  }

  bool complete() const noexcept { return complete_; } ///< none was missing so far

private:
  void* library_;
  bool complete_ = true;
};

} // namespace kernelmill::cuda
