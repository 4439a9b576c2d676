#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/cli/terminal.hpp"

namespace kernelmill::cli {

namespace layout_test {

using ::testing::ElementsAre;

TEST(fold, breaks_at_blanks_alone) {
  EXPECT_THAT(fold("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(fold("one two three", 6), ElementsAre("one", "two", "three"));
  EXPECT_THAT(fold("incomprehensibilities of it", 5),
              ElementsAre("incomprehensibilities", "of it"));
  EXPECT_THAT(fold("  kept as it was", 9), ElementsAre("  kept as", "it was"));
  EXPECT_THAT(fold("a\nb c", 2), ElementsAre("a", "b", "c"));
  EXPECT_THAT(fold("one two three", 0), ElementsAre("one two three"));
  EXPECT_THAT(fold("", 5), ElementsAre(""));
}

TEST(shorten, keeps_whole_words) {
  EXPECT_EQ(shorten("the body is not JSON", 20), "the body is not JSON");
  EXPECT_EQ(shorten("the body is not JSON", 15), "the body is \xe2\x80\xa6");
}

TEST(table, folds_the_widest_cells_into_the_width_and_no_number) {
  auto text = format_table(
      {"ID", "TURNS", "SCORE>"},
      {{"g0.e0", "compile_error > slower > success", "12345"}, {"g0.e1", "success", "1"}}, 34);
  EXPECT_EQ(text, "ID     TURNS                 SCORE\n"
                  "g0.e0  compile_error >       12345\n"
                  "       slower > success\n"
                  "g0.e1  success                   1\n");
}

TEST(table, puts_below_what_has_no_place_in_the_row) {
  auto text = format_table({"TASK", "SPEEDUP", "TITLE"},
                           {{"native/row_sum", "3.31 [3.06, 3.60]", "Sum of each row"}}, 34);
  EXPECT_EQ(text, "TASK            SPEEDUP\n"
                  "    TITLE\n"
                  "native/row_sum  3.31 [3.06, 3.60]\n"
                  "    Sum of each row\n");
}

TEST(table, leaves_the_unit_of_a_header_to_its_cells) {
  EXPECT_EQ(format_table({"RUN", "TIME [s]>"}, {{"a", "3.0 s"}}, 0), "RUN   TIME\na    3.0 s\n");
}

TEST(table, is_as_wide_as_it_likes_where_no_width_is_known) {
  std::string words(200, 'x');
  EXPECT_EQ(format_table({"A"}, {{words + " y"}}, 0), "A\n" + words + " y\n");
}

TEST(table, lets_a_long_word_stick_out) {
  EXPECT_EQ(format_table({"A", "B"}, {{"incomprehensibilities", "b"}}, 10),
            "A\n    B\nincomprehensibilities\n    b\n");
}

} // namespace layout_test

} // namespace kernelmill::cli
