#include "launch/cluster/front_door.hpp"

#include <filesystem>
#include <future>

#include <sys/resource.h>

#include "tests/unit/cluster/door_fixture.hpp"

namespace kernelmill {
namespace front_door_test {

class front_door_test : public door_fixture {
protected:
  void open(const door_limits& limits) { open(limits, tls_of("own")); }

  void open(const door_limits& limits, const shared_tls& tls) {
    auto made = front_door::open("127.0.0.1", 0, tls, limits, [this](link_socket x) {
      // Peers that have the answer are counted.
      std::lock_guard guard{mutex};
      // A head greets first.
      if (x.session)
        EXPECT_EQ(SSL_write(x.session.get(), "hello", 5), 5);
      else
        EXPECT_EQ(::send(x.fd.get(), "hello", 5, MSG_NOSIGNAL), 5);
      inside.push_back(std::move(x));
    });
    ASSERT_TRUE(made) << made.error().message;
    door = std::move(*made);
  }

  void open_without_tls(const door_limits& limits) { open(limits, nullptr); }
  bool is_let_in_without_tls() { return dial({"127.0.0.1", door->port()}, nullptr).has_value(); }

  bool is_let_in(const std::string& who) {
    return dial({"127.0.0.1", door->port()}, tls_of(who)).has_value();
  }

  /// Whether the other side said nothing but good-bye.
  static bool hung_up_at_once(const link_socket& x) {
    char byte;
    return ::recv(x.fd.get(), &byte, 1, MSG_PEEK) <= 0;
  }

  size_t let_in() {
    std::lock_guard guard{mutex};
    return inside.size();
  }

  std::mutex mutex;
  std::vector<link_socket> inside;
  std::unique_ptr<front_door> door; // its thread uses the others
};

TEST_F(front_door_test, lets_in_members_alone) {
  open({});
  EXPECT_TRUE(is_let_in("own"));
  (void)dial({"127.0.0.1", door->port()}, tls_of("other"));
  EXPECT_FALSE(dial({"127.0.0.1", door->port()}, tls_of("other")));
  EXPECT_TRUE(hung_up(stranger(door->port(), "GET / HTTP/1.1\r\n\r\n")));
  EXPECT_EQ(let_in(), 1u);
}

TEST_F(front_door_test, needs_no_file_after_it_has_opened) {
  open({});
  auto member = tls_of("own");
  std::filesystem::remove_all(root.path() + "/own");
  EXPECT_TRUE(dial({"127.0.0.1", door->port()}, member));
}

TEST_F(front_door_test, hangs_up_on_a_peer_that_says_nothing_in_time) {
  open({.handshake_ms = 20});
  EXPECT_TRUE(hung_up(stranger(door->port())));
  EXPECT_TRUE(hung_up(stranger(door->port(), {"\x16\x03\x01\x02\x00\x01", 6})));
  EXPECT_EQ(let_in(), 0u);
}

TEST_F(front_door_test, many_silent_peers_keep_no_other_out) {
  open({.waiting = 8, .of_address = 4, .handshake_ms = 600'000});
  std::vector<descriptor> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(stranger(door->port()));
  EXPECT_TRUE(is_let_in("own"));
  EXPECT_TRUE(hung_up(crowd.front())) << "the oldest made room";
}

TEST_F(front_door_test, without_tls_lets_in_a_peer_that_greets_and_hangs_up_on_others) {
  open_without_tls({.handshake_ms = 600'000});
  EXPECT_TRUE(is_let_in_without_tls());
  EXPECT_TRUE(hung_up(stranger(door->port(), "GET / HTTP/1.1\r\n\r\n")));
  EXPECT_TRUE(hung_up(stranger(door->port(), std::string(64, '\xff'))));
  EXPECT_EQ(let_in(), 1u);
}

TEST_F(front_door_test, without_tls_a_greeting_may_come_in_parts_and_what_follows_is_left) {
  open_without_tls({.handshake_ms = 600'000});
  auto fd = stranger(door->port(), std::string{plain_greeting.substr(0, 5)});
  auto rest = std::string{plain_greeting.substr(5)} + "more";
  ASSERT_EQ(::send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(rest.size()));
  ASSERT_TRUE(wait_readable(fd.get(), 30'000));
  ASSERT_EQ(let_in(), 1u);
  char text[8] = {};
  ASSERT_EQ(::recv(inside[0].fd.get(), text, sizeof text, 0), 4);
  EXPECT_STREQ(text, "more");
}

// Each of them stayed for ever, and 1,300 made a head deaf for seconds.
TEST_F(front_door_test, without_tls_a_silent_peer_is_one_of_few_and_is_hung_up_on_in_time) {
  open_without_tls({.waiting = 8, .handshake_ms = 600'000});
  std::vector<descriptor> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(stranger(door->port()));
  EXPECT_TRUE(is_let_in_without_tls());
  EXPECT_TRUE(hung_up(crowd.front())) << "the oldest made room";
  door.reset();
  open_without_tls({.handshake_ms = 20});
  EXPECT_TRUE(hung_up(stranger(door->port())));
  EXPECT_TRUE(hung_up(stranger(door->port(), "kernelmill")));
}

TEST_F(front_door_test, lets_in_only_so_many_at_once) {
  for (const auto& tls : {shared_tls{}, tls_of("own")}) {
    door.reset();
    inside.clear();
    open({.inside = 2}, tls);
    auto enters = [&] {
      auto link = dial({"127.0.0.1", door->port()}, tls);
      return link && !hung_up_at_once(*link);
    };
    std::vector<link_socket> held;
    for (int i = 0; i < 2; ++i) {
      auto link = dial({"127.0.0.1", door->port()}, tls);
      ASSERT_TRUE(link);
      held.push_back(std::move(*link));
    }
    EXPECT_FALSE(enters());
    {
      std::lock_guard guard{mutex};
      inside.pop_back(); // its place with it
    }
    EXPECT_TRUE(enters());
  }
}

/// Leaves the process so many descriptors, and gives them back.
class few_descriptors {
public:
  explicit few_descriptors(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = count;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
  rlimit before_{};
};

TEST_F(front_door_test, without_descriptors_it_pauses_and_goes_on) {
  open({});
  auto member = tls_of("own");
  std::vector<descriptor> crowd;
  for (int i = 0; i < 8; ++i) crowd.push_back(new_socket());
  {
    // The lowest free one: those that are open stay, and no peer gets another.
    few_descriptors none{static_cast<rlim_t>(new_socket().get())};
    for (const auto& fd : crowd) ASSERT_TRUE(connect(fd, door->port()));
    EXPECT_TRUE(hung_up(crowd.front()));
  }
  EXPECT_TRUE(dial({"127.0.0.1", door->port()}, member));
}

TEST_F(front_door_test, the_last_descriptors_are_not_for_strangers) {
  open({.handshake_ms = 600'000, .highest_fd = 3});
  EXPECT_TRUE(hung_up(stranger(door->port())));
  EXPECT_EQ(let_in(), 0u);
}

TEST(door_limits, leave_the_process_a_quarter_of_its_descriptors) {
  EXPECT_EQ(door_limits::for_descriptors(256).highest_fd, 192);
  EXPECT_EQ(door_limits::for_descriptors(256).inside, 128u);
  EXPECT_EQ(door_limits::for_descriptors(256).waiting, 16u);
  EXPECT_EQ(door_limits::for_descriptors(1024).waiting, 64u);
  EXPECT_EQ(door_limits::for_descriptors(20'000).waiting, 128u);
}

} // namespace front_door_test
} // namespace kernelmill
