#include "referee_fixture.hpp"

#include "tests/integration/referee/too_busy.hpp"

using namespace kernelmill;
using testing::Contains;

namespace referee_timing_test {

void timed(wire::EvaluateRequest::Builder x) {
  x.getTiming().setEnabled(true);
}

// A busy machine makes intervals wide. Where the question is what they hold, they are taken so.
void timed_at_any_width(wire::EvaluateRequest::Builder x) {
  timed(x);
  x.getTiming().setWidest(1e3);
}

class referee_timing : public referee_fixture {};

TEST_F(referee_timing, the_baseline_against_itself_is_about_one) {
  auto result = evaluate(row_sum(honest_body), timed_at_any_width);
  auto t = result.open()->getTiming();
  SKIP_WHEN_TOO_BUSY(t);
  ASSERT_TRUE(t.getMeasured()) << summary(result);
  EXPECT_EQ(t.getClock(), "outside");
  EXPECT_GE(t.getSamples(), 4u); // two blocks; more on a quiet machine
  EXPECT_GT(t.getCandidateMs(), t.getRooflineMs());
  EXPECT_GT(t.getOverheadMs(), 0);
  EXPECT_LE(t.getSpeedup().getLow(), t.getSpeedup().getEstimate());
  EXPECT_GE(t.getSpeedup().getHigh(), t.getSpeedup().getEstimate());
  EXPECT_EQ(t.getShape(), "rows=128 cols=1024");
  EXPECT_EQ(critical_rules(*result.open()).size(), 0u);
  std::printf("candidate %.4f ms, baseline %.4f ms, speedup %.3f [%.3f, %.3f], overhead %.4f ms, "
              "roofline %.4f ms, %s, %.1f ms in all\n",
              t.getCandidateMs(), t.getReferenceMs(), t.getSpeedup().getEstimate(),
              t.getSpeedup().getLow(), t.getSpeedup().getHigh(), t.getOverheadMs(),
              t.getRooflineMs(), t.getNote().cStr(), result.open()->getSeconds() * 1e3);
}

TEST_F(referee_timing, a_much_slower_kernel_is_paid_little) {
  auto slow = "for (int r = 0; r < 40; ++r) { asm volatile(\"\" ::: \"memory\"); " +
              std::string{honest_body} + " }";
  auto result = evaluate(row_sum(slow), timed_at_any_width);
  auto t = result.open()->getTiming();
  SKIP_WHEN_TOO_BUSY(t);
  ASSERT_TRUE(t.getMeasured()) << summary(result);
  EXPECT_LT(t.getSpeedup().getHigh(), 0.5) << summary(result);
}

TEST_F(referee_timing, right_in_the_cases_and_wrong_when_timed_is_found) {
  auto result = evaluate(
      row_sum("if (rows == 128 && cols == 1024 && ++calls > 4) return;" + std::string{honest_body},
              "static int calls;"),
      timed);
  EXPECT_FALSE(result.open()->getCorrect());
  EXPECT_THAT(critical_rules(*result.open()), Contains("wrong_when_timed")) << summary(result);
}

TEST_F(referee_timing, work_between_the_calls_is_found) {
  auto result = evaluate(row_sum(std::string{honest_body},
                                 "#include <thread>\nstatic bool begun = (std::thread([] { "
                                 "for (;;) asm volatile(\"\"); }).detach(), true);"),
                         timed);
  EXPECT_THAT(critical_rules(*result.open()), Contains("background_work")) << summary(result);
}

TEST_F(referee_timing, what_is_wrong_for_other_contents_only_is_found_at_the_timed_shape) {
  auto lock = "if (rows == 128 && cols == 1024) for (int i = 0; i < rows * cols; ++i) "
              "if (x[i] > 50) return;";
  auto result = evaluate(row_sum(lock + std::string{honest_body}), timed);
  EXPECT_FALSE(result.open()->getCorrect());
  EXPECT_THAT(critical_rules(*result.open()), Contains("wrong_when_timed")) << summary(result);
}

TEST_F(referee_timing, a_candidate_that_is_slow_for_other_contents_is_paid_as_for_those) {
  auto slow =
      "int negative = 0; for (int i = 0; i < 256 && i < rows * cols; ++i) negative += x[i] < 0; "
      "bool usual = rows != 128 || (negative > 64 && x[0] < 4 && x[0] > -4); "
      "for (int r = usual ? 1 : 40; r > 0; --r) { asm volatile(\"\" ::: \"memory\"); " +
      std::string{honest_body} + " }";
  auto result = evaluate(row_sum(slow), timed_at_any_width);
  auto t = result.open()->getTiming();
  SKIP_WHEN_TOO_BUSY(t);
  ASSERT_TRUE(t.getMeasured()) << summary(result);
  EXPECT_LT(t.getSpeedup().getLow(), 0.5) << summary(result);
  EXPECT_GT(t.getKinds().size(), 1u);
}

// On some contents alone, which a control has to be made on.
TEST_F(referee_timing, a_baseline_that_is_wrong_now_and_then_is_the_tasks_fault) {
  auto folder = changed_task(
      {{"baseline.cpp",
        row_sum("if (long(rows) * cols > 100000 && x[0] > 0.5f) { y[0] = 1e9f; return; }" +
                std::string{honest_body})}});
  auto result = evaluate(row_sum(honest_body), [&](wire::EvaluateRequest::Builder x) {
    x.setTaskDir(folder);
    x.initTiming().setEnabled(true);
  });
  EXPECT_STREQ(result.open()->getFault().getCategory().cStr(), "bad_baseline") << summary(result);
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION);
}

TEST_F(referee_timing, a_baseline_that_is_wrong_when_timed_is_the_tasks_fault) {
  auto folder = changed_task(
      {{"baseline.cpp", row_sum(std::string{honest_body} + "if (cols == 1024) y[5] = 0;")}});
  auto result = evaluate(row_sum(honest_body), [&](wire::EvaluateRequest::Builder x) {
    timed(x);
    x.setTaskDir(folder);
    x.setTaskDigest("");
  });
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::CONFIGURATION);
  EXPECT_EQ(result.open()->getFault().getCategory(), "bad_baseline") << summary(result);
}

// The call sleeps for more than timing may take in all, once it sees other contents.
TEST_F(referee_timing, a_candidate_that_uses_up_the_time_in_a_slow_call_is_paid_for_that_call) {
  auto result = evaluate(
      row_sum(
          "bool usual = true; for (long i = 0; i < long(rows) * cols; ++i) usual &= x[i] < 8; " +
              std::string{honest_body} +
              "timespec t{1, 0}; if (!usual && cols == 1024) nanosleep(&t, nullptr);",
          "#include <time.h>"),
      [](wire::EvaluateRequest::Builder x) { timed(x); });
  auto t = result.open()->getTiming();
  SKIP_WHEN_TOO_BUSY(t);
  if (t.getMeasured())
    EXPECT_LT(t.getSpeedup().getHigh(), 1) << summary(result);
  else // one slow call among fast ones makes an interval wide
    EXPECT_EQ(t.getNotTimed(), wire::NotTimed::CANDIDATE) << summary(result);
}

// In its calls a candidate sees how often a thread of its woke up between them.
TEST_F(referee_timing, a_candidate_that_is_not_called_does_not_run) {
  auto sleeper = R"(
#include <atomic>
#include <thread>
#include <time.h>
static double seconds() {
  timespec x;
  clock_gettime(CLOCK_MONOTONIC, &x);
  return x.tv_sec + x.tv_nsec * 1e-9;
}
static std::atomic<long> wakes{0};
static double left;
static long seen;
static int gaps, ran;
static void doze() {
  for (timespec pause{0, 100'000};; ++wakes) nanosleep(&pause, nullptr);
}
static bool begun = (std::thread(doze).detach(), true);
)";
  auto body = "long now = wakes; double gap = seconds() - left;"
              "if (left > 0 && gap > 1e-3) { ++gaps; ran += now - seen > 2 + gap / 500e-6; }"
              "if (gaps < 6 || ran < gaps / 2) {" +
              std::string{honest_body} + "}" +
              "seen = wakes; left = cols == 1024 ? seconds() : 0;"; // between cases it may go on
  auto result = evaluate(row_sum(body, sleeper), timed);
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
}

// A thread that says SIGCONT all the time would take back each SIGSTOP before it arrives.
TEST_F(referee_timing, no_signal_of_its_own_lets_it_go_on) {
  auto result = evaluate(row_sum(std::string{honest_body} + "if (raise(SIGCONT) == 0) y[0] += 1;",
                                 "#include <csignal>"));
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
}

TEST_F(referee_timing, no_timer_lets_it_go_on) {
  auto before = "#include <csignal>\n#include <time.h>\n";
  auto body = "sigevent event{}; event.sigev_notify = SIGEV_SIGNAL; event.sigev_signo = SIGCONT;"
              "timer_t timer; if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) return;" +
              std::string{honest_body};
  auto result = evaluate(row_sum(body, before));
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
}

TEST_F(referee_timing, a_profile_counts_instead_of_timing) {
  auto result =
      evaluate(row_sum(honest_body), [](wire::EvaluateRequest::Builder x) { x.setProfile(true); });
  auto x = result.open();
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE) << summary(result);
  EXPECT_FALSE(x->getTiming().getMeasured());
  std::vector<std::string> names;
  for (auto c : x->getCounters()) names.emplace_back(c.getName());
  EXPECT_THAT(names, Contains("call_time"));
  EXPECT_THAT(names, Contains("voluntary_switches"));
  EXPECT_EQ(names.size() + x->getMissing().size(), 16u);
  for (auto c : x->getCounters())
    std::printf("%s %.3f %s\n", c.getName().cStr(), c.getValue(), c.getUnit().cStr());
  for (auto m : x->getMissing()) std::printf("missing %s\n", m.cStr());
}

// The client has the verdict already: the shapes of cases are not called again, hidden ones least
// of all.
TEST_F(referee_timing, a_profile_calls_the_timed_shape_alone_and_finds_nothing_right) {
  auto result = evaluate(
      row_sum("if (rows != 128 || cols != 1024) __builtin_trap();" + std::string{honest_body}),
      [](wire::EvaluateRequest::Builder x) { x.setProfile(true); });
  auto x = result.open();
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE) << summary(result);
  EXPECT_GT(x->getCounters().size(), 0u);
  EXPECT_EQ(x->getCases().size(), 0u);
  EXPECT_FALSE(x->getCorrect()) << "nothing was looked at";
  EXPECT_TRUE(x->getSealed());
  for (auto span : x->getSpans()) EXPECT_NE(std::string{span.getName().cStr()}, "correctness");
  for (auto span : x->getSpans())
    std::printf("%s %.1f ms\n", span.getName().cStr(), span.getValue() * 1e3);
}

} // namespace referee_timing_test
