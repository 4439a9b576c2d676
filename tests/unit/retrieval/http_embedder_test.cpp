#include "messages/base/json_value.hpp"
#include "retrieval/search/http_embedder.hpp"

#include <cmath>
#include <cstdlib>
#include <future>

#include <gmock/gmock.h>

#include "actors/policy_client/http/http_client.hpp"
#include "tests/unit/retrieval/test_support.hpp"
#include "tests/unit/retrieval/tiny_http_server.hpp"

namespace kernelmill {

using nlohmann::json;
using test::failure;
using test::tiny_http_server;
using ::testing::HasSubstr;
using ::testing::Not;

namespace http_embedder_test {

http_embedder_options options_for(const tiny_http_server& server) {
  ::setenv("no_proxy", "127.0.0.1", 1);
  http_embedder_options x;
  x.base_url = server.url();
  x.model = "test-embedder";
  x.attempts = 1;
  x.timeout_ms = 10000;
  return x;
}

embedder_answer post(const embedder_question& question) {
  static auto client = http_client::start().value();
  http_request request;
  request.url = question.url;
  if (auto key = question.key; !key.empty()) request.bearer = std::make_shared<const secret>(key);
  request.body = question.body;
  request.body_limit = question.most_bytes;
  request.timeout_ms = question.timeout_ms;
  auto answered = std::make_shared<std::promise<http_response>>();
  auto answer = answered->get_future();
  client->submit(std::move(request),
                 [answered](http_response x) { answered->set_value(std::move(x)); });
  auto x = answer.get();
  return {x.fault == transport_fault::none ? x.status : 0, x.body, x.detail};
}

std::unique_ptr<embedder> make(const http_embedder_options& x) {
  auto made = make_http_embedder(x, post);
  if (!made) throw std::runtime_error(failure(made));
  return std::move(*made);
}

/// Answers each text with (length, 4), in reverse order, so that only `index` tells which is which.
std::string lengths_reversed(const std::string& question) {
  auto data = json::array();
  const auto input = json::parse(question).at("input");
  for (size_t i = input.size(); i-- > 0;)
    data.push_back({{"index", i}, {"embedding", {input[i].get<std::string>().size(), 4}}});
  return json{{"object", "list"}, {"data", data}}.dump();
}

std::string parse_failure(const std::string& body, size_t count = 1, size_t dimension = 2) {
  return failure(parse_embeddings(body, count, dimension));
}

TEST(HttpEmbedder, RowsComeBackInTheOrderOfTheTextsOverSeveralBatches) {
  tiny_http_server server{[](const std::string& head, const std::string& body) {
    if (head.rfind("POST /v1/embeddings ", 0) != 0) return test::http_response(404, "{}");
    return test::http_response(200, lengths_reversed(body));
  }};
  auto options = options_for(server);
  options.batch = 2;
  auto x = make(options);
  EXPECT_EQ(x->dimension(), 0U);
  auto rows = x->embed({"abc", "", "abc"});
  ASSERT_TRUE(rows) << failure(rows);
  EXPECT_EQ(x->dimension(), 2U);
  ASSERT_EQ(rows->size(), 6U);
  EXPECT_NEAR((*rows)[0], 0.6, 1e-6);
  EXPECT_NEAR((*rows)[1], 0.8, 1e-6);
  EXPECT_NEAR((*rows)[2], 0.0, 1e-6);
  EXPECT_NEAR((*rows)[3], 1.0, 1e-6);
  EXPECT_NEAR((*rows)[4], 0.6, 1e-6);
  EXPECT_EQ(server.requests(), 2);
}

TEST(HttpEmbedder, Base64OfLittleEndianFloatsIsUnderstood) {
  tiny_http_server server{[](const std::string&, const std::string& body) {
    EXPECT_EQ(json::parse(body).at("encoding_format"), "base64");
    // 3.0f, 4.0f
    return test::http_response(200, R"({"data":[{"index":0,"embedding":"AABAQAAAgEA="}]})");
  }};
  auto options = options_for(server);
  options.base64 = true;
  options.base_url += "/v1/";
  auto rows = make(options)->embed({"x"});
  ASSERT_TRUE(rows) << failure(rows);
  EXPECT_NEAR(rows->at(0), 0.6, 1e-6);
  EXPECT_NEAR(rows->at(1), 0.8, 1e-6);
}

TEST(HttpEmbedder, TheKeyIsSentButNeverShown) {
  const std::string key = "sk-very-secret-0123456789";
  ::setenv("KERNELMILL_TEST_EMBEDDER_KEY", key.c_str(), 1);
  tiny_http_server server{[&](const std::string& head, const std::string&) {
    EXPECT_THAT(head, HasSubstr("Authorization: Bearer " + key));
    return test::http_response(401, R"({"error":{"message":"bad key )" + key + R"("}})");
  }};
  auto options = options_for(server);
  options.api_key_env = "KERNELMILL_TEST_EMBEDDER_KEY";
  auto x = make(options);
  auto text = failure(x->embed({"x"}));
  EXPECT_THAT(text, HasSubstr("answered 401: bad key [key]"));
  EXPECT_THAT(text, Not(HasSubstr(key)));
  EXPECT_THAT(x->identity(), Not(HasSubstr(key)));
  ::unsetenv("KERNELMILL_TEST_EMBEDDER_KEY");
  EXPECT_THAT(failure(make_http_embedder(options, post)),
              HasSubstr("KERNELMILL_TEST_EMBEDDER_KEY is not set"));
}

TEST(HttpEmbedder, AKeyFileIsReadUpToItsFirstLine) {
  test::temporary_folder folder;
  folder.write("key", "from-a-file\r\nsecond line\n");
  tiny_http_server server{[](const std::string& head, const std::string& body) {
    EXPECT_THAT(head, HasSubstr("Authorization: Bearer from-a-file\r\n"));
    return test::http_response(200, lengths_reversed(body));
  }};
  auto options = options_for(server);
  options.api_key_file = folder / "key";
  auto rows = make(options)->embed({"x"});
  EXPECT_TRUE(rows) << failure(rows);
  options.api_key_file = folder / "none";
  EXPECT_THAT(failure(make_http_embedder(options, post)), HasSubstr("api_key_missing"));
  folder.write("key", "two words\n");
  options.api_key_file = folder / "key";
  EXPECT_THAT(failure(make_http_embedder(options, post)), HasSubstr("api_key_malformed"));
}

TEST(HttpEmbedder, AServerThatRecoversIsAskedAgain) {
  std::atomic<int> calls = 0;
  tiny_http_server server{[&](const std::string&, const std::string& body) {
    return ++calls == 1 ? test::http_response(503, "busy")
                        : test::http_response(200, lengths_reversed(body));
  }};
  auto options = options_for(server);
  options.attempts = 2;
  auto rows = make(options)->embed({"x"});
  EXPECT_TRUE(rows) << failure(rows);
  EXPECT_EQ(server.requests(), 2);
}

TEST(HttpEmbedder, FaultsOfTheServerAreValues) {
  std::string answer;
  tiny_http_server server{[&](const std::string&, const std::string&) { return answer; }};
  auto options = options_for(server);
  auto x = make(options);
  answer = test::http_response(400, R"({"error":"no such model"})");
  EXPECT_THAT(failure(x->embed({"x"})), HasSubstr("answered 400: no such model"));
  EXPECT_EQ(server.requests(), 1) << "a 400 does not get better by asking again";
  answer = test::http_response(200, "<html>");
  EXPECT_THAT(failure(x->embed({"x"})), HasSubstr("not JSON"));
  answer = "nonsense";
  EXPECT_THAT(failure(x->embed({"x"})), HasSubstr("embedder_failed"));
  answer = test::http_response(200, R"({"data":[{"index":0,"embedding":[1,2,3]}]})");
  EXPECT_TRUE(x->embed({"x"}));
  answer = test::http_response(200, R"({"data":[{"index":0,"embedding":[1,2]}]})");
  EXPECT_THAT(failure(x->embed({"x"})), HasSubstr("row 0 has 2 floats, expected 3"));
}

TEST(HttpEmbedder, AServerThatIsNotThereIsAnErrorWithAHint) {
  http_embedder_options options;
  {
    tiny_http_server gone{[](const std::string&, const std::string&) { return std::string{}; }};
    options = options_for(gone);
  }
  auto text = failure(make(options)->embed({"x"}));
  EXPECT_THAT(text, HasSubstr("embedder_failed"));
  EXPECT_THAT(text, HasSubstr("check that the embedding server runs"));
}

TEST(HttpEmbedder, AnswersAreCheckedBeforeTheyAreBelieved) {
  EXPECT_EQ(parse_failure(R"({"data":[{"embedding":[1,2]}]})"), "");
  EXPECT_THAT(parse_failure(R"([])"), HasSubstr("no list \"data\""));
  EXPECT_THAT(parse_failure(R"({"data":{}})"), HasSubstr("no list \"data\""));
  EXPECT_THAT(parse_failure(R"({"data":[]})"), HasSubstr("0 rows for 1 texts"));
  EXPECT_THAT(parse_failure(R"({"data":[7]})"), HasSubstr("no object"));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":0}]})"), HasSubstr("no \"embedding\""));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":1,"embedding":[1,2]}]})"),
              HasSubstr("out of range"));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":-1,"embedding":[1,2]}]})"),
              HasSubstr("whole number"));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":0,"embedding":[1,"a"]}]})"),
              HasSubstr("no number"));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":0,"embedding":[1e300,2]}]})"),
              HasSubstr("not finite"));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":0,"embedding":[]}]})"), HasSubstr("0 floats"));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":0,"embedding":[]}]})", 1, 0),
              HasSubstr("0 floats"));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":0,"embedding":"AAB*"}]})"), HasSubstr("base64"));
  EXPECT_THAT(parse_failure(R"({"data":[{"index":0,"embedding":"AAAA"}]})"),
              HasSubstr("3 base64 bytes"));
  EXPECT_THAT(
      parse_failure(R"({"data":[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[1,2]}]})", 2),
      HasSubstr("appears twice"));
}

TEST(HttpEmbedder, TextsThatAreNoUtf8OrTooLongAreSentAllTheSame) {
  tiny_http_server server{[](const std::string&, const std::string& body) {
    EXPECT_LE(json::parse(body).at("input").at(1).get<std::string>().size(), 100U);
    return test::http_response(200, lengths_reversed(body));
  }};
  auto options = options_for(server);
  options.max_text_bytes = 100;
  auto rows = make(options)->embed({"\xff\xfe", std::string(100000, 'x')});
  EXPECT_TRUE(rows) << failure(rows);
}

TEST(HttpEmbedder, OptionsThatCannotWorkAreNamed) {
  http_embedder_options good;
  good.base_url = "http://127.0.0.1:1";
  good.model = "m";
  EXPECT_EQ(failure(validate(good)), "");
  auto with = [&](auto change) {
    auto x = good;
    change(x);
    return failure(make_http_embedder(x, post));
  };
  EXPECT_THAT(with([](auto& x) { x.base_url = "127.0.0.1"; }), HasSubstr("base_url"));
  EXPECT_THAT(with([](auto& x) { x.base_url = "http://me:pw@host"; }), Not(HasSubstr("pw")));
  EXPECT_THAT(with([](auto& x) { x.model.clear(); }), HasSubstr("model"));
  EXPECT_THAT(with([](auto& x) { x.batch = 0; }), HasSubstr("batch"));
  EXPECT_THAT(with([](auto& x) { x.attempts = 0; }), HasSubstr("attempts"));
  EXPECT_THAT(with([](auto& x) { x.api_key_env = x.api_key_file = "both"; }),
              HasSubstr("api_key_env"));
}

} // namespace http_embedder_test
} // namespace kernelmill
