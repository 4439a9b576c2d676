// Processes that stand still while they are not timed, for Python.

#include "gpu/process/standstill.hpp"

using kernelmill::standstill;

extern "C" {

/// REQUIRES: km_still_free(). `pid` is that of the process itself.
void* km_still_of(int pid) {
  return new standstill{pid};
}

void km_still_free(void* x) {
  delete static_cast<standstill*>(x);
}

/// 0: all stand still; 1: they were told, and are on their way; 2: it starts processes without end.
int km_still_stop(void* x) {
  return static_cast<int>(static_cast<standstill*>(x)->stop());
}

int km_still_stopped(const void* x) {
  return static_cast<const standstill*>(x)->stopped() ? 1 : 0;
}

void km_still_go_on(void* x) {
  static_cast<standstill*>(x)->go_on();
}

} // extern "C"
