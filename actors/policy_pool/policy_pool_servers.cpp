// What the policy pool knows of its servers: which there are, whether they are well, which weights
// they have, and what it says of them.

#include <algorithm>

#include <caf/all.hpp>
#include <fmt/format.h>

#include "actors/plain_name.hpp"
#include "actors/policy_client/protocol/token_protocol.hpp"
#include "actors/policy_pool/policy_pool.hpp"
#include "messages/base/hash.hpp"

namespace kernelmill {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds status_deadline{2000};

// A failover is cheap: the member's circuit opens soon. The pool leaves a server alone for longer
// than the server's own circuit does, so that its trial meets a circuit that lets it through.
constexpr uint32_t member_threshold = 3;
constexpr milliseconds first_rest{2000};
constexpr milliseconds longest_rest{60'000};

// "127.0.0.1:8000" of "http://127.0.0.1:8000/v1".
std::string authority_of(const std::string& url) {
  auto begin = url.find("://");
  begin = begin == std::string::npos ? 0 : begin + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

expected<policy_config> config_of(wire::PolicyServer::Reader x) {
  policy_config result;
  result.base_url = x.getUrl();
  result.model = x.getModel();
  result.api_key_env = x.getApiKeyEnv();
  result.api_key_file = x.getApiKeyFile();
  result.max_in_flight = x.getMaxInFlight();
  auto kind = parse_server_kind(x.getKind().cStr());
  if (!kind)
    return configuration_error("invalid_value",
                               "failed to attach a server of kind '" +
                                   std::string{x.getKind().cStr()} + "'",
                               "use openai, vllm, sglang or llamacpp");
  result.kind = *kind;
  // Servers come and go: one that is away is no fault of a run's configuration.
  result.first_contact_ms = 0;
  result.breaker_threshold = member_threshold;
  KM_TRY(validate(result));
  return result;
}

// What was said of it, or what servers of its kind have.
expected<bool> takes_ids(wire::PolicyServer::Reader x, const policy_config& config) {
  std::string said = x.getTokens();
  auto able = takes_token_ids(config.kind);
  if (said.empty()) return able;
  if (said == "chat" || (said == "exact" && able)) return said == "exact";
  return configuration_error("invalid_value",
                             "failed to attach a server: it cannot be of kind " +
                                 std::string{to_string(config.kind)} + " with --tokens " + said,
                             "`exact` is for kinds vllm, sglang and llamacpp; `chat` is for all");
}

tl::unexpected<error> no_such_server(const std::string& name) {
  return configuration_error("not_found", "failed to find the policy server '" + name + "'",
                             "`kernelmill policy list` shows the servers");
}

} // namespace

std::optional<weight_span> span_of(const declared_versions& x, uint32_t tokens) {
  if (x.before.empty() && x.after.empty()) return std::nullopt;
  if (!x.changed) return weight_span{x.after, 0, tokens};
  return weight_span{x.before + ".." + x.after, 0, tokens};
}

// -- servers ----------------------------------------------------------------------------------

policy_pool_state::server_ptr policy_pool_state::find(const std::string& name_or_url) const {
  if (auto i = servers_.find(name_or_url); i != servers_.end()) return i->second;
  for (const auto& [key, x] : servers_)
    if (x->config.base_url == name_or_url) return x;
  return nullptr;
}

bool policy_pool_state::any_serving() const {
  return std::any_of(servers_.begin(), servers_.end(),
                     [](const auto& x) { return x.second->state == server_state::serving; });
}

bool policy_pool_state::any_serving(const job& x) const {
  return std::any_of(servers_.begin(), servers_.end(), [&](const auto& one) {
    return one.second->state == server_state::serving && fits(x, *one.second);
  });
}

tl::unexpected<error> policy_pool_state::already_attached(const server& x) {
  return configuration_error(
      "policy_attached",
      fmt::format("failed to attach {}: it is {} under the name {}", x.config.base_url,
                  x.state == server_state::draining ? "still draining" : "attached", x.name),
      "`kernelmill policy list` shows the servers");
}

expected<void> policy_pool_state::attach(wire::PolicyServer::Reader x) {
  auto config = config_of(x);
  KM_TRY(config);
  auto ids = takes_ids(x, *config);
  KM_TRY(ids);
  std::string called = x.getName();
  if (called.empty()) called = authority_of(config->base_url);
  if (!is_plain_name(called))
    return configuration_error("invalid_value", "failed to attach a server: its name is no name",
                               "use up to 200 printable characters without blanks");
  for (const auto& known : {find(called), find(config->base_url)}) {
    if (!known) continue;
    if (known->state != server_state::lost) return already_attached(*known);
    servers_.erase(known->name);
  }
  auto made = std::make_shared<server>();
  made->number = next_server_++;
  made->name = called;
  // No other server, and no other attachment of this one, gets the same request id.
  config->request_salt = fmt::format("{}.{}", called, made->number);
  made->config = *config;
  made->takes_ids = *ids;
  made->weights = weights_of_all_;
  made->health = circuit_breaker{1, first_rest, longest_rest};
  made->client = factory_(std::move(*config));
  self_->monitor(made->client);
  servers_.emplace(called, made);
  place_waiting();
  return {};
}

expected<void> policy_pool_state::detach(const std::string& which, milliseconds patience) {
  auto x = find(which);
  if (!x) return no_such_server(which);
  if (x->state == server_state::lost) {
    servers_.erase(x->name);
    return {};
  }
  x->state = server_state::draining;
  x->drain_until = now() + patience;
  end_if_drained(x);
  look_later();
  return {};
}

expected<void> policy_pool_state::declare(const std::string& which, const std::string& version) {
  if (!is_plain_name(version) || version.find("..") != std::string::npos)
    return configuration_error(
        "invalid_value", "failed to declare the weights: '" + version + "' is no version",
        "use up to 200 printable characters without blanks and without '..'");
  auto one = which.empty() ? nullptr : find(which);
  if (!which.empty() && !one) return no_such_server(which);
  if (!one) weights_of_all_ = version;
  for (auto& [key, x] : servers_) {
    if ((one && one != x) || x->weights == version) continue;
    x->weights = version;
    ++x->weight_changes;
  }
  return {};
}

void policy_pool_state::end_if_drained(const server_ptr& x) {
  if (x->state != server_state::draining || x->in_flight > 0) return;
  self_->demonitor(x->client->address());
  caf::anon_send_exit(x->client, caf::exit_reason::user_shutdown);
  x->client = nullptr;
  servers_.erase(x->name);
}

std::vector<uint64_t> policy_pool_state::jobs_at(const server& x) const {
  std::vector<uint64_t> result;
  if (x.in_flight == 0) return result;
  for (const auto& [id, one] : jobs_)
    if (one.at.get() == &x) result.push_back(id);
  return result;
}

// Everything that a server has goes elsewhere. REQUIRES: it does not serve.
void policy_pool_state::evict(const server_ptr& x) {
  for (auto id : jobs_at(*x)) move(jobs_.at(id));
}

// -- health -----------------------------------------------------------------------------------

void policy_pool_state::examine(const server_ptr& x) {
  if (x->asked || x->state != server_state::serving || x->in_flight == 0) return;
  x->asked = true;
  self_->request(x->client, status_deadline, atom::status_v)
      .then(
          [this, x](const Message<wire::Snapshot>& snapshot) {
            x->asked = false;
            x->client_says = snapshot;
            auto view = snapshot.open();
            if (view->getState() == "open") sicken(x, view->getDetail());
          },
          [x](caf::error&) { x->asked = false; });
}

// Moves what the server has to servers that answer; what finds none stays, for its client tries on.
void policy_pool_state::sicken(const server_ptr& x, const std::string& why) {
  if (x->state != server_state::serving) return;
  x->last_error = why;
  auto here = jobs_at(*x);
  bool trial =
      std::any_of(here.begin(), here.end(), [this](auto id) { return jobs_.at(id).trial; });
  x->health.fail(now(), trial, mix(x->number, next_attempt_));
  for (auto id : here) {
    auto& one = jobs_.at(id);
    one.tried.insert(x->number);
    if (choose(one, true)) move(one);
  }
}

void policy_pool_state::on_down(const caf::actor_addr& who) {
  for (auto& [key, x] : servers_)
    if (x->client && x->client->address() == who) {
      auto lost = x;
      lost->client = nullptr;
      lost->last_error = "its client has ended";
      auto drained = lost->state == server_state::draining;
      lost->state = server_state::lost;
      evict(lost);
      if (drained) servers_.erase(lost->name);
      return;
    }
  drop_asker(who);
}

// -- introspection ----------------------------------------------------------------------------

namespace {

using number_list = std::vector<std::pair<const char*, uint64_t>>;

void set_numbers(wire::Snapshot::Builder to, const number_list& numbers) {
  auto list = to.initNumbers(static_cast<unsigned>(numbers.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setName(numbers[i].first);
    list[i].setValue(static_cast<double>(numbers[i].second));
    list[i].setUnit("count");
  }
}

} // namespace

Message<wire::Snapshot> policy_pool_state::snapshot() const {
  return build<wire::Snapshot>([this](wire::Snapshot::Builder to) {
    to.setActor("policy_pool");
    to.setId("attached");
    to.setState(any_serving() ? "serving" : "without_servers");
    to.setDetail(fmt::format("{} servers", servers_.size()));
    set_numbers(to, {{"in_flight", jobs_.size() - waiting_.size()},
                     {"waiting", waiting_.size()},
                     {"completed", completed_},
                     {"failed", failed_},
                     {"failed_over", failed_over_}});
    auto children = to.initChildren(static_cast<unsigned>(servers_.size()));
    unsigned i = 0;
    for (const auto& [key, x] : servers_) {
      auto child = children[i++];
      child.setActor("policy_server");
      child.setId(key);
      child.setState(x->state == server_state::draining                      ? "draining"
                     : x->state == server_state::lost                        ? "lost"
                     : x->health.current() == circuit_breaker::state::closed ? "serving"
                                                                             : "resting");
      auto detail = fmt::format("{} at {}", x->config.model, x->config.base_url);
      if (!x->weights.empty()) detail += "; weights " + x->weights;
      if (!x->last_error.empty()) detail += "; last error: " + x->last_error;
      child.setDetail(detail);
      set_numbers(child, {{"in_flight", x->in_flight},
                          {"done", x->done},
                          {"failed", x->failed},
                          {"failed_over", x->failed_over},
                          {"weight_changes", x->weight_changes}});
      if (x->in_flight > 0) child.setChildren(x->client_says.open()->getChildren());
    }
  });
}

} // namespace kernelmill
