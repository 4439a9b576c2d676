#pragma once

// A loopback HTTP server of a few lines: one thread, one request a connection, the handler sees
// the request as it came and returns the whole response.

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kernelmill::test {

inline std::string http_response(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

class tiny_http_server {
public:
  using handler = std::function<std::string(const std::string& head, const std::string& body)>;

  explicit tiny_http_server(handler f) : handler_(std::move(f)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 8);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread{[this] { serve(); }};
  }

  ~tiny_http_server() {
    ::shutdown(listener_, SHUT_RDWR); // wakes accept
    thread_.join();
    ::close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int requests() const { return requests_; }

private:
  void serve() {
    for (int peer; (peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      answer(peer);
      ::close(peer);
    }
  }

  void answer(int peer) {
    std::string text;
    char buffer[4096];
    size_t head_end = std::string::npos, want = 0;
    while (head_end == std::string::npos || text.size() < want) {
      auto got = ::recv(peer, buffer, sizeof(buffer), 0);
      if (got <= 0) return;
      text.append(buffer, static_cast<size_t>(got));
      if (head_end != std::string::npos) continue;
      head_end = text.find("\r\n\r\n");
      if (head_end == std::string::npos) continue;
      want = head_end + 4;
      auto length = text.find("Content-Length: ");
      if (length != std::string::npos && length < head_end)
        want += std::stoul(text.substr(length + 16));
      if (text.find("Expect: 100-continue") < head_end)
        send_all(peer, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    ++requests_;
    send_all(peer, handler_(text.substr(0, head_end), text.substr(head_end + 4)));
  }

  static void send_all(int peer, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      auto sent = ::send(peer, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }

  handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

} // namespace kernelmill::test
