#pragma once

// What this machine knows of the sessions that it started:
// $XDG_STATE_HOME/kernelmill/remote/ID.json or ~/.local/state/kernelmill/remote/ID.json. Where
// files go is said here alone: the far end is not asked.

#include <string>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill::remote {

/// Where a file or folder of the far end goes here.
struct fetched_place {
  std::string far;  ///< one of the order's outputs
  std::string near; ///< absolute; must not exist, or be an empty folder
};

struct near_record {
  std::string session;
  std::string host;
  std::string command; ///< for people
  std::vector<fetched_place> places;
};

expected<void> store_record(const near_record& x);

/// Errors: "not_found".
expected<near_record> find_record(const std::string& session);
void forget_record(const std::string& session);

} // namespace kernelmill::remote
