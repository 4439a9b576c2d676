// The routes of rollouts: reading requests, asking the HANDOFF, writing answers.

#include <atomic>
#include <charconv>
#include <cmath>

#include <caf/all.hpp>

#include "actors/plain_name.hpp"
#include "launch/server/api/evaluation_api.hpp"
#include "launch/server/api/rollout_fields.hpp"
#include "launch/server/rollouts/group_rows.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::services {

namespace {

using order_json = nlohmann::ordered_json;
using http::exchange_ptr;
using http::request;

constexpr double longest_batch_wait_s = 600;
constexpr double longest_lease_s = 7 * 24 * 3600;
constexpr double usual_lease_s = 600;
constexpr double most_groups = 65536;
constexpr int64_t usual_max_ready = 64;
constexpr double longest_deadline_s = 366.0 * 24 * 3600;
constexpr size_t longest_name = 128;

tl::unexpected<error> bad_rollouts(std::string message, std::string hint = {}) {
  return configuration_error("bad_request", std::move(message), std::move(hint));
}

/// A name that stands in paths and logs.
expected<std::string> checked_name(const std::string& x, const std::string& where) {
  if (is_host_like_name(x, longest_name)) return x;
  return bad_rollouts(where + " must be 1 to " + std::to_string(longest_name) +
                      " letters, digits, '.', '_' and '-', and begin with a letter or digit");
}

expected<double> number_in(const request& r, const char* name, double otherwise, double least,
                           double most, bool whole) {
  auto i = r.query.find(name);
  if (i == r.query.end()) return otherwise;
  double value = 0;
  auto* end = i->second.data() + i->second.size();
  auto [at, code] = std::from_chars(i->second.data(), end, value);
  if (code == std::errc{} && at == end && value >= least && value <= most &&
      (!whole || value == std::floor(value)))
    return value;
  return bad_rollouts("the query parameter \"" + std::string{name} + "\" must be a " +
                      (whole ? "whole number" : "number") + " from " +
                      std::to_string(static_cast<int64_t>(least)) + " to " +
                      std::to_string(static_cast<int64_t>(most)));
}

expected<int64_t> whole_in(const nlohmann::json& body, const char* name, int64_t otherwise,
                           int64_t least, int64_t most) {
  if (!body.contains(name)) return otherwise;
  const auto& x = body[name];
  bool large = x.is_number_unsigned() && x.get<uint64_t>() > static_cast<uint64_t>(most);
  if (!large && x.get<int64_t>() >= least && x.get<int64_t>() <= most) return x.get<int64_t>();
  return bad_rollouts("the field \"" + std::string{name} + "\" must be from " +
                      std::to_string(least) + " to " + std::to_string(most));
}

expected<std::vector<std::string>> texts_in(const nlohmann::json& body, const char* name) {
  std::vector<std::string> result;
  if (!body.contains(name)) return result;
  for (const auto& x : body[name]) {
    if (!x.is_string())
      return bad_rollouts("the field \"" + std::string{name} + "\" must hold texts");
    result.push_back(x.get<std::string>());
  }
  return result;
}

/// Asks the HANDOFF; what comes back is the answer.
template <class What>
void ask(const api_ptr& x, const request& r, What what, const exchange_ptr& to,
         uint64_t waiter = 0) {
  auto wish = std::make_shared<handoff::request>();
  wish->client = r.client;
  wish->what = std::move(what);
  wish->waiter = waiter;
  wish->answer = [to](expected<std::string> text) {
    if (!text) return to->answer(response_of(text.error()));
    http::response result;
    result.body = std::move(*text) + "\n";
    to->answer(std::move(result));
  };
  caf::anon_send(x->handoff, atom::query_v, std::move(wish));
}

expected<nlohmann::json> body_of(const request& r, const fields& members) {
  auto body = read_json(r.body);
  KM_TRY(body);
  KM_TRY(check_fields(*body, members));
  return body;
}

// -- orders -------------------------------------------------------------------------------------

std::string made_name() {
  static std::atomic<uint64_t> count{0};
  auto now = std::chrono::system_clock::now().time_since_epoch();
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  return "rollouts-" + std::to_string(ms) + "-" + std::to_string(++count);
}

/// What the book calls a client's consumer: two clients may have the same name for one.
std::string own_consumer(const request& r, const std::string& name) {
  return r.client.empty() ? name : r.client + "/" + name;
}

/// The configuration that an order asks for.
expected<order_json> config_of(const nlohmann::json& body) {
  order_json result = order_json::object();
  if (body.contains("config")) result = order_json::parse(body["config"].dump());
  for (const auto& [section, value] : result.items())
    if (!value.is_object() && section != "advantage")
      return bad_rollouts("the field \"config." + section + "\" must be an object");
  auto ids = texts_in(body, "tasks");
  KM_TRY(ids);
  if (ids->empty()) return bad_rollouts("the field \"tasks\" must name a task");
  result["tasks"]["ids"] = *ids;
  for (const char* key : {"groups", "group_size", "quorum", "max_turns"})
    if (body.contains(key)) result["tasks"][key] = body[key];
  if (body.contains("seed")) result["run"]["seed"] = body["seed"];
  if (body.contains("policy"))
    for (const auto& [key, value] : body["policy"].items()) result["policy"][key] = value;
  if (body.contains("sampling")) {
    auto& sampling = result["policy"]["sampling"];
    if (!sampling.is_null() && !sampling.is_object())
      return bad_rollouts("the field \"sampling\" of the policy must be an object");
    for (const auto& [key, value] : body["sampling"].items()) sampling[key] = value;
  }
  return result;
}

expected<handoff::order_request> order_in(const request& r) {
  auto body = body_of(r, rollout_order_fields());
  KM_TRY(body);
  handoff::order_request result;
  auto id = checked_name(body->value("id", made_name()), "the field \"id\"");
  KM_TRY(id);
  result.what.id = *id;
  result.what.client = r.client;
  result.what.digest = sha256_hex(body->dump());
  auto config = config_of(*body);
  KM_TRY(config);
  result.config = config->dump();
  result.what.form = body->value("form", "rl");
  KM_TRY(rollouts::trainer_form(result.what.form));
  auto off_policy = whole_in(*body, "max_off_policy", -1, 0, INT32_MAX);
  KM_TRY(off_policy);
  result.what.max_off_policy = *off_policy;
  auto most = whole_in(*body, "max_ready", usual_max_ready, 0, INT32_MAX);
  KM_TRY(most);
  result.what.max_ready = static_cast<uint32_t>(*most);
  auto seconds = body->value("deadline_s", 0.0);
  if (seconds < 0 || seconds > longest_deadline_s)
    return bad_rollouts("the field \"deadline_s\" must be at most a year of seconds");
  result.seconds = static_cast<int64_t>(std::ceil(seconds));
  return result;
}

// -- batches ------------------------------------------------------------------------------------

expected<handoff::batch_request> batch_in(const request& r) {
  handoff::batch_request result;
  auto text = [&](const char* name) {
    auto i = r.query.find(name);
    return i == r.query.end() ? std::string{} : i->second;
  };
  auto order = checked_name(text("order"), "the query parameter \"order\"");
  KM_TRY(order);
  auto consumer = checked_name(text("consumer"), "the query parameter \"consumer\"");
  KM_TRY(consumer);
  if (auto name = text("request"); !name.empty())
    KM_TRY(checked_name(name, "the query parameter \"request\""));
  auto generation = number_in(r, "generation", 0, 0, 1e15, true);
  KM_TRY(generation);
  auto groups = number_in(r, "groups", 1, 1, most_groups, true);
  KM_TRY(groups);
  auto wait = number_in(r, "wait_s", 0, 0, longest_batch_wait_s, false);
  KM_TRY(wait);
  auto lease = number_in(r, "lease_s", usual_lease_s, 0.001, longest_lease_s, false);
  KM_TRY(lease);
  result.what = {*order,
                 own_consumer(r, *consumer),
                 text("request"),
                 static_cast<uint64_t>(*generation),
                 static_cast<uint32_t>(*groups),
                 static_cast<int64_t>(std::ceil(*lease * 1000))};
  result.wait = std::chrono::milliseconds{static_cast<int64_t>(*wait * 1000)};
  return result;
}

expected<handoff::ack_request> ack_in(const request& r) {
  auto body = body_of(r, rollout_ack_fields());
  KM_TRY(body);
  handoff::ack_request result;
  auto lease = whole_in(*body, "lease", 0, 1, INT64_MAX);
  KM_TRY(lease);
  result.lease = static_cast<uint64_t>(*lease);
  auto groups = texts_in(*body, "groups");
  KM_TRY(groups);
  if (body->contains("groups") && groups->empty())
    return bad_rollouts("the field \"groups\" must name a group");
  result.groups = std::move(*groups);
  auto step = whole_in(*body, "optimizer_step", 0, 0, INT64_MAX);
  KM_TRY(step);
  result.step = *step;
  return result;
}

expected<handoff::commit_command> commit_in(const request& r) {
  auto body = body_of(r, rollout_commit_fields());
  KM_TRY(body);
  auto consumer = checked_name((*body)["consumer"].get<std::string>(), "the field \"consumer\"");
  KM_TRY(consumer);
  auto generation = whole_in(*body, "generation", 0, 0, INT64_MAX);
  KM_TRY(generation);
  auto step = whole_in(*body, "optimizer_step", 0, 0, INT64_MAX);
  KM_TRY(step);
  return handoff::commit_command{own_consumer(r, *consumer), static_cast<uint64_t>(*generation),
                                 *step};
}

expected<handoff::rollback_command> rollback_in(const request& r) {
  auto body = body_of(r, rollout_rollback_fields());
  KM_TRY(body);
  auto consumer = checked_name((*body)["consumer"].get<std::string>(), "the field \"consumer\"");
  KM_TRY(consumer);
  auto step = whole_in(*body, "optimizer_step", 0, -1, INT64_MAX);
  KM_TRY(step);
  return handoff::rollback_command{own_consumer(r, *consumer), *step};
}

expected<handoff::weights_request> weights_in(const request& r) {
  auto body = body_of(r, weights_fields());
  KM_TRY(body);
  auto version = (*body)["version"].get<std::string>();
  if (version.empty() || version.size() > 1024)
    return bad_rollouts("the field \"version\" must have 1 to 1024 bytes");
  handoff::weights_wish wish;
  wish.path = body->value("path", "");
  wish.adapter = body->value("adapter", "");
  if (wish.path.empty() &&
      (body->contains("path") || !wish.adapter.empty() || body->contains("servers")))
    return bad_rollouts("the field \"path\" must name the checkpoint that servers are to load");
  if (body->contains("servers")) {
    const auto& servers = (*body)["servers"];
    if (servers.empty()) return bad_rollouts("the field \"servers\" must name a server");
    for (size_t i = 0; i < servers.size(); ++i) {
      KM_TRY(
          check_fields(servers[i], weights_server_fields(), "servers[" + std::to_string(i) + "]."));
      wish.servers.push_back(servers[i].dump());
    }
  }
  return handoff::weights_request{std::move(version), std::move(wish)};
}

/// A handler that reads a request and has the HANDOFF answer it.
template <class Read>
http::handler handler_of(const api_ptr& x, Read read) {
  return [x, read](const request& r, const exchange_ptr& to) {
    if (!x->handoff)
      return to->answer(
          response_of({fault_class::configuration, "not_found", "this server has no rollouts",
                       "start it with --runs DIR, where runs are kept"}));
    auto what = read(r);
    if (!what) return to->answer(response_of(what.error()));
    ask(x, r, std::move(*what), to);
  };
}

} // namespace

std::map<std::string, http::handler> rollout_handlers(const api_ptr& x) {
  std::map<std::string, http::handler> result;
  result["order_rollouts"] = handler_of(x, order_in);
  result["list_rollouts"] = handler_of(
      x, [](const request&) -> expected<handoff::look_request> { return handoff::look_request{}; });
  result["rollouts"] = handler_of(x, [](const request& r) -> expected<handoff::look_request> {
    return handoff::look_request{r.parts.at("id")};
  });
  result["cancel_rollouts"] =
      handler_of(x, [](const request& r) -> expected<handoff::cancel_request> {
        return handoff::cancel_request{r.parts.at("id")};
      });
  result["ack_rollouts"] = handler_of(x, ack_in);
  result["commit_rollouts"] = handler_of(x, commit_in);
  result["roll_back_rollouts"] = handler_of(x, rollback_in);
  result["declare_weights"] = handler_of(x, weights_in);
  // A client that leaves waits no more.
  result["rollout_batch"] = [x, plain = handler_of(x, batch_in)](const request& r,
                                                                 const exchange_ptr& to) {
    auto what = x->handoff ? batch_in(r) : expected<handoff::batch_request>{};
    if (!x->handoff || !what) return plain(r, to);
    auto waiter = x->next_waiter++;
    ask(x, r, std::move(*what), to, waiter);
    to->on_gone(
        [receiver = x->handoff, waiter] { caf::anon_send(receiver, atom::drop_v, waiter); });
  };
  return result;
}

} // namespace kernelmill::services
