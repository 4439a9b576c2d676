// What a hostile module may try, and what is left standing afterwards.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gpu/sandbox/cgroup.hpp"
#include "tests/unit/process/outsider.hpp"
#include "torch_fixture.hpp"

namespace kernelmill {
namespace torch_walls_test {

using testing::AnyOf;
using testing::HasSubstr;

const char* const honest_body = "return torch.relu(self.linear(x))";

std::string category(const Message<wire::EvaluateResult>& x) {
  return x.open()->getFault().getCategory();
}

class torch_walls : public torch_fixture {
protected:
  // After everything that was tried, an honest module is judged as before.
  void TearDown() override {
    if (world_ == nullptr || IsSkipped()) return;
    auto result = evaluate(linear_problem, linear_answer(honest_body));
    EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
  }

  std::string printed(const std::string& statement) {
    return evaluate(linear_problem, linear_answer(honest_body, statement)).open()->getOutput();
  }
};

TEST_F(torch_walls, no_other_process_is_there) {
  EXPECT_EQ(printed("print([x for x in os.listdir('/proc') if x.isdigit()])"), "['1']");
}

TEST_F(torch_walls, there_is_no_network) {
  EXPECT_THAT(printed("import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9), 1)\n"
                      "except OSError as e:\n    print('refused')"),
              HasSubstr("refused"));
}

TEST_F(torch_walls, neither_the_problem_nor_tasks_can_be_read) {
  auto found =
      printed("hits = []\nfor top in ('/tmp', '/work', '/home', '/root', '/kernelmill-python'):\n"
              "    for d, _, files in os.walk(top):\n"
              "        hits += [d for f in files if f in ('problem.py', 'task.json') and "
              "'kernelmill_torch' not in d]\n"
              "print('found', hits)");
  EXPECT_EQ(found, "found []");
}

TEST_F(torch_walls, the_problems_model_is_in_no_module_and_no_object) {
  EXPECT_EQ(printed("import gc, sys\nprint([m for m in sys.modules if 'problem' in m and "
                    "'kernelmill' in m and "
                    "hasattr(sys.modules[m], 'Model')], [o for o in gc.get_objects() if "
                    "isinstance(o, type) and "
                    "o.__name__ == 'Model'])"),
            "[] []");
}

TEST_F(torch_walls, nothing_outside_its_own_directory_can_be_written) {
  EXPECT_EQ(printed("def t(p):\n    try:\n        open(p, 'w')\n        return 1\n    except "
                    "OSError:\n        return 0\n"
                    "print([t(p) for p in ('/x', '/usr/x', '/kernelmill-python/x', '/dev/x', "
                    "'/proc/sys/kernel/core_pattern')])"),
            "[0, 0, 0, 0, 0]");
}

TEST_F(torch_walls, one_candidate_leaves_no_file_for_the_next) {
  (void)printed("open('/tmp/left', 'w').write('x')");
  EXPECT_EQ(printed("print(os.path.exists('/tmp/left'))"), "False");
}

TEST_F(torch_walls, it_has_no_capability_and_gets_no_namespace) {
  EXPECT_EQ(
      printed(
          "import ctypes\nlibc = ctypes.CDLL(None)\n"
          "caps = [l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', "
          "'CapPrm'))]\n"
          "print(caps, libc.unshare(0x10000000), libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))"),
      "['0000000000000000', '0000000000000000'] -1 -1");
}

TEST_F(torch_walls, a_process_that_ends_itself_is_told) {
  EXPECT_EQ(category(evaluate(linear_problem, linear_answer("print('PASS')\nos._exit(0)"))),
            "exited");
  EXPECT_EQ(category(evaluate(
                linear_problem,
                linear_answer("os.kill(os.getpid(), 11)\nimport ctypes\nctypes.string_at(0)"))),
            "crashed");
}

// A candidate that was killed from outside is judged again, without a fault. Nothing here looks so.
TEST_F(torch_walls, nothing_that_it_does_looks_like_a_kill_from_outside) {
  for (const char* body :
       {"os._exit(137)", "os.kill(os.getpid(), 9)\nos._exit(137)",
        "import resource, ctypes\nctypes.CDLL(None).signal(24, ctypes.c_void_p(1))\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True:\n    pass",
        "import resource\nresource.prlimit(0, resource.RLIMIT_CPU, (1, 1))\nwhile True:\n    "
        "pass",
        // As the kernel's own (si_code 0x80): rt_sigqueueinfo, rt_tgsigqueueinfo,
        // pidfd_send_signal.
        "import ctypes\nlibc = ctypes.CDLL(None)\ninfo = (ctypes.c_int * 32)(9, 0, 0x80)\n"
        "libc.syscall(129, os.getpid(), 9, info)\n"
        "libc.syscall(297, os.getpid(), os.getpid(), 9, info)\n"
        "libc.syscall(424, os.pidfd_open(os.getpid()), 9, info, 0)\nraise ValueError"}) {
    auto result = evaluate(linear_problem, linear_answer(body));
    EXPECT_THAT(category(result), AnyOf("crashed", "runtime_error")) << body << summary(result);
  }
}

TEST_F(torch_walls, a_candidate_that_was_killed_from_outside_is_judged_again) {
  auto kills_before = kills_for_memory_anywhere();
  outsider operator_{"km-victim", 1, 0, outsider::kills()};
  auto result =
      evaluate(linear_problem,
               linear_answer("if self.calls == 0:\n    import ctypes, time\n"
                             "    ctypes.CDLL(None).prctl(15, b'km-victim')\n    time.sleep(2)\n"
                             "self.calls += 1\nreturn torch.relu(self.linear(x))"));
  EXPECT_EQ(operator_.done(), 1);
  if (kills_for_memory_anywhere() != kills_before)
    GTEST_SKIP() << "the kernel has ended a process for want of memory meanwhile";
  EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
}

// Its parent waits for it; the process that this was forked from is everybody's.
TEST_F(torch_walls, a_candidate_that_lost_the_warm_process_is_not_at_fault) {
  auto kills_before = kills_for_memory_anywhere();
  outsider operator_{"km-victim", 1, 0, [](int pid) {
                       int warm = parent_of(parent_of(pid));
                       return warm > 1 && ::kill(warm, SIGKILL) == 0;
                     }};
  auto result =
      evaluate(linear_problem,
               linear_answer("import ctypes, time\nctypes.CDLL(None).prctl(15, b'km-victim')\n"
                             "time.sleep(2)\nreturn torch.relu(self.linear(x))"));
  EXPECT_EQ(operator_.done(), 1);
  if (kills_for_memory_anywhere() != kills_before)
    GTEST_SKIP() << "the kernel has ended a process for want of memory meanwhile";
  EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
  EXPECT_THAT(category(result), AnyOf("referee_killed", "killed_outside")) << summary(result);
}

TEST_F(torch_walls, it_cannot_end_anybody_else) {
  auto result =
      evaluate(linear_problem, linear_answer("os.kill(-1, 9)\nreturn torch.relu(self.linear(x))"));
  EXPECT_THAT(category(result), AnyOf("", "runtime_error", "crashed", "out_of_memory"))
      << summary(result);
}

TEST_F(torch_walls, an_endless_call_is_ended_at_the_deadline) {
  auto result = evaluate(linear_problem, linear_answer("while True:\n    pass"),
                         [](wire::EvaluateRequest::Builder x) { x.setDeadlineMs(3000); });
  EXPECT_EQ(category(result), "timed_out") << summary(result);
}

TEST_F(torch_walls, an_endless_import_is_ended_at_the_deadline) {
  auto result = evaluate(linear_problem, "import time\nwhile True:\n    time.sleep(1)\n",
                         [](wire::EvaluateRequest::Builder x) { x.setDeadlineMs(3000); });
  EXPECT_EQ(category(result), "timed_out") << summary(result);
}

TEST_F(torch_walls, forks_without_end_stay_behind_the_walls) {
  auto result = evaluate(
      linear_problem,
      linear_answer("n = 0\ntry:\n    while n < 2000:\n        if os.fork() == 0:\n"
                    "            import time\n            time.sleep(100)\n        n += 1\n"
                    "except OSError:\n    print('limit')\nreturn torch.relu(self.linear(x))"));
  EXPECT_THAT(std::string{result.open()->getOutput()}, HasSubstr("limit")) << summary(result);
}

// Whether any process on this machine calls itself so.
bool is_anywhere(const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
    std::ifstream file{entry.path() / "comm"};
    std::string found;
    if (std::getline(file, found) && found == name) return true;
  }
  return false;
}

TEST_F(torch_walls, what_is_ended_is_gone_with_all_that_it_started) {
  auto result = evaluate(
      linear_problem,
      linear_answer("import ctypes\nctypes.CDLL(None).prctl(15, b'km-survivor')\nos.fork()\n"
                    "try:\n    os.setsid()\nexcept OSError:\n    pass\nwhile True:\n    pass"),
      [](wire::EvaluateRequest::Builder x) { x.setDeadlineMs(2000); });
  EXPECT_EQ(category(result), "timed_out") << summary(result);
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (is_anywhere("km-survivor") && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_FALSE(is_anywhere("km-survivor"));
}

TEST_F(torch_walls, memory_without_end_is_its_own_fault) {
  auto result = evaluate(
      linear_problem,
      linear_answer(
          "kept = []\nwhile True:\n    kept.append(torch.empty(1 << 34, dtype=torch.uint8))\n"
          "    kept[-1][:4096] = 1"));
  EXPECT_THAT(category(result), AnyOf("out_of_memory", "runtime_error", "crashed"))
      << summary(result);
}

TEST_F(torch_walls, words_on_every_descriptor_change_nothing) {
  auto result =
      evaluate(linear_problem,
               linear_answer("for fd in range(3, 64):\n    try:\n        os.write(fd, b'{\"ok\": "
                             "true, \"correct\": true}')\n"
                             "    except OSError:\n        pass\nreturn torch.zeros(64, 32)"));
  EXPECT_FALSE(result.open()->getCorrect()) << summary(result);
}

} // namespace torch_walls_test
} // namespace kernelmill
