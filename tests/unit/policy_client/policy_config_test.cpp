#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "actors/policy_client/policy_config.hpp"

namespace kernelmill {
namespace policy_config_test {

policy_config good() {
  policy_config x;
  x.base_url = "http://127.0.0.1:8000/v1";
  x.model = "m";
  return x;
}

std::string fault_of(const policy_config& x) {
  auto checked = validate(x);
  return checked ? "" : render(checked.error());
}

struct temporary_file {
  explicit temporary_file(const std::string& content) {
    path = std::filesystem::temp_directory_path() / ("km-key-" + std::to_string(::getpid()));
    std::ofstream{path} << content;
  }
  ~temporary_file() { std::filesystem::remove(path); }
  std::filesystem::path path;
};

TEST(policy_config, a_plain_one_is_valid) {
  EXPECT_EQ(fault_of(good()), "");
}

TEST(policy_config, names_the_key_that_is_wrong) {
  auto expect = [](auto change, const char* key) {
    auto x = good();
    change(x);
    EXPECT_NE(fault_of(x).find(key), std::string::npos) << fault_of(x);
  };
  expect([](auto& x) { x.base_url = ""; }, "policy.base_url");
  expect([](auto& x) { x.base_url = "127.0.0.1:8000"; }, "policy.base_url");
  expect([](auto& x) { x.base_url = "ftp://host/v1"; }, "policy.base_url");
  expect([](auto& x) { x.base_url = "http://host/v1?key=1"; }, "policy.base_url");
  expect([](auto& x) { x.exact_tokens = true; }, "policy.tokens");
  expect([](auto& x) { x.exact_tokens = x.stream = true, x.kind = server_kind::vllm; },
         "policy.stream");
  expect([](auto& x) { x.model = ""; }, "policy.model");
  expect([](auto& x) { x.max_in_flight = 0; }, "policy.max_in_flight");
  expect([](auto& x) { x.request_timeout_ms = 0; }, "policy.timeout_ms");
  expect([](auto& x) { x.max_response_bytes = 5; }, "policy.max_response_bytes");
  expect([](auto& x) { x.ca_file = "/nowhere/ca.pem"; }, "policy.ca_file");
  expect([](auto& x) { x.api_key_env = "A", x.api_key_file = "b"; }, "policy.api_key_file");
}

TEST(policy_config, an_address_with_a_password_is_refused_and_not_repeated) {
  auto x = good();
  x.base_url = "http://me:hunter22@host/v1";
  EXPECT_NE(fault_of(x), "");
  EXPECT_EQ(fault_of(x).find("hunter22"), std::string::npos);
}

TEST(policy_config, a_missing_key_is_named_by_its_source) {
  auto x = good();
  x.api_key_env = "KERNELMILL_NO_SUCH_KEY";
  EXPECT_NE(fault_of(x).find("KERNELMILL_NO_SUCH_KEY"), std::string::npos);
  x.api_key_env = "";
  x.api_key_file = "/nowhere/key";
  EXPECT_NE(fault_of(x).find("/nowhere/key"), std::string::npos);
}

TEST(policy_config, endpoints_follow_the_base_address) {
  auto x = good();
  EXPECT_EQ(endpoint(x, "models"), "http://127.0.0.1:8000/v1/models");
  x.base_url = "http://host:1/";
  EXPECT_EQ(endpoint(x, "models"), "http://host:1/v1/models");
  x.base_url = "https://host/oai/api/v1//";
  EXPECT_EQ(endpoint(x, "models"), "https://host/oai/api/v1/models");
}

TEST(secret, comes_from_a_file_without_its_line_end) {
  temporary_file file{"sk-test-key-123\n"};
  auto key = load_secret("", file.path);
  ASSERT_TRUE(key);
  EXPECT_EQ((*key)->reveal(), "sk-test-key-123");
}

TEST(secret, refuses_what_no_header_may_hold_without_repeating_it) {
  for (const auto* content : {"", "\n\n", "sk-one\nsk-two", "sk one", "sk\x01", "sk-\xff"}) {
    temporary_file file{content};
    auto key = load_secret("", file.path);
    ASSERT_FALSE(key) << content;
    EXPECT_EQ(key.error().cls, fault_class::configuration);
    EXPECT_EQ(render(key.error()).find("sk-one"), std::string::npos);
  }
}

TEST(secret, an_empty_source_needs_no_key) {
  auto key = load_secret("", "");
  ASSERT_TRUE(key);
  EXPECT_EQ(*key, nullptr);
}

TEST(secret, is_taken_out_of_the_words_of_a_server) {
  std::string text = "sk-abcdef";
  secret key{text};
  EXPECT_EQ(text, "");
  EXPECT_EQ(key.redact("bad key sk-abcdef, sk-abcdef!"), "bad key [key], [key]!");
}

// "Bearer KEY", "xBearer KEY", "xxBearer KEY" in Base64: the letters between depend on the key
// alone.
TEST(secret, is_taken_out_in_base64_and_in_hexadecimal_too) {
  std::string text = "sk-test-key?>~12";
  secret key{text};
  for (const std::string quoted :
       {"QmVhcmVyIHNrLXRlc3Qta2V5Pz5+MTI=", "eEJlYXJlciBzay10ZXN0LWtleT8+fjEy",
        "eHhCZWFyZXIgc2stdGVzdC1rZXk/Pn4xMg==", "QmVhcmVyIHNrLXRlc3Qta2V5Pz5-MTI",
        "736b2d746573742d6b65793f3e7e3132", "736B2D746573742D6B65793F3E7E3132"}) {
    auto clean = key.redact("you are " + quoted + ", are you not");
    EXPECT_NE(clean.find("[key]"), std::string::npos) << quoted << " " << clean;
    EXPECT_LT(clean.size(), quoted.size() + 12) << clean;
  }
  text = "sk-abc";
  secret brief{text};
  EXPECT_EQ(brief.redact("c2stYWJj"), "c2stYWJj") << "a short key's parts are in many texts";
}

TEST(policy_config, routes_beside_the_version_path_are_found) {
  auto x = good();
  EXPECT_EQ(root_endpoint(x, "tokenize"), "http://127.0.0.1:8000/tokenize");
  x.base_url = "http://127.0.0.1:8000";
  EXPECT_EQ(root_endpoint(x, "tokenize"), "http://127.0.0.1:8000/tokenize");
  x.base_url = "http://router/pool/v1/";
  EXPECT_EQ(root_endpoint(x, "generate"), "http://router/pool/generate");
}

} // namespace policy_config_test
} // namespace kernelmill
