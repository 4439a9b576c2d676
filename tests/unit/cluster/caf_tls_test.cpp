// What the credentials are for: CAF's TLS takes them as they are, and turns everybody else away.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/openssl/all.hpp>

#include "launch/cluster/credentials.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace {

caf::behavior answering(caf::event_based_actor*) {
  return {[](int32_t x) { return x + 1; }};
}

/// A process of a cluster, as far as CAF goes.
struct member {
  explicit member(const cluster_credentials& x) : config(x), system(config) {}

  struct configuration : caf::actor_system_config {
    explicit configuration(const cluster_credentials& x) {
      load<caf::io::middleman>();
      load<caf::openssl::manager>(); // after the middleman
      set("openssl.cafile", x.ca);
      set("openssl.certificate", x.certificate);
      set("openssl.key", x.key);
      set("scheduler.max-threads", 1);
    }
  } config;
  caf::actor_system system;
};

class caf_tls : public testing::Test {
protected:
  cluster_credentials make(const std::string& name) const {
    auto made = make_credentials(root.path() + "/" + name);
    auto found = find_credentials(made->directory);
    return *found;
  }

  temporary_directory root;
};

constexpr auto limit = std::chrono::seconds(10);

TEST_F(caf_tls, two_members_talk_and_a_stranger_does_not) {
  auto own = make("own");
  member head{own}, node{own}, stranger{make("other")};
  auto actor = head.system.spawn(answering);
  auto port = caf::openssl::publish(actor, 0, "127.0.0.1");
  ASSERT_TRUE(port) << caf::to_string(port.error());

  EXPECT_FALSE(caf::openssl::remote_actor(stranger.system, "127.0.0.1", *port));
  auto remote = caf::openssl::remote_actor(node.system, "127.0.0.1", *port);
  ASSERT_TRUE(remote) << caf::to_string(remote.error());
  caf::scoped_actor self{node.system};
  int32_t answer = 0;
  self->request(*remote, limit, int32_t{41})
      .receive([&](int32_t x) { answer = x; },
               [](const caf::error& e) { FAIL() << caf::to_string(e); });
  EXPECT_EQ(answer, 42);
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

// 32 bytes are enough to end a CAF process that reads them as BASP: here TLS reads them. Strangers
// who then stay on the line, in the middle of a handshake or without a word, hold up nobody either.
TEST_F(caf_tls, bytes_of_strangers_reach_no_protocol_and_hold_up_nobody) {
  auto own = make("own");
  member head{own}, node{own};
  auto actor = head.system.spawn(answering);
  auto port = caf::openssl::publish(actor, 0, "127.0.0.1");
  ASSERT_TRUE(port);
  std::vector<int> strangers;
  for (int i = 0; i < 16; ++i) {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(*port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    std::string bytes(static_cast<size_t>(i % 4) * 16, static_cast<char>(i % 2 == 0 ? 0xff : i));
    if (i % 8 == 7) bytes = std::string{"\x16\x03\x01\x02\x00\x01", 6}; // of a ClientHello
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    strangers.push_back(fd);
  }
  auto remote = caf::openssl::remote_actor(node.system, "127.0.0.1", *port);
  EXPECT_TRUE(remote) << caf::to_string(remote.error());
  for (int fd : strangers) ::close(fd);
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

} // namespace
} // namespace kernelmill
