#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "actors/policy_client/protocol/sse_parser.hpp"

namespace kernelmill {
namespace sse_parser_test {

struct collected {
  std::vector<std::string> events;
  bool at_boundary = false;
};

// Feeds `text` in two pieces, cut at `cut`.
collected parse(std::string_view text, size_t cut) {
  collected result;
  sse_parser parser{[&](const sse_event& x) {
    result.events.push_back(x.type + "|" + x.data);
    return true;
  }};
  parser.feed(text.substr(0, cut));
  parser.feed(text.substr(cut));
  result.at_boundary = parser.at_boundary();
  return result;
}

void expect_at_every_split(std::string_view text, const std::vector<std::string>& want) {
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    auto got = parse(text, cut);
    EXPECT_EQ(got.events, want) << "cut at " << cut;
    EXPECT_TRUE(got.at_boundary) << "cut at " << cut;
  }
}

TEST(sse_parser, gives_the_same_events_at_every_split_position) {
  expect_at_every_split("data: one\n\ndata: two\n\n", {"|one", "|two"});
}

TEST(sse_parser, takes_every_line_end_at_every_split_position) {
  expect_at_every_split("data: a\r\n\r\ndata: b\r\rdata: c\n\n", {"|a", "|b", "|c"});
}

TEST(sse_parser, joins_data_lines_and_skips_comments) {
  expect_at_every_split(": ping\n\ndata: a\n: in between\ndata: b\ndata\n\n", {"|a\nb\n"});
}

TEST(sse_parser, keeps_the_type_of_an_event_for_that_event_only) {
  expect_at_every_split("event: error\ndata: x\n\ndata:y\n\n", {"error|x", "|y"});
}

TEST(sse_parser, drops_a_type_without_data) {
  expect_at_every_split("event: error\n\ndata: x\n\n", {"|x"});
}

TEST(sse_parser, takes_a_byte_order_mark_and_characters_of_several_bytes) {
  expect_at_every_split("\xEF\xBB\xBF"
                        "data: \xE2\x82\xAC\xF0\x9F\x98\x80\n\n",
                        {"|\xE2\x82\xAC\xF0\x9F\x98\x80"});
}

TEST(sse_parser, removes_one_blank_after_the_colon_and_no_more) {
  expect_at_every_split("data:  two\n\n", {"| two"});
}

TEST(sse_parser, an_event_without_its_empty_line_is_not_given) {
  auto got = parse("data: a\n", 3);
  EXPECT_TRUE(got.events.empty());
  EXPECT_FALSE(got.at_boundary);
}

TEST(sse_parser, byte_by_byte_equals_at_once) {
  std::string text = "id: 7\r\nretry: 10\r\ndata: {\"a\": 1}\r\n\r\ndata: [DONE]\r\n\r\n";
  std::vector<std::string> events;
  sse_parser parser{[&](const sse_event& x) {
    events.push_back(x.data);
    return true;
  }};
  for (auto c : text) ASSERT_TRUE(parser.feed({&c, 1}));
  EXPECT_EQ(events, (std::vector<std::string>{"{\"a\": 1}", "[DONE]"}));
}

TEST(sse_parser, stops_at_an_event_above_the_limit) {
  sse_parser parser{[](const sse_event&) { return true; }, 100};
  EXPECT_TRUE(parser.feed("data: " + std::string(80, 'x')));
  EXPECT_FALSE(parser.feed(std::string(80, 'x')));
  EXPECT_TRUE(parser.overflowed());
  EXPECT_FALSE(parser.feed("\n\n"));
}

TEST(sse_parser, stops_when_the_reader_says_so) {
  int seen = 0;
  sse_parser parser{[&](const sse_event&) { return ++seen < 2; }};
  EXPECT_FALSE(parser.feed("data: 1\n\ndata: 2\n\ndata: 3\n\n"));
  EXPECT_EQ(seen, 2);
  EXPECT_FALSE(parser.overflowed());
}

} // namespace sse_parser_test
} // namespace kernelmill
