#include "launch/server/http/request_head.hpp"

#include <gmock/gmock.h>

namespace kernelmill::http {

namespace request_head_test {

using testing::HasSubstr;

std::string get(const std::string& headers, const std::string& first = "GET / HTTP/1.1") {
  return first + "\r\n" + headers + "\r\n";
}

TEST(request_head, what_clients_send_is_sound) {
  for (const auto& head : {
           get("Host: a\r\n"),
           get("", "GET / HTTP/1.0"),
           get("host:a:80\r\nX-Empty:\r\nX-Tab:\ta b\r\n"),
           get("Host: a\r\nContent-Length: 0\r\n", "POST /x?y=%20z HTTP/1.1"),
           get("Host: a\r\nTransfer-Encoding: chunked\r\n", "POST * HTTP/1.1"),
           get("Host: a\r\nX-Bytes: \xc3\xa4\r\n"),
       })
    EXPECT_EQ(head_fault(head), "") << head;
}

// RFC 9112, 2.2, 3, 5 and 6.
TEST(request_head, what_two_readers_could_read_in_two_ways_is_refused) {
  const std::pair<std::string, const char*> cases[] = {
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", "CR LF"},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", "CR LF"},
      {get("Host: a\r\nX: a\rb\r\n"), "CR LF"},
      {get("Host: a\r\nX: a\r\n folded\r\n"), "continue"},
      {get(" X: a\r\nHost: a\r\n"), "continue"},
      {get("Host: a\r\nX : a\r\n"), "name"},
      {get("Host: a\r\n: a\r\n"), "name"},
      {get("Host: a\r\nno colon\r\n"), "colon"},
      {get(std::string{"Host: a\r\nX: a\0b\r\n", 17}), "control"},
      {get(""), "Host"},
      {get("Host: a\r\nhost: b\r\n"), "Host"},
      {get("Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"), "beside"},
      {get("Host: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n"), "twice"},
      {get("Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "twice"},
      {get("Host: a\r\nContent-Length: +2\r\n"), "number"},
      {get("Host: a\r\nContent-Length: 1, 1\r\n"), "number"},
      {get("Host: a\r\nContent-Length: 0x2\r\n"), "number"},
      {get("Host: a\r\nContent-Length:\r\n"), "number"},
      {get("Host: a\r\nContent-Length: 99999999999999999999\r\n"), "number"},
      {get("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.0"), "1.0"},
      {get("Host: a\r\n", "GET / HTTP/9.9"), "version"},
      {get("Host: a\r\n", "GET / http/1.1"), "version"},
      {get("Host: a\r\n", "GET /"), "first line"},
      {get("Host: a\r\n", "GET / a HTTP/1.1"), "target"},
      {get("Host: a\r\n", "GET  / HTTP/1.1"), "target"},
      {get("Host: a\r\n", "G(T / HTTP/1.1"), "method"},
      {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "first line"},
      {"GET / HTTP/1.1\r\nHost: a\r\n", "CR LF"},
  };
  for (const auto& [head, word] : cases) EXPECT_THAT(head_fault(head), HasSubstr(word)) << head;
}

TEST(request_head, a_head_that_comes_byte_by_byte_ends_where_it_ends) {
  auto text = get("Host: a\r\n") + "GET /next";
  for (size_t step : {size_t{1}, size_t{3}, text.size()}) {
    head_scan scan;
    size_t at = 0;
    while (at < text.size()) {
      auto taken = scan.take(std::string_view{text}.substr(at, step));
      if (taken == 0) break;
      at += taken;
    }
    EXPECT_TRUE(scan.is_whole());
    EXPECT_EQ(text.substr(at), "GET /next");
    EXPECT_EQ(scan.fault(), "");
  }
}

TEST(request_head, a_line_that_no_byte_can_mend_is_refused_at_once) {
  head_scan scan;
  scan.take("GET / HTTP/1.1\n");
  EXPECT_THAT(scan.fault(), HasSubstr("CR LF"));
}

} // namespace request_head_test

} // namespace kernelmill::http
