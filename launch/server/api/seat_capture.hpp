#pragma once

// What a seat makes of an agent's request and of the answer to it: plain functions on plain values.
// A seat stands between an agent that talks OpenAI's protocol and the server of a trainer; it asks
// that server for token ids and log-probabilities that the agent does not ask for, and keeps them.

#include <cstdint>
#include <string>
#include <vector>

#include "actors/policy_client/protocol/openai_protocol.hpp"
#include "messages/base/json_value.hpp"
#include "messages/error.hpp"

namespace kernelmill::services {

using seat_json = nlohmann::ordered_json;

/// An agent's request, and what the server is asked in its place.
struct seat_request {
  bool chat = true;    ///< else /v1/completions
  bool stream = false; ///< the agent wants events
  bool usage = false;  ///< and the usage as the last of them
  seat_json asked;     ///< as the server gets it, without what the seat added
  std::string body;    ///< as the server gets it
  bool ids = false;    ///< the agent asked for these itself, and gets them
  bool logprobs = false;
};

/// Errors: "bad_request".
expected<seat_request> read_seat_request(const std::string& body, bool chat, server_kind kind,
                                         const std::string& model);

/// What one answer is to a trainer.
struct seat_row {
  seat_json request, response;
  std::vector<int32_t> prompt_ids, ids;
  std::vector<std::string> tokens; ///< as the server names them
  std::vector<float> logprobs;
  std::string version; ///< of the weights; "": it was not told
  std::string
      flaw; ///< why ids and log-probabilities are not exactly the sampled ones; "": they are
  size_t bytes = 0;
};

/// Reads the server's answer. `response` is what the agent gets. Errors: "policy_bad_response".
expected<seat_row> read_seat_answer(const seat_request& asked, const std::string& body);

/// A row of the trace, in the words of TRL's black-box trainer.
seat_json trace_row(const seat_row& x);

/// The answer as events of a stream, with its [DONE].
std::string seat_events(const seat_request& asked, const seat_json& response);

} // namespace kernelmill::services
