#include "actors/policy_client/policy_config.hpp"

#include <curl/curl.h>
#include <unistd.h>

#include "actors/policy_client/protocol/token_protocol.hpp"

namespace kernelmill {

namespace {

using url_parts = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

tl::unexpected<error> bad(const std::string& key, const std::string& cause, std::string hint) {
  return configuration_error("bad_configuration", "failed to use policy." + key + ": " + cause,
                             std::move(hint));
}

std::string part(CURLU* parts, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(parts, which, &text, 0) != CURLUE_OK) return {};
  std::string result{text};
  curl_free(text);
  return result;
}

expected<void> check_url(const policy_config& config) {
  constexpr auto example = "write e.g. \"http://127.0.0.1:8000/v1\"";
  url_parts parts{curl_url(), curl_url_cleanup};
  auto status = curl_url_set(parts.get(), CURLUPART_URL, config.base_url.c_str(), 0);
  // The text of an address with a password in it must not be repeated.
  if (!part(parts.get(), CURLUPART_PASSWORD).empty() || !part(parts.get(), CURLUPART_USER).empty())
    return bad("base_url", "it holds a user or a password",
               "put the key into an environment variable and name it in policy.api_key_env");
  if (status != CURLUE_OK)
    return bad("base_url", std::string{"it is not an address: "} + curl_url_strerror(status),
               example);
  auto scheme = part(parts.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https")
    return bad("base_url", "\"" + scheme + "\" is neither http nor https", example);
  if (!part(parts.get(), CURLUPART_QUERY).empty() || !part(parts.get(), CURLUPART_FRAGMENT).empty())
    return bad("base_url", "it holds a query or a fragment", example);
  return {};
}

struct bounds {
  const char* key;
  uint64_t value;
  uint64_t low;
  uint64_t high;
};

expected<void> check_numbers(const policy_config& x) {
  constexpr uint64_t day_ms = 86'400'000;
  for (const auto& b : {
           bounds{"max_in_flight", x.max_in_flight, 1, 65536},
           bounds{"timeout_ms", x.request_timeout_ms, 1, day_ms},
           bounds{"connect_timeout_ms", x.connect_timeout_ms, 1, 600'000},
           bounds{"stall_ms", x.stall_ms, 0, day_ms},
           bounds{"first_contact_ms", x.first_contact_ms, 0, day_ms},
           bounds{"max_response_bytes", x.max_response_bytes, 1024, uint64_t{128} << 20},
           bounds{"keep_alive_s", x.keep_alive_s, 1, 3600},
       })
    if (b.value < b.low || b.value > b.high)
      return bad(b.key, std::to_string(b.value) + " is out of range",
                 "choose " + std::to_string(b.low) + " to " + std::to_string(b.high));
  return {};
}

} // namespace

expected<void> validate(const policy_config& config) {
  if (config.base_url.empty())
    return bad("base_url", "it is missing", "write e.g. \"http://127.0.0.1:8000/v1\"");
  if (auto checked = check_url(config); !checked) return checked;
  if (auto checked = check_numbers(config); !checked) return checked;
  if (config.model.empty())
    return bad("model", "it is missing", "GET /v1/models of the server lists what it serves");
  if (config.max_tokens_field.empty())
    return bad("max_tokens_field", "it is empty", "use max_tokens or max_completion_tokens");
  if (config.exact_tokens && !takes_token_ids(config.kind))
    return bad("tokens",
               "servers of kind " + std::string{to_string(config.kind)} + " take no token ids",
               "use policy.kind vllm, sglang or llamacpp, or policy.tokens chat");
  if (config.exact_tokens && config.stream)
    return bad("stream", "completions in token ids are not streamed",
               "leave policy.stream out, or use policy.tokens chat");
  if (!config.api_key_env.empty() && !config.api_key_file.empty())
    return bad("api_key_file", "policy.api_key_env is set too", "keep one of the two");
  if (!config.ca_file.empty() && ::access(config.ca_file.c_str(), R_OK) != 0)
    return bad("ca_file", "the file " + config.ca_file + " cannot be read", "check its path");
  auto key = load_secret(config.api_key_env, config.api_key_file);
  KM_TRY(key);
  return {};
}

std::string endpoint(const policy_config& config, std::string_view path) {
  auto base = config.base_url;
  while (!base.empty() && base.back() == '/') base.pop_back();
  auto host = base.find("://");
  auto has_path = base.find('/', host == std::string::npos ? 0 : host + 3) != std::string::npos;
  return base + (has_path ? "/" : "/v1/") + std::string{path};
}

std::string root_endpoint(const policy_config& config, std::string_view path) {
  auto base = config.base_url;
  while (base.ends_with('/')) base.pop_back();
  if (base.ends_with("/v1")) base.resize(base.size() - 3);
  return base + "/" + std::string{path};
}

} // namespace kernelmill
