#include <csignal>
#include <vector>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gpu/referee/scheduling.hpp"

using namespace kernelmill;

namespace scheduling_test {

int count_cores(int pid) {
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
  int all = count_cores(0);
  if (all < 2) GTEST_SKIP() << "there is one core";
  sleeper candidate, baseline;
  auto before = cores_of(candidate.pid());
  keep_beside(candidate.pid());
  keep_beside(baseline.pid());
  cpu_set_t ours, theirs, others;
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  ASSERT_EQ(::sched_getaffinity(candidate.pid(), sizeof theirs, &theirs), 0);
  ASSERT_EQ(::sched_getaffinity(baseline.pid(), sizeof others, &others), 0);
  EXPECT_EQ(CPU_COUNT(&ours), 1);
  EXPECT_TRUE(CPU_EQUAL(&ours, &theirs));
  EXPECT_TRUE(CPU_EQUAL(&ours, &others));
  let_roam(candidate.pid(), before);
  EXPECT_EQ(count_cores(candidate.pid()), all);
  EXPECT_EQ(count_cores(baseline.pid()), 1);
  run_anywhere();
  EXPECT_EQ(count_cores(0), all);
}

// A slot's process has the slot's cores, also where its referee has more.
TEST(scheduling, a_process_that_is_let_go_has_the_cores_that_it_had) {
  if (count_cores(0) < 2) GTEST_SKIP() << "there is one core";
  sleeper candidate;
  auto own = cores_of(candidate.pid());
  for (int i = CPU_SETSIZE - 1; CPU_COUNT(&own) > 1; --i)
    if (CPU_ISSET(i, &own)) CPU_CLR(i, &own);
  ASSERT_EQ(::sched_setaffinity(candidate.pid(), sizeof own, &own), 0);
  auto before = cores_of(candidate.pid());
  keep_beside(candidate.pid());
  let_roam(candidate.pid(), before);
  auto after = cores_of(candidate.pid());
  EXPECT_TRUE(CPU_EQUAL(&after, &own));
  cpu_set_t unknown_cores;
  CPU_ZERO(&unknown_cores);
  let_roam(candidate.pid(), unknown_cores);
  EXPECT_EQ(count_cores(candidate.pid()), 1);
  run_anywhere();
}

TEST(scheduling, a_referee_and_what_it_times_have_a_core_each) {
  int all = count_cores(0);
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
  EXPECT_EQ(count_cores(0), all);
  sleeper other;
  cores_apart none{{}};
  none.hold(other.pid());
  EXPECT_EQ(count_cores(0), all);
  EXPECT_EQ(count_cores(other.pid()), all);
}

} // namespace scheduling_test
