// read_json and write_json must say what nlohmann says, of every text.

#include <random>

#include <gtest/gtest.h>

#include "actors/policy_client/protocol/json_text.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace policy_client_json_text_test {

using nlohmann::json;

std::string dumped(const json& x) {
  return x.dump(-1, ' ', false, json::error_handler_t::replace);
}

void expect_same_reading(const std::string& text) {
  auto expected = json::parse(text, nullptr, false);
  auto found = read_json(text);
  EXPECT_EQ(found.type(), expected.type()) << text;
  EXPECT_EQ(dumped(found), dumped(expected)) << text;
}

const std::vector<std::string> texts{
    R"({"choices":[{"message":{"content":"a\nb\t\"c\" \\ \/ é ü 漢 😀"},"logprobs":null}],"n":1})",
    R"({"a":[1,-2,0,-0,3.5,-1e3,1E-7,2.5e+10,18446744073709551615,9223372036854775807]})",
    R"([18446744073709551616,-9223372036854775808,-9223372036854775809,1e400,1e-400,123456789.125])",
    R"(["\u0041\u00e9\u6f22\ud83d\ude00\u0000\b\f\r"])",
    R"(["\ud83d"])",
    R"(["\ude00"])",
    R"(["\ud83dx"])",
    R"(["\u12g4"])",
    R"(["\x"])",
    R"(["\)",
    "[\"a\nb\"]",
    "[\"\x7f\"]",
    "[\"\xff\"]",
    "[\"\xc3\"]",
    "[\"\xed\xa0\x80\"]",
    "[\"\xf4\x90\x80\x80\"]",
    "[\"\xe0\x80\x80\"]",
    "[\"\xc0\xaf\"]",
    "[\"\xe6\xbc",
    "",
    " ",
    "{",
    "}",
    "[1,]",
    "{\"a\":1,}",
    "{\"a\" 1}",
    "{a:1}",
    "[1 2]",
    "01",
    "1.",
    ".5",
    "-",
    "+1",
    "1e",
    "1e+",
    "tru",
    "true",
    "false",
    "null",
    "nullx",
    "\"x\"",
    " [ ] ",
    "\t{ }\r\n",
    "1 1",
    R"({"a":1,"a":2})",
    R"({"":{"":[[],{}]}})",
    "\xef\xbb\xbf[1]",
    std::string("[1]\0", 4),
    std::string(200, '[') + std::string(200, ']'),
};

TEST(json_text, reads_what_nlohmann_reads) {
  for (const auto& x : texts) expect_same_reading(x);
}

TEST(json_text, reads_broken_texts_as_nlohmann_does) {
  std::mt19937 random{7};
  const std::string bytes = "\"\\{}[],:0aeu1.- \n\t\x80\xc3\xa9\xff";
  for (const auto& text : texts) {
    for (int i = 0; i < 200 && !text.empty(); ++i) {
      auto changed = text;
      changed[random() % changed.size()] = bytes[random() % bytes.size()];
      if (i % 2 == 0) changed.resize(random() % (changed.size() + 1));
      expect_same_reading(changed);
    }
  }
}

TEST(json_text, special_bytes_are_found_at_every_place) {
  for (size_t size = 1; size < 40; ++size) {
    for (size_t at = 0; at < size; ++at) {
      for (const auto* special :
           {"\"", "\\", "\n", "\x1f", " ", "\x7f", "\x80", "é", "!", "#", "["}) {
        auto text = std::string(at, 'x') + special + std::string(size - at, 'y');
        auto written = write_json(json{{"k", text}});
        EXPECT_EQ(written, dumped(json{{"k", text}}));
        expect_same_reading(written);
        expect_same_reading("[\"" + text + "\"]");
      }
    }
  }
}

TEST(json_text, writes_what_nlohmann_writes) {
  for (const auto& text : texts) {
    EXPECT_EQ(write_json(json(text)), dumped(json(text)));
    auto x = json::parse(text, nullptr, false);
    if (x.is_discarded()) continue;
    EXPECT_EQ(write_json(x), dumped(x));
  }
  json x{{"\xff", "a\xc3"}, {"n", 1.5}, {"list", {nullptr, true, -3, 4u, ""}}};
  EXPECT_EQ(write_json(x), dumped(x));
}

TEST(json_text, long_strings_of_any_bytes_are_written_and_read) {
  std::mt19937 random{11};
  const std::vector<std::string> pieces{"x", "\n", "\"", "\\",          "\x01",
                                        "é", "漢", "😀",  "plain words "};
  for (size_t size : {1020, 1023, 1024, 1025, 2050, 20000}) {
    std::string text;
    while (text.size() < size) text += pieces[random() % pieces.size()];
    EXPECT_EQ(write_json(json(text)), dumped(json(text)));
    expect_same_reading(dumped(json{{"a", text}, {text, 1}}));
    expect_same_reading(json{{"a", text}}.dump(-1, ' ', true));
    text.resize(size);
    EXPECT_EQ(write_json(json(text)), dumped(json(text)));
    std::string bad(size, '\x02');
    bad.back() = '\xff';
    EXPECT_EQ(write_json(json(bad)), dumped(json(bad)));
  }
}

} // namespace policy_client_json_text_test
} // namespace kernelmill
