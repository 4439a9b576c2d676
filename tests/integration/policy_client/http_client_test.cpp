#include <fstream>
#include <future>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "actors/policy_client/http/http_client.hpp"
#include "tests/integration/policy_client/raw_server.hpp"

namespace kernelmill {
namespace http_client_test {

struct http_client_over_loopback : testing::Test {
  http_response post(const std::string& url, std::string body = "{}",
                     std::function<void(http_request&)> change = {}) {
    http_request request;
    request.url = url;
    request.body = std::move(body);
    if (change) change(request);
    std::promise<http_response> promise;
    client->submit(std::move(request), [&](http_response x) { promise.set_value(std::move(x)); });
    return promise.get_future().get();
  }

  std::unique_ptr<http_client> client = std::move(*http_client::start());
};

// The timer of our socket to a port, as the kernel lists it: "02" for a question whether the other
// is still there, and the seconds until then.
std::pair<std::string, double> timer_of_connection_to(unsigned port) {
  std::ifstream table{"/proc/self/net/tcp"};
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream fields{line};
    std::string number, local, remote, state, queues, timer;
    fields >> number >> local >> remote >> state >> queues >> timer;
    auto colon = remote.find(':');
    if (colon == std::string::npos || std::stoul(remote.substr(colon + 1), nullptr, 16) != port)
      continue;
    auto ticks = static_cast<double>(std::stoull(timer.substr(timer.find(':') + 1), nullptr, 16));
    return {timer.substr(0, 2), ticks / static_cast<double>(::sysconf(_SC_CLK_TCK))};
  }
  return {"none", 0};
}

TEST_F(http_client_over_loopback, asks_within_seconds_whether_a_silent_server_is_still_there) {
  std::pair<std::string, double> timer;
  unsigned port = 0;
  raw_server server{[&](const std::string&, int) {
    timer = timer_of_connection_to(port);
    return http_ok("answer");
  }};
  auto url = server.url("/");
  port = static_cast<unsigned>(std::stoul(url.substr(url.rfind(':') + 1)));
  ASSERT_EQ(post(url).fault, transport_fault::none);
  EXPECT_EQ(timer.first, "02");
  EXPECT_GT(timer.second, 1);
  EXPECT_LE(timer.second, 16) << "the system's own is two hours";
}

TEST_F(http_client_over_loopback, sends_what_it_is_told_and_keeps_the_connection) {
  std::vector<std::string> requests;
  raw_server server{[&](const std::string& request, int) {
    requests.push_back(request);
    return http_ok("answer", "X-Two: a\r\nx-two:  b \r\n");
  }};
  for (int i = 0; i < 3; ++i) {
    auto x = post(server.url("/path"), "body", [](http_request& r) {
      r.headers = {{"X-One", "1"}, {"X-Evil", "a\r\nX-Smuggled: 1"}};
      std::string key = "sk-key";
      r.bearer = std::make_shared<const secret>(key);
    });
    ASSERT_EQ(x.fault, transport_fault::none) << x.detail;
    EXPECT_EQ(x.status, 200);
    EXPECT_EQ(x.body, "answer");
    EXPECT_EQ(x.header("x-two"), "b");
  }
  EXPECT_EQ(server.connections(), 1);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].find("POST /path HTTP/1.1\r\n"), 0u);
  EXPECT_NE(requests[0].find("\r\nX-One: 1\r\n"), std::string::npos);
  EXPECT_NE(requests[0].find("\r\nAuthorization: Bearer sk-key\r\n"), std::string::npos);
  EXPECT_EQ(requests[0].find("Smuggled"), std::string::npos);
}

TEST_F(http_client_over_loopback, replaces_a_stale_connection_without_a_word) {
  // The server reads a second request on a kept connection and closes without an answer.
  raw_server server{[](const std::string&, int number) {
    return number == 0 ? http_ok("answer") : std::string{};
  }};
  for (int i = 0; i < 5; ++i) {
    auto x = post(server.url("/"));
    ASSERT_EQ(x.fault, transport_fault::none) << x.detail;
    EXPECT_EQ(x.body, "answer");
  }
  EXPECT_EQ(server.connections(), 5);
}

TEST_F(http_client_over_loopback, never_waits_for_100_continue) {
  std::string got;
  raw_server server{[&](const std::string& request, int) {
    got = request;
    return http_ok("x");
  }};
  auto x = post(server.url("/"), std::string(3 << 20, 'b'));
  EXPECT_EQ(x.status, 200);
  EXPECT_EQ(got.find("Expect"), std::string::npos);
  EXPECT_GT(got.size(), size_t{3} << 20);
}

TEST_F(http_client_over_loopback, bounds_header_and_body) {
  raw_server server{[](const std::string& request, int) {
    if (request.find("/header") != std::string::npos)
      return http_ok("x", "X-Long: " + std::string(20000, 'h') + "\r\n");
    if (request.find("/many") != std::string::npos) {
      std::string many;
      for (int i = 0; i < 2000; ++i) many += "X-A: 1234567890\r\n";
      return http_ok("x", many);
    }
    if (request.find("/announced") != std::string::npos)
      return std::string{"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nx"};
    return "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + std::string(5 << 20, 'x');
  }};
  for (const auto* path : {"/header", "/many", "/announced", "/endless"}) {
    auto x = post(server.url(path));
    auto of_header = path == std::string{"/header"} || path == std::string{"/many"};
    EXPECT_EQ(x.fault, of_header ? transport_fault::malformed : transport_fault::too_large)
        << path << ": " << x.detail;
    EXPECT_LE(x.body.size(), size_t{4} << 20) << path;
  }
}

TEST_F(http_client_over_loopback, tells_the_ways_to_break_apart) {
  raw_server server{[](const std::string& request, int) -> std::string {
    if (request.find("/nothttp") != std::string::npos) return "SSH-2.0-OpenSSH_9.2\r\n";
    return {};
  }};
  EXPECT_EQ(post(server.url("/nothttp")).fault, transport_fault::malformed);
  EXPECT_EQ(post(server.url("/reset")).fault, transport_fault::reset);
  EXPECT_EQ(post("http://no-such-host.invalid/").fault, transport_fault::unresolved);
  EXPECT_EQ(post("file:///etc/passwd").fault, transport_fault::malformed);
}

TEST_F(http_client_over_loopback, a_body_that_breaks_off_is_truncated) {
  raw_server server{[](const std::string& request, int number) -> std::string {
    if (number > 0) return {};
    if (request.find("/chunked") != std::string::npos)
      return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhel";
    return "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhalf";
  }};
  for (const auto* path : {"/length", "/chunked"}) {
    // The server would wait for another request before it closes.
    std::promise<http_response> promise;
    http_request request;
    request.url = server.url(path);
    request.timeout_ms = 3000; // the half is there by then, also where others have the machine
    client->submit(std::move(request), [&](http_response x) { promise.set_value(std::move(x)); });
    auto x = promise.get_future().get();
    EXPECT_EQ(x.fault, transport_fault::timeout) << path;
    EXPECT_EQ(x.status, 200);
  }
}

TEST_F(http_client_over_loopback, does_not_follow_redirects) {
  raw_server other{[](const std::string&, int) { return http_ok("stolen"); }};
  raw_server server{[&](const std::string&, int) {
    return "HTTP/1.1 307 Temporary Redirect\r\nLocation: " + other.url("/") +
           "\r\nContent-Length: 0\r\n\r\n";
  }};
  auto x = post(server.url("/"));
  EXPECT_EQ(x.status, 307);
  EXPECT_EQ(x.header("location"), other.url("/"));
  EXPECT_EQ(other.connections(), 0);
}

TEST_F(http_client_over_loopback, a_port_without_a_listener_is_refused) {
  std::string url;
  {
    raw_server gone{[](const std::string&, int) { return http_ok("x"); }};
    url = gone.url("/");
  }
  EXPECT_EQ(post(url).fault, transport_fault::refused);
}

TEST_F(http_client_over_loopback, a_host_that_swallows_connections_is_a_connect_timeout) {
  // A full backlog drops the first packet of further connections.
  auto listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::connect(fillers.back(), reinterpret_cast<sockaddr*>(&address), size);
  }
  auto x = post("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), "{}",
                [](http_request& r) { r.connect_timeout_ms = 200; });
  EXPECT_EQ(x.fault, transport_fault::connect_timeout) << x.detail;
  for (auto fd : fillers) ::close(fd);
  ::close(listener);
}

TEST_F(http_client_over_loopback, a_silent_stream_is_stalled_and_a_slow_start_is_not) {
  raw_server server{[](const std::string&, int) {
    return std::string{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"};
  }};
  std::string seen;
  auto x = post(server.url("/"), "{}", [&](http_request& r) {
    r.stall_ms = 200;
    r.on_data = [&](std::string_view bytes) {
      seen += bytes;
      return true;
    };
  });
  EXPECT_EQ(x.fault, transport_fault::stalled);
  EXPECT_EQ(seen, "half");
}

TEST_F(http_client_over_loopback, a_reader_may_end_the_transfer) {
  raw_server server{[](const std::string&, int) { return http_ok("enough"); }};
  auto x = post(server.url("/"), "{}",
                [](http_request& r) { r.on_data = [](std::string_view) { return false; }; });
  EXPECT_EQ(x.fault, transport_fault::refused_by_reader);
}

TEST_F(http_client_over_loopback, a_cancelled_request_says_so_once) {
  std::promise<void> arrived;
  raw_server server{[&](const std::string&, int) {
    arrived.set_value();
    return std::string{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"};
  }};
  std::promise<http_response> promise;
  http_request request;
  request.url = server.url("/");
  auto id =
      client->submit(std::move(request), [&](http_response x) { promise.set_value(std::move(x)); });
  arrived.get_future().get();
  client->cancel(id);
  client->cancel(id);
  client->cancel(12345);
  EXPECT_EQ(promise.get_future().get().fault, transport_fault::cancelled);
}

TEST_F(http_client_over_loopback,
       may_be_destroyed_with_requests_in_flight_and_by_its_own_callback) {
  raw_server server{[](const std::string& request, int) {
    return request.find("/answer") != std::string::npos
               ? http_ok("x")
               : std::string{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"};
  }};
  for (int i = 0; i < 20; ++i) {
    http_request request;
    request.url = server.url("/hang");
    client->submit(std::move(request), [](http_response) { ADD_FAILURE(); });
  }
  std::promise<void> destroyed;
  http_request request;
  request.url = server.url("/answer");
  client->submit(std::move(request), [&](http_response) {
    client.reset();
    destroyed.set_value();
  });
  destroyed.get_future().get();
}

} // namespace http_client_test
} // namespace kernelmill
