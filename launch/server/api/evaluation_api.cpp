#include "launch/server/api/evaluation_api.hpp"

#include <algorithm>
#include <charconv>

#include <caf/all.hpp>

#include "actors/episode/prompt.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/server/api/api_fields.hpp"
#include "launch/server/api/openenv.hpp"
#include "launch/server/api/seat_api.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/copied.hpp"

namespace kernelmill::services {

namespace {

using body_json = nlohmann::json;
using http::exchange_ptr;
using http::request;

constexpr size_t most_candidates = 1024; // of one request
constexpr double longest_wait_s = 600;

tl::unexpected<error> bad_request(std::string message, std::string hint = {}) {
  return configuration_error("bad_request", std::move(message), std::move(hint));
}

/// The candidates of a request; `many` says whether it was a list.
expected<std::vector<evaluation_order>> orders_of(const api& x, const body_json& body, bool& many) {
  many = body.contains("candidates");
  std::vector<evaluation_order> result;
  if (!many) {
    body_json one = body_json::object();
    for (const auto& f : candidate_fields())
      if (body.contains(f.name)) one[f.name] = body[f.name];
    auto order = order_of(x, one, "");
    KM_TRY(order);
    result.push_back(std::move(*order));
    return result;
  }
  for (const auto& f : candidate_fields())
    if (body.contains(f.name))
      return bad_request("the field \"" + std::string{f.name} +
                         "\" belongs into each of `candidates`");
  if (body["candidates"].empty() || body["candidates"].size() > most_candidates)
    return bad_request("the field \"candidates\" must hold 1 to " +
                       std::to_string(most_candidates));
  for (size_t i = 0; i < body["candidates"].size(); ++i) {
    auto order = order_of(x, body["candidates"][i], "candidates[" + std::to_string(i) + "].");
    KM_TRY(order);
    result.push_back(std::move(*order));
  }
  return result;
}

http::response answer_of(const documents& all, bool many, int status) {
  if (!all) return response_of(all.error());
  if (!many) return json_response(status, all->front());
  nlohmann::ordered_json result{{"schema_version", cli::document_version},
                                {"evaluations", nlohmann::ordered_json::array()}};
  for (const auto& one : *all) result["evaluations"].push_back(one);
  return json_response(status, result);
}

void evaluate(const api_ptr& x, const request& r, const exchange_ptr& to) {
  auto body = read_json(r.body);
  if (!body) return to->answer(response_of(body.error()));
  if (auto ok = check_fields(*body, evaluate_fields()); !ok)
    return to->answer(response_of(ok.error()));
  bool many = false;
  auto orders = orders_of(*x, *body, many);
  if (!orders) return to->answer(response_of(orders.error()));
  bool wait = body->value("wait", false);
  auto entry = std::make_shared<evaluation_entry>();
  for (auto& order : *orders) {
    order.allow_cache = body->value("cache", "refuse") == "allow";
    order.client = r.client;
  }
  entry->entry.orders = std::move(*orders);
  entry->entry.key = r.header("idempotency-key");
  if (!entry->entry.key.empty()) entry->entry.key = own_name(r.client, entry->entry.key);
  entry->entry.digest = entry->entry.key.empty() ? "" : sha256_hex(r.body);
  entry->entry.kept = !wait || body->value("on_disconnect", "cancel") == "continue";
  entry->entry.waiter = wait ? x->next_waiter++ : 0;
  entry->reply = [to, many, wait](const documents& all) {
    to->answer(answer_of(all, many, wait ? 200 : 202));
  };
  auto waiter = entry->entry.waiter;
  caf::anon_send(x->service, atom::evaluate_v, std::move(entry));
  // After it: the service must know of a request before it hears that its client has left.
  if (wait)
    to->on_gone([service = x->service, waiter] { caf::anon_send(service, atom::drop_v, waiter); });
}

void look(const api_ptr& x, request& r, const exchange_ptr& to) {
  auto question = std::make_shared<evaluation_query>();
  question->id = r.parts["id"];
  question->client = r.client;
  if (auto i = r.query.find("wait_s"); i != r.query.end()) {
    double seconds = 0;
    const auto& text = i->second;
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (code != std::errc{} || end != text.data() + text.size() || !(seconds >= 0) ||
        seconds > longest_wait_s)
      return to->answer(response_of(
          {fault_class::configuration, "bad_request",
           "the query parameter \"wait_s\" must be a number of seconds from 0 to 600", ""}));
    question->wait = std::chrono::milliseconds{static_cast<int64_t>(seconds * 1000)};
  }
  question->waiter = x->next_waiter++;
  question->reply = [to](const documents& all) { to->answer(answer_of(all, false, 200)); };
  auto waiter = question->waiter;
  caf::anon_send(x->service, atom::read_v, std::move(question));
  to->on_gone([service = x->service, waiter] { caf::anon_send(service, atom::drop_v, waiter); });
}

void cancel(const api_ptr& x, request& r, const exchange_ptr& to) {
  auto question = std::make_shared<evaluation_query>();
  question->id = r.parts["id"];
  question->client = r.client;
  question->reply = [to](const documents& all) { to->answer(answer_of(all, false, 200)); };
  caf::anon_send(x->service, atom::cancel_v, std::move(question));
}

nlohmann::ordered_json tasks_document(const task_shelf& tasks) {
  nlohmann::ordered_json result{{"schema_version", cli::document_version},
                                {"backend", tasks.backend()},
                                {"tasks", nlohmann::ordered_json::array()}};
  for (const auto& x : tasks.all())
    result["tasks"].push_back({{"id", x->id},
                               {"title", x->title},
                               {"verb", x->verb},
                               {"contract", to_string(x->contract)},
                               {"difficulty", x->difficulty},
                               {"operator_family", x->operator_family},
                               {"digest", x->digest},
                               {"prompt", task_prompt(*x, {})}});
  return result;
}

} // namespace

expected<evaluation_order> order_of(const api& x, const body_json& candidate,
                                    const std::string& where) {
  KM_TRY(check_fields(candidate, candidate_fields(), where));
  if (candidate.contains("source") == candidate.contains("completion"))
    return bad_request("the fields \"" + where + "source\" and \"" + where +
                       "completion\": exactly one must be given");
  auto known = x.tasks->find(candidate["task"].get<std::string>());
  if (!known) {
    auto why = known.error();
    why.message = "the field \"" + where + "task\": " + why.message;
    return tl::unexpected<error>{why};
  }
  auto result = std::make_shared<offered_candidate>();
  bool whole = candidate.contains("completion");
  auto text = candidate[whole ? "completion" : "source"].get<std::string>();
  result->parsed = whole ? parse_completion(text) : as_source(text, **known);
  auto asked = on_contract(*known, candidate.value("contract", "auto"), result->parsed.kernel);
  KM_TRY(asked);
  result->what = std::move(*asked);
  result->sha256 = sha256_hex(result->parsed.ok ? result->parsed.kernel : text);
  evaluation_order order;
  order.name = candidate.value("name", "");
  // Of a completion the verdict says more than of its source: its form, and its diagnosis.
  order.same = sha256_hex((whole ? "completion " : "source ") + sha256_hex(text) + " " +
                          result->what->digest + " " + result->what->id + " " +
                          to_string(result->what->contract) + " " + x.rules);
  order.candidate = std::move(result);
  return order;
}

http::response response_of(const error& x) {
  int status = 400;
  if (x.category == "not_found") status = 404;
  for (const char* one :
       {"idempotency_conflict", "handoff_conflict", "lease_lost", "consumer_fenced", "run_exists"})
    if (x.category == one) status = 409;
  if (x.cls == fault_class::infrastructure) status = 503;
  if (x.category == "queue_full") status = 429;
  auto result = http::error_response(status, x);
  if (status == 429) result.headers.emplace_back("Retry-After", "2");
  return result;
}

http::response json_response(int status, const nlohmann::ordered_json& document) {
  http::response result;
  result.status = status;
  result.body = document.dump(-1, ' ', false, body_json::error_handler_t::replace) + "\n";
  return result;
}

std::string own_name(const std::string& client, const std::string& name) {
  return client.empty() ? name : client + " " + name;
}

nlohmann::ordered_json number_or_null(const nlohmann::ordered_json& x) {
  return x.is_number() ? x : nlohmann::ordered_json(nullptr);
}

bool is_accepted(const nlohmann::ordered_json& verdict) {
  return verdict["outcome"] == "accepted";
}

nlohmann::ordered_json speedup_of(const nlohmann::ordered_json& verdict) {
  const auto& timing = verdict["timing"];
  bool timed = timing.value("measured", false) && timing["speedup"]["low"].is_number();
  if (!timed || !is_accepted(verdict)) return nullptr;
  auto low = timing["speedup"]["low"].get<double>();
  return is_unchanged(verdict["category"].get<std::string>()) ? std::min(low, 1.0) : low;
}

expected<body_json> read_json(const std::string& text) {
  if (nests_deeper(text))
    return bad_request("the body nests deeper than " + std::to_string(deepest_json) + " levels");
  auto result = body_json::parse(text, nullptr, false);
  if (result.is_discarded()) return bad_request("the body is no JSON");
  return result;
}

std::vector<http::route> evaluation_routes(const api_ptr& x) {
  auto handlers = kernelgym_handlers(x);
  handlers.merge(rollout_handlers(x));
  handlers.merge(seat_handlers(x));
  handlers["evaluate"] = [x](request r, exchange_ptr to) { evaluate(x, r, to); };
  handlers["evaluation"] = [x](request r, exchange_ptr to) { look(x, r, to); };
  handlers["cancel"] = [x](request r, exchange_ptr to) { cancel(x, r, to); };
  auto tasks = json_response(200, tasks_document(*x->tasks));
  handlers["tasks"] = [tasks](const request&, exchange_ptr to) { to->answer(tasks); };
  handlers["kernels"] = [x](request r, exchange_ptr to) {
    if (x->kernels) return x->kernels->ask(std::move(r), std::move(to));
    to->answer(response_of({fault_class::configuration, "not_found",
                            "failed to answer with kernels: this server has no folder of runs",
                            "start it with --kernels DIR"}));
  };
  handlers["health"] = [](const request&, exchange_ptr to) {
    to->answer(json_response(200, {{"status", "ok"}}));
  };
  handlers["readiness"] = [load = x->load](const request&, exchange_ptr to) {
    to->answer(json_response(load->full ? 503 : 200, {{"ready", !load->full},
                                                      {"waiting", load->waiting.load()},
                                                      {"running", load->running.load()}}));
  };
  std::vector<http::route> result;
  for (const auto& one : operations()) {
    std::set<std::string> query;
    for (const auto& p : one.query) query.insert(p.name);
    result.push_back({one.method, one.path, std::move(query), handlers.at(one.id), one.open});
  }
  for (auto& one : openenv_routes(x)) result.push_back(std::move(one));
  for (auto& one : seat_routes(x)) result.push_back(std::move(one));
  return result;
}

} // namespace kernelmill::services
