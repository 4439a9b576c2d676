#include "messages/framing.hpp"

#include <cstring>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "messages/common.capnp.h"

namespace kernelmill {
namespace framing_test {

class framing : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
  }

  void TearDown() override {
    hang_up();
    ::close(ends_[1]);
  }

  int ours() const { return ends_[0]; }
  int theirs() const { return ends_[1]; }

  void hang_up() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }

  void send_raw(uint32_t magic, uint64_t bytes, size_t bytes_of_header = 16) {
    char header[16];
    uint32_t kind = 1;
    std::memcpy(header, &magic, 4);
    std::memcpy(header + 4, &kind, 4);
    std::memcpy(header + 8, &bytes, 8);
    ASSERT_EQ(::send(ours(), header, bytes_of_header, 0), static_cast<ssize_t>(bytes_of_header));
  }

  static constexpr uint32_t good_magic = 0x4b4d4631;

private:
  int ends_[2] = {-1, -1};
};

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

TEST_F(framing, a_message_and_its_kind_arrive) {
  auto sent = build<wire::Fault>([](wire::Fault::Builder x) { x.setMessage("hello"); });
  ASSERT_TRUE(send_message(ours(), 7, sent));
  auto got = receive_frame(theirs());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, 7u);
  Message<wire::Fault> message{std::move(got->words)};
  EXPECT_EQ(message.open()->getMessage(), "hello");
}

TEST_F(framing, a_frame_without_words) {
  ASSERT_TRUE(send_frame(ours(), 3, nullptr, 0));
  auto got = receive_frame(theirs());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kind, 3u);
  EXPECT_EQ(got->words.size(), 0u);
}

TEST_F(framing, frames_keep_their_order_and_their_borders) {
  for (uint32_t i = 0; i < 20; ++i) {
    std::vector<uint64_t> words(i, i);
    ASSERT_TRUE(send_frame(ours(), i, words.data(), words.size() * 8));
  }
  for (uint32_t i = 0; i < 20; ++i) {
    auto got = receive_frame(theirs());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->kind, i);
    EXPECT_EQ(got->words.size(), i);
  }
}

TEST_F(framing, more_than_the_socket_holds_arrives_whole) {
  std::vector<uint64_t> words(1 << 20);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i;
  std::thread sender{[&] { EXPECT_TRUE(send_frame(ours(), 1, words.data(), words.size() * 8)); }};
  auto got = receive_frame(theirs());
  sender.join();
  ASSERT_TRUE(got);
  ASSERT_EQ(got->words.size(), words.size());
  EXPECT_EQ(std::memcmp(got->words.begin(), words.data(), words.size() * 8), 0);
}

TEST_F(framing, descriptors_ride_along_and_close_on_exec) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  uint64_t word = 0;
  ASSERT_TRUE(send_frame(ours(), 1, &word, 8, {pipe_ends[1], pipe_ends[1]}));
  auto got = receive_frame(theirs());
  ASSERT_TRUE(got);
  ASSERT_EQ(got->descriptors.size(), 2u);
  EXPECT_EQ(::write(got->descriptors[1], "x", 1), 1);
  char c = 0;
  EXPECT_EQ(::read(pipe_ends[0], &c, 1), 1);
  EXPECT_EQ(c, 'x');
  for (int fd : got->descriptors) {
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ::close(fd);
  }
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST_F(framing, descriptors_of_a_bad_frame_are_closed) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  std::vector<uint64_t> words(4);
  ASSERT_TRUE(send_frame(ours(), 1, words.data(), 32, {pipe_ends[1]}));
  int before = open_descriptors();
  auto got = receive_frame(theirs(), -1, 16);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().category, "malformed_message");
  EXPECT_EQ(open_descriptors(), before);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST_F(framing, a_peer_that_hangs_up) {
  hang_up();
  auto got = receive_frame(theirs());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().category, "peer_closed");
  EXPECT_EQ(send_frame(theirs(), 1, nullptr, 0).error().category, "peer_closed");
}

TEST_F(framing, a_peer_that_hangs_up_within_a_frame) {
  for (size_t part : {size_t{5}, size_t{16}}) {
    send_raw(good_magic, 64, part);
    ASSERT_EQ(::shutdown(ours(), SHUT_WR), 0);
    auto got = receive_frame(theirs());
    ASSERT_FALSE(got) << part;
    EXPECT_EQ(got.error().category, "peer_closed");
    TearDown();
    SetUp();
  }
}

TEST_F(framing, silence_ends_at_the_deadline) {
  EXPECT_EQ(receive_frame(theirs(), 1).error().category, "timeout");
  send_raw(good_magic, 64, 9);
  EXPECT_EQ(receive_frame(theirs(), 1).error().category, "timeout");
}

TEST_F(framing, a_peer_that_does_not_read_ends_the_sending_at_the_deadline) {
  std::vector<uint64_t> words(1 << 20);
  EXPECT_EQ(send_frame(ours(), 1, words.data(), words.size() * 8, {}, 20).error().category,
            "timeout");
}

TEST_F(framing, headers_that_are_not_ours) {
  struct {
    uint32_t magic;
    uint64_t bytes;
  } const bad[] = {{0x20544547, 8},                     // "GET "
                   {good_magic, 12},                    // no whole words
                   {good_magic, max_message_bytes + 8}, // refused before it is allocated
                   {good_magic, ~uint64_t{0} - 7}};
  for (auto x : bad) {
    send_raw(x.magic, x.bytes);
    auto got = receive_frame(theirs());
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().category, "malformed_message");
    TearDown();
    SetUp();
  }
}

} // namespace framing_test
} // namespace kernelmill
