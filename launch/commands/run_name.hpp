#pragma once

#include <string>

#include "launch/config/load.hpp"

namespace kernelmill::commands {

/// "quickstart": what the configuration is called.
std::string stem_of_run(const config_sources& sources);

/// "quickstart-20260731-142233": for a run that was given no name.
std::string made_run_name(const config_sources& sources);

/// Fills in the name and the directory that were not given; `run.dir` alone names the run too.
void name_run(run_config& config, const config_sources& sources);

/// What commands find the run by, its folder, and in brackets the name of its records where
/// `kernelmill runs rename` has made that another one: "second (first)".
std::string name_with_folder(const std::string& name, const std::string& directory);

} // namespace kernelmill::commands
