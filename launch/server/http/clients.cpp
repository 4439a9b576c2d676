#include "launch/server/http/clients.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include <openssl/crypto.h>
#include <sys/stat.h>

#include "actors/plain_name.hpp"
#include "launch/server/http/router.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::http {

namespace {

using rules_json = nlohmann::json;

constexpr double seconds_of_a_minute = 60;

tl::unexpected<error> bad_clients(const std::string& path, const std::string& cause) {
  return configuration_error(
      "bad_clients", "failed to use " + path + ": " + cause,
      R"(write {"clients": [{"name": "a", "token": "...", "in_flight": 64}]}, each token from )"
      "`openssl rand -hex 32`");
}

expected<uint32_t> bound_in(const std::string& path, const rules_json& x, const char* key) {
  if (!x.contains(key)) return 0u;
  if (x[key].is_number_unsigned() && x[key].get<uint64_t>() >= 1 &&
      x[key].get<uint64_t>() <= UINT32_MAX)
    return x[key].get<uint32_t>();
  return bad_clients(path, std::string{key} + " must be a whole number from 1");
}

expected<client_rules> rules_of(const std::string& path, rules_json& x) {
  static const std::set<std::string> known{"name",       "token",       "in_flight",
                                           "per_minute", "evaluations", "share"};
  if (!x.is_object()) return bad_clients(path, "a client must be an object");
  for (const auto& [key, value] : x.items())
    if (!known.contains(key)) return bad_clients(path, "unknown key \"" + key + "\"");
  auto text = [&](const char* key) {
    return x.contains(key) && x[key].is_string() ? x[key].get<std::string>() : std::string{};
  };
  client_rules result;
  result.name = text("name");
  if (!is_label(result.name))
    return bad_clients(path, "a name must be letters, digits, '.', '_' and '-'");
  auto token = text("token");
  if (!token.empty()) wipe(x["token"].get_ref<std::string&>());
  auto visible = [](unsigned char c) { return c > ' ' && c < 127; };
  if (token.size() < shortest_token || !std::all_of(token.begin(), token.end(), visible))
    return bad_clients(path, "the token of " + result.name + " must have " +
                                 std::to_string(shortest_token) + " visible characters or more");
  result.token = std::make_shared<const secret>(token);
  for (auto [key, to] :
       {std::pair{"in_flight", &result.in_flight}, std::pair{"per_minute", &result.per_minute},
        std::pair{"evaluations", &result.evaluations}}) {
    auto bound = bound_in(path, x, key);
    KM_TRY(bound);
    *to = *bound;
  }
  if (x.contains("share")) {
    if (!x["share"].is_number() || !(x["share"].get<double>() >= 0.01) ||
        x["share"].get<double>() > 1000)
      return bad_clients(path, "share must be a number from 0.01 to 1000");
    result.share = x["share"].get<double>();
  }
  return result;
}

} // namespace

expected<std::vector<client_rules>> load_clients(const std::string& path) {
  struct stat about {};
  bool found = ::stat(path.c_str(), &about) == 0;
  if (!found || !S_ISREG(about.st_mode))
    return configuration_error("token_missing",
                               "failed to use " + path + ": " +
                                   (found ? "it is no file" : std::strerror(errno)),
                               "name the file of the clients with --clients");
  if ((about.st_mode & S_IRWXO) != 0)
    return configuration_error("token_exposed",
                               "failed to use " + path + ": every user of this machine may read it",
                               "chmod 600 " + path);
  std::ifstream from{path, std::ios::binary};
  std::string text{std::istreambuf_iterator<char>{from}, {}};
  auto x = rules_json::parse(text, nullptr, false);
  wipe(text);
  if (!x.is_object() || x.size() != 1 || !x.contains("clients") || !x["clients"].is_array() ||
      x["clients"].empty())
    return bad_clients(path, "it must be an object with a list of \"clients\" alone");
  std::vector<client_rules> result;
  std::set<std::string> names;
  for (auto& one : x["clients"]) {
    auto rules = rules_of(path, one);
    KM_TRY(rules);
    if (!names.insert(rules->name).second)
      return bad_clients(path, "the client " + rules->name + " is there twice");
    for (const auto& other : result)
      if (other.token->reveal() == rules->token->reveal())
        return bad_clients(path, other.name + " and " + rules->name + " have one token");
    result.push_back(std::move(*rules));
  }
  return result;
}

client_gate::client_gate(std::vector<client_rules> clients) {
  for (auto& x : clients) {
    entry to;
    to.header = "Bearer " + std::string{x.token->reveal()};
    to.tokens = x.per_minute;
    to.rules = std::move(x);
    clients_.push_back(std::move(to));
  }
}

// All are compared, each in constant time: how long it takes says nothing about a token.
std::optional<size_t> client_gate::find(std::string_view authorization) const {
  std::optional<size_t> result;
  for (size_t i = 0; i < clients_.size(); ++i) {
    const auto& x = clients_[i].header;
    if (x.size() == authorization.size() &&
        CRYPTO_memcmp(x.data(), authorization.data(), x.size()) == 0)
      result = i;
  }
  return result;
}

std::optional<client_gate::refusal> client_gate::enter(size_t client, time_point now) {
  auto& x = clients_[client];
  const auto& rules = x.rules;
  if (rules.in_flight > 0 && x.inside >= rules.in_flight)
    return refusal{rules.name + " has " + std::to_string(x.inside) +
                       " requests in flight, as many as it may",
                   1};
  if (rules.per_minute > 0) {
    double rate = rules.per_minute / seconds_of_a_minute;
    auto passed = std::chrono::duration<double>(now - x.counted).count();
    if (x.counted != time_point{})
      x.tokens = std::min<double>(rules.per_minute, x.tokens + passed * rate);
    x.counted = now;
    if (x.tokens < 1)
      return refusal{rules.name + " may send " + std::to_string(rules.per_minute) +
                         " requests a minute",
                     static_cast<uint32_t>(std::ceil((1 - x.tokens) / rate))};
    x.tokens -= 1;
  }
  ++x.inside;
  return std::nullopt;
}

void client_gate::leave(size_t client) {
  --clients_[client].inside;
}

} // namespace kernelmill::http
