// kernelmill: one command of launch/commands, as the table there says it.

#include <csignal>

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "launch/cli/bus_guard.hpp"
#include "launch/commands/commands.hpp"

// This process holds keys: no image of its memory is written, and none can be taken by another
// process of the same user. What it starts sets its own limits.
static void keep_memory_private() {
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

// OpenBLAS, which FAISS brings, starts its threads when it is loaded, and they spin for a tenth of
// a second: each command would cost that. It starts them again when they are needed.
static void end_idle_threads() {
  if (auto* end = ::dlsym(RTLD_DEFAULT, "blas_thread_shutdown_"))
    reinterpret_cast<int (*)()>(end)();
}

int main(int argc, char** argv) {
  keep_memory_private();
  end_idle_threads();
  // A reader of ours that goes away and a file that may not grow are errors of a write, not our
  // end.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  kernelmill::cli::guard_maps();
  return kernelmill::cli::dispatch(kernelmill::commands::all(),
                                   {argv + (argc > 0 ? 1 : 0), argv + argc});
}
