#pragma once

// What a reader of events wants, and where it stands in what it reads.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "messages/error.hpp"

namespace kernelmill::page {

inline constexpr size_t most_followed = 64; ///< runs

using places_by_run = std::map<std::string, uint64_t>;

/// What one reader wants.
struct subscription {
  std::string run;              ///< name of a folder below the root; empty: every run
  std::set<std::string> topics; ///< "turns", "runs", "live"
  uint32_t most = 0;            ///< turns a second, the newest; 0: all
  places_by_run places;         ///< where to go on in each journal
};

/// Reads "first=1200,second=77", the id of an event. Errors: "bad_query".
expected<places_by_run> read_event_id(const std::string& text);

/// The same text of such places.
std::string event_id(const places_by_run& x);

} // namespace kernelmill::page
