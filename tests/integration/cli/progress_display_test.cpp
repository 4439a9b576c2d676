#include "launch/commands/progress_display.hpp"

#include <gtest/gtest.h>

namespace kernelmill::commands {

namespace {

TEST(progress_display, a_warning_has_a_line_of_its_own_and_the_progress_goes_on_below) {
  progress_display display{true, 4};
  progress now;
  now.episodes_total = 8;
  now.seconds = 1;
  testing::internal::CaptureStderr();
  display.update(now);
  display.say("warn  | a server is away");
  display.say("warn  | still");
  now.seconds = 2;
  display.update(now);
  display.finish();
  auto shown = testing::internal::GetCapturedStderr();
  auto first = shown.find("\r\x1b[K0/8 episodes");
  auto warning = shown.find("\r\x1b[Kwarn  | a server is away\nwarn  | still\n");
  auto second = shown.find("\r\x1b[K0/8 episodes", warning);
  EXPECT_EQ(first, 0u) << shown;
  EXPECT_LT(first, warning) << shown;
  EXPECT_LT(warning, second) << shown;
  EXPECT_TRUE(shown.ends_with("\n")) << shown;
}

} // namespace

} // namespace kernelmill::commands
