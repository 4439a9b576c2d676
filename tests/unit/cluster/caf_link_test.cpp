// CAF behind the door: members talk, and no other program reaches its protocol.

#include <chrono>
#include <csignal>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include "launch/cluster/caf_link.hpp"
#include "tests/unit/cluster/door_fixture.hpp"

namespace kernelmill {
namespace caf_link_test {

caf::behavior answering(caf::event_based_actor*) {
  return {[](const std::string& x) { return x + "!"; }};
}

/// A process of a cluster, as far as CAF goes.
struct member {
  cluster_config config;
  caf::actor_system system{config};
};

constexpr auto limit = std::chrono::seconds(30);

class caf_link : public door_fixture {
protected:
  void SetUp() override {
    // As main() has it: a peer that goes away is an error of a write, not the end of a process.
    std::signal(SIGPIPE, SIG_IGN);
    actor = head.system.spawn(answering);
    auto listens = publish_behind_door(head.system, caf::actor_cast<caf::strong_actor_ptr>(actor),
                                       {}, {"127.0.0.1", 0}, tls_of("own"));
    ASSERT_TRUE(listens) << listens.error().message;
    port = *listens;
  }
  void TearDown() override { caf::anon_send_exit(actor, caf::exit_reason::user_shutdown); }

  /// What the actor answers; empty when it cannot be reached.
  std::string ask(const std::string& cluster, const std::string& text) {
    auto link = dial({"127.0.0.1", port}, tls_of(cluster));
    if (!link) return {};
    member node;
    auto found = greet(node.system, std::move(*link), port, {});
    if (!found) return {};
    std::string answer;
    caf::scoped_actor self{node.system};
    self->request(caf::actor_cast<caf::actor>(*found), limit, text)
        .receive([&](const std::string& x) { answer = x; }, [](const caf::error&) {});
    return answer;
  }

  member head;
  caf::actor actor;
  uint16_t port = 0;
};

TEST_F(caf_link, two_members_talk_and_a_stranger_does_not) {
  EXPECT_EQ(ask("own", "hello"), "hello!");
  EXPECT_EQ(ask("other", "hello"), "");
  EXPECT_EQ(ask("own", "again"), "again!");
}

// Longer than what a TLS record, a socket and CAF's buffers hold.
TEST_F(caf_link, long_messages_arrive_whole) {
  std::string text;
  for (int i = 0; text.size() < (16 << 20); ++i) text += std::to_string(i);
  EXPECT_EQ(ask("own", text), text + "!");
}

// 32 bytes are enough to end a CAF process that reads them as BASP: here TLS reads them. Strangers
// that stay on the line, in the middle of a handshake or without a word, hold up no member either.
TEST_F(caf_link, bytes_of_strangers_reach_no_protocol_and_hold_up_no_member) {
  std::vector<descriptor> strangers;
  for (int i = 0; i < 16; ++i) {
    std::string bytes(static_cast<size_t>(i % 4) * 16, static_cast<char>(i % 2 == 0 ? 0xff : i));
    if (i % 8 == 7) bytes = std::string{"\x16\x03\x01\x02\x00\x01", 6}; // of a ClientHello
    strangers.push_back(stranger(port, bytes));
  }
  EXPECT_EQ(ask("own", "hello"), "hello!");
}

} // namespace caf_link_test
} // namespace kernelmill
