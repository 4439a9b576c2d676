// Frames of remote sessions, with what a hostile end may send in their place.

#include "launch/remote/frames.hpp"

#include <gtest/gtest.h>

namespace kernelmill::remote {

namespace {

std::string problem_of(const std::string& bytes) {
  frame_reader reader;
  reader.add(bytes);
  auto x = reader.next();
  return x ? "" : x.error().category;
}

} // namespace

TEST(remote_frames, come_back_whole_from_pieces) {
  frame sent{"data", {{"stream", "stdout"}, {"offset", 7}}, std::string("a\0b\n", 4)};
  auto bytes = encode(sent) + encode({"beat"});
  frame_reader reader;
  std::vector<frame> got;
  for (char c : bytes) {
    reader.add({&c, 1});
    auto x = reader.next();
    ASSERT_TRUE(x);
    if (*x) got.push_back(std::move(**x));
  }
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].verb, "data");
  EXPECT_EQ(got[0].payload, sent.payload);
  EXPECT_EQ(got[0].head["offset"], 7);
  EXPECT_EQ(got[1].verb, "beat");
}

TEST(remote_frames, that_break_the_rules_are_refused) {
  const std::string hostile[] = {
      "no json\n",
      "[1, 2]\n",
      "{}\n",
      "{\"verb\": 7, \"bytes\": 0}\n",
      "{\"verb\": \"UP\", \"bytes\": 0}\n",
      "{\"verb\": \"data\"}\n",
      "{\"verb\": \"data\", \"bytes\": -1}\n",
      "{\"verb\": \"data\", \"bytes\": 99999999999999999999}\n",
      "{\"verb\": \"data\", \"bytes\": 67108865}\n",
      "{\"verb\": \"data\", \"bytes\": 0, \"x\": " + std::string(100, '[') + "\n",
      "\xff\xfe{\n",
      std::string(most_head + 1, 'x'),
      std::string(most_head + 1, ' ') + "\n",
  };
  for (const auto& x : hostile) EXPECT_EQ(problem_of(x), "remote_protocol") << x.substr(0, 80);
  EXPECT_EQ(problem_of("{\"verb\": \"data\", \"bytes\": 5}\nab"), "") << "more bytes may come";
}

TEST(remote_frames, carry_errors_without_control_bytes) {
  auto back = error_of(error_frame(
      {fault_class::configuration, "not_found", "failed: \x1b]0;owned\x07", "look\nhere"}));
  EXPECT_EQ(back.cls, fault_class::configuration);
  EXPECT_EQ(back.category, "not_found");
  EXPECT_EQ(back.message, "failed:  ]0;owned ");
  EXPECT_EQ(back.hint, "look here");
  EXPECT_EQ(error_of({"error", {{"category", "<b>"}}}).category, "remote_protocol");
}

} // namespace kernelmill::remote
