#include "launch/server/http/clients.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace kernelmill::http {
namespace clients_test {

using std::chrono::seconds;
using ::testing::HasSubstr;

client_gate gate_of(uint32_t in_flight, uint32_t per_minute) {
  std::string a = "token-of-the-first", b = "token-of-the-second";
  std::vector<client_rules> all(2);
  all[0] = {"a", std::make_shared<const secret>(a), in_flight, per_minute, 0, 1};
  all[1] = {"b", std::make_shared<const secret>(b), 0, 0, 0, 1};
  return client_gate{std::move(all)};
}

const client_gate::time_point start{seconds{1000}};

TEST(Clients, AreKnownByTheirTokens) {
  auto gate = gate_of(0, 0);
  EXPECT_EQ(gate.find("Bearer token-of-the-first"), 0u);
  EXPECT_EQ(gate.rules(*gate.find("Bearer token-of-the-second")).name, "b");
  EXPECT_FALSE(gate.find("Bearer token-of-the-third"));
  EXPECT_FALSE(gate.find("token-of-the-first"));
  EXPECT_FALSE(gate.find(""));
}

TEST(Clients, HaveSoManyRequestsInFlight) {
  auto gate = gate_of(2, 0);
  EXPECT_FALSE(gate.enter(0, start));
  EXPECT_FALSE(gate.enter(0, start));
  auto no = gate.enter(0, start);
  ASSERT_TRUE(no);
  EXPECT_THAT(no->why, HasSubstr("a has 2 requests in flight"));
  EXPECT_GE(no->after_s, 1u);
  EXPECT_FALSE(gate.enter(1, start)) << "another client has its own";
  gate.leave(0);
  EXPECT_FALSE(gate.enter(0, start));
}

TEST(Clients, HaveSoManyRequestsAMinute) {
  auto gate = gate_of(0, 6);
  auto ask = [&](seconds at) {
    auto no = gate.enter(0, start + at);
    if (!no) gate.leave(0);
    return no ? no->after_s : 0;
  };
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ask(seconds{0}), 0u);
  EXPECT_EQ(ask(seconds{0}), 10u);
  EXPECT_EQ(ask(seconds{4}), 6u);
  EXPECT_EQ(ask(seconds{10}), 0u);
  EXPECT_EQ(ask(seconds{10}), 10u);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ask(seconds{1000}), 0u);
  EXPECT_NE(ask(seconds{1000}), 0u) << "no more than a minute's are saved";
}

TEST(Clients, AreReadFromAFileThatOthersCannotRead) {
  auto path = std::filesystem::path{testing::TempDir()} / "http_clients_test";
  auto read = [&](const std::string& text, mode_t mode = 0600) {
    std::ofstream{path} << text;
    ::chmod(path.c_str(), mode);
    return load_clients(path.string());
  };
  auto good =
      read(R"({"clients": [{"name": "a", "token": "0123456789abcdef", "in_flight": 3, "share": 2},
                                   {"name": "b", "token": "fedcba9876543210"}]})");
  ASSERT_TRUE(good) << render(good.error());
  EXPECT_EQ((*good)[0].in_flight, 3u);
  EXPECT_EQ((*good)[0].share, 2);
  EXPECT_EQ((*good)[1].per_minute, 0u);
  EXPECT_EQ(read("{}", 0644).error().category, "token_exposed");
  for (
      const char* wrong :
      {"", "[]", R"({"clients": []})", R"({"clients": [1]})",
       R"({"clients": [{"name": "a", "token": "short-secret"}]})",
       R"({"clients": [{"name": "", "token": "0123456789abcdef"}]})",
       R"({"clients": [{"token": "0123456789abcdef"}]})", R"({"clients": [{"name": "a"}]})",
       R"({"clients": [{"name": "a", "token": "0123456789abcdef", "in_flight": 0}]})",
       R"({"clients": [{"name": "a", "token": "0123456789abcdef", "share": 0}]})",
       R"({"clients": [{"name": "a", "token": "0123456789abcdef", "inflight": 1}]})",
       R"({"clients": [{"name": "a", "token": "0123456789abcdef"}, {"name": "a", "token": "0123456789abcdeg"}]})",
       R"({"clients": [{"name": "a", "token": "0123456789abcdef"}, {"name": "b", "token": "0123456789abcdef"}]})"}) {
    auto no = read(wrong);
    ASSERT_FALSE(no) << wrong;
    EXPECT_EQ(no.error().category, "bad_clients") << wrong;
    EXPECT_THAT(render(no.error()), testing::Not(HasSubstr("0123456789")));
    EXPECT_THAT(render(no.error()), testing::Not(HasSubstr("short-secret")));
  }
  std::filesystem::remove(path);
  EXPECT_EQ(load_clients(path.string()).error().category, "token_missing");
}

} // namespace clients_test
} // namespace kernelmill::http
