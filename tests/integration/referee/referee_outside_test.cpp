// What is done to a candidate from outside its sandbox is none of its doing; and no candidate can
// make its own doing look like that.

#include "referee_fixture.hpp"
#include "tests/unit/process/outsider.hpp"

namespace kernelmill {
namespace {

using referee_outside = referee_fixture;

constexpr const char* candidate_program = "kernelmill-candidate";
constexpr double after = 0.2; // seconds of its first call; who only loads does not work for as long

// Works for a while in its first call: long enough that who looks for it has a core meanwhile, and
// well below a call's two seconds.
const std::string slow_at_first = R"(
#include <time.h>
static int calls = 0;
static double worked() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
)";
const std::string slow_body =
    "if (calls++ == 0) while (worked() < 0.6) {}" + std::string{honest_body};

wire::FaultClass blamed_class(const Message<wire::EvaluateResult>& x) {
  return x.open()->getFault().getClass();
}

TEST_F(referee_outside, a_candidate_that_was_killed_is_judged_again) {
  outsider kernel{candidate_program, 1, after, outsider::kills()};
  auto x = evaluate(row_sum(slow_body, slow_at_first));
  EXPECT_EQ(kernel.done(), 1);
  EXPECT_TRUE(x.open()->getCorrect()) << summary(x);
  EXPECT_EQ(blamed_class(x), wire::FaultClass::NONE) << summary(x);
}

// Takes all that it had started with it, the baseline too.
TEST_F(referee_outside, a_spawner_that_was_killed_is_not_the_candidates_fault) {
  outsider kernel{candidate_program, 1, after, [](int pid) {
                    auto name = [](int x) {
                      std::ifstream file{"/proc/" + std::to_string(x) + "/comm"};
                      std::string text;
                      std::getline(file, text);
                      return text;
                    };
                    while (pid > 1 && name(pid) != "kernelmill-spaw") pid = parent_of(pid);
                    if (pid > 1) ::kill(pid, SIGKILL);
                  }};
  auto x = evaluate(row_sum(slow_body, slow_at_first));
  EXPECT_EQ(kernel.done(), 1);
  EXPECT_TRUE(x.open()->getCorrect()) << summary(x);
}

TEST_F(referee_outside, a_candidate_that_was_stopped_has_its_time_all_the_same) {
  outsider operator_{candidate_program, 1, after, outsider::stops_for(std::chrono::seconds{3})};
  auto x = evaluate(row_sum(slow_body, slow_at_first));
  EXPECT_EQ(operator_.done(), 1);
  EXPECT_TRUE(x.open()->getCorrect()) << summary(x);
}

TEST_F(referee_outside, a_referee_that_was_stopped_takes_nothing_from_its_candidate) {
  outsider operator_{"kernelmill-referee", 1, 0, [](int pid) {
                       auto stop = outsider::stops_for(std::chrono::seconds{3});
                       for (int child : descendants_of(pid)) ::kill(child, SIGSTOP);
                       stop(pid);
                       for (int child : descendants_of(pid)) ::kill(child, SIGCONT);
                     }};
  auto x = evaluate(row_sum(slow_body, slow_at_first));
  EXPECT_EQ(operator_.done(), 1);
  EXPECT_TRUE(x.open()->getCorrect()) << summary(x);
}

TEST_F(referee_outside, no_candidate_can_choose_to_be_the_machines_fault) {
  const std::string head = "#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
                           "#include <sys/syscall.h>\n";
  for (const std::string body :
       {"_exit(137);", "raise(SIGKILL); __builtin_trap();", "kill(getpid(), SIGKILL); _exit(137);",
        "syscall(SYS_tgkill, getpid(), getpid(), 0x100000000 | SIGKILL); _exit(137);"}) {
    auto x = evaluate(row_sum(body, head));
    EXPECT_EQ(blamed_class(x), wire::FaultClass::CANDIDATE) << body << summary(x);
  }
}

// Who could stand still would have all the time of the world.
TEST_F(referee_outside, no_candidate_can_stop_itself) {
  const std::string head = "#include <signal.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n";
  const std::string body = "const int signals[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};"
                           "for (int signal : signals) {"
                           "  raise(signal);"
                           "  syscall(SYS_tgkill, getpid(), getpid(), 0x100000000 | signal);"
                           "}";
  auto x = evaluate(row_sum(body + honest_body, head));
  EXPECT_TRUE(x.open()->getCorrect()) << summary(x);
}

} // namespace
} // namespace kernelmill
