// Which keys clients may have sent, and where to.

#include "actors/policy_client/policy_keys.hpp"
#include "messages/base/json_value.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelmill {
namespace policy_keys_test {

using ::testing::HasSubstr;
using json = nlohmann::json;

struct policy_keys_of_operator : testing::Test {
  policy_keys_of_operator() {
    ::setenv("KEY_OF_LAB", "lab-s3cret", 1);
    ::setenv("KEY_OF_NO_LAB", "other-s3cret", 1);
  }
  ~policy_keys_of_operator() override {
    ::unsetenv("KEY_OF_LAB");
    ::unsetenv("KEY_OF_NO_LAB");
    std::filesystem::remove(file);
  }

  std::string category(const std::string& text) {
    std::ofstream{file} << text;
    auto x = load_policy_keys(file);
    if (x) keys = *x;
    return x ? "" : x.error().category;
  }

  expected<named_server> read(json x) { return read_named_server(x, keys); }

  // Of this process alone: another one of these tests removes its own when it ends.
  std::string file = testing::TempDir() + "/policy_keys-" + std::to_string(::getpid()) + ".json";
  policy_keys keys{{{"lab", "https://lab.example/team/v1", "KEY_OF_LAB", ""}}};
};

TEST(policy_keys, an_address_is_below_another_of_the_same_server_alone) {
  const std::string top = "https://lab.example/team/v1";
  for (const char* good : {"https://lab.example/team/v1", "https://lab.example/team/v1/",
                           "https://LAB.example/team/v1", "https://lab.example:443/team/v1/sub",
                           "https://lab.example/other/../team/v1"})
    EXPECT_TRUE(is_below_address(top, good)) << good;
  for (const char* bad :
       {"http://lab.example/team/v1", "https://lab.example:444/team/v1", "https://lab.example/team",
        "https://lab.example/team/v12", "https://lab.example/", "https://evil.example/team/v1",
        "https://lab.example.evil.example/team/v1", "https://lab.example@evil.example/team/v1",
        "https://lab.example/team/v1/../../other", "https://lab.example/team/v1/%2e%2e/%2e%2e/x",
        "https://evil.example#@lab.example/team/v1", "https://evil.example\\@lab.example/team/v1",
        "https://evil.example?https://lab.example/team/v1", "ftp://lab.example/team/v1",
        "lab.example/team/v1", "", "https://"})
    EXPECT_FALSE(is_below_address(top, bad)) << bad;
  EXPECT_TRUE(is_below_address("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"));
  EXPECT_TRUE(is_below_address("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"));
  EXPECT_FALSE(is_below_address("http://127.0.0.1:8000", "http://127.0.0.1:80000/v1"));
}

TEST_F(policy_keys_of_operator, lists_are_checked_when_they_are_read) {
  EXPECT_EQ(category(R"({"keys": [{"name": "lab", "base_url": "https://lab.example/v1",
                                   "api_key_env": "KEY_OF_LAB"}]})"),
            "");
  EXPECT_EQ(keys.find("lab", "")->base_url, "https://lab.example/v1");
  EXPECT_EQ(category(R"({"keys": [{"name": "lab", "base_url": "https://lab.example/v1",
                                   "api_key_env": "KEY_THAT_IS_NOT_SET"}]})"),
            "policy_key_missing");
  for (const char* wrong :
       {"", "[]", R"({"keys": []})", R"({"keys": [1]})", R"({"keys": [{}], "more": 1})",
        R"({"keys": [{"name": "a", "base_url": "https://a/v1"}]})",
        R"({"keys": [{"name": "a b", "base_url": "https://a/v1", "api_key_env": "KEY_OF_LAB"}]})",
        R"({"keys": [{"name": "a", "base_url": "a", "api_key_env": "KEY_OF_LAB"}]})",
        R"({"keys": [{"name": "a", "base_url": "https://a/v1?x", "api_key_env": "KEY_OF_LAB"}]})",
        R"({"keys": [{"name": "a", "base_url": "https://a/v1", "api_key": "s3cret"}]})",
        R"({"keys": [{"name": "a", "base_url": "https://a/v1", "api_key_env": "KEY_OF_LAB"},
                     {"name": "a", "base_url": "https://b/v1", "api_key_env": "KEY_OF_LAB"}]})"})
    EXPECT_EQ(category(wrong), "bad_policy_keys") << wrong;
  std::filesystem::remove(file);
  EXPECT_EQ(load_policy_keys(file).error().category, "bad_policy_keys");
}

TEST_F(policy_keys_of_operator, a_name_gives_its_key_to_its_address) {
  auto x = read({{"kind", "vllm"}, {"key", "lab"}});
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->config.base_url, "https://lab.example/team/v1");
  EXPECT_EQ(x->key->reveal(), "lab-s3cret");
  EXPECT_EQ(x->config.api_key_env, "") << "who has the server's words reads no variable";
  auto far = read({{"kind", "vllm"}, {"key", "lab"}, {"base_url", "https://evil.example/v1"}});
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().category, "policy_key_refused");
  EXPECT_THAT(far.error().message, HasSubstr("\"lab\" is for https://lab.example/team/v1"));
  auto none = read({{"kind", "vllm"}, {"key", "HOME"}, {"base_url", "https://evil.example/v1"}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().category, "policy_key_refused");
  EXPECT_EQ(none.error().hint, "it has lab");
}

TEST_F(policy_keys_of_operator, variables_and_files_are_read_for_their_address_alone) {
  auto ask = [&](const char* key, const char* value, const char* url) {
    auto x = read({{"kind", "sglang"}, {"base_url", url}, {key, value}});
    return x ? std::string{x->key->reveal()} : x.error().category;
  };
  EXPECT_EQ(ask("api_key_env", "KEY_OF_LAB", "https://lab.example/team/v1"), "lab-s3cret");
  EXPECT_EQ(ask("api_key_env", "KEY_OF_LAB", "https://evil.example/v1"), "policy_key_refused");
  EXPECT_EQ(ask("api_key_env", "KEY_OF_NO_LAB", "https://lab.example/team/v1"),
            "policy_key_refused");
  EXPECT_EQ(ask("api_key_file", "/etc/hostname", "https://lab.example/team/v1"),
            "policy_key_refused");
}

TEST_F(policy_keys_of_operator, a_client_may_bring_its_own) {
  auto x = read({{"kind", "openai"}, {"base_url", "http://any/v1"}, {"api_key", "mine"}});
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->key->reveal(), "mine");
  auto both = read({{"kind", "openai"}, {"key", "lab"}, {"api_key", "mine"}});
  EXPECT_EQ(both.error().category, "policy_key_refused");
  auto plain = read({{"kind", "openai"}, {"base_url", "http://any/v1"}});
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->key, nullptr);
  for (const auto& wrong : {json{{"kind", "other"}, {"base_url", "http://any/v1"}},
                            json{{"kind", "vllm"}}, json::array(), json(nullptr)})
    EXPECT_EQ(read(wrong).error().category, "bad_request") << wrong;
}

} // namespace policy_keys_test
} // namespace kernelmill
