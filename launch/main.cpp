// kernelmill: one command of launch/commands, as the table there says it.

#include <csignal>

#include "launch/commands/commands.hpp"

int main(int argc, char** argv) {
  // A reader of ours that goes away and a file that may not grow are errors of a write, not our
  // end.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return kernelmill::cli::dispatch(kernelmill::commands::all(),
                                   {argv + (argc > 0 ? 1 : 0), argv + argc});
}
