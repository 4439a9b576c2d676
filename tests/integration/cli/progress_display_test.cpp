#include "launch/commands/run/progress_display.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelmill::commands {

namespace progress_display_test {

using ::testing::HasSubstr;
using ::testing::Not;

/// What is shown of `now`, after `before` where that is given.
std::string shown(bool terminal, const progress& now, const progress* before = nullptr) {
  progress_display display{terminal, 4};
  if (before) display.update(*before);
  testing::internal::CaptureStderr();
  display.update(now);
  display.finish();
  return testing::internal::GetCapturedStderr();
}

/// Sixteen groups of four, all at work, none done.
progress under_way(double seconds, uint64_t turns) {
  progress x;
  x.episodes_total = x.episodes_live = 64;
  x.turns = x.turns_fresh = turns;
  x.seconds = seconds;
  x.at_policy = 12;
  x.at_build = 3;
  x.at_slot = 40;
  x.in_slots = 2;
  x.waiting = 43;
  return x;
}

TEST(progress_display, counts_turns_and_says_what_waits_for_what) {
  auto before = under_way(1, 1);
  auto text = shown(false, under_way(11, 96), &before);
  EXPECT_THAT(text, HasSubstr("96/256 turns; 0/64 episodes ended: 0 accepted, 0 rejected; "));
  EXPECT_THAT(text, HasSubstr("about 18.0 s left; ")); // tests/unit/watch/time_left_test.cpp
  EXPECT_THAT(text, HasSubstr("waiting: 12 for the policy, 3 for a build, 40 for a slot; "));
  EXPECT_THAT(text, HasSubstr("40 for a slot; 2 in slots"));
}

TEST(progress_display, counts_what_was_committed_before_a_resume_as_no_pace) {
  auto before = under_way(1, 160), now = under_way(11, 180);
  before.turns_fresh = 1;
  now.turns_fresh = 21;
  EXPECT_THAT(shown(false, now, &before),
              HasSubstr("0/64 episodes ended: 0 accepted, 0 rejected; about 48.0 s"));
}

TEST(progress_display, expects_of_open_episodes_what_those_that_ended_early_say) {
  auto now = under_way(11, 64);
  now.episodes_done = 32;
  now.episodes_live = 0;
  now.turns_ended = 64;
  auto before = under_way(1, 0);
  EXPECT_THAT(shown(false, now, &before), HasSubstr("64/128 turns; 32/64 episodes ended: "));
}

TEST(progress_display, expects_nothing_of_a_run_that_ends) {
  auto before = under_way(1, 1), now = under_way(11, 96);
  now.ending = true;
  now.in_slots = 1;
  auto text = shown(false, now, &before);
  EXPECT_THAT(text, HasSubstr("ending: no new turns begin; 96 turns; 0/64 episodes ended: "));
  EXPECT_THAT(text, HasSubstr("; 1 in a slot"));
  EXPECT_THAT(text, Not(HasSubstr("left")));
}

TEST(progress_display, leaves_whole_parts_out_where_the_terminal_is_narrow) {
  ::setenv("COLUMNS", "70", 1);
  auto now = under_way(11, 96);
  now.tried_again = 5;
  now.attempts = 3;
  now.last_error = "the body is not JSON: <html>a page that a proxy has put there</html>";
  auto text = shown(true, now);
  EXPECT_THAT(text, HasSubstr("\r\x1b[K96/256 turns; 0/64 episodes"));
  EXPECT_THAT(text, Not(HasSubstr("policy:")));
  EXPECT_LT(text.size(), 70u + 6);
  ::setenv("COLUMNS", "200", 1);
  EXPECT_THAT(shown(true, now),
              HasSubstr("policy: 5 tried again, attempt 3: the body is not JSON"));
  ::unsetenv("COLUMNS");
}

// A run has steps left behind its last episode, and its progress is asked for until they are done.
TEST(progress_display, shows_the_end_once) {
  auto end = under_way(9, 64);
  end.episodes_done = 64;
  end.episodes_live = end.at_policy = end.at_build = end.at_slot = end.in_slots = 0;
  end.turns_ended = 64;
  for (bool terminal : {false, true}) {
    auto before = end;
    end.seconds += 1;
    EXPECT_THAT(shown(terminal, end, &before), Not(HasSubstr("64/64"))) << terminal;
  }
  progress_display display{true, 4};
  display.update(end);
  display.say("warn  | the line is gone from the terminal");
  testing::internal::CaptureStderr();
  display.update(end);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("64/64"));
}

TEST(progress_display, a_warning_has_a_line_of_its_own_and_the_progress_goes_on_below) {
  progress_display display{true, 4};
  auto now = under_way(1, 0);
  testing::internal::CaptureStderr();
  display.update(now);
  display.say("warn  | a server is away");
  display.say("warn  | still");
  now.seconds = 2;
  display.update(now);
  display.finish();
  auto text = testing::internal::GetCapturedStderr();
  auto first = text.find("\r\x1b[K0/256 turns");
  auto warning = text.find("\r\x1b[Kwarn  | a server is away\nwarn  | still\n");
  auto second = text.find("\r\x1b[K0/256 turns", warning);
  EXPECT_EQ(first, 0u) << text;
  EXPECT_LT(first, warning) << text;
  EXPECT_LT(warning, second) << text;
  EXPECT_TRUE(text.ends_with("\n")) << text;
}

} // namespace progress_display_test

} // namespace kernelmill::commands
