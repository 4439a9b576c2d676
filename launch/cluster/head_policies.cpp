#include "launch/cluster/head_policies.hpp"

#include <filesystem>
#include <set>
#include <utility>

#include <caf/all.hpp>

#include "actors/caf_error.hpp"
#include "actors/policy_client/server_probe.hpp"
#include "actors/policy_pool/policy_pool.hpp"
#include "messages/defaults.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
using namespace std::chrono_literals;

namespace {

constexpr auto pool_deadline = 10s;

// Other commands wait meanwhile.
constexpr uint32_t probe_timeout_ms = 5000;

constexpr uint32_t default_drain_ms = 600'000;

std::string text_of(const json& x, const char* key) {
  auto i = x.find(key);
  return i != x.end() && i->is_string() ? i->get<std::string>() : std::string{};
}

uint32_t number_of(const json& x, const char* key, uint32_t fallback) {
  auto i = x.find(key);
  return i != x.end() && i->is_number_unsigned() ? i->get<uint32_t>() : fallback;
}

// "127.0.0.1:8000" of "http://127.0.0.1:8000/v1".
std::string name_of(const std::string& url) {
  auto begin = url.find("://");
  begin = begin == std::string::npos ? 0 : begin + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

expected<json> read_document(const std::string& text) {
  auto result = json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (result.is_object()) return result;
  return configuration_error("usage", "failed to read the command's document: it is no JSON object",
                             "is the head of another version?");
}

// Kind and model, where they are not given: the server knows both.
expected<void> complete(json& facts) {
  if (!text_of(facts, "kind").empty() && !text_of(facts, "model").empty()) return {};
  policy_config config;
  config.base_url = text_of(facts, "url");
  config.model = text_of(facts, "model");
  config.api_key_env = text_of(facts, "api_key_env");
  config.api_key_file = text_of(facts, "api_key_file");
  auto checked = config;
  if (checked.model.empty()) checked.model = "?";
  if (auto ok = validate(checked); !ok) return ok;
  auto report = probe_server(config, parse_server_kind(text_of(facts, "kind")), probe_timeout_ms);
  if (!report) {
    auto why = report.error();
    why.hint = why.category == "policy_unreachable"
                   ? "start the server, or give --kind and --model to attach one that is not up yet"
                   : "give --kind and --model to attach it without asking it what it is";
    return tl::unexpected<error>{why};
  }
  facts["kind"] = to_string(report->kind);
  facts["model"] = report->model;
  return {};
}

Message<wire::PolicyServer> message_of(const json& facts) {
  return build<wire::PolicyServer>([&](wire::PolicyServer::Builder x) {
    x.setName(text_of(facts, "name"));
    x.setUrl(text_of(facts, "url"));
    x.setKind(text_of(facts, "kind"));
    x.setModel(text_of(facts, "model"));
    x.setMaxInFlight(number_of(facts, "max_in_flight", x.getMaxInFlight()));
    x.setApiKeyEnv(text_of(facts, "api_key_env"));
    x.setApiKeyFile(text_of(facts, "api_key_file"));
  });
}

template <class... Ts>
expected<void> ask(caf::actor_system& system, const policy_pool_actor& pool, Ts&&... words) {
  expected<void> result;
  caf::scoped_actor self{system};
  self->request(pool, pool_deadline, std::forward<Ts>(words)...)
      .receive([] {}, [&](caf::error& why) { result = tl::unexpected<error>{from_caf(why)}; });
  return result;
}

json numbers_of(wire::Snapshot::Reader x) {
  json result = json::object();
  for (auto number : x.getNumbers())
    result[number.getName().cStr()] = static_cast<uint64_t>(number.getValue());
  return result;
}

} // namespace

head_policies::head_policies(caf::actor_system& system, const std::string& root, const logger& log)
    : system_(system), file_(root + "/policies.json"), pool_(spawn_policy_pool(system, log)) {
  // nop
}

head_policies::~head_policies() {
  caf::anon_send_exit(pool_, caf::exit_reason::user_shutdown);
}

expected<void> head_policies::save() const {
  json list = json::array();
  for (const auto& [name, facts] : servers_)
    if (!facts.contains("draining")) list.push_back(facts);
  if (auto ok = write_json(file_, {{"weights", weights_}, {"servers", list}}); !ok) return ok;
  std::error_code code; // it holds names of keys, no keys
  fs::permissions(file_, fs::perms::owner_read | fs::perms::owner_write, code);
  return {};
}

expected<void> head_policies::give(const json& facts) {
  auto name = text_of(facts, "name");
  if (auto ok = ask(system_, pool_, atom::attach_v, message_of(facts)); !ok) return ok;
  servers_[name] = facts;
  auto version = text_of(facts, "weights");
  return version.empty() ? expected<void>{} : ask(system_, pool_, atom::weights_v, name, version);
}

std::vector<std::string> head_policies::recover() {
  std::error_code code;
  if (!fs::exists(file_, code)) return {};
  auto kept = read_json(file_);
  if (!kept) return {file_ + ": " + render(kept.error())};
  std::vector<std::string> problems;
  weights_ = text_of(*kept, "weights");
  if (!weights_.empty())
    if (auto ok = ask(system_, pool_, atom::weights_v, std::string{}, weights_); !ok)
      problems.push_back(file_ + ": " + render(ok.error()));
  for (const auto& facts : kept->value("servers", json::array())) {
    if (!facts.is_object()) continue;
    auto name = text_of(facts, "name");
    auto ok = give(facts);
    if (ok) continue;
    problems.push_back("policy server " + name + ": " + render(ok.error()));
    servers_[name] = facts; // a key that is missing today may be there tomorrow
  }
  return problems;
}

expected<json> head_policies::attach(const std::string& document) {
  auto facts = read_document(document);
  if (!facts) return facts;
  KM_TRY(complete(*facts));
  if (text_of(*facts, "name").empty()) (*facts)["name"] = name_of(text_of(*facts, "url"));
  if (auto file = text_of(*facts, "api_key_file"); !file.empty())
    (*facts)["api_key_file"] = fs::absolute(file).string();
  if (!weights_.empty()) (*facts)["weights"] = weights_;
  KM_TRY(give(*facts));
  if (auto ok = save(); !ok) { // who hears that it failed finds nothing attached
    auto name = text_of(*facts, "name");
    servers_.erase(name);
    static_cast<void>(ask(system_, pool_, atom::detach_v, name, uint32_t{0}));
    return tl::unexpected<error>{ok.error()};
  }
  return *facts;
}

expected<json> head_policies::detach(const std::string& name, const std::string& document) {
  auto how = read_document(document);
  if (!how) return how;
  auto patience = number_of(*how, "drain_ms", default_drain_ms);
  json* kept = nullptr;
  for (auto& [key, facts] : servers_)
    if ((key == name || text_of(facts, "url") == name) && !facts.contains("draining"))
      kept = &facts;
  if (kept) (*kept)["draining"] = true;
  // On disk first: a head that starts again must not bring it back.
  auto ok = kept ? save() : expected<void>{};
  if (ok) ok = ask(system_, pool_, atom::detach_v, name, patience);
  // What could not be attached again is in the file alone.
  if (ok || (kept && ok.error().category == "not_found"))
    return json{{"server", name}, {"drain_ms", patience}};
  if (kept) kept->erase("draining");
  return tl::unexpected<error>{ok.error()};
}

expected<json> head_policies::weights(const std::string& name, const std::string& document) {
  auto what = read_document(document);
  if (!what) return what;
  auto version = text_of(*what, "version");
  KM_TRY(ask(system_, pool_, atom::weights_v, name, version));
  if (name.empty()) weights_ = version;
  for (auto& [key, facts] : servers_)
    if (name.empty() || key == name || text_of(facts, "url") == name) facts["weights"] = version;
  KM_TRY(save());
  return json{{"version", version}, {"server", name}};
}

json head_policies::facts_of(const std::string& name) const {
  json result = {{"name", name}};
  auto known = servers_.find(name);
  auto facts = known == servers_.end() ? json::object() : known->second;
  for (auto key : {"url", "kind", "model", "weights"}) result[key] = text_of(facts, key);
  result["max_in_flight"] = number_of(facts, "max_in_flight", defaults::policy_max_in_flight);
  return result;
}

expected<json> head_policies::list() {
  expected<json> result = json::object();
  std::set<std::string> attached;
  caf::scoped_actor self{system_};
  self->request(pool_, pool_deadline, atom::status_v)
      .receive(
          [&](const Message<wire::Snapshot>& snapshot) {
            auto view = snapshot.open();
            *result = numbers_of(*view);
            auto& servers = (*result)["servers"] = json::array();
            for (auto child : view->getChildren()) {
              auto one = facts_of(child.getId().cStr());
              one["state"] = child.getState().cStr();
              one.update(numbers_of(child));
              one["detail"] = child.getDetail().cStr();
              attached.insert(child.getId().cStr());
              servers.push_back(std::move(one));
            }
          },
          [&](caf::error& why) { result = tl::unexpected<error>{from_caf(why)}; });
  if (!result) return result;
  for (const auto& [name, facts] : servers_) {
    if (attached.contains(name) || facts.contains("draining")) continue;
    auto one = facts_of(name);
    one["state"] = "unattached";
    (*result)["servers"].push_back(std::move(one));
  }
  return result;
}

} // namespace kernelmill
