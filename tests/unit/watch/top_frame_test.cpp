#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/analysis/watch/top_frame.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {
namespace top_frame_test {

using testing::HasSubstr;
using testing::Not;

json top_of(double turns, const std::string& detail = "native/row_sum, turn 1 of 4") {
  auto rows = json::array();
  for (int i = 0; i < 200; ++i)
    rows.push_back({{"run", "first"},
                    {"id", "g" + std::to_string(i) + ".e0"},
                    {"state", "queued"},
                    {"age_seconds", 3.0},
                    {"position", i + 1},
                    {"detail", detail}});
  return {
      {"at", 1000 + turns},
      {"nodes", json::array()},
      {"runs",
       {{{"run", "first"},
         {"state", "running"},
         {"episodes", 400},
         {"ended", 100},
         {"live", 200},
         {"turns", turns},
         {"accepted", 1},
         {"rejected", 2},
         {"infrastructure", 0},
         {"states", {{"queued", 200}}},
         {"policy",
          {{"in_flight", 1},
           {"window", 8},
           {"queued", 0},
           {"health", "answers in 500 ms"},
           {"is_well", true},
           {"servers", {{{"server", "a"}, {"health", "serves; 1 in flight"}, {"is_well", true}}}}}},
         {"queues",
          {{{"queue", "evaluate"},
            {"state", "starved"},
            {"waiting", 200},
            {"leased", 0},
            {"workers", 1},
            {"places", 0},
            {"done", 7},
            {"mean_seconds", 0.2}}}},
         {"slots", {{{"actor", "gpu_runner"}, {"id", "cpu0"}, {"state", "stuck"}, {"done", 7}}}},
         {"rows", rows}}}}};
}

std::string text_of(const std::vector<frame_line>& lines) {
  std::string result;
  for (const auto& x : lines) result += x.text + "\n";
  return result;
}

TEST(top_frame, fits_every_terminal) {
  for (auto [width, height] : {std::pair<size_t, size_t>{80, 24}, {1, 1}, {20, 3}, {300, 100}}) {
    auto lines = top_frame(top_of(3), {}, width, height);
    EXPECT_LE(lines.size(), height);
    for (const auto& line : lines) EXPECT_LE(cli::columns_of(line.text), width) << line.text;
  }
}

TEST(top_frame, shows_what_starves_and_the_first_episodes_at_80_by_24) {
  auto text = text_of(top_frame(top_of(3), {}, 80, 24));
  EXPECT_THAT(text, HasSubstr("200 live episodes"));
  EXPECT_THAT(text, HasSubstr("g0.e0"));
  EXPECT_THAT(text, HasSubstr("1st"));
  EXPECT_THAT(text, HasSubstr("cpu0 stuck"));
  EXPECT_THAT(text, HasSubstr("200 waiting, 0 given to 1 slot, 7 done"));
  EXPECT_THAT(text_of(top_frame(top_of(3), {}, 160, 24)), HasSubstr("STARVED"));
  EXPECT_THAT(text_of(top_frame(top_of(3), {}, 80, 24, {.selected = 100})), HasSubstr("g100.e0"));
}

TEST(top_frame, says_in_words_how_the_policy_servers_do) {
  auto text = text_of(top_frame(top_of(3), {}, 160, 24));
  EXPECT_THAT(text, HasSubstr("policy   1 in flight of 8, 0 queued; answers in 500 ms"));
  EXPECT_THAT(text, HasSubstr("server a serves; 1 in flight"));
}

TEST(top_frame, marks_the_selected_episode_alone_and_names_what_was_chosen) {
  auto lines = top_frame(top_of(3), {}, 160, 24,
                         {.selected = 2, .filter = "state=queued", .sort = "-age_seconds"});
  EXPECT_THAT(lines.front().text, HasSubstr("filter: state=queued; sorted by -age_seconds"));
  size_t marked = 0;
  for (const auto& line : lines)
    if (line.style == line_style::selected) {
      ++marked;
      EXPECT_THAT(line.text, HasSubstr("g2.e0"));
    }
  EXPECT_EQ(marked, 1U);
  for (const auto& line : top_frame(top_of(3), {}, 160, 24))
    EXPECT_NE(line.style, line_style::selected);
}

TEST(top_frame, sorts_over_all_runs) {
  auto top = top_of(3);
  auto other = top["runs"][0];
  other["rows"] = json::array({other["rows"][0]});
  other["rows"][0]["run"] = "second";
  other["rows"][0]["age_seconds"] = 100.0;
  top["runs"].push_back(other);
  EXPECT_EQ((*rows_of_episodes(top, "")[0])["run"], "first");
  EXPECT_EQ((*rows_of_episodes(top, "-age_seconds")[0])["run"], "second");
}

TEST(top_frame, says_what_changed_most_in_the_window) {
  change_window window;
  window.add(top_of(3));
  window.add(top_of(8));
  auto changes = window.changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].what, "first: turns");
  EXPECT_DOUBLE_EQ(changes[0].seconds, 5);
  EXPECT_THAT(text_of(top_frame(top_of(8), window, 120, 40)),
              HasSubstr("first: turns 3 -> 8 (+1.0/s)"));
}

TEST(top_frame, text_of_a_model_does_not_reach_the_terminal_as_control_sequences) {
  auto text =
      text_of(top_frame(top_of(3, "\x1b[31mred\x1b]0;title\x07\nnext \xff line"), {}, 120, 40));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
}

} // namespace top_frame_test
} // namespace kernelmill::watch
