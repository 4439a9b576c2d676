#include "launch/server/api/seat_keeper.hpp"

#include <array>
#include <random>

#include <caf/all.hpp>

#include "actors/policy_client/http/http_client.hpp"
#include "actors/snapshots.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/server/api/evaluation_api.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::services {

namespace {

constexpr size_t most_seats = 65536;
constexpr size_t most_bytes = size_t{1} << 30; ///< of all traces
constexpr size_t most_answer_bytes = size_t{64} << 20;
constexpr uint32_t longest_answer_ms = 60 * 60 * 1000;
constexpr auto longest_idle = std::chrono::hours{1};
constexpr auto between_looks = std::chrono::minutes{1};

/// Hard to guess: a client that has it may ask the server behind the seat.
std::string new_seat_id() {
  std::random_device source;
  std::array<unsigned char, 16> bytes;
  for (auto& b : bytes) b = static_cast<unsigned char>(source());
  return "seat-" + to_hex(bytes.data(), bytes.size());
}

error no_room(std::string message) {
  return {fault_class::infrastructure, "queue_full", std::move(message),
          "close seats whose traces you have"};
}

} // namespace

void seat_keeper_state::obey(const seat_call& x) {
  std::visit([&](const auto& what) { do_it(what, x.to); }, x.what);
}

seat_keeper_state::seat* seat_keeper_state::find(const std::string& id,
                                                 const http::exchange_ptr& to) {
  auto i = seats_.find(id);
  if (i != seats_.end()) {
    i->second.used = clock::now();
    return &i->second;
  }
  to->answer(
      response_of({fault_class::configuration, "not_found", "there is no seat \"" + id + "\"",
                   "it was closed, or not used for an hour"}));
  return nullptr;
}

void seat_keeper_state::do_it(const open_seat& x, const http::exchange_ptr& to) {
  if (seats_.size() >= most_seats || bytes_ >= most_bytes)
    return to->answer(response_of(no_room("there is no room for another seat")));
  if (!transport_) {
    auto client = http_client::start();
    if (!client) return to->answer(response_of(client.error()));
    transport_ = std::move(*client);
    self_->delayed_send(self_, between_looks, atom::tick_v);
  }
  auto id = new_seat_id();
  seats_[id] = {x.server, x.key, {}, 0, 0, clock::now()};
  to->answer(json_response(200, {{"schema_version", cli::document_version},
                                 {"id", id},
                                 {"base_url", x.root + "/v1/seats/" + id + "/v1"},
                                 {"model", x.server.model}}));
}

http::response seat_keeper_state::trace_of(const std::string& id, const seat& x) const {
  seat_json rows = seat_json::array();
  bool exact = true;
  for (const auto& row : x.rows) {
    if (!row) continue; // it is in flight, or failed: the agent has no answer
    exact = exact && row->flaw.empty();
    rows.push_back(trace_row(*row));
  }
  return json_response(200, {{"schema_version", cli::document_version},
                             {"id", id},
                             {"exact", exact},
                             {"asking", x.asking},
                             {"trace", std::move(rows)}});
}

void seat_keeper_state::do_it(const seat_trace& x, const http::exchange_ptr& to) {
  if (auto* at = find(x.id, to)) to->answer(trace_of(x.id, *at));
}

void seat_keeper_state::do_it(const close_seat& x, const http::exchange_ptr& to) {
  auto* at = find(x.id, to);
  if (!at) return;
  to->answer(trace_of(x.id, *at));
  forget(seats_.find(x.id));
}

void seat_keeper_state::forget(std::map<std::string, seat>::iterator i) {
  bytes_ -= i->second.bytes;
  seats_.erase(i);
}

void seat_keeper_state::do_it(const seat_models& x, const http::exchange_ptr& to) {
  auto* at = find(x.id, to);
  if (!at) return;
  auto call = std::make_shared<seat_answer>();
  call->id = x.id;
  call->models = true;
  call->to = to;
  send(*at, std::move(call));
}

void seat_keeper_state::do_it(const seat_completion& x, const http::exchange_ptr& to) {
  auto* at = find(x.id, to);
  if (!at) return;
  if (bytes_ >= most_bytes) return to->answer(response_of(no_room("the traces are full")));
  auto asked = read_seat_request(x.body, x.chat, at->server.kind, at->server.model);
  if (!asked) return to->answer(response_of(asked.error()));
  auto call = std::make_shared<seat_answer>();
  call->id = x.id;
  call->place = at->rows.size();
  call->asked = std::move(*asked);
  call->to = to;
  at->rows.emplace_back();
  send(*at, std::move(call));
}

void seat_keeper_state::send(const seat& at, std::shared_ptr<seat_answer> x) {
  http_request request;
  request.post = !x->models;
  request.url = endpoint(at.server, x->models       ? "models"
                                    : x->asked.chat ? "chat/completions"
                                                    : "completions");
  if (request.post) {
    request.headers = {{"Content-Type", "application/json"}, {"X-Session-ID", x->id}};
    request.body = x->asked.body;
  }
  request.bearer = x->key = at.key;
  request.body_limit = most_answer_bytes;
  request.timeout_ms = longest_answer_ms;
  ++seats_.at(x->id).asking;
  auto number =
      transport_->submit(std::move(request), [keeper = caf::actor_cast<seat_keeper_actor>(self_),
                                              x](http_response got) {
        x->got = std::move(got);
        caf::anon_send(keeper, atom::finished_v, seat_answer_ptr{x});
      });
  // An agent that leaves ends its request: the server stops generating.
  x->to->on_gone([transport = std::weak_ptr<http_transport>{transport_}, number] {
    if (auto there = transport.lock()) there->cancel(number);
  });
}

void seat_keeper_state::on_answer(const seat_answer& x) {
  auto i = seats_.find(x.id);
  auto* at = i == seats_.end() ? nullptr : &i->second;
  if (at) {
    --at->asking;
    at->used = clock::now();
  }
  const auto& got = x.got;
  if (got.fault != transport_fault::none)
    return x.to->answer(
        response_of({fault_class::infrastructure, "policy_unavailable",
                     "the server behind the seat does not answer: " + got.detail, "ask again"}));
  http::response answer;
  answer.status = static_cast<int>(got.status);
  answer.body = x.key ? x.key->redact(got.body) : got.body;
  if (auto after = got.header("retry-after"); !after.empty())
    answer.headers.emplace_back("Retry-After", std::string{after});
  if (got.status != 200 || x.models || x.to->gone()) return x.to->answer(std::move(answer));
  auto row = read_seat_answer(x.asked, answer.body); // without the key, should the server say it
  if (!row) return x.to->answer(response_of(row.error()));
  if (x.asked.stream) {
    answer.type = "text/event-stream";
    answer.body = seat_events(x.asked, row->response);
  } else {
    answer.body = row->response.dump(-1, ' ', false, seat_json::error_handler_t::replace);
  }
  if (at) { // what an agent has is in the trace before it has it
    at->bytes += row->bytes;
    bytes_ += row->bytes;
    at->rows[x.place] = std::move(*row);
  }
  x.to->answer(std::move(answer));
}

void seat_keeper_state::look() {
  auto before = clock::now() - longest_idle;
  for (auto i = seats_.begin(); i != seats_.end();) {
    auto here = i++;
    if (here->second.asking == 0 && here->second.used < before) forget(here);
  }
  self_->delayed_send(self_, between_looks, atom::tick_v);
}

Message<wire::Snapshot> seat_keeper_state::snapshot() const {
  size_t asking = 0;
  for (const auto& [id, x] : seats_) asking += x.asking;
  return snapshot_of("seat-keeper", "seats", asking > 0 ? "asking" : "idle", "",
                     {{"seats", seats_.size()}, {"asking", asking}, {"bytes", bytes_}});
}

seat_keeper_actor::behavior_type
seat_keeper(seat_keeper_actor::stateful_pointer<seat_keeper_state> self) {
  return {[self](atom::status) { return self->state.snapshot(); },
          [self](atom::query, const seat_call_ptr& x) { self->state.obey(*x); },
          [self](atom::finished, const seat_answer_ptr& x) { self->state.on_answer(*x); },
          [self](atom::tick) { self->state.look(); }};
}

} // namespace kernelmill::services
