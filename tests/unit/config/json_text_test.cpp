#include "launch/config/json_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/support.hpp"

namespace kernelmill {

namespace json_text_test {

using testing::HasSubstr;

TEST(json_text, comments_are_read_over) {
  auto x = parse_json_text("a.json", "// first\n{ /* second */ \"a\": 1 } // last\n");
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_EQ(x->value["a"], 1);
}

TEST(json_text, a_key_knows_its_line_and_column) {
  auto x = parse_json_text(
      "a.json", "{\n  // note \"b\"\n  \"a\": {\n    \"b\": [1, {\"c\": \"}\"}]\n  }\n}");
  ASSERT_TRUE(x) << x.error().message;
  EXPECT_EQ(x->positions.at("a").line, 3u);
  EXPECT_EQ(x->positions.at("a.b").line, 4u);
  EXPECT_EQ(x->positions.at("a.b").column, 5u);
}

TEST(json_text, an_error_names_line_and_column_and_shows_the_line) {
  auto x = parse_json_text("bad.json", "{\n  \"a\": 1,\n  \"b\": }\n");
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "config_syntax");
  EXPECT_EQ(x.error().cls, fault_class::configuration);
  EXPECT_THAT(x.error().message, HasSubstr("bad.json: line 3, column 8"));
  EXPECT_THAT(x.error().message, HasSubstr("\n    \"b\": }\n         ^"));
}

TEST(json_text, a_trailing_comma_is_an_error_at_the_bracket_after_it) {
  auto x = parse_json_text("bad.json", "{\"a\": 1,\n}");
  ASSERT_FALSE(x);
  EXPECT_THAT(x.error().message, HasSubstr("line 2, column 1"));
}

TEST(json_text, a_repeated_key_is_an_error) {
  auto x = parse_json_text("bad.json", "{\"a\": {\"b\": 1,\n \"b\": 2}}");
  ASSERT_FALSE(x);
  EXPECT_THAT(x.error().message, HasSubstr("line 2, column 2: 'a.b' stands twice"));
}

TEST(json_text, every_prefix_of_a_document_is_an_error_and_not_a_crash) {
  const std::string text = R"({"a": {"b": [1, 2, "x\"y\u00e9"], "c": null} /* end */ , "d": 1e3})";
  for (size_t n = 0; n < text.size(); ++n)
    EXPECT_FALSE(parse_json_text("cut.json", text.substr(0, n))) << n;
  EXPECT_TRUE(parse_json_text("whole.json", text));
}

TEST(json_text, bytes_that_are_not_text_are_an_error) {
  EXPECT_FALSE(parse_json_text("x", std::string_view{"\0\1\2\xff", 4}));
  EXPECT_FALSE(parse_json_text("x", "{\"a\": \"\xff\xfe\"}"));
  EXPECT_FALSE(parse_json_text("x", ""));
}

TEST(json_text, a_byte_order_mark_is_no_part_of_the_document) {
  EXPECT_TRUE(parse_json_text("x", "\xef\xbb\xbf{\"a\": 1}"));
}

TEST(json_text, deep_nesting_is_refused) {
  auto x = parse_json_text("deep.json", std::string(100'000, '[') + std::string(100'000, ']'));
  ASSERT_FALSE(x);
  EXPECT_THAT(x.error().message, HasSubstr("nested deeper than"));
}

TEST(json_text, a_missing_file_and_a_directory_say_so) {
  test::scratch_directory scratch;
  auto missing = read_json_file(scratch.path() + "/none.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().category, "config_not_found");
  auto directory = read_json_file(scratch.path());
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("it is a directory"));
}

} // namespace json_text_test

} // namespace kernelmill
