#include <cstdlib>
#include <future>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/policy_client/http_client.hpp"
#include "actors/policy_client/scripted_server.hpp"

using namespace kernelmill;
using nlohmann::json;

namespace {

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

} // namespace

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
