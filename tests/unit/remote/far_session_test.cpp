// The far end's folder: files come by hash, once, and from where a broken connection left them.

#include "launch/remote/far_session.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "messages/base/digest.hpp"

namespace kernelmill::remote {

namespace {

namespace fs = std::filesystem;

class far_sessions : public ::testing::Test {
protected:
  far_sessions() : root_(fs::temp_directory_path() / ("far_sessions_" + new_session_id())) {
    EXPECT_TRUE(prepare_root(root_.string()));
  }
  ~far_sessions() override { fs::remove_all(root_); }

  static std::string order_of(const std::string& path, const std::string& text) {
    order x;
    x.words = {"version"};
    x.inputs = {{path, text.size(), sha256_hex(text), false}};
    x.outputs = {"out"};
    return to_json(x).dump();
  }

  expected<far_session> open(const std::string& text, const std::string& id = "0123456789abcdef") {
    return far_session::open(root_.string(), id, order_of("in/a.txt", text));
  }

  fs::path root_;
};

std::string text_of(const fs::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

} // namespace

TEST_F(far_sessions, take_a_file_from_where_it_was_left) {
  const std::string text = "first half, second half";
  auto session = open(text);
  ASSERT_TRUE(session);
  ASSERT_EQ(session->missing().size(), 1u);
  EXPECT_EQ(session->missing()[0].have, 0u);
  EXPECT_TRUE(session->add({sha256_hex(text), 0, 0}, text.substr(0, 10), false));
  auto again = open(text); // another connection
  ASSERT_TRUE(again);
  EXPECT_EQ(again->missing()[0].have, 10u);
  EXPECT_TRUE(again->add({sha256_hex(text), 0, 10}, text.substr(10), true));
  EXPECT_TRUE(again->missing().empty());
  EXPECT_TRUE(again->lay_out());
  EXPECT_TRUE(again->lay_out());
  EXPECT_EQ(text_of(fs::path{again->work()} / "in/a.txt"), text);
  auto other = open(text, "fedcba9876543210");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->missing().empty()) << "what one session brought, others have";
}

TEST_F(far_sessions, refuse_bytes_that_are_not_what_they_say) {
  auto session = open("text");
  ASSERT_TRUE(session);
  EXPECT_FALSE(session->add({sha256_hex("text"), 0, 0}, "tezt", true));
  EXPECT_EQ(session->missing()[0].have, 0u) << "nothing of it is kept";
  EXPECT_FALSE(session->add({sha256_hex("other"), 0, 0}, "other", true));
  EXPECT_FALSE(session->add({sha256_hex("text"), 0, 0}, "text and more", true));
  EXPECT_FALSE(session->add({"../../x", 0, 0}, "text", true));
  EXPECT_FALSE(far_session::open(root_.string(), "0123456789abcdef", order_of("b", "other")));
  EXPECT_FALSE(far_session::open(root_.string(), "../x", order_of("b", "other")));
  EXPECT_FALSE(far_session::open(root_.string(), "fedcba9876543210", order_of("../b", "other")));
  EXPECT_FALSE(far_session::find(root_.string(), "../../../../etc"));
}

TEST_F(far_sessions, tell_their_state_and_their_exit_code) {
  auto session = open("text");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->state(), session_state::opened);
  EXPECT_FALSE(session->exit());
  std::ofstream{session->folder() + "/started"} << "1\n";
  EXPECT_EQ(session->state(), session_state::lost) << "no process holds its lock";
  EXPECT_EQ(session->process(), 0);
  std::ofstream{session->folder() + "/exit"} << R"({"code": 5, "signal": 0})";
  EXPECT_EQ(session->state(), session_state::ended);
  ASSERT_TRUE(session->exit());
  EXPECT_EQ(session->exit()->code, 5);
  auto list = describe_sessions(root_.string());
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["state"], "ended");
  EXPECT_EQ(list[0]["command"], "version");
  EXPECT_TRUE(session->remove());
  EXPECT_TRUE(describe_sessions(root_.string()).empty());
}

TEST_F(far_sessions, go_when_they_are_old) {
  auto aged = [&](const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours{hours});
  };
  auto fresh = open("a", "0000000000000001"), old = open("b", "0000000000000002"),
       ended = open("c", "0000000000000003");
  ASSERT_TRUE(fresh && old && ended);
  std::ofstream{ended->folder() + "/started"} << "1\n";
  std::ofstream{ended->folder() + "/exit"} << R"({"code": 0, "signal": 0})";
  std::ofstream{root_ / "blobs" / "x"} << "x";
  aged(old->folder(), 2);
  aged(ended->folder(), 100);
  aged(root_ / "blobs" / "x", 200);
  EXPECT_TRUE(prepare_root(root_.string()));
  EXPECT_TRUE(fs::exists(fresh->folder()));
  EXPECT_FALSE(fs::exists(old->folder())) << "never started";
  EXPECT_TRUE(fs::exists(ended->folder())) << "its files may be fetched for a week";
  EXPECT_FALSE(fs::exists(root_ / "blobs" / "x"));
  aged(ended->folder(), 200);
  EXPECT_TRUE(prepare_root(root_.string()));
  EXPECT_FALSE(fs::exists(ended->folder()));
}

} // namespace kernelmill::remote
