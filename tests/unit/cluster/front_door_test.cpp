#include "launch/cluster/front_door.hpp"

#include <filesystem>
#include <future>

#include <sys/resource.h>

#include "tests/unit/cluster/door_fixture.hpp"

namespace kernelmill {
namespace {

class front_door_test : public door_fixture {
protected:
  void open(const door_limits& limits) {
    auto made = front_door::open("127.0.0.1", 0, tls_of("own"), limits, [this](link_socket x) {
      // A head greets first.
      EXPECT_EQ(SSL_write(x.session.get(), "hello", 5), 5);
      std::lock_guard guard{mutex};
      inside.push_back(std::move(x));
    });
    ASSERT_TRUE(made) << made.error().message;
    door = std::move(*made);
  }

  bool is_let_in(const std::string& who) {
    return dial({"127.0.0.1", door->port()}, tls_of(who)).has_value();
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

TEST_F(front_door_test, hangs_up_on_who_says_nothing_in_time) {
  open({.handshake_ms = 20});
  EXPECT_TRUE(hung_up(stranger(door->port())));
  EXPECT_TRUE(hung_up(stranger(door->port(), {"\x16\x03\x01\x02\x00\x01", 6})));
  EXPECT_EQ(let_in(), 0u);
}

TEST_F(front_door_test, many_who_say_nothing_keep_nobody_out) {
  open({.waiting = 8, .of_address = 4, .handshake_ms = 600'000});
  std::vector<descriptor> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(stranger(door->port()));
  EXPECT_TRUE(is_let_in("own"));
  EXPECT_TRUE(hung_up(crowd.front())) << "the oldest made room";
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
    // The lowest free one: those that are open stay, and nobody gets another.
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
  EXPECT_EQ(door_limits::for_descriptors(256).waiting, 16u);
  EXPECT_EQ(door_limits::for_descriptors(1024).waiting, 64u);
  EXPECT_EQ(door_limits::for_descriptors(20'000).waiting, 128u);
}

} // namespace
} // namespace kernelmill
