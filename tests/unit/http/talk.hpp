#pragma once

// A client that may say anything: a socket and its bytes.

#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kernelmill::http {

class talker {
public:
  explicit talker(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~talker() { leave(); }
  talker(const talker&) = delete;
  talker& operator=(const talker&) = delete;

  bool connected() const { return connected_; }

  void say(const std::string& text) {
    size_t done = 0;
    while (done < text.size()) {
      auto n = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return;
      done += static_cast<size_t>(n);
    }
  }

  /// All that comes until `mark` has come, or until the other side closes.
  std::string hear(const std::string& mark = {}) {
    std::string result;
    char part[4096];
    while (mark.empty() || result.find(mark) == result.npos) {
      auto n = ::recv(fd_, part, sizeof part, 0);
      if (n <= 0) break;
      result.append(part, static_cast<size_t>(n));
    }
    return result;
  }

  void leave() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

private:
  int fd_;
  bool connected_ = false;
};

/// Says one whole request and hears the answer to its end.
inline std::string ask(uint16_t port, const std::string& head, const std::string& body = {}) {
  talker x{port};
  x.say(head + "\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body);
  return x.hear();
}

} // namespace kernelmill::http
