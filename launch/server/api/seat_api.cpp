#include "launch/server/api/seat_api.hpp"

#include <caf/all.hpp>

namespace kernelmill::services {

namespace {

using http::exchange_ptr;
using http::request;

constexpr bool seat_needs = true;
constexpr bool seat_or_null = true;

const fields& seat_order_fields() {
  static const fields all{
      {"kind",
       kind::text,
       "Of the server: which it is asked for ids by.",
       seat_needs,
       false,
       {"vllm", "sglang", "llamacpp", "openai"}},
      {"base_url", kind::text,
       "Of the server: http://host:port/v1. Default: the address of `key`."},
      {"model", kind::text,
       "Model to ask for, whatever the agent names. Default: what the agent names."},
      {"api_key", kind::text, "Of the server, sent as a bearer token; the agent never sees it."},
      {"key", kind::text,
       "In its place: the name of a key that the operator lists for this address."}};
  return all;
}

const fields& seat_fields() {
  static const fields all{
      {"schema_version", kind::whole, "Of this document.", seat_needs},
      {"id", kind::text, "Hard to guess.", seat_needs},
      {"base_url", kind::text,
       "For the agent: chat/completions, completions and models of OpenAI. Its key is this "
       "server's token.",
       seat_needs},
      {"model", kind::text, "That the server is asked for; \"\": what the agent names.",
       seat_needs}};
  return all;
}

const fields& seat_trace_fields() {
  static const fields all{
      {"schema_version", kind::whole, "Of this document.", seat_needs},
      {"id", kind::text, "", seat_needs},
      {"exact", kind::flag, "No row has a flaw.", seat_needs},
      {"asking", kind::whole, "Requests that the server has not answered yet.", seat_needs},
      {"trace",
       kind::list,
       "One for each answer, in the order of the requests.",
       seat_needs,
       false,
       {},
       "SeatRow"}};
  return all;
}

const fields& seat_row_fields() {
  static const fields all{
      {"request", kind::object, "What the agent asked.", seat_needs},
      {"response", kind::object, "What it was answered.", seat_needs},
      {"completion_token_ids", kind::list, "", seat_needs},
      {"completion_tokens", kind::list, "As the server names them, or \"token_id:N\".", seat_needs},
      {"per_token_logps", kind::list, "", seat_needs},
      {"prompt_token_ids", kind::list, "", seat_needs},
      {"weight_version", kind::text, "Null: the server told none.", seat_needs, seat_or_null},
      {"flaw", kind::text,
       "Why the ids and log-probabilities are not exactly those that were sampled; null: they are.",
       seat_needs, seat_or_null}};
  return all;
}

void ask_keeper(const api_ptr& x, decltype(seat_call::what) what, const exchange_ptr& to) {
  auto call = std::make_shared<seat_call>();
  call->what = std::move(what);
  call->to = to;
  caf::anon_send(x->seats, atom::query_v, std::move(call));
}

expected<open_seat> seat_in(const api& x, const request& r) {
  auto body = read_json(r.body);
  KM_TRY(body);
  KM_TRY(check_fields(*body, seat_order_fields()));
  open_seat result;
  auto server = read_named_server(*body, x.keys);
  KM_TRY(server);
  result.server = std::move(server->config);
  result.server.model = body->value("model", "");
  result.key = std::move(server->key);
  result.root = (x.secure ? "https://" : "http://") + r.header("host");
  return result;
}

} // namespace

std::vector<schema> seat_schemas() {
  return {{"SeatOrder", "The server that an agent's requests go to.", seat_order_fields()},
          {"Seat", "A place for one episode of an agent.", seat_fields()},
          {"SeatTrace", "What the agent asked and was answered.", seat_trace_fields()},
          {"SeatRow", "One answer, in the words of TRL's black-box trainer.", seat_row_fields()}};
}

std::vector<operation> seat_operations() {
  return {{"open_seat",
           "POST",
           "/v1/seats",
           "Opens a seat: an OpenAI-compatible address for one episode of an agent, which captures "
           "token ids and log-probabilities.",
           {},
           "SeatOrder",
           "Seat",
           false,
           {429}},
          {"seat_trace",
           "GET",
           "/v1/seats/{id}/trace",
           "What was captured so far.",
           {},
           "",
           "SeatTrace",
           false,
           {404}},
          {"close_seat",
           "DELETE",
           "/v1/seats/{id}",
           "Closes a seat, and answers with its trace.",
           {},
           "",
           "SeatTrace",
           false,
           {404}}};
}

std::map<std::string, http::handler> seat_handlers(const api_ptr& x) {
  std::map<std::string, http::handler> result;
  result["open_seat"] = [x](const request& r, const exchange_ptr& to) {
    auto what = seat_in(*x, r);
    if (!what) return to->answer(response_of(what.error()));
    ask_keeper(x, std::move(*what), to);
  };
  result["seat_trace"] = [x](const request& r, const exchange_ptr& to) {
    ask_keeper(x, seat_trace{r.parts.at("id")}, to);
  };
  result["close_seat"] = [x](const request& r, const exchange_ptr& to) {
    ask_keeper(x, close_seat{r.parts.at("id")}, to);
  };
  return result;
}

std::vector<http::route> seat_routes(const api_ptr& x) {
  auto completion = [x](bool chat) {
    return [x, chat](const request& r, const exchange_ptr& to) {
      ask_keeper(x, seat_completion{r.parts.at("id"), chat, r.body}, to);
    };
  };
  auto models = [x](const request& r, const exchange_ptr& to) {
    ask_keeper(x, seat_models{r.parts.at("id")}, to);
  };
  return {{"POST", "/v1/seats/{id}/v1/chat/completions", {}, completion(true)},
          {"POST", "/v1/seats/{id}/v1/completions", {}, completion(false)},
          {"GET", "/v1/seats/{id}/v1/models", {}, models}};
}

} // namespace kernelmill::services
