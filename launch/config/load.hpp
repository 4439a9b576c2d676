#pragma once

// From files, environment and command line to one checked run_config. Later layers win: defaults,
// the user's own file, files from left to right, KERNELMILL_SECTION__FIELD, overrides. Objects
// merge, lists replace.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/config/run_config.hpp"
#include "messages/error.hpp"

namespace kernelmill {

struct config_sources {
  std::vector<std::string> files;
  std::vector<std::pair<std::string, std::string>> environment; ///< name, value; ours and others'
  /// "a.b=value", "+a.b=value", "a.b+=value" of a list, "a.b=@FILE", "~a.b"
  std::vector<std::string> overrides;
  std::string directory;      ///< overrides' paths start here; empty: the working directory
  std::string user_file = {}; ///< below all files; empty: none
};

struct resolved_config {
  run_config config;
  std::map<std::string, std::string> origins; ///< key -> "FILE:LINE", "environment NAME", ...
};

/// Reads all layers and reports everything that is wrong in them; `resolved` is usable only when
/// there is nothing.
struct config_report {
  resolved_config resolved;
  std::vector<error> problems;
};
config_report examine_config(const config_sources& sources);

/// The same as one answer: the first problem, with a count of the others.
expected<resolved_config> load_config(const config_sources& sources);

/// Checks what no single key can: timeouts nest, the policy's kind has what it needs.
std::vector<error> check_consistency(const run_config& config);

/// The KERNELMILL_* variables of this process.
std::vector<std::pair<std::string, std::string>> process_environment();

/// Whether a positional argument of `run` is an override rather than a file.
bool is_override(const std::string& argument);

/// SHA-256 over every key that says what is measured; not over names, places, addresses and paces
/// (config_key::may_change), which a resumed run may change.
std::string config_digest(const run_config& config);

/// Says where a configuration that a user names lies: the path itself when it exists, else
/// NAME or NAME.json of the installation's configs/ when NAME holds no slash.
std::string locate_config(const std::string& argument);

/// The names under which locate_config() finds the installation's configs/, sorted.
std::vector<std::string> preset_names();

} // namespace kernelmill
