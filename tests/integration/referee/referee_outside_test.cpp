// What is done to a candidate from outside its sandbox is none of its doing; and no candidate can
// make its own doing look like that.

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include "gpu/process/core_use.hpp"
#include "gpu/sandbox/cgroup.hpp"
#include "referee_fixture.hpp"
#include "tests/unit/process/outsider.hpp"

namespace kernelmill {
namespace referee_outside_test {

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

// As /proc has it: 15 letters.
std::string name_of(int pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/comm"};
  std::string text;
  std::getline(file, text);
  return text;
}

int ancestor_of(int pid, const std::string& name) {
  while (pid > 1 && name_of(pid) != name) pid = parent_of(pid);
  return pid;
}

outsider::deed ends_the_referee_by(int signal) {
  return [signal](int pid) {
    int found = ancestor_of(pid, "kernelmill-refe"); // none of one that is ending
    return found > 1 && ::kill(found, signal) == 0;
  };
}

// That in which it is, not the one that is number 1 inside.
bool ends_the_bubblewrap_of(int pid) {
  int found = ancestor_of(pid, "bwrap");
  if (name_of(parent_of(found)) == "bwrap") found = parent_of(found);
  return found > 1 && ::kill(found, SIGTERM) == 0;
}

// The referee's own, which has started the candidate. An orphan belongs to another process until
// it has ended.
bool kills_the_spawner_of(int pid) {
  int found = ancestor_of(pid, "kernelmill-spaw");
  return found > 1 && name_of(parent_of(found)) == "kernelmill-refe" && ::kill(found, SIGKILL) == 0;
}

TEST_F(referee_outside, a_candidate_that_is_killed_each_time_is_not_at_fault) {
  outsider kernel{candidate_program, 1000, after, outsider::kills()};
  auto x = evaluate(row_sum(slow_body, slow_at_first));
  EXPECT_GT(kernel.done(), 1);
  EXPECT_STREQ(x.open()->getFault().getCategory().cStr(), "killed_outside") << summary(x);
  EXPECT_EQ(blamed_class(x), wire::FaultClass::INFRASTRUCTURE) << summary(x);
}

TEST_F(referee_outside, a_candidate_whose_walls_were_ended_is_judged_again) {
  outsider operator_{candidate_program, 1, after, ends_the_bubblewrap_of};
  auto x = evaluate(row_sum(slow_body, slow_at_first));
  EXPECT_EQ(operator_.done(), 1);
  EXPECT_TRUE(x.open()->getCorrect()) << summary(x);
}

// Those of a referee that was killed end with it, but a moment later; so do those that were judged.
void await_end_of_candidates() {
  auto is_one = [](int pid) {
    auto times = processor_times_of(pid);
    return std::string{candidate_program}.starts_with(name_of(pid)) &&
           times.user + times.system >= after; // the others wait for a candidate
  };
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  for (auto all = descendants_of(::getpid()); std::any_of(all.begin(), all.end(), is_one);
       all = descendants_of(::getpid())) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    std::this_thread::yield();
  }
}

// Takes all that it had started with it: the baseline, and who waits to be given a candidate.
TEST_F(referee_outside, a_spawner_that_was_killed_is_not_the_candidates_fault) {
  auto before = evaluate(row_sum(honest_body));
  ASSERT_TRUE(before.open()->getCorrect()) << summary(before);
  outsider kernel{candidate_program, 1, after, kills_the_spawner_of};
  auto x = evaluate(row_sum(slow_body, slow_at_first));
  EXPECT_EQ(kernel.done(), 1);
  EXPECT_TRUE(x.open()->getCorrect()) << summary(x);
}

TEST_F(referee_outside, a_spawner_that_is_killed_each_time_is_the_machines_fault) {
  outsider kernel{candidate_program, 1000, after, kills_the_spawner_of};
  auto x = evaluate(row_sum(slow_body, slow_at_first));
  EXPECT_GT(kernel.done(), 1);
  EXPECT_EQ(blamed_class(x), wire::FaultClass::INFRASTRUCTURE) << summary(x);
}

// What fails beside a candidate twice is its own doing otherwise.
TEST_F(referee_outside, a_referee_that_is_killed_again_and_again_is_not_the_candidates_fault) {
  auto kills_before = kills_for_memory();
  if (!kills_before) GTEST_SKIP() << "nothing tells of kills for want of memory here";
  auto source = row_sum(slow_body, slow_at_first);
  auto named = [](wire::EvaluateRequest::Builder x) { x.setCandidateSha256("killed beside"); };
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    await_end_of_candidates();
    outsider operator_{candidate_program, 1, after,
                       ends_the_referee_by(i == 1 ? SIGTERM : SIGKILL)};
    std::string said;
    try {
      said = summary(evaluate(source, named));
    } catch (const std::runtime_error& problem) {
      said = problem.what();
    }
    if (kills_for_memory() != kills_before)
      GTEST_SKIP() << "the kernel has ended a process for want of memory meanwhile";
    EXPECT_THAT(said, testing::HasSubstr("killed the referee"));
    EXPECT_EQ(operator_.done(), 1);
  }
  auto x = evaluate(source, named);
  EXPECT_TRUE(x.open()->getCorrect()) << summary(x);
}

// A referee that ends by a fault of its own once may have the machine's; a candidate that was there
// when another ended so is tried after a control.
TEST_F(referee_outside, a_second_loss_on_another_machine_is_the_candidates) {
  auto source = row_sum(slow_body, slow_at_first);
  for (bool lost_before : {false, true}) {
    await_end_of_candidates();
    outsider fault{candidate_program, 1, after, ends_the_referee_by(SIGABRT)};
    std::string said;
    try {
      said = summary(evaluate(source, [&](wire::EvaluateRequest::Builder x) {
        x.setCandidateSha256(lost_before ? "new here" : "new anywhere");
        x.setLostBefore(lost_before);
      }));
    } catch (const std::runtime_error& problem) {
      said = problem.what();
    }
    EXPECT_EQ(fault.done(), 1);
    EXPECT_EQ(said.find("disturbed_referee") != said.npos, lost_before) << said;
  }
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
                       bool stopped = stop(pid);
                       for (int child : descendants_of(pid)) ::kill(child, SIGCONT);
                       return stopped;
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
        "syscall(SYS_tgkill, getpid(), getpid(), 0x100000000 | SIGKILL); _exit(137);",
        "syscall(SYS_exit, 137);", "syscall(SYS_exit_group, 0xabc89);"}) {
    auto x = evaluate(row_sum(body, head));
    EXPECT_STRNE(x.open()->getFault().getCategory().cStr(), "disturbed_referee") << body;
    EXPECT_EQ(blamed_class(x), wire::FaultClass::CANDIDATE) << body << summary(x);
  }
}

// A candidate that could stand still would have unlimited time.
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

// Names of control groups that the processes of these ids have made.
std::vector<std::string> groups_of(const std::vector<int>& pids) {
  namespace fs = std::filesystem;
  std::vector<std::string> result;
  std::error_code gone; // others make and remove groups meanwhile
  for (fs::recursive_directory_iterator i{"/sys/fs/cgroup", gone}, end; !gone && i != end;
       i.increment(gone))
    for (int pid : pids)
      if (i->path().filename().string().starts_with("kernelmill-" + std::to_string(pid) + "-"))
        result.push_back(i->path());
  return result;
}

TEST_F(referee_outside, a_referee_that_is_not_needed_takes_its_control_groups_with_it) {
  std::string programs = std::getenv("KERNELMILL_BIN_DIR");
  auto processes = spawner::launch(programs + "/kernelmill-spawner");
  ASSERT_TRUE(processes) << render(processes.error());
  auto before = descendants_of(::getpid());
  auto referee = referee_client::launch(*processes, programs + "/kernelmill-referee",
                                        {{}, testing::TempDir() + "kernelmill-groups", 1});
  ASSERT_TRUE(referee) << render(referee.error());
  ASSERT_TRUE(referee->probe(60'000));
  auto ours = descendants_of(::getpid());
  std::erase_if(ours,
                [&](int x) { return std::find(before.begin(), before.end(), x) != before.end(); });
  if (groups_of(ours).empty()) GTEST_SKIP() << "there are no control groups here";
  referee = tl::unexpected<error>{error{}};
  EXPECT_THAT(groups_of(ours), testing::IsEmpty());
}

} // namespace referee_outside_test
} // namespace kernelmill
