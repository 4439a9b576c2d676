#pragma once

#include <string>

namespace kernelmill {

/// The directory that holds configs/: $KERNELMILL_HOME, ../share/kernelmill beside the binary, or
/// the source tree that the binary was built in or from; empty when there is none.
std::string data_directory();

/// The directory of the running program, where its helpers lie too.
std::string program_directory();

/// A helper program beside this one or in ../libexec/kernelmill; empty when there is none.
std::string helper_program(const std::string& name);

/// What an empty tasks.root and retrieval.corpus mean.
std::string default_tasks_root();
std::string default_corpus();

/// $XDG_CACHE_HOME/kernelmill/build, ~/.cache/kernelmill/build, or /tmp/kernelmill-UID/build.
std::string default_build_cache();

} // namespace kernelmill
