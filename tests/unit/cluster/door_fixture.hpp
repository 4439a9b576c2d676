#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "launch/cluster/credentials.hpp"
#include "launch/cluster/dial.hpp"
#include "launch/cluster/link.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {

/// Credentials of clusters by name, and strangers who connect.
class door_fixture : public testing::Test {
protected:
  shared_tls tls_of(const std::string& name) const {
    auto directory = root.path() + "/" + name;
    (void)make_credentials(directory);
    return choose_link({directory, false}, {"127.0.0.1", 0}).value_or(nullptr);
  }

  /// A socket that is no one's yet.
  static descriptor new_socket() {
    return descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  }

  static bool connect(const descriptor& fd, uint16_t port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }

  static descriptor stranger(uint16_t port, const std::string& words = {}) {
    auto fd = new_socket();
    EXPECT_TRUE(connect(fd, port));
    if (!words.empty()) (void)::send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL);
    return fd;
  }

  /// Waits until the other side hangs up.
  static bool hung_up(const descriptor& fd) {
    char bytes[256];
    ssize_t count = 1;
    while (count > 0 && wait_readable(fd.get(), 30'000))
      count = ::recv(fd.get(), bytes, sizeof bytes, 0);
    return count <= 0;
  }

  temporary_directory root;
};

} // namespace kernelmill
