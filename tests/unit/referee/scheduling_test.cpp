#include <csignal>
#include <vector>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gpu/referee/scheduling.hpp"

using namespace kernelmill;

namespace {

int cores_of(int pid) {
  cpu_set_t set;
  return ::sched_getaffinity(pid, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// A process that does nothing until it is ended.
class sleeper {
public:
  sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    for (;;) ::pause();
  }
  ~sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  sleeper(const sleeper&) = delete;
  sleeper& operator=(const sleeper&) = delete;

  int pid() const { return pid_; }

private:
  int pid_;
};

TEST(scheduling, two_processes_are_kept_on_one_core_and_let_go) {
  int all = cores_of(0);
  if (all < 2) GTEST_SKIP() << "there is one core";
  sleeper candidate, baseline;
  keep_beside(candidate.pid());
  keep_beside(baseline.pid());
  cpu_set_t ours, theirs, others;
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  ASSERT_EQ(::sched_getaffinity(candidate.pid(), sizeof theirs, &theirs), 0);
  ASSERT_EQ(::sched_getaffinity(baseline.pid(), sizeof others, &others), 0);
  EXPECT_EQ(CPU_COUNT(&ours), 1);
  EXPECT_TRUE(CPU_EQUAL(&ours, &theirs));
  EXPECT_TRUE(CPU_EQUAL(&ours, &others));
  let_roam(candidate.pid());
  EXPECT_EQ(cores_of(candidate.pid()), all);
  EXPECT_EQ(cores_of(baseline.pid()), 1);
  run_anywhere();
  EXPECT_EQ(cores_of(0), all);
}

TEST(scheduling, a_referee_and_what_it_times_have_a_core_each) {
  int all = cores_of(0);
  if (all < 2) GTEST_SKIP() << "there is one core";
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> two;
  for (int i = 0; i < CPU_SETSIZE && two.size() < 2; ++i)
    if (CPU_ISSET(i, &set)) two.push_back(i);
  sleeper candidate;
  {
    cores_apart cores{two};
    cores.hold(candidate.pid());
    ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    EXPECT_TRUE(CPU_COUNT(&set) == 1 && CPU_ISSET(two[0], &set));
    ASSERT_EQ(::sched_getaffinity(candidate.pid(), sizeof set, &set), 0);
    EXPECT_TRUE(CPU_COUNT(&set) == 1 && CPU_ISSET(two[1], &set));
  }
  EXPECT_EQ(cores_of(0), all);
  sleeper other;
  cores_apart none{{}};
  none.hold(other.pid());
  EXPECT_EQ(cores_of(0), all);
  EXPECT_EQ(cores_of(other.pid()), all);
}

} // namespace
