#pragma once

// What the HEAD answers to users' commands, as JSON made from plain values.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "actors/head/members.hpp"
#include "messages/cluster.capnp.h"
#include "messages/message.hpp"
#include "messages/policy.capnp.h"
#include "messages/run.capnp.h"

namespace kernelmill {

using json = nlohmann::ordered_json;

/// How far a run is.
struct run_numbers {
  uint64_t planned = 0, live = 0, ended = 0, turns = 0; ///< turns are committed ones
  uint64_t accepted = 0, rejected = 0, infrastructure = 0;
};

/// A run as `kernelmill status` lists it.
struct run_row {
  std::string name, state, lane, directory;
  int64_t priority = 0;
  run_numbers numbers;
  double seconds = 0; ///< since this head started it
  error fault;
  std::vector<std::string> required_layers{}; ///< of the sandbox
};

struct head_view {
  std::string address, build;
  uint64_t epoch = 0;
  roster nodes;
  std::vector<std::pair<std::string, std::optional<Message<wire::Snapshot>>>> lanes;
  std::vector<run_row> runs;
};

/// The document of `kernelmill status`.
json status_document(const head_view& x);

/// The numbers of what a run actor says of itself.
run_numbers numbers_of_run(wire::Snapshot::Reader x);

/// The same of the summary of a run that was planned with so many episodes.
run_numbers numbers_of_run(wire::Totals::Reader x, uint64_t planned);

/// Every number of a snapshot, by its name.
json numbers_of(wire::Snapshot::Reader x);

Message<wire::ControlReply> reply_of(const expected<json>& x);

// -- policy servers, each a JSON object: url, kind, model, max_in_flight, names of keys, weights
// ---

/// A command's document; empty text is an empty object. Errors: usage.
expected<json> read_document(const std::string& text);

/// Returns "127.0.0.1:8000" of "http://127.0.0.1:8000/v1".
std::string host_of_url(const std::string& url);

Message<wire::PolicyServer> server_message(const json& facts);

/// What `kernelmill policy list` says of one server; `facts` may be null.
json server_row(const std::string& name, const json* facts);

} // namespace kernelmill
