#pragma once

// A TCP server that answers with the bytes that a test gives, for what no HTTP library would send.

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

namespace kernelmill {

class raw_server {
public:
  /// `answer` gets the text of a request and its number within its connection, from 0; an empty
  /// answer closes the connection.
  using answer = std::function<std::string(const std::string& request, int number)>;

  explicit raw_server(answer make) : make_(std::move(make)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    thread_ = std::thread{[this] { accept_all(); }};
  }

  ~raw_server() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    {
      std::lock_guard guard{mutex_};
      for (auto fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (auto& x : workers_) x.join();
    ::close(listener_);
  }

  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  int connections() const { return connections_.load(); }

private:
  void accept_all() {
    for (;;) {
      auto fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      ++connections_;
      std::lock_guard guard{mutex_};
      open_.push_back(fd);
      workers_.emplace_back([this, fd] { serve(fd); });
    }
  }

  void serve(int fd) {
    for (int number = 0;; ++number) {
      auto request = read_request(fd);
      if (request.empty()) break;
      auto text = make_(request, number);
      if (text.empty()) break;
      for (size_t at = 0; at < text.size();) {
        auto n = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
    }
    std::lock_guard guard{mutex_};
    std::erase(open_, fd);
    ::close(fd);
  }

  static std::string read_request(int fd) {
    std::string text;
    std::vector<char> buffer(size_t{1} << 20);
    for (;;) {
      auto end = text.find("\r\n\r\n");
      if (end != std::string::npos && text.size() >= end + 4 + body_size(text)) return text;
      auto n = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (n <= 0) return {};
      text.append(buffer.data(), static_cast<size_t>(n));
    }
  }

  static size_t body_size(const std::string& text) {
    auto at = text.find("Content-Length: ");
    return at == std::string::npos ? 0 : std::stoul(text.substr(at + 16));
  }

  answer make_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::thread thread_;
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::thread> workers_;
};

inline std::string http_ok(const std::string& body, const std::string& headers = {}) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers +
         "\r\n" + body;
}

} // namespace kernelmill
