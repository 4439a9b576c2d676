// kernelmill: one command of launch/commands, as the table there says it.

#include <csignal>

#include <sys/prctl.h>
#include <sys/resource.h>

#include "launch/commands/commands.hpp"

// This process holds keys: no image of its memory is written, and none can be taken by another
// process of the same user. What it starts sets its own limits.
static void keep_memory_private() {
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char** argv) {
  keep_memory_private();
  // A reader of ours that goes away and a file that may not grow are errors of a write, not our
  // end.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return kernelmill::cli::dispatch(kernelmill::commands::all(),
                                   {argv + (argc > 0 ? 1 : 0), argv + argc});
}
