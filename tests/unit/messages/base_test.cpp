#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <unistd.h>

#include "messages/base/base64.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"
#include "messages/without_stack.hpp"

namespace kernelmill {
namespace base_test {

TEST(without_stack, leaves_the_words_of_an_exception_and_no_addresses) {
  try {
    KJ_FAIL_REQUIRE("a record lies");
  } catch (const std::exception& e) {
    auto text = without_stack(std::string{e.what()} + "\nstack: 7f00 7f01");
    EXPECT_THAT(text, testing::HasSubstr("a record lies"));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("stack: ")));
  }
}

TEST(utf8, a_sequence_is_as_long_as_its_character) {
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("\xc3\xa9 and more"), 2u);
  EXPECT_EQ(utf8_length("\xe2\x82\xac"), 3u);
  EXPECT_EQ(utf8_length("\xf0\x9f\x98\x80"), 4u);
}

TEST(utf8, what_the_standard_excludes_is_no_sequence) {
  EXPECT_EQ(utf8_length("\xc0\x80"), 0u);         // overlong
  EXPECT_EQ(utf8_length("\xe0\x9f\xbf"), 0u);     // overlong
  EXPECT_EQ(utf8_length("\xf0\x8f\xbf\xbf"), 0u); // overlong
  EXPECT_EQ(utf8_length("\xed\xa0\x80"), 0u);     // a surrogate
  EXPECT_EQ(utf8_length("\xf4\x90\x80\x80"), 0u); // beyond U+10FFFF
  EXPECT_EQ(utf8_length("\x80"), 0u);             // begins in the middle
  EXPECT_EQ(utf8_length("\xe2\x82"), 0u);         // cut off
}

TEST(utf8, every_character_comes_back_as_its_number) {
  EXPECT_EQ(utf8_character("a"), U'a');
  EXPECT_EQ(utf8_character("\xc3\xa9"), U'\u00e9');
  EXPECT_EQ(utf8_character("\xe2\x82\xac"), U'\u20ac');
  EXPECT_EQ(utf8_character("\xf0\x9f\x98\x80"), U'\U0001f600');
}

TEST(utf8, a_prefix_never_ends_inside_a_character) {
  EXPECT_EQ(utf8_prefix("ab\xe2\x82\xac", 4), "ab");
  EXPECT_EQ(utf8_prefix("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
  EXPECT_EQ(utf8_prefix("abc", 5), "abc");
}

TEST(base_text, a_temporary_gives_a_text_of_its_own) {
  std::string_view kept = " a b\t";
  static_assert(std::is_same_v<decltype(trimmed(kept)), std::string_view>);
  static_assert(std::is_same_v<decltype(trimmed(std::string{kept})), std::string>);
  EXPECT_EQ(trimmed(kept), "a b");
  EXPECT_EQ(trimmed("\n \r"), "");
}

TEST(base_text, lines_come_without_their_ends) {
  std::string_view rest = "a\n\nb";
  EXPECT_EQ(next_line(rest), "a");
  EXPECT_EQ(next_line(rest), "");
  EXPECT_EQ(next_line(rest), "b");
  EXPECT_TRUE(rest.empty());
}

TEST(base_text, words_are_joined_in_one_line) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::set<std::string>{"b", "a"}), "a, b");
  EXPECT_EQ(joined(std::vector<const char*>{"", "x"}, " "), " x");
}

TEST(base_text, a_text_has_one_part_more_than_marks) {
  using testing::ElementsAre;
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
}

TEST(base_text, nothing_in_an_escaped_text_ends_its_quotes) {
  EXPECT_EQ(escaped("a \"b\" \\ c\nd"), "a \\\"b\\\" \\\\ c\\nd");
}

TEST(utf8, a_byte_begins_a_character_or_goes_on_with_it) {
  EXPECT_FALSE(continues_utf8('a'));
  EXPECT_FALSE(continues_utf8('\xc3'));
  EXPECT_TRUE(continues_utf8('\xa9'));
}

TEST(json_fields, what_is_missing_or_of_another_kind_counts_as_missing) {
  const auto x = nlohmann::json::parse(
      R"({"text": "a", "number": 1.5, "count": 3, "below": -3, "flag": true, "null": null})");
  EXPECT_EQ(text_in(x, "text"), "a");
  EXPECT_EQ(text_in(x, "number"), "");
  EXPECT_EQ(text_in(x, "none"), "");
  EXPECT_EQ(text_in(x["null"], "text"), "");
  EXPECT_EQ(number_in(x, "number"), 1.5);
  EXPECT_EQ(number_in(x, "text"), 0);
  EXPECT_EQ(count_in(x, "count", 7), 3u);
  EXPECT_EQ(count_in(x, "below", 7), 7u);
  EXPECT_EQ(count_in(x, "number", 7), 7u);
  EXPECT_TRUE(flag_in(x, "flag", false));
  EXPECT_TRUE(flag_in(x, "count", true));
}

TEST(base_files, what_the_kernel_makes_up_is_read_to_its_end) {
  auto text = read_whole("/proc/self/stat");
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->ends_with("\n"));
  EXPECT_FALSE(read_whole("/proc/self/no_such_file"));
  EXPECT_FALSE(read_whole("/proc"));
}

TEST(base_files, as_many_bytes_as_are_asked_for_come_from_either_end) {
  descriptor file{::memfd_create("kernelmill-test", MFD_CLOEXEC)};
  ASSERT_TRUE(file);
  EXPECT_EQ(read_first(file.get(), 4), "");
  ASSERT_EQ(::write(file.get(), "abcdef", 6), 6); // it stands at its end
  EXPECT_EQ(read_first(file.get(), 4), "abcd");
  EXPECT_EQ(read_last(file.get(), 4), "cdef");
  EXPECT_EQ(read_first(file.get(), 9), "abcdef");
  EXPECT_EQ(read_last(file.get(), 9), "abcdef");
  EXPECT_EQ(read_first(-1, 4), "");
}

TEST(base_files, a_file_of_many_pieces_comes_back_whole) {
  auto path = std::filesystem::path{testing::TempDir()} /
              ("kernelmill_base_test." + std::to_string(::getpid()));
  std::string content(100'003, 'x');
  content += '\0';
  std::ofstream{path, std::ios::binary} << content;
  EXPECT_EQ(read_whole(path.string()), content);
  std::filesystem::remove(path);
}

TEST(base64, comes_back_as_it_went) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(from_base64(to_base64(all)), all);
  EXPECT_EQ(from_base64("Zm8"), "fo") << "without what fills it up";
}

TEST(base64, has_one_alphabet_unless_both_are_asked_for) {
  EXPECT_EQ(from_base64("-_8="), std::nullopt);
  EXPECT_EQ(from_base64("-_8=", base64_letters::any), from_base64("+/8="));
  EXPECT_EQ(from_base64("Zm 8"), std::nullopt);
  EXPECT_EQ(from_base64("Zg==Zg=="), std::nullopt);
}

TEST(utc, is_written_as_records_hold_it) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(1795510800), "2026-11-24T09:00:00Z");
}

} // namespace base_test
} // namespace kernelmill
