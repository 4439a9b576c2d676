#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"
#include "tests/unit/retrieval/tiny_http_server.hpp"

namespace kernelmill::test {

namespace index_command_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// An embeddings server whose vectors count letters.
std::string letters_of(const std::string& question, size_t dimension) {
  auto data = nlohmann::json::array();
  const auto asked = nlohmann::json::parse(question);
  for (const auto& text : asked.at("input")) {
    std::vector<float> row(dimension);
    for (char c : text.get<std::string>()) row[static_cast<unsigned char>(c) % dimension] += 1;
    data.push_back({{"index", data.size()}, {"embedding", row}});
  }
  return nlohmann::json{{"data", data}}.dump();
}

TEST(index_command, what_is_built_can_be_asked) {
  auto built = kernelmill({"index", "build", "index", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_GE(built.document()["cards"], 30);
  auto answer =
      kernelmill({"index", "query", "--json", "--count", "3", "index", "sum", "of", "each", "row"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.document()["results"].size(), 3u);
}

TEST(index_command, an_index_that_is_not_there_is_3) {
  EXPECT_EQ(kernelmill({"index", "query", "nowhere", "text"}).code, 3);
}

TEST(index_command, a_servers_embedder_is_remembered_and_its_key_is_not) {
  size_t dimension = 24;
  tiny_http_server server{[&](const std::string& head, const std::string& body) {
    if (head.find("Bearer sk-of-the-index") == std::string::npos) return http_response(401, "{}");
    return http_response(200, letters_of(body, dimension));
  }};
  auto key = write_file("embedder.key", "sk-of-the-index\n");
  program_options options;
  options.environment = {"no_proxy=127.0.0.1"};
  auto with_server = [&](std::vector<std::string> words) {
    for (auto& x : {std::string{"--embedder"}, std::string{"http"}, std::string{"--base-url"},
                    server.url() + "/v1", std::string{"--model"}, std::string{"letters"},
                    std::string{"--api-key-file"}, key})
      words.push_back(x);
    return kernelmill(words, options);
  };
  auto built = with_server({"index", "build", "served", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_EQ(built.document()["embedder"], "openai-embeddings/1 model=letters");
  EXPECT_EQ(built.document()["dimension"], 24);
  EXPECT_LT(server.requests(), 20) << "texts travel in batches";
  auto answer = with_server({"index", "query", "served", "sum", "of", "each", "row", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.document()["results"].size(), 5U);
  EXPECT_THAT(run_program({"/bin/grep", "-r", "sk-of-the-index", "served"}).out, "");

  auto words = kernelmill({"index", "query", "served", "sum"}, options);
  EXPECT_EQ(words.code, 4) << words.err;
  EXPECT_THAT(words.err, AllOf(HasSubstr("--embedder http --model letters"),
                               HasSubstr("kernelmill index build served`")));
  dimension = 32;
  auto other = with_server({"index", "query", "served", "sum"});
  EXPECT_EQ(other.code, 4) << other.err;
  EXPECT_THAT(other.err, AllOf(HasSubstr("have 24 floats, the embedder's have 32"),
                               HasSubstr("kernelmill index build served --embedder http --model "
                                         "letters --base-url URL`"),
                               Not(HasSubstr("sk-of-the-index"))));
}

TEST(index_command, options_of_a_server_want_its_kind) {
  auto x = kernelmill({"index", "build", "none", "--model", "letters"});
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, HasSubstr("--embedder http"));
  EXPECT_EQ(kernelmill({"index", "build", "none", "--dimension", "12"}).code, 2);
}

} // namespace index_command_test

} // namespace kernelmill::test
