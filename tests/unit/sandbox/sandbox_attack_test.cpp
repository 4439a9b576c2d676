// What goes wrong on purpose. The kernel's answers are numbers: 1 is EPERM, 28 is ENOSPC.

#include <cerrno>
#include <csignal>
#include <string>

#include "tests/unit/sandbox/sandbox_fixture.hpp"

namespace kernelmill {
namespace sandbox_attack_test {

class an_intruder : public sandbox_fixture {};

TEST_F(an_intruder, runs_as_the_user_nobody_and_sees_nothing_of_this_machine) {
  auto spec = intrude({"census"});
  spec.may_exec = false;
  auto said = run(spec).said;
  EXPECT_NE(said.at("uid"), 0);
  for (auto* path : {"/etc", "/home", "/root", "/sys", "/var", "/work", "/etc/passwd",
                     "/usr/bin/env", "/usr/share/doc", "/dev/vda", "/dev/kmsg", "/dev/mem"})
    EXPECT_EQ(said.at(path), 0) << path;
  for (auto* path : {"/", "/usr", "/dev", "/dev/shm", "/proc/sys/kernel/core_pattern"})
    EXPECT_EQ(said.at(std::string{"writable:"} + path), 0) << path;
  EXPECT_EQ(said.at("writable:/tmp"), 1);
  EXPECT_LE(said.at("processes"), 3);
  EXPECT_EQ(said.at("chmod:/dev/null"), EPERM);
}

TEST_F(an_intruder, finds_the_programs_of_usr_only_when_it_may_exec) {
  auto spec = intrude({"census"});
  EXPECT_EQ(run(spec).said.at("/usr/bin/env"), 1);
  spec.may_exec = false;
  EXPECT_EQ(run(spec).said.at("/usr/bin/env"), 0);
}

TEST_F(an_intruder, finds_the_doors_to_the_kernel_shut) {
  auto said = run(intrude({"doors"})).said;
  EXPECT_EQ(said.size(), 27u);
  EXPECT_NE(said["setuid"], 0); // EINVAL where root has no number in the namespace
  said.erase("setuid");
  for (auto& [name, cause] : said) EXPECT_EQ(cause, EPERM) << name;
}

// Its files are those of every other sandbox.
TEST_F(an_intruder, tells_no_process_of_a_file_by_locks_or_watches) {
  auto said = run(intrude({"locks"})).said;
  for (auto* name : {"flock", "flock_again", "ofd_lock", "ofd_found"})
    EXPECT_EQ(said.at(name), 0) << name;
  for (auto* name : {"lease", "notify", "inotify_add_watch"})
    EXPECT_EQ(said.at(name), EPERM) << name;
}

TEST_F(an_intruder, can_compute_and_nothing_else_behind_the_inner_filter) {
  auto spec = intrude({"locked_in"});
  spec.may_exec = false;
  auto said = run(spec).said;
  for (auto* name : {"execve",         "execveat",       "fork",           "vfork",
                     "socketpair",     "kill",           "unlink",         "mkdir",
                     "chmod",          "setrlimit",      "prctl_dumpable", "prctl_pdeathsig",
                     "seccomp",        "never_heard_of", "create",         "tmpfile",
                     "own_memory",     "setaffinity",    "nice",           "preadv2_nowait",
                     "fadvise64",      "readahead",      "cachestat",      "mincore",
                     "timerfd_create", "timer_create",   "collapse",       "collapse_in_disguise"})
    EXPECT_EQ(said.at(name), EPERM) << name;
  for (auto* name : {"thread", "mmap", "madvise", "read", "clock", "getaffinity"})
    EXPECT_EQ(said.at(name), 0) << name;
}

// A node that does no harm stands for a GPU's: devices alone decide which outer filter is taken.
TEST_F(an_intruder, with_a_device_gets_unix_sockets_until_the_inner_filter_and_no_others) {
  auto spec = intrude({"gpu_locked_in"});
  spec.devices = {"/dev/null"};
  spec.may_exec = false;
  auto said = run(spec).said;
  for (auto* name : {"unix", "unix_seqpacket", "socketpair"}) {
    EXPECT_EQ(said.at(std::string{"outer:"} + name), 0) << name;
    EXPECT_EQ(said.at(std::string{"inner:"} + name), EPERM) << name;
  }
  for (auto* name : {"inet", "inet_udp", "inet6", "netlink", "packet", "inet_in_disguise"}) {
    EXPECT_EQ(said.at(std::string{"outer:"} + name), EPERM) << name;
    EXPECT_EQ(said.at(std::string{"inner:"} + name), EPERM) << name;
  }
}

TEST_F(an_intruder, that_may_use_loopback_gets_the_internets_sockets_and_finds_no_peer) {
  auto spec = intrude({"gpu_locked_in"});
  spec.may_use_loopback = true;
  auto said = run(spec).said;
  for (auto* name : {"unix", "inet", "inet_udp", "inet6"})
    EXPECT_EQ(said.at(std::string{"outer:"} + name), 0) << name;
  for (auto* name : {"netlink", "packet", "inet_in_disguise", "inet_raw", "inet_ping", "inet_dccp",
                     "inet_sctp", "inet6_mptcp"})
    EXPECT_EQ(said.at(std::string{"outer:"} + name), EPERM) << name;
}

TEST_F(an_intruder, without_a_device_gets_no_sockets_whatever_the_inner_filter) {
  auto spec = intrude({"gpu_locked_in"});
  spec.may_exec = false;
  for (auto& [name, cause] : run(spec).said)
    if (name.starts_with("outer:") || name.starts_with("inner:")) {
      EXPECT_EQ(cause, EPERM) << name;
    }
}

TEST_F(an_intruder, with_a_device_finds_the_doors_shut_that_no_driver_needs) {
  auto spec = intrude({"doors"});
  spec.devices = {"/dev/null"};
  auto said = run(spec).said;
  EXPECT_EQ(said.size(), 27u);
  EXPECT_EQ(said.at("socket_unix"), 0);
  said.erase("socket_unix");
  EXPECT_NE(said["setuid"], 0);
  said.erase("setuid");
  for (auto& [name, cause] : said) EXPECT_EQ(cause, EPERM) << name;
}

TEST_F(an_intruder, behind_the_inner_filter_of_a_gpu_can_open_devices_and_start_nothing) {
  auto spec = intrude({"gpu_locked_in"});
  spec.devices = {"/dev/null"};
  spec.may_exec = false;
  auto said = run(spec).said;
  for (auto* name : {"execve", "fork", "kill", "unlink", "mkdir", "chmod", "ptrace", "seccomp",
                     "never_heard_of", "tiocsti", "timerfd_create", "timer_create"})
    EXPECT_EQ(said.at(name), EPERM) << name;
  for (auto* name : {"below_usr", "below_dev"}) EXPECT_EQ(said.at(name), EROFS) << name;
  for (auto* name : {"thread", "device", "name_of_thread", "pipe", "ioctl"})
    EXPECT_EQ(said.at(name), 0) << name;
}

TEST_F(an_intruder, with_a_fork_bomb_dies_whole) {
  auto spec = intrude({"fork_bomb"});
  spec.limits.processes = 64;
  spec.process_count = 64;
  descriptor output;
  auto started = start(spec, output);
  ASSERT_TRUE(started) << render(started.error());
  ASSERT_TRUE(wait_readable(output.get(), patience_ms));
  started->kill();
  EXPECT_TRUE(started->wait(patience_ms));
  read_all(output);
}

TEST_F(an_intruder, cannot_start_more_processes_than_its_limit) {
  auto spec = intrude({"limited_forks"});
  spec.limits.processes = 20;
  auto forked = run(spec).said.at("forked");
  EXPECT_GT(forked, 5);
  EXPECT_LE(forked, 20);
}

TEST_F(an_intruder, does_not_use_up_the_processes_of_its_neighbour) {
  auto spec = intrude({"limited_forks"});
  spec.limits.processes = 20;
  auto bomb = intrude({"fork_bomb"});
  bomb.limits.processes = 20;
  descriptor output;
  auto started = start(bomb, output);
  ASSERT_TRUE(started) << render(started.error());
  ASSERT_TRUE(wait_readable(output.get(), patience_ms));
  EXPECT_GT(run(spec).said.at("forked"), 5);
}

TEST_F(an_intruder, that_leaves_an_orphan_is_over_when_its_program_is) {
  auto result = run(intrude({"orphan"}));
  EXPECT_EQ(result.status.code, 0);
  EXPECT_EQ(result.said.at("orphan"), 1);
}

TEST_F(an_intruder, that_hides_an_orphan_dies_whole_when_killed) {
  descriptor output;
  auto started = start(intrude({"orphan_and_stay"}), output);
  ASSERT_TRUE(started) << render(started.error());
  ASSERT_TRUE(wait_readable(output.get(), patience_ms));
  started->kill();
  EXPECT_EQ(started->wait(patience_ms)->signal, SIGKILL);
  read_all(output);
}

TEST_F(an_intruder, with_a_memory_bomb_meets_the_limit_of_its_group) {
  if (!has_layer("cgroup_memory")) GTEST_SKIP() << "no memory cgroup for this user";
  auto spec = intrude({"memory_bomb"});
  spec.memory_bytes = uint64_t{64} << 20;
  auto result = run(spec);
  EXPECT_EQ(result.status.signal, SIGKILL);
  EXPECT_TRUE(result.out_of_memory);
}

TEST_F(an_intruder, with_a_memory_bomb_meets_the_limit_of_its_address_space) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's shadow does not fit into a limited address space";
#endif
  auto spec = intrude({"memory_bomb"});
  spec.limits.address_space = uint64_t{128} << 20;
  auto result = run(spec);
  EXPECT_EQ(result.status.code, 0);
  EXPECT_FALSE(result.out_of_memory);
  EXPECT_LT(result.said.at("mapped"), 128);
}

TEST_F(an_intruder, cannot_fill_more_than_its_own_tmp) {
  auto spec = intrude({"fill", "/tmp/x"});
  spec.tmpfs_bytes = 4 << 20;
  auto said = run(spec).said;
  EXPECT_EQ(said.at("cause"), ENOSPC);
  EXPECT_LE(said.at("written"), 4 << 20);
  spec.tmpfs_bytes = 0;
  EXPECT_NE(run(spec).said.at("open"), 0);
}

TEST_F(an_intruder, cannot_write_a_file_beyond_its_limit) {
  auto spec = intrude({"fill", "/tmp/x"});
  spec.limits.file_size = 1 << 20;
  auto said = run(spec).said;
  EXPECT_EQ(said.at("cause"), EFBIG);
  EXPECT_EQ(said.at("written"), 1 << 20);
}

TEST_F(an_intruder, that_floods_its_output_dies_when_killed) {
  descriptor output;
  auto started = start(intrude({"flood"}), output);
  ASSERT_TRUE(started) << render(started.error());
  ASSERT_TRUE(wait_readable(output.get(), patience_ms));
  started->kill();
  EXPECT_TRUE(started->wait(patience_ms));
  read_all(output);
}

TEST_F(an_intruder, dies_when_its_parent_is_killed) {
  descriptor output;
  // The spawner stands for the client here: when the client dies, the spawner ends like this.
  auto started = start(intrude({"orphan_and_stay"}), output);
  ASSERT_TRUE(started) << render(started.error());
  ASSERT_TRUE(wait_readable(output.get(), patience_ms));
  auto moved = std::move(processes_); // its destructor closes the socket
  { auto gone = std::move(moved); }
  read_all(output);
}

} // namespace sandbox_attack_test
} // namespace kernelmill
