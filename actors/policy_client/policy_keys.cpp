#include "actors/policy_client/policy_keys.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>

#include <curl/curl.h>

#include "actors/plain_name.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

using key_json = nlohmann::json;
using curl_address = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

constexpr auto operators_step = "the operator lists keys in the file of `kernelmill serve "
                                "--policy-keys FILE`: name, base_url, and api_key_env or "
                                "api_key_file";

/// What decides which server gets a request, as the transport reads it.
struct plain_address {
  std::string scheme, host, port, path;
};

std::optional<plain_address> read_address(const std::string& url) {
  // Servers do not agree on what these mean within a path.
  auto after_scheme = url.find("://");
  if (after_scheme == std::string::npos) return std::nullopt;
  if (url.find_first_of("%\\@?#", after_scheme) != std::string::npos) return std::nullopt;
  curl_address parts{curl_url(), curl_url_cleanup};
  if (curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return std::nullopt;
  auto piece = [&](CURLUPart which, unsigned flags = 0) {
    char* text = nullptr;
    if (curl_url_get(parts.get(), which, &text, flags) != CURLUE_OK) return std::string{};
    std::string result{text};
    curl_free(text);
    return result;
  };
  plain_address result{piece(CURLUPART_SCHEME), piece(CURLUPART_HOST),
                       piece(CURLUPART_PORT, CURLU_DEFAULT_PORT), piece(CURLUPART_PATH)};
  for (auto* text : {&result.scheme, &result.host}) *text = lowered(*text);
  while (result.path.ends_with('/')) result.path.pop_back();
  if (result.host.empty() || (result.scheme != "http" && result.scheme != "https"))
    return std::nullopt;
  return result;
}

tl::unexpected<error> key_refused(std::string message, std::string hint) {
  return configuration_error("policy_key_refused", "failed to use a key: " + std::move(message),
                             std::move(hint));
}

tl::unexpected<error> bad_list(const std::string& path, const std::string& cause) {
  return configuration_error(
      "bad_policy_keys", "failed to use " + path + ": " + cause,
      R"(write {"keys": [{"name": "lab", "base_url": "https://lab.example/v1", "api_key_env": )"
      R"("LAB_KEY"}]})");
}

expected<policy_key> entry_of(const std::string& path, const key_json& x) {
  static const std::set<std::string> known{"name", "base_url", "api_key_env", "api_key_file"};
  if (!x.is_object()) return bad_list(path, "a key must be an object");
  for (const auto& [key, value] : x.items()) {
    if (!known.contains(key)) return bad_list(path, "unknown key \"" + key + "\"");
    if (!value.is_string()) return bad_list(path, "\"" + key + "\" must be a text");
  }
  policy_key result{x.value("name", ""), x.value("base_url", ""), x.value("api_key_env", ""),
                    x.value("api_key_file", "")};
  if (!is_label(result.name))
    return bad_list(path, "a name must be letters, digits, '.', '_' and '-'");
  if (!read_address(result.base_url))
    return bad_list(path, "base_url of " + result.name +
                              " must be an address such as https://lab.example/v1, without a user, "
                              "a query or a '%'");
  if (result.api_key_env.empty() == result.api_key_file.empty())
    return bad_list(path, result.name + " must have one of api_key_env and api_key_file");
  KM_TRY(load_secret(result.api_key_env, result.api_key_file));
  return result;
}

} // namespace

bool is_below_address(const std::string& entry, const std::string& url) {
  auto top = read_address(entry), at = read_address(url);
  if (!top || !at) return false;
  if (top->scheme != at->scheme || top->host != at->host || top->port != at->port) return false;
  if (at->path.empty()) at->path = "/v1"; // as endpoint() has it
  return top->path.empty() || at->path == top->path || at->path.starts_with(top->path + "/");
}

std::string policy_keys::names() const {
  std::vector<std::string> result;
  for (const auto& x : all_) result.push_back(x.name);
  return joined(result);
}

expected<policy_key> policy_keys::find(const std::string& name, const std::string& base_url) const {
  auto i = std::find_if(all_.begin(), all_.end(), [&](const auto& x) { return x.name == name; });
  if (i == all_.end())
    return key_refused("this server has none of the name \"" + name + "\"",
                       all_.empty() ? operators_step : "it has " + names());
  auto result = *i;
  if (!base_url.empty() && !is_below_address(i->base_url, base_url))
    return key_refused("\"" + name + "\" is for " + i->base_url + ", and base_url is not below it",
                       "use that address, or the name of another key");
  if (!base_url.empty()) result.base_url = base_url;
  return result;
}

expected<void> policy_keys::check(const std::string& environment_variable, const std::string& file,
                                  const std::string& base_url) const {
  if (environment_variable.empty() && file.empty()) return {};
  for (const auto& x : all_)
    if (x.api_key_env == environment_variable && x.api_key_file == file &&
        is_below_address(x.base_url, base_url))
      return {};
  return key_refused("policy." + std::string{file.empty() ? "api_key_env" : "api_key_file"} +
                         " is of no key that may go to base_url",
                     operators_step);
}

expected<policy_keys> load_policy_keys(const std::string& path) {
  std::ifstream from{path, std::ios::binary};
  if (!from) return bad_list(path, std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>{from}, {}};
  auto x = key_json::parse(text, nullptr, false);
  if (!x.is_object() || x.size() != 1 || !x.contains("keys") || !x["keys"].is_array() ||
      x["keys"].empty())
    return bad_list(path, "it must be an object with a list of \"keys\" alone");
  std::vector<policy_key> all;
  for (const auto& one : x["keys"]) {
    auto entry = entry_of(path, one);
    KM_TRY(entry);
    for (const auto& other : all)
      if (other.name == entry->name)
        return bad_list(path, "the key " + entry->name + " is there twice");
    all.push_back(std::move(*entry));
  }
  return policy_keys{std::move(all)};
}

expected<named_server> read_named_server(const key_json& x, const policy_keys& keys) {
  named_server result;
  auto kind = parse_server_kind(text_in(x, "kind"));
  if (!kind)
    return configuration_error("bad_request", "the kind of a server must be vllm, sglang, llamacpp "
                                              "or openai, not \"" +
                                                  text_in(x, "kind") + "\"");
  result.config.kind = *kind;
  result.config.base_url = text_in(x, "base_url");
  result.config.ca_file = text_in(x, "ca_file");
  policy_key source{{}, {}, text_in(x, "api_key_env"), text_in(x, "api_key_file")};
  auto own = text_in(x, "api_key");
  if (auto name = text_in(x, "key"); !name.empty()) {
    if (!own.empty())
      return key_refused("both api_key and key are given", "give your own key or a name, not both");
    auto entry = keys.find(name, result.config.base_url);
    KM_TRY(entry);
    source = *entry;
    result.config.base_url = entry->base_url;
  }
  result.config.model = "any"; // the caller may name one
  if (auto ok = validate(result.config); !ok)
    return configuration_error("bad_request", "the field \"base_url\": " + ok.error().message,
                               ok.error().hint);
  if (!own.empty()) {
    result.key = std::make_shared<const secret>(own);
    return result;
  }
  KM_TRY(keys.check(source.api_key_env, source.api_key_file, result.config.base_url));
  auto key = load_secret(source.api_key_env, source.api_key_file);
  KM_TRY(key);
  result.key = *key;
  return result;
}

} // namespace kernelmill
