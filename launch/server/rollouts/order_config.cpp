#include "launch/server/rollouts/order_config.hpp"

#include <algorithm>
#include <iterator>

#include "launch/config/keys.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/torch_words.hpp"

namespace kernelmill::rollouts {

namespace {

using order_document = nlohmann::ordered_json;

constexpr const char* asked_servers[] = {"policy", "retrieval.embedder"};

bool is_key_of_server(const std::string& name) {
  return std::any_of(std::begin(asked_servers), std::end(asked_servers),
                     [&](const std::string& server) { return name == server + ".key"; });
}

tl::unexpected<error> not_in_orders(const std::string& key) {
  auto is_api_key = key.ends_with(".api_key_env") || key.ends_with(".api_key_file");
  auto section = key.substr(0, key.rfind('.'));
  return configuration_error(
      "not_in_orders",
      "failed to plan the rollouts: an order must not set " + key +
          ", which names a file, a program, a variable or an address of the server's machine",
      is_api_key ? "give " + section +
                       ".key=NAME, a key of the file of `kernelmill serve --policy-keys FILE`"
                 : "leave it out; the operator of the server sets it");
}

/// Walks as the loader does, which joins names with dots.
expected<void> check_order(const order_document& x, const std::string& prefix) {
  for (const auto& [name, value] : x.items()) {
    auto key = prefix.empty() ? name : prefix + "." + name;
    if (const auto* known = find_config_key(key)) {
      bool names_file = key == "evaluation.baseline" && value.is_string() &&
                        !is_baseline_word(value.get<std::string>());
      if (names_file || (known->of_machine && nlohmann::json(value) != known->default_value()))
        return not_in_orders(key);
    } else if (value.is_object()) {
      KM_TRY(check_order(value, key));
    } else if (is_key_of_server(key) && !value.is_string()) {
      return configuration_error("bad_request", "the field \"" + key + "\" must be a text");
    }
  }
  return {};
}

/// "/retrieval/embedder" of "retrieval.embedder".
order_document::json_pointer place_of(std::string section) {
  for (auto& c : section)
    if (c == '.') c = '/';
  return order_document::json_pointer{"/" + section};
}

} // namespace

expected<order_document> own_config(const std::string& config) {
  auto x = order_document::parse(config, nullptr, false);
  if (x.is_object()) return x;
  return configuration_error("bad_request", "the configuration of an order must be an object");
}

expected<order_document> order_config(const std::string& config, const policy_keys& keys) {
  auto own = own_config(config);
  KM_TRY(own);
  auto& x = *own;
  KM_TRY(check_order(x, {}));
  for (const char* section : asked_servers) {
    auto at = place_of(section);
    if (!x.contains(at) || !x[at].is_object() || !x[at].contains("key")) continue;
    auto& server = x[at];
    auto entry = keys.find(text_in(server, "key"), text_in(server, "base_url"));
    KM_TRY(entry);
    server.erase("key");
    server["base_url"] = entry->base_url;
    server["api_key_env"] = entry->api_key_env;
    server["api_key_file"] = entry->api_key_file;
  }
  return own;
}

expected<void> check_stored_keys(const std::string& config, const policy_keys& keys) {
  auto x = order_document::parse(config, nullptr, false);
  if (!x.is_object()) return {};
  for (const char* section : asked_servers) {
    auto at = place_of(section);
    if (!x.contains(at) || !x[at].is_object()) continue;
    KM_TRY(keys.check(text_in(x[at], "api_key_env"), text_in(x[at], "api_key_file"),
                      text_in(x[at], "base_url")));
  }
  return {};
}

} // namespace kernelmill::rollouts
