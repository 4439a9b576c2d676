#pragma once

// Records as spans of OpenTelemetry, in the JSON of OTLP. An episode is one trace:
//   invoke_agent kernelmill            the episode
//     turn t0                          its verdict and gates are events of it
//       execute_tool retrieve
//       chat MODEL                     its id is what the request's `traceparent` says
//       execute_tool build
//       execute_tool evaluate
//       execute_tool profile
// Names and attributes are those of the conventions for generative AI; ours begin with
// "kernelmill.". Plain functions.

#include <string>
#include <vector>

#include "launch/config/run_config.hpp"
#include "messages/base/json_value.hpp"
#include "messages/lineage.capnp.h"
#include "storage/artifacts.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::trackers {

using json = nlohmann::ordered_json;

struct traced_run {
  std::string name;
  uint32_t group_size = 1; ///< of the plan
  uint64_t seed = 0;
  std::string provider;
  std::string model; ///< as it is asked for; empty: what answers
  sampling_section sampling;
  bool stream = false;
  const artifact_store* texts = nullptr; ///< null: texts are not sent
};

/// Whether an episode belongs to the share that is sent; the same for all of its spans, and after a
/// resume.
bool is_traced(const traced_run& run, wire::EpisodeRef::Reader where, double share);

/// The spans of a turn, children first. Errors: those of reading a text.
expected<std::vector<json>> turn_spans(wire::TurnRecord::Reader turn, const traced_run& run);

/// The span of an episode that has ended, with what its turns used.
json episode_span(wire::EpisodeRecord::Reader end, const stored_episode& turns,
                  const traced_run& run);

} // namespace kernelmill::trackers
