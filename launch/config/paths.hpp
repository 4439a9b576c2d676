#pragma once

#include <string>
#include <vector>

namespace kernelmill {

/// The directory that holds configs/: $KERNELMILL_HOME, ../share/kernelmill beside the binary, or
/// the source tree that the binary was built in or from; empty when there is none.
std::string data_directory();

/// The directory of the running program, where its helpers lie too.
std::string program_directory();

/// A helper program beside this one or in ../libexec/kernelmill; empty when there is none.
std::string helper_program(const std::string& name);

/// configs/tasks of the installation; empty when there is none.
std::string default_tasks_root();

/// Where `kernelmill task import` puts tasks: $XDG_DATA_HOME/kernelmill/tasks, or
/// ~/.local/share/kernelmill/tasks. It need not exist; empty when neither variable is set.
std::string user_tasks_root();

/// $XDG_CONFIG_HOME/kernelmill/config.json, or ~/.config/kernelmill/config.json: what a user wants
/// in every configuration. It need not exist; empty when neither variable is set.
std::string user_config_file();

/// What an empty tasks.root means: the installation's tasks, then the user's where there are any.
std::vector<std::string> default_tasks_roots();

/// What an empty retrieval.corpus means.
std::string default_corpus();

/// $XDG_CACHE_HOME/kernelmill/build, ~/.cache/kernelmill/build, or /tmp/kernelmill-UID/build.
std::string default_build_cache();

} // namespace kernelmill
