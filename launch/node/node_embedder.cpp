#include "launch/node/node_embedder.hpp"

#include <future>

#include "actors/policy_client/http/http_client.hpp"
#include "retrieval/search/hashed_lexical_embedder.hpp"
#include "retrieval/search/http_embedder.hpp"

namespace kernelmill {

namespace {

// By the client that asks policy servers, too. It blocks: the caller embeds on a thread of its own.
embedder_answer ask(http_client& client, const embedder_question& question) {
  http_request request;
  request.url = question.url;
  request.headers = {{"Content-Type", "application/json"}};
  if (auto key = question.key; !key.empty()) request.bearer = std::make_shared<const secret>(key);
  request.body = question.body;
  request.body_limit = question.most_bytes;
  request.timeout_ms = question.timeout_ms;
  auto answered = std::make_shared<std::promise<http_response>>();
  auto answer = answered->get_future();
  client.submit(std::move(request),
                [answered](http_response x) { answered->set_value(std::move(x)); });
  auto x = answer.get();
  if (x.fault == transport_fault::none) return {x.status, std::move(x.body), {}};
  auto cause = x.detail.empty() ? std::string{to_string(x.fault)} : std::move(x.detail);
  return {0, {}, std::move(cause)};
}

} // namespace

expected<std::shared_ptr<embedder>> make_embedder(const embedder_section& config) {
  if (config.kind == "hashed")
    return std::make_shared<hashed_lexical_embedder>(
        config.dimension > 0 ? config.dimension : default_lexical_dimension);
  http_embedder_options options;
  options.base_url = config.base_url;
  options.model = config.model;
  options.api_key_env = config.api_key_env;
  options.api_key_file = config.api_key_file;
  options.dimension = config.dimension;
  options.timeout_ms = config.timeout_ms;
  auto client = http_client::start();
  KM_TRY(client);
  auto made = make_http_embedder(std::move(options),
                                 [client = std::shared_ptr<http_client>{std::move(*client)}](
                                     const embedder_question& x) { return ask(*client, x); });
  KM_TRY(made);
  return std::shared_ptr<embedder>{std::move(*made)};
}

} // namespace kernelmill
