#include "launch/server/http/router.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

namespace kernelmill::http {

namespace router_test {

using testing::HasSubstr;

route to(const char* method, const char* path, std::set<std::string> query = {}) {
  return {method, path, std::move(query), {}, false};
}

router some_routes(access who = {}) {
  return {{to("GET", "/v1/tasks"), to("GET", "/v1/things/{id}", {"wait", "full"}),
           to("DELETE", "/v1/things/{id}"), to("POST", "/v1/things"), to("GET", "/v1/things/all")},
          std::move(who)};
}

/// The path of the chosen route, or the status and the body of the refusal.
std::string choose(const router& by, request& x, const std::string& target) {
  auto result = by.choose(x, target);
  if (auto* found = std::get_if<const route*>(&result)) return (*found)->path;
  auto& no = std::get<response>(result);
  return std::to_string(no.status) + " " + no.body;
}

std::string choose(const std::string& method, const std::string& target) {
  request x;
  x.method = method;
  return choose(some_routes(), x, target);
}

secret_ptr token(std::string text) {
  return std::make_shared<const secret>(text);
}

TEST(Router, FillsInWhatTheRouteNames) {
  request x;
  x.method = "GET";
  EXPECT_EQ(choose(some_routes(), x, "/v1/things/a%2Fb?wait=1+2&full"), "/v1/things/{id}");
  EXPECT_EQ(x.parts["id"], "a/b");
  EXPECT_EQ(x.query["wait"], "1 2");
  EXPECT_TRUE(x.query.contains("full"));
  EXPECT_EQ(x.path, "/v1/things/a%2Fb");
}

TEST(Router, PlainWordsGoBeforeNames) {
  EXPECT_EQ(choose("GET", "/v1/things/all"), "/v1/things/all");
  EXPECT_EQ(choose("HEAD", "/v1/things/all"), "/v1/things/all");
}

TEST(Router, RefusesUnknownPathsMethodsAndParametersByName) {
  EXPECT_THAT(choose("GET", "/v2"), HasSubstr("404 "));
  EXPECT_THAT(choose("GET", "/v1/things/"), HasSubstr("404 "));
  EXPECT_THAT(choose("POST", "/v1/tasks"), HasSubstr("405 "));
  EXPECT_THAT(choose("POST", "/v1/tasks"), HasSubstr("takes GET, not POST"));
  EXPECT_THAT(choose("GET", "/v1/tasks?wiat=1"), HasSubstr("unknown query parameter \\\"wiat\\\""));
  EXPECT_THAT(choose("GET", "/v1/things/x?wiat=1"), HasSubstr("takes full, wait"));
  EXPECT_THAT(choose("GET", "/v1/things/x?wait=1&wait=2"), HasSubstr("given twice"));
  EXPECT_THAT(choose("GET", "/v1/things/x?wait=%zz"), HasSubstr("badly encoded"));
}

TEST(Router, WhatChangesSomethingMustCallTheServerByItsName) {
  auto by = some_routes({nullptr, nullptr, {"localhost", "127.0.0.1", "::1"}});
  auto post = [&](const char* host, const char* origin) {
    request x;
    x.method = "POST";
    x.headers = {{"host", host}, {"content-type", "application/json; charset=utf-8"}};
    if (*origin != 0) x.headers["origin"] = origin;
    return choose(by, x, "/v1/things").substr(0, 3);
  };
  EXPECT_EQ(post("localhost:80", ""), "/v1");
  EXPECT_EQ(post("[::1]:80", "http://[::1]:80"), "/v1");
  EXPECT_EQ(post("evil.example:80", ""), "421");
  EXPECT_EQ(post("localhost:80", "http://evil.example"), "403");
  EXPECT_EQ(post("localhost:80", "http://localhost:81"), "403");
  EXPECT_EQ(post("localhost:80", "null"), "403");
  request read;
  read.method = "GET";
  read.headers = {{"host", "evil.example"}};
  EXPECT_EQ(choose(by, read, "/v1/tasks"), "/v1/tasks") << "what only reads does not mind";
}

TEST(Router, AsksForTheTokenAndForJson) {
  router by{{to("GET", "/v1/tasks"), {"GET", "/healthz", {}, {}, true}, to("POST", "/v1/things")},
            {token("s3cret"), nullptr, {}}};
  auto ask = [&](const char* method, const char* path, const char* authorization) {
    request x;
    x.method = method;
    if (*authorization != 0) x.headers["authorization"] = authorization;
    return choose(by, x, path);
  };
  EXPECT_EQ(ask("GET", "/v1/tasks", "Bearer s3cret"), "/v1/tasks");
  EXPECT_EQ(ask("GET", "/healthz", ""), "/healthz");
  EXPECT_THAT(ask("GET", "/v1/tasks", ""), HasSubstr("a token is needed"));
  EXPECT_THAT(ask("GET", "/v1/tasks", "Bearer s3cre"), HasSubstr("401"));
  EXPECT_THAT(ask("GET", "/v1/tasks", "Bearer s3cret2"), HasSubstr("the token is wrong"));
  EXPECT_THAT(ask("GET", "/v1/tasks", "Bearer other"), testing::Not(HasSubstr("other")));
  EXPECT_THAT(ask("POST", "/v1/things", "Bearer s3cret"), HasSubstr("415"));
}

TEST(Token, IsReadFromAFileThatOthersCannotRead) {
  auto path = std::filesystem::path{testing::TempDir()} / "http_token_test";
  auto write = [&](const char* text, mode_t mode) {
    std::ofstream{path} << text;
    ::chmod(path.c_str(), mode);
    return load_token(path.string());
  };
  EXPECT_EQ((*write("s3cret-s3cret-16\n", 0600))->reveal(), "s3cret-s3cret-16");
  EXPECT_EQ(write("s3cret-s3cret-16\n", 0644).error().category, "token_exposed");
  EXPECT_EQ(write("fifteen-letters\n", 0600).error().category, "token_malformed");
  EXPECT_EQ(write("", 0600).error().category, "token_malformed");
  EXPECT_EQ(write("two words", 0600).error().category, "token_malformed");
  EXPECT_THAT(render(write("two words", 0600).error()), testing::Not(HasSubstr("two")));
  std::filesystem::remove(path);
  EXPECT_EQ(load_token(path.string()).error().category, "token_missing");
}

} // namespace router_test

} // namespace kernelmill::http
