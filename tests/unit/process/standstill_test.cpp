#include "gpu/process/standstill.hpp"

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gpu/process/core_use.hpp"

namespace kernelmill {
namespace standstill_test {

constexpr double patience = 20; // seconds; far more than any of this takes

// Words that a process under test and the test share.
struct shared_words {
  std::atomic<uint64_t> count[8];
};

shared_words& shared() {
  static auto* result = static_cast<shared_words*>(::mmap(
      nullptr, sizeof(shared_words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *result;
}

[[noreturn]] void count_for_ever(size_t which) {
  for (;;) shared().count[which].fetch_add(1);
}

class standstill_test : public testing::Test {
protected:
  void SetUp() override {
    for (auto& x : shared().count) x = 0;
  }

  void TearDown() override {
    if (pid_ == 0) return;
    standstill all{pid_};
    all.stop(patience);
    for (int x : descendants_of(pid_)) ::kill(x, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  int start(const std::function<void()>& body) {
    pid_ = ::fork();
    if (pid_ == 0) {
      body();
      ::_exit(0);
    }
    return pid_;
  }

  static void await_counts(size_t n) {
    for (size_t i = 0; i < n; ++i)
      for (auto before = shared().count[i].load(); shared().count[i].load() <= before + 2;)
        std::this_thread::yield();
  }

  static std::vector<uint64_t> counts() {
    std::vector<uint64_t> result;
    for (const auto& x : shared().count) result.push_back(x.load());
    return result;
  }

  int pid_ = 0;
};

/// A control group of the freezer of version 1, or of version 2, with one process in it.
class frozen_group {
public:
  explicit frozen_group(int pid) {
    for (std::string root :
         {"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
      folder_ = root + "/kernelmill-test-" + std::to_string(::getpid());
      if (::mkdir(folder_.c_str(), 0755) != 0) continue;
      for (const char* file : {"/freezer.state", "/cgroup.freeze"})
        if (::access((folder_ + file).c_str(), W_OK) == 0) switch_ = folder_ + file;
      if (!switch_.empty() && write(folder_ + "/cgroup.procs", std::to_string(pid))) return;
      switch_.clear();
      ::rmdir(folder_.c_str());
    }
  }
  /// Goes once no process is in it.
  ~frozen_group() {
    if (!works()) return;
    set(false);
    ::rmdir(folder_.c_str());
  }
  frozen_group(const frozen_group&) = delete;
  frozen_group& operator=(const frozen_group&) = delete;

  bool works() const { return !switch_.empty(); }
  bool set(bool frozen) const {
    bool first = switch_.ends_with("freezer.state");
    return write(switch_, first ? (frozen ? "FROZEN" : "THAWED") : (frozen ? "1" : "0"));
  }

private:
  static bool write(const std::string& file, const std::string& text) {
    std::ofstream out{file};
    out << text << std::flush;
    return out.good();
  }
  std::string folder_, switch_;
};

// A tree that was frozen for seconds was `timed_out`.
TEST_F(standstill_test, a_frozen_group_is_seen_and_a_thawed_one_too) {
  start([] { count_for_ever(0); });
  await_counts(1);
  EXPECT_FALSE(is_frozen(pid_));
  frozen_group group{pid_};
  if (!group.works())
    GTEST_SKIP() << "no control group can be made here: this takes root and a writable freezer";
  EXPECT_FALSE(core_use_of_all(pid_).stopped);
  ASSERT_TRUE(group.set(true));
  while (!is_frozen(pid_)) std::this_thread::yield(); // it takes a moment
  EXPECT_TRUE(core_use_of_all(pid_).stopped);
  EXPECT_FALSE(is_stopped(pid_)) << "no signal tells of it";
  ASSERT_TRUE(group.set(false));
  while (is_frozen(pid_)) std::this_thread::yield();
  EXPECT_FALSE(core_use_of_all(pid_).stopped);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

TEST_F(standstill_test, stops_all_threads_and_lets_them_go_on) {
  start([] {
    for (size_t i = 1; i < 4; ++i) std::thread{count_for_ever, i}.detach();
    count_for_ever(0);
  });
  await_counts(4);
  standstill x{pid_};
  ASSERT_EQ(x.stop(patience), standing::still);
  EXPECT_EQ(thread_states(pid_), "TTTT");
  auto before = counts();
  EXPECT_EQ(x.worked(), 0);
  EXPECT_EQ(counts(), before);
  x.go_on();
  EXPECT_FALSE(x.stopped());
  await_counts(4);
}

TEST_F(standstill_test, stops_a_process_that_sleeps_and_what_waits_still_waits) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  start([&] {
    char byte = 0;
    if (::read(ends[0], &byte, 1) == 1) shared().count[0] = 1;
    for (;;) ::pause();
  });
  standstill x{pid_};
  ASSERT_EQ(x.stop(patience), standing::still);
  ASSERT_EQ(::write(ends[1], "x", 1), 1); // a command that it finds when it goes on
  EXPECT_EQ(x.worked(), 0);
  EXPECT_EQ(shared().count[0], 0u);
  x.go_on();
  while (shared().count[0] != 1) std::this_thread::yield();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(standstill_test, stops_what_a_process_started) {
  start([] {
    if (::fork() == 0) {
      if (::fork() == 0) count_for_ever(2);
      count_for_ever(1);
    }
    count_for_ever(0);
  });
  await_counts(3);
  standstill x{pid_};
  ASSERT_EQ(x.stop(patience), standing::still);
  auto before = counts();
  for (int pid : descendants_of(pid_)) EXPECT_EQ(thread_states(pid), "T");
  EXPECT_EQ(descendants_of(pid_).size(), 2u);
  EXPECT_EQ(counts(), before);
  x.go_on();
  await_counts(3);
}

// The child lets its parent go on whenever it finds it stopped.
TEST_F(standstill_test, a_process_that_lets_it_go_on_is_stopped_too) {
  start([] {
    if (::fork() == 0)
      for (;;) {
        ::kill(::getppid(), SIGCONT);
        shared().count[1].fetch_add(1);
      }
    count_for_ever(0);
  });
  await_counts(2);
  standstill x{pid_};
  ASSERT_EQ(x.stop(patience), standing::still);
  auto before = counts();
  EXPECT_EQ(x.worked(), 0);
  EXPECT_EQ(counts(), before);
  x.go_on();
}

TEST_F(standstill_test, tells_the_work_of_a_process_that_was_let_go_on) {
  start([] { count_for_ever(0); });
  await_counts(1);
  standstill x{pid_};
  ASSERT_EQ(x.stop(patience), standing::still);
  ::kill(pid_, SIGCONT);
  while (x.worked() == 0) std::this_thread::yield(); // the kernel tells it at the next tick
  x.go_on();
  EXPECT_EQ(x.worked(), 0);
}

// The process under test waits for its child, as bubblewrap does for a candidate.
TEST_F(standstill_test, a_process_that_waits_for_a_process_is_held_until_that_is_gone) {
  start([] {
    int child = ::fork();
    if (child == 0) count_for_ever(0);
    shared().count[1] = static_cast<uint64_t>(child);
    ::waitpid(child, nullptr, 0);
    shared().count[2] = 1;
    for (;;) ::pause();
  });
  while (shared().count[1] == 0) std::this_thread::yield();
  auto child = static_cast<int>(shared().count[1].load());
  standstill x{child};
  x.hold_waiter();
  while (thread_states(pid_) != "T") std::this_thread::yield();
  ASSERT_EQ(x.stop(patience), standing::still);
  x.go_on();
  EXPECT_FALSE(x.gone());
  ::kill(child, SIGKILL);
  while (!x.gone()) std::this_thread::yield();
  EXPECT_EQ(shared().count[2], 0u);
  x.release_waiter();
  while (shared().count[2] == 0) std::this_thread::yield();
}

TEST_F(standstill_test, a_process_that_is_gone_stands_still) {
  start([] { ::_exit(0); });
  standstill x{pid_};
  ::waitpid(pid_, nullptr, 0);
  EXPECT_EQ(x.stop(patience), standing::still);
  EXPECT_EQ(x.worked(), 0);
  x.go_on();
  pid_ = 0;
}

} // namespace standstill_test
} // namespace kernelmill
