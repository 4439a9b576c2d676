// Process 1 of a sandbox is bubblewrap's. Without root it belongs to the candidate's user and has
// the outer filter alone, so who can write to its memory is rid of the inner one. Two locks are on
// that door, and each is tried alone: what is hidden, and what Landlock refuses.

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/sandbox/sandbox_fixture.hpp"

namespace kernelmill {
namespace sandbox_init_test {

class the_init_of_a_sandbox : public sandbox_fixture {
protected:
  // What `said` holds under names that begin with `when`, without it.
  static std::map<std::string, long> part(const std::map<std::string, long>& said,
                                          const std::string& when) {
    std::map<std::string, long> result;
    for (auto& [name, cause] : said)
      if (name.starts_with(when)) result[name.substr(when.size())] = cause;
    EXPECT_EQ(result.size(), 24u) << when;
    return result;
  }
};

TEST_F(the_init_of_a_sandbox, is_hidden_from_a_candidate_for_a_cpu) {
  auto spec = intrude({"locked_in"});
  spec.may_exec = false;
  for (auto& [name, cause] : part(run(spec).said, "init:")) {
    bool opens_to_read = name.ends_with(":read");
    EXPECT_EQ(cause, opens_to_read ? ENOENT : EPERM) << name;
  }
}

// The inner filter of a GPU lets files be opened for writing.
TEST_F(the_init_of_a_sandbox, is_hidden_from_a_candidate_for_a_gpu) {
  auto spec = intrude({"gpu_locked_in"});
  spec.devices = {"/dev/null"};
  spec.may_exec = false;
  for (auto& [name, cause] : part(run(spec).said, "init:")) {
    bool opens = name.ends_with(":read") || name.ends_with(":write");
    EXPECT_EQ(cause, opens ? ENOENT : EPERM) << name;
  }
}

TEST_F(the_init_of_a_sandbox, would_be_out_of_reach_in_a_domain_if_it_were_seen) {
  auto said = run(intrude({"in_domain"})).said;
  if (said.at("landlock") == 0) GTEST_SKIP() << "this kernel has no Landlock";
  // The stand-in is as open as an init of the same user, or the rest would prove nothing.
  for (auto* name : {"mem:read", "mem:write", "environ:read", "root:read"})
    EXPECT_EQ(said.at(std::string{"before:"} + name), 0) << name;
  for (auto* when : {"after:", "thread:"})
    for (auto& [name, cause] : part(said, when))
      if (name != "tgkill") { // the inner filter's part
        EXPECT_EQ(cause, name.find(':') == name.npos ? EPERM : EACCES) << when << name;
      }
}

TEST_F(the_init_of_a_sandbox, is_all_that_a_domain_keeps_from_a_driver) {
  auto said = run(intrude({"in_domain"})).said;
  for (auto* name : {"tmp", "device", "own_memory", "own_maps", "usr", "name_of_thread"})
    EXPECT_EQ(said.at(name), 0) << name;
}

// -- the same as a user other than root --------------------------------------------------------

constexpr unsigned nobody = 65534;

// Returns the exit code, or -1.
int run_as_nobody(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (auto& x : words) argv.push_back(x.data());
  argv.push_back(nullptr);
  int pid = ::fork();
  if (pid == 0) {
    ::unsetenv("GTEST_OUTPUT");
    if (::setgroups(0, nullptr) == 0 && ::setresgid(nobody, nobody, nobody) == 0 &&
        ::setresuid(nobody, nobody, nobody) == 0)
      ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int status = -1;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(a_user_other_than_root, finds_all_walls_standing) {
  if (::geteuid() != 0) GTEST_SKIP() << "all other tests run as a user other than root";
  auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  if (run_as_nobody({self, "--gtest_filter=none", "--gtest_brief=1"}) != 0)
    GTEST_SKIP() << "user " << nobody << " may not execute " << self;
  if (run_as_nobody(
          {find_bubblewrap(), "--unshare-user", "--ro-bind", "/", "/", "/usr/bin/true"}) != 0)
    GTEST_SKIP() << "user " << nobody << " may not make user namespaces here";
  EXPECT_EQ(run_as_nobody(
                {self, "--gtest_filter=an_intruder.*:the_init_of_a_sandbox.*", "--gtest_brief=1"}),
            0);
}

} // namespace sandbox_init_test
} // namespace kernelmill
