#include <cstdlib>
#include <future>

#include <gtest/gtest.h>

#include "actors/policy_client/http/http_client.hpp"
#include "launch/server/scripted/scripted_server.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace scripted_server_test {

using nlohmann::json;

policy_script script_of(const std::string& text) {
  auto x = parse_policy_script(text, "test", "/");
  if (!x) ADD_FAILURE() << render(x.error());
  return *x;
}

http_response ask(http_client& client, bool post, const std::string& url, const std::string& body) {
  http_request request;
  request.post = post;
  request.url = url;
  request.body = body;
  request.headers = {{"Content-Type", "application/json"}};
  std::promise<http_response> promise;
  client.submit(std::move(request), [&](http_response x) { promise.set_value(std::move(x)); });
  return promise.get_future().get();
}

const std::string chat = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";

TEST(scripted_server, speaks_like_an_openai_server) {
  auto server = scripted_server::start(script_of(R"({"model":"m","replies":[{"text":"hello"}]})"),
                                       "127.0.0.1", 0);
  ASSERT_TRUE(server) << render(server.error());
  auto client = std::move(*http_client::start());
  auto base = (*server)->base_url();
  auto root = base.substr(0, base.size() - 3);
  auto models = ask(*client, false, base + "/models", "");
  EXPECT_EQ(json::parse(models.body)["data"][0]["id"], "m");
  EXPECT_EQ(ask(*client, false, root + "/health", "").status, 200);
  auto answer = ask(*client, true, base + "/chat/completions", chat);
  EXPECT_EQ(answer.header("content-type"), "application/json");
  EXPECT_EQ(json::parse(answer.body)["choices"][0]["message"]["content"], "hello");
  auto metrics = ask(*client, false, root + "/metrics", "");
  EXPECT_NE(metrics.body.find("scripted_requests_total 1\n"), std::string::npos) << metrics.body;
  EXPECT_EQ((*server)->requests(), 1u);
}

TEST(scripted_server, refuses_what_it_does_not_know) {
  auto server = std::move(*scripted_server::start(
      script_of(R"({"model":"m","replies":[{"task":"t","text":"hello"}]})"), "127.0.0.1", 0));
  auto client = std::move(*http_client::start());
  auto base = server->base_url();
  EXPECT_EQ(ask(*client, false, base + "/other", "").status, 404);
  EXPECT_EQ(ask(*client, false, base + "/chat/completions", "").status, 405);
  EXPECT_EQ(ask(*client, true, base + "/chat/completions", "no json").status, 400);
  EXPECT_EQ(ask(*client, true, base + "/chat/completions",
                R"({"model":"other","messages":[{"role":"user","content":"hi"}]})")
                .status,
            404);
  auto unscripted = ask(*client, true, base + "/chat/completions", chat);
  EXPECT_EQ(unscripted.status, 400);
  EXPECT_EQ(json::parse(unscripted.body)["error"]["code"], "no_scripted_reply");
}

TEST(scripted_server, a_port_that_is_taken_is_a_configuration_error) {
  auto script = script_of(R"({"replies":[{"text":"x"}]})");
  auto first = std::move(*scripted_server::start(script, "127.0.0.1", 0));
  auto second = scripted_server::start(script, "127.0.0.1", first->port());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().cls, fault_class::configuration);
  EXPECT_NE(second.error().message.find(std::to_string(first->port())), std::string::npos);
}

TEST(scripted_server, a_required_key_that_is_not_set_is_a_configuration_error) {
  auto script =
      script_of(R"({"require_key_env":"KERNELMILL_NO_SUCH_KEY","replies":[{"text":"x"}]})");
  auto server = scripted_server::start(script, "127.0.0.1", 0);
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("KERNELMILL_NO_SUCH_KEY"), std::string::npos);
}

TEST(scripted_server, stops_while_requests_hang) {
  auto server = std::move(*scripted_server::start(
      script_of(R"({"model":"m","replies":[{"text":"x"}],"faults":[{"kind":"stall"}]})"),
      "127.0.0.1", 0));
  auto client = std::move(*http_client::start());
  std::promise<http_response> promise;
  std::promise<void> arrived;
  http_request request;
  request.url = server->base_url() + "/chat/completions";
  request.body = chat;
  client->submit(std::move(request), [&](http_response x) { promise.set_value(std::move(x)); });
  while (server->requests() == 0) std::this_thread::yield();
  server.reset();
  EXPECT_EQ(promise.get_future().get().fault, transport_fault::reset);
}

struct running_engine {
  explicit running_engine(const std::string& kind, double latency_ms) {
    auto script = script_of(R"({"model":"m","replies":[{"text":"one two three"}],
                                "versions":[{"version":"a"}],"kind":")" +
                            kind + R"(","latency":{"ms":)" + std::to_string(latency_ms) + "}}");
    server = std::move(*scripted_server::start(script, "127.0.0.1", 0));
    client = std::move(*http_client::start());
    auto base = server->base_url();
    root = base.substr(0, base.size() - 3);
  }

  std::future<http_response> begin(const std::string& path, const json& body) {
    http_request request;
    request.url = root + path;
    request.body = body.dump();
    auto promise = std::make_shared<std::promise<http_response>>();
    auto result = promise->get_future();
    client->submit(std::move(request), [promise](http_response x) { promise->set_value(x); });
    return result;
  }

  void wait_for_request() {
    while (server->requests() == 0) std::this_thread::yield();
  }

  std::unique_ptr<scripted_server> server;
  std::unique_ptr<http_client> client;
  std::string root;
};

const std::vector<int32_t> prompt_ids = {65, 66};

TEST(scripted_server, weights_that_change_within_a_completion_show_in_its_spans) {
  // Long enough that the other request comes within it, also where others have the machine.
  running_engine x{"vllm", 5000};
  auto answer = x.begin("/inference/v1/generate", {{"token_ids", prompt_ids}});
  x.wait_for_request();
  auto set = ask(*x.client, true, x.root + "/update_weight_version", R"({"new_version":"b"})");
  EXPECT_EQ(set.status, 200);
  auto choice = json::parse(answer.get().body)["choices"][0];
  auto count = choice["token_ids"].size();
  ASSERT_EQ(choice["weight_versions"].size(), 2u) << choice;
  EXPECT_EQ(choice["weight_versions"][0]["version"], "a");
  EXPECT_EQ(choice["weight_versions"][1],
            (json{{"version", "b"}, {"start", count / 2}, {"end", count}}));
}

TEST(scripted_server, a_request_can_be_aborted_by_its_id) {
  running_engine x{"sglang", 60000};
  auto answer = x.begin("/generate", {{"input_ids", prompt_ids}, {"rid", "mine"}});
  x.wait_for_request();
  EXPECT_EQ(ask(*x.client, true, x.root + "/abort_request", R"({"rid":"other"})").status, 200);
  EXPECT_EQ(ask(*x.client, true, x.root + "/abort_request", R"({"rid":"mine"})").status, 200);
  auto body = json::parse(answer.get().body);
  EXPECT_EQ(body["meta_info"]["finish_reason"]["type"], "abort");
}

TEST(scripted_server, metrics_have_the_names_of_the_kind) {
  running_engine x{"vllm", 0};
  auto metrics = ask(*x.client, false, x.root + "/metrics", "").body;
  EXPECT_NE(metrics.find("vllm:num_requests_running 0"), std::string::npos) << metrics;
}

TEST(scripted_server, llama_completes_ids_and_texts_alike) {
  running_engine x{"llamacpp", 0};
  auto by_text =
      ask(*x.client, true, x.root + "/completion", R"({"prompt":"AB","n_predict":9,"n_probs":1})");
  auto body = json::parse(by_text.body);
  EXPECT_EQ(body["content"], "one two three");
  EXPECT_EQ(body["stop_type"], "eos");
  EXPECT_EQ(body["completion_probabilities"].size(), body["tokens"].size());
  auto by_ids = ask(*x.client, true, x.root + "/completion",
                    json{{"prompt", prompt_ids}, {"n_predict", 2}}.dump());
  EXPECT_EQ(json::parse(by_ids.body)["stop_type"], "limit");
}

} // namespace scripted_server_test
} // namespace kernelmill
