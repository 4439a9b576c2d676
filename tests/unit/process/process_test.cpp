#include "gpu/process/process.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "gpu/process/awake_time.hpp"
#include "gpu/process/core_use.hpp"
#include "messages/base/descriptor.hpp"
#include "tests/unit/process/outsider.hpp"

namespace kernelmill {
namespace process_test {

using testing::HasSubstr;

constexpr int patience_ms = 20'000;

// build/tests/sandbox_tests and build/bin/kernelmill-spawner.
std::string program() {
  if (auto* folder = std::getenv("KERNELMILL_BIN_DIR"))
    return std::string{folder} + "/kernelmill-spawner";
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
         "bin/kernelmill-spawner";
}

spawner launch() {
  auto result = spawner::launch(program());
  EXPECT_TRUE(result) << render(result.error());
  return std::move(*result);
}

process_spec shell(std::string script) {
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", std::move(script)};
  return spec;
}

// Everything that `spec` writes to its standard output, and how it ended.
struct outcome {
  std::string text;
  exit_status status;
};

outcome run(spawner& x, process_spec spec) {
  auto ends = make_pipe();
  spec.descriptors.emplace_back(ends.write.get(), 1);
  auto started = x.start(spec);
  EXPECT_TRUE(started) << render(started.error());
  if (!started) return {};
  ends.write.reset();
  outcome result;
  char buffer[4096];
  while (auto n = read_retrying(ends.read.get(), buffer, sizeof buffer)) {
    if (n < 0) break;
    result.text.append(buffer, static_cast<size_t>(n));
  }
  auto status = started->wait(patience_ms);
  EXPECT_TRUE(status) << render(status.error());
  if (status) result.status = *status;
  return result;
}

bool gone(int pid) {
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

// Reads the "end of file" of a pipe whose write end the processes under test hold: that is how a
// test knows, without sleeping, that the last of them has died.
bool all_dead(int read_end) {
  char buffer[256];
  for (;;) {
    if (!wait_readable(read_end, patience_ms)) return false;
    if (read_retrying(read_end, buffer, sizeof buffer) <= 0) return true;
  }
}

TEST(spawner, tells_how_a_process_ended) {
  auto x = launch();
  EXPECT_EQ(run(x, shell("exit 0")).status.code, 0);
  EXPECT_EQ(run(x, shell("exit 7")).status.code, 7);
  auto killed = run(x, shell("kill -SEGV $$")).status;
  EXPECT_EQ(killed.signal, SIGSEGV);
  EXPECT_EQ(killed.code, -1);
}

TEST(spawner, answers_a_second_wait_like_the_first) {
  auto x = launch();
  auto started = x.start(shell("exit 3"));
  ASSERT_TRUE(started);
  EXPECT_EQ(started->wait(patience_ms)->code, 3);
  EXPECT_EQ(started->wait(0)->code, 3);
  EXPECT_FALSE(started->running());
}

TEST(spawner, fails_to_launch_a_program_that_is_not_there) {
  auto x = spawner::launch("/nonexistent/kernelmill-spawner");
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "spawner_failed");
  EXPECT_THAT(x.error().message, HasSubstr("/nonexistent/kernelmill-spawner"));
  EXPECT_FALSE(x.error().hint.empty());
}

TEST(spawner, fails_to_launch_a_program_that_does_not_answer) {
  auto x = spawner::launch("/bin/true");
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "spawner_failed");
}

TEST(spawner, reports_a_program_that_cannot_be_executed_at_start) {
  auto x = launch();
  process_spec spec;
  spec.argv = {"/nonexistent"};
  auto started = x.start(spec);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().category, "cannot_execute");
  EXPECT_EQ(started.error().cls, fault_class::infrastructure);
  EXPECT_THAT(started.error().message, HasSubstr("No such file"));
  spec.argv = {"/etc"};
  EXPECT_THAT(x.start(spec).error().message, HasSubstr("Permission denied"));
  EXPECT_EQ(run(x, shell("exit 0")).status.code, 0) << "the spawner goes on";
}

TEST(spawner, refuses_specs_that_make_no_sense_and_goes_on) {
  auto x = launch();
  process_spec spec;
  EXPECT_EQ(x.start(spec).error().category, "bad_process_spec");
  spec.argv = {"sh"};
  EXPECT_EQ(x.start(spec).error().category, "bad_process_spec");
  spec = shell("exit 0");
  spec.descriptors = {{9999, 5}};
  EXPECT_EQ(x.start(spec).error().category, "bad_process_spec");
  spec = shell("exit 0");
  spec.directory = "/nonexistent";
  EXPECT_THAT(x.start(spec).error().message, HasSubstr("enter the directory"));
  spec = shell("exit 0");
  spec.cpus = {1 << 19};
  EXPECT_THAT(x.start(spec).error().message, HasSubstr("pin"));
  spec = shell("exit 0");
  spec.argv.push_back(std::string(1 << 20, 'x'));
  EXPECT_EQ(x.start(spec).error().category, "bad_process_spec");
  EXPECT_EQ(run(x, shell("exit 0")).status.code, 0);
}

TEST(spawner, gives_a_child_only_the_environment_of_its_spec) {
  auto x = launch();
  process_spec spec;
  spec.argv = {"/usr/bin/env"};
  EXPECT_EQ(run(x, spec).text, "");
  spec.environment = {"A=1", "B=two words"};
  EXPECT_EQ(run(x, spec).text, "A=1\nB=two words\n");
}

TEST(spawner, gives_a_child_only_the_descriptors_of_its_spec) {
  auto x = launch();
  // One that leaks into every ordinary child of this process.
  int leak = ::open("/dev/null", O_RDONLY);
  ASSERT_GE(leak, 0);
  auto spec = shell("for f in $(seq 0 64); do [ -e /proc/$$/fd/$f ] && echo $f; done; true");
  spec.environment = {"PATH=/usr/bin"};
  descriptor extra{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  spec.descriptors = {{extra.get(), 9}};
  EXPECT_EQ(run(x, spec).text, "0\n1\n2\n9\n");
  ::close(leak);
}

TEST(spawner, places_descriptors_whose_numbers_cross) {
  auto x = launch();
  auto spec = shell("cat <&3; cat <&4");
  std::vector<descriptor> files;
  for (auto* text : {"three ", "four"}) {
    descriptor fd{::memfd_create("text", MFD_CLOEXEC)};
    ASSERT_GT(write_retrying(fd.get(), text, std::strlen(text)), 0);
    ::lseek(fd.get(), 0, SEEK_SET);
    files.push_back(std::move(fd));
  }
  spec.descriptors = {{files[1].get(), 4}, {files[0].get(), 3}};
  EXPECT_EQ(run(x, spec).text, "three four");
}

TEST(spawner, sets_limits_directory_affinity_and_a_session) {
  auto x = launch();
  auto spec = shell("ulimit -v; ulimit -n; ulimit -c; pwd; taskset -p $$ | sed 's/.*: //'; "
                    "ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo own session");
  spec.environment = {"PATH=/usr/bin"};
  spec.limits.address_space = uint64_t{1} << 30;
  spec.limits.open_files = 33;
  spec.directory = "/usr";
  spec.cpus = {0};
  EXPECT_EQ(run(x, spec).text, "1048576\n33\n0\n/usr\n1\nown session\n");
}

TEST(spawner, stops_a_process_that_overruns_its_deadline) {
  auto x = launch();
  auto started = x.start(shell("exec sleep 1000"));
  ASSERT_TRUE(started);
  auto waited = started->wait(1);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().category, "timeout");
  EXPECT_TRUE(started->running());
  started->kill();
  EXPECT_EQ(started->wait(patience_ms)->signal, SIGKILL);
}

TEST(spawner, kills_what_a_child_left_behind_when_it_ends) {
  auto x = launch();
  auto ends = make_pipe();
  // One in the group, one in a session of its own, one that is not waited for.
  auto spec =
      shell("sleep 1000 & setsid sleep 1000 & (setsid setsid -f sleep 1000 &) ; echo ready");
  spec.environment = {"PATH=/usr/bin"};
  spec.descriptors = {{ends.write.get(), 1}};
  auto started = x.start(spec);
  ASSERT_TRUE(started);
  ends.write.reset();
  EXPECT_EQ(started->wait(patience_ms)->code, 0);
  EXPECT_TRUE(all_dead(ends.read.get()));
}

TEST(spawner, kills_a_child_when_its_handle_goes) {
  auto x = launch();
  int pid = 0;
  auto ends = make_pipe();
  {
    auto spec = shell("sleep 1000");
    spec.descriptors = {{ends.write.get(), 1}};
    auto started = x.start(spec);
    ASSERT_TRUE(started);
    pid = started->pid();
    ends.write.reset();
  }
  EXPECT_TRUE(all_dead(ends.read.get()));
  EXPECT_EQ(run(x, shell("exit 0")).status.code, 0);
  // It closes its files a moment before it is dead, and is buried after that.
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{patience_ms};
  while (!gone(pid)) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST(spawner, outlives_children_that_are_not_waited_for) {
  auto x = launch();
  auto parent = [&] { return run(x, shell("echo $PPID")).text; };
  auto first = parent();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(x.start(shell("sleep 1000")));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(x.start(shell("exit 0")));
  EXPECT_EQ(parent(), first);
}

TEST(spawner, kills_every_child_when_its_client_dies) {
  auto ends = make_pipe();
  int client = ::fork();
  ASSERT_GE(client, 0);
  if (client == 0) {
    auto x = spawner::launch(program());
    auto spec = shell("sleep 1000 & setsid -f sleep 1000; echo ready; sleep 1000");
    spec.environment = {"PATH=/usr/bin"};
    spec.descriptors = {{ends.write.get(), 1}};
    auto started = x->start(spec);
    ends.write.reset();
    char word[6];
    (void)!::read(ends.read.get(), word, sizeof word);
    ::raise(SIGKILL); // no destructor runs
  }
  ends.write.reset();
  ASSERT_EQ(::waitpid(client, nullptr, 0), client);
  EXPECT_TRUE(all_dead(ends.read.get()));
}

TEST(spawner, starts_again_when_it_is_killed) {
  auto x = launch();
  auto parent = run(x, shell("echo $PPID"));
  int pid = std::stoi(parent.text);
  auto started = x.start(shell("sleep 1000"));
  ASSERT_TRUE(started);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  auto status = started->wait(patience_ms);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().category, "spawner_lost");
  EXPECT_EQ(run(x, shell("exit 4")).status.code, 4);
}

// Between its start and its first word there is a moment in which it is not known.
TEST(spawner, starts_again_when_it_is_killed_at_once) {
  for (int i = 0; i < 20; ++i) {
    outsider operator_{"kernelmill-spawner", 1, 0, outsider::kills()};
    auto result = spawner::launch(program());
    EXPECT_TRUE(result) << i << ": " << render(result.error());
  }
}

TEST(spawner, serves_many_threads_at_once) {
  auto x = launch();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&x, &right, i] {
      for (int j = 0; j < 10; ++j) {
        auto started = x.start(shell("exit " + std::to_string(10 * i + j)));
        if (!started) continue;
        auto status = started->wait(patience_ms);
        if (status && status->code == 10 * i + j) ++right;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 40);
}

TEST(spawner, keeps_no_descriptor_of_a_child_that_is_over) {
  auto x = launch();
  auto open_files = [&] {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
  };
  auto before = open_files();
  auto in_spawner = [&] { return std::stoi(run(x, shell("ls /proc/$PPID/fd | wc -l")).text); };
  auto first = in_spawner();
  for (int i = 0; i < 20; ++i) run(x, shell("exit 0"));
  EXPECT_EQ(open_files(), before);
  // It may still be closing those of the process that counts: a handful, not twenty.
  EXPECT_LT(in_spawner(), first + 10);
}

TEST(core_use, is_that_of_all_that_a_process_started) {
  auto x = launch();
  auto started = x.start(shell("while :; do :; done & sleep 1000"));
  ASSERT_TRUE(started);
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{patience_ms};
  core_use use;
  while (use.seconds < 0.05 || !use.wants_more) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << use.seconds << " s";
    use = core_use_of_all(started->pid());
  }
  started->kill();
  EXPECT_TRUE(started->wait(patience_ms));
}

TEST(core_use, of_a_process_that_waits_for_something_else_is_no_wish_for_a_core) {
  auto x = launch();
  auto ends = make_pipe();
  auto spec = shell("(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); echo; exec sleep 1000");
  spec.descriptors.emplace_back(ends.write.get(), 1);
  auto started = x.start(spec);
  ASSERT_TRUE(started);
  ASSERT_TRUE(wait_readable(ends.read.get(), patience_ms));
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{patience_ms};
  while (core_use_of_all(started->pid()).wants_more) // until it sleeps
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  EXPECT_GT(core_use_of_all(started->pid()).seconds, 0.02); // of its child, which has ended
  started->kill();
  EXPECT_TRUE(started->wait(patience_ms));
  auto gone = core_use_of_all(started->pid());
  EXPECT_EQ(gone.seconds, 0);
  EXPECT_FALSE(gone.wants_more);
}

TEST(core_use, tells_how_long_a_process_was_ready_and_had_no_core) {
  cpu_set_t mine, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &mine)) CPU_SET(i, &one);
  pid_t rivals[2];
  for (auto& rival : rivals)
    if (rival = ::fork(); rival == 0) {
      ::sched_setaffinity(0, sizeof one, &one);
      for (;;) (void)CPU_ISSET(0, &one); // needs a core all the time
    }
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{patience_ms};
  while (seconds_without_core(rivals[0]) < 0.05 && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_GE(seconds_without_core(rivals[0]), 0.05);
  for (auto rival : rivals) {
    ::kill(rival, SIGKILL);
    ::waitpid(rival, nullptr, 0);
  }
  EXPECT_EQ(seconds_without_core(rivals[0]), 0); // gone
}

TEST(awake_time, counts_no_time_in_which_a_process_had_no_core) {
  awake_time x{0};
  double now = 0;
  auto pass = [&](int looks) {
    while (looks-- > 0) x.look(now += awake_time::longest_look);
  };
  EXPECT_FALSE(x.late(1, 7)); // what it lacked before is no excuse
  pass(15);
  EXPECT_TRUE(x.late(1, 7));
  EXPECT_FALSE(x.late(1, 7.75));
  pass(30);
  EXPECT_FALSE(x.late(1, 11));
  pass(10);
  EXPECT_TRUE(x.late(1, 1000)) << "it may lack cores by its own threads";
}

TEST(awake_time, counts_what_a_process_worked_although_its_first_thread_had_no_core) {
  awake_time x{0, core_seconds{5, 0}};
  double now = 0;
  EXPECT_FALSE(x.late(1, 0));
  for (int look = 1; look <= 9; ++look) x.look(now += 0.1, false, {5 + 0.1 * look, 0});
  EXPECT_FALSE(x.late(1, 0.9));
  for (int look = 10; look <= 11; ++look) x.look(now += 0.1, false, {5 + 0.1 * look, 0});
  EXPECT_TRUE(x.late(1, 1.1)) << "its threads keep the first from a core";
}

TEST(awake_time, counts_the_time_in_which_a_process_left_no_core_to_its_observer) {
  awake_time x{0, core_seconds{}};
  EXPECT_DOUBLE_EQ(x.look(3, false, {2.9, 2.8}), 2.8);
  EXPECT_DOUBLE_EQ(x.lost(), 3 - 2.8);
  // The observer was stopped, or all of the machine; or other programs had the cores.
  EXPECT_DOUBLE_EQ(x.look(6, false, {5.9, 2.8}), 2.8 + awake_time::longest_look);
  EXPECT_DOUBLE_EQ(x.look(9, false, {5.9, 5.8}), 2.8 + 2 * awake_time::longest_look);
  EXPECT_DOUBLE_EQ(x.look(12, true, {8.9, 8.8}), 2.8 + 2 * awake_time::longest_look);
}

} // namespace process_test
} // namespace kernelmill
