#include "launch/server/rollouts/weight_loading.hpp"

#include <future>
#include <optional>

#include "actors/policy_client/http/http_client.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::rollouts {

namespace {

using handoff::loaded_server;
using handoff::weights_wish;
using weights_json = nlohmann::json;

constexpr uint32_t loading_ms = 30 * 60 * 1000; ///< hundreds of gigabytes from a slow disk
constexpr uint32_t asking_ms = 60 * 1000;
constexpr size_t most_servers = 256;

class weight_loader {
public:
  weight_loader(http_transport& transport, const policy_config& server, secret_ptr key,
                const weights_wish& wish)
      : transport_(transport), server_(server), key_(std::move(key)), wish_(wish) {}

  expected<std::string> load() {
    switch (server_.kind) {
      case server_kind::vllm: return wish_.adapter.empty() ? vllm_weights() : vllm_adapter();
      case server_kind::sglang: return wish_.adapter.empty() ? sglang_weights() : sglang_adapter();
      case server_kind::openai:
      case server_kind::llamacpp: break;
    }
    return refused("servers of kind " + std::string{to_string(server_.kind)} +
                       " load weights at their start only",
                   "restart it with the new weights, and declare the version without `path`");
  }

private:
  expected<std::string> vllm_weights();
  expected<std::string> vllm_adapter();
  expected<std::string> sglang_weights();
  expected<std::string> sglang_adapter();
  expected<void> vllm_reload();

  tl::unexpected<error> refused(const std::string& why, std::string hint) const {
    return configuration_error("weights_refused", server_.base_url + ": " + why, std::move(hint));
  }

  http_response send(const char* path, const weights_json* body, uint32_t timeout_ms) {
    http_request request;
    request.post = body != nullptr;
    request.url = root_endpoint(server_, path);
    if (body != nullptr) {
      request.body = body->dump(-1, ' ', false, weights_json::error_handler_t::replace);
      request.headers = {{"Content-Type", "application/json"}};
    }
    request.bearer = key_;
    request.timeout_ms = timeout_ms;
    std::promise<http_response> promise;
    auto answer = promise.get_future();
    transport_.submit(std::move(request),
                      [&promise](http_response x) { promise.set_value(std::move(x)); });
    return answer.get();
  }
  http_response post(const char* path, const weights_json& body, uint32_t timeout_ms = asking_ms) {
    return send(path, &body, timeout_ms);
  }

  static bool good(const http_response& x) {
    return x.fault == transport_fault::none && x.status >= 200 && x.status <= 299;
  }
  static bool has_no_route(const http_response& x) {
    return x.fault == transport_fault::none && (x.status == 404 || x.status == 405);
  }

  std::string said(const http_response& x) const {
    auto why = parse_error_body(x.body);
    auto text = why.message.empty() ? std::string{} : ": " + why.message;
    return key_ ? key_->redact(std::move(text)) : text;
  }

  /// What went wrong with a request that must succeed.
  error fault_of(const http_response& x, const char* path, const std::string& hint) const {
    auto where = server_.base_url + ": /" + path;
    if (x.fault != transport_fault::none)
      return {fault_class::infrastructure, "weights_not_loaded", where + ": " + x.detail,
              "is the server up? Ask again: it loads them again"};
    auto text = where + " answered " + std::to_string(x.status) + said(x);
    if (x.status >= 500 || x.status == 429 || x.status == 408)
      return {fault_class::infrastructure, "weights_not_loaded", text, hint};
    return {fault_class::configuration, "weights_refused", text, hint};
  }

  expected<void> must(const http_response& x, const char* path, const std::string& hint) const {
    if (!good(x)) return tl::unexpected<error>{fault_of(x, path, hint)};
    // SGLang says so within a 200, too.
    auto answer = weights_json::parse(x.body, nullptr, false);
    if (!answer.is_object() || !answer.contains("success") || answer["success"] != false) return {};
    std::string why;
    for (const char* key : {"message", "error_message"})
      if (answer.contains(key) && answer[key].is_string()) why = answer[key].get<std::string>();
    if (key_) why = key_->redact(std::move(why));
    return refused("/" + std::string{path} + ": " + parse_error_body(why).message, hint);
  }

  http_transport& transport_;
  const policy_config& server_;
  secret_ptr key_;
  const weights_wish& wish_;
};

// -- vLLM ---------------------------------------------------------------------------------------

expected<void> weight_loader::vllm_reload() {
  constexpr auto dev_mode = "vLLM has this route with VLLM_SERVER_DEV_MODE=1 in its environment";
  auto x = post("collective_rpc",
                {{"method", "reload_weights"},
                 {"kwargs", {{"weights_path", wish_.path}}},
                 {"timeout", loading_ms / 1000}},
                loading_ms);
  if (!has_no_route(x))
    return must(x, "collective_rpc",
                "can the server read " + wish_.path +
                    "? Does its vLLM know reload_weights(weights_path=...)?");
  // prime-rl's vLLM has a route of its own.
  auto y = post("update_weights", {{"weight_dir", wish_.path}}, loading_ms);
  if (has_no_route(y)) return tl::unexpected<error>{fault_of(x, "collective_rpc", dev_mode)};
  return must(y, "update_weights", dev_mode);
}

// Requests in flight wait and go on with the new weights. Whatever happens, the server goes on.
expected<std::string> weight_loader::vllm_weights() {
  auto held = post("pause?mode=keep&clear_cache=false", weights_json::object());
  auto loaded = vllm_reload();
  std::string told;
  if (loaded) {
    post("reset_prefix_cache", weights_json::object()); // its keys and values are of the old ones
    if (good(post("update_weight_version", {{"new_version", wish_.version}}))) told = wish_.version;
  }
  if (good(held))
    if (auto x = post("resume", weights_json::object()); !good(x) && loaded)
      return tl::unexpected<error>{fault_of(x, "resume", "the server is paused: resume it")};
  KM_TRY(loaded);
  return told;
}

expected<std::string> weight_loader::vllm_adapter() {
  constexpr auto hint = "vLLM takes adapters with --enable-lora and, in its environment, "
                        "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True";
  weights_json body{
      {"lora_name", wish_.adapter}, {"lora_path", wish_.path}, {"load_inplace", true}};
  auto x = post("v1/load_lora_adapter", body, loading_ms);
  if (x.status == 400 && x.body.find("already") != std::string::npos) { // older: not in place
    post("v1/unload_lora_adapter", {{"lora_name", wish_.adapter}});
    x = post("v1/load_lora_adapter", body, loading_ms);
  }
  KM_TRY(must(x, "v1/load_lora_adapter", hint));
  post("reset_prefix_cache", weights_json::object());
  auto told = good(post("update_weight_version", {{"new_version", wish_.version}}));
  return told ? wish_.version : std::string{};
}

// -- SGLang -------------------------------------------------------------------------------------

expected<std::string> weight_loader::sglang_weights() {
  auto x = post("update_weights_from_disk",
                {{"model_path", wish_.path},
                 {"weight_version", wish_.version},
                 {"abort_all_requests", false},
                 {"flush_cache", true}},
                loading_ms);
  KM_TRY(must(x, "update_weights_from_disk", "can the server read " + wish_.path + "?"));
  for (const char* path : {"get_model_info", "model_info"}) {
    auto now = weights_json::parse(send(path, nullptr, asking_ms).body, nullptr, false);
    if (now.is_object() && now.value("weight_version", weights_json{}) == wish_.version)
      return wish_.version;
  }
  // Older ones take the version only here; requests in flight must not end for it.
  auto y = post("update_weight_version",
                {{"new_version", wish_.version}, {"abort_all_requests", false}});
  return good(y) ? wish_.version : std::string{};
}

expected<std::string> weight_loader::sglang_adapter() {
  post("unload_lora_adapter", {{"lora_name", wish_.adapter}});
  auto x = post("load_lora_adapter", {{"lora_name", wish_.adapter}, {"lora_path", wish_.path}},
                loading_ms);
  KM_TRY(must(x, "load_lora_adapter", "SGLang takes adapters with --enable-lora"));
  auto y = post("update_weight_version",
                {{"new_version", wish_.version}, {"abort_all_requests", false}});
  return good(y) ? wish_.version : std::string{};
}

// -- many ---------------------------------------------------------------------------------------

expected<loaded_server> load_one(const named_server& server, const weights_wish& x) {
  auto client = http_client::start({server.config.keep_alive_s, 2, server.config.ca_file});
  KM_TRY(client);
  return load_weights_at(**client, server.config, server.key, x);
}

} // namespace

expected<loaded_server> load_weights_at(http_transport& transport, const policy_config& server,
                                        const secret_ptr& key, const weights_wish& wish) {
  auto told = weight_loader{transport, server, key, wish}.load();
  KM_TRY(told);
  return loaded_server{server.base_url, std::string{to_string(server.kind)}, *told};
}

expected<std::vector<loaded_server>> load_weights_at_all(const weights_wish& x,
                                                         const policy_keys& keys) {
  if (x.servers.size() > most_servers)
    return configuration_error("bad_request",
                               "at most " + std::to_string(most_servers) + " servers are asked");
  std::vector<named_server> servers;
  for (const auto& policy : x.servers) {
    auto one = read_named_server(weights_json::parse(policy, nullptr, false), keys);
    KM_TRY(one);
    servers.push_back(std::move(*one));
  }
  std::vector<std::future<expected<loaded_server>>> loading;
  for (const auto& one : servers)
    loading.push_back(std::async(std::launch::async, [&one, &x] { return load_one(one, x); }));
  std::vector<loaded_server> result;
  std::optional<error> fault;
  for (auto& one : loading) {
    auto done = one.get();
    if (done) {
      result.push_back(std::move(*done));
    } else if (!fault) {
      fault = done.error();
    } else {
      fault->message += "; " + done.error().message;
    }
  }
  if (!fault) return result;
  fault->message = "failed to load " + x.version + " at " +
                   std::to_string(servers.size() - result.size()) + " of " +
                   std::to_string(servers.size()) + " servers: " + fault->message;
  return tl::unexpected<error>{*fault};
}

} // namespace kernelmill::rollouts
