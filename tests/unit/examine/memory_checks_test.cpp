// Sanitizers that are shell scripts, in real walls; there need be no GPU.

#include "gpu/examine/memory_checks.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/clock.hpp"
#include "gpu/task/device_artifact.hpp"
#include "gpu/task/torch_artifact.hpp"
#include "tests/unit/examine/row_sum.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace memory_checks_test {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* clean = "========= ERROR SUMMARY: 0 errors";
constexpr const char* race =
    "========= Error: Race reported between Write access at f(float *)+0x60\n"
    "=========     and Read access at f(float *)+0x90 [32 hazards]\n"
    "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)";

class memory_checks : public testing::Test {
protected:
  memory_checks()
      : processes_(*spawner::launch(std::string{std::getenv("KERNELMILL_BIN_DIR")} +
                                    "/kernelmill-spawner")),
        walls_(processes_) {
    fs::permissions(folder_.path(), fs::perms{0755});
    std::ofstream{artifact()} << pack_device_artifact({"// launch: f<<<1, 1>>>(x, y)\n", "cubin"});
  }

  std::string artifact() const { return folder_.path() + "/artifact"; }

  // `body` has the check in $2 and the report's path in $4.
  std::string write_sanitizer(const std::string& body) {
    auto path = folder_.path() + "/compute-sanitizer";
    std::ofstream{path} << "#!/bin/sh\n" << body;
    fs::permissions(path, fs::perms{0755});
    return path;
  }

  Message<wire::EvaluateResult> run(const std::string& sanitizer, const char* when,
                                    bool correct = true, uint32_t limit_ms = 30'000,
                                    const task_ptr& what = row_sum(), double begun_before = 0) {
    auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
      x.setLibraryPath(artifact());
      x.setSanitize(when);
      x.setSanitizeMs(limit_ms);
      x.setDeadlineMs(limit_ms + 10'000);
    });
    auto judged = build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
      x.setCorrect(correct);
      x.setDeterministic(true);
      x.setDevice("a GPU");
      x.initSpans(1)[0].setName("correctness");
    });
    examine_options options;
    options.program = std::string{std::getenv("KERNELMILL_BIN_DIR")} + "/kernelmill-candidate";
    options.gpu_node = "/dev/none";
    auto view = request.open();
    return with_memory_checks({walls_, options, sanitizer, python_}, *what, *view, judged,
                              now_seconds() - begun_before);
  }

  spawner processes_;
  sandbox walls_;
  temporary_directory folder_;
  std::string python_;
};

TEST_F(memory_checks, find_a_race_and_keep_all_that_was_judged) {
  auto tool = write_sanitizer("printf '" + std::string{race} + "\n' > $4\n");
  auto result = run(tool, "on_accept");
  auto x = result.open();
  EXPECT_TRUE(x->getCorrect());
  EXPECT_STREQ(x->getDevice().cStr(), "a GPU");
  ASSERT_EQ(x->getMemory().getFindings().size(), 1u);
  auto found = x->getMemory().getFindings()[0];
  EXPECT_STREQ(found.getRule().cStr(), "memory_race");
  EXPECT_EQ(found.getSeverity(), wire::Severity::WARNING);
  EXPECT_THAT(found.getEvidence().cStr(), HasSubstr("racecheck in f(float *): "));
  EXPECT_THAT(found.getEvidence().cStr(), HasSubstr("__syncthreads()"));
  ASSERT_EQ(x->getSpans().size(), 2u);
  EXPECT_STREQ(x->getSpans()[1].getName().cStr(), "sanitize");
}

TEST_F(memory_checks, that_find_nothing_are_complete) {
  auto tool = write_sanitizer("echo '" + std::string{clean} + "' > $4\n");
  auto result = run(tool, "on_accept");
  auto memory = result.open();
  EXPECT_TRUE(memory->getMemory().getComplete());
  EXPECT_EQ(memory->getMemory().getFindings().size(), 0u);
}

TEST_F(memory_checks, look_at_no_wrong_kernel_unless_at_all) {
  auto tool = write_sanitizer("echo '" + std::string{clean} + "' > $4\n");
  EXPECT_FALSE(run(tool, "on_accept", false).open()->getMemory().getComplete());
  EXPECT_FALSE(run(tool, "", true).open()->getMemory().getComplete());
  EXPECT_TRUE(run(tool, "always", false).open()->getMemory().getComplete());
}

// Ten places of a kernel race as a warning, so that the write out of bounds would not be listed.
TEST_F(memory_checks, find_an_error_behind_any_number_of_warnings) {
  auto tool = write_sanitizer(
      "case $2 in\n"
      "racecheck) for i in 0 1 2 3 4 5 6 7 8 9; do\n"
      "  echo \"========= Warning: Race reported between Write access at f(float *)+0x${i}0\"\n"
      "  echo '=========     and Read access at f(float *)+0x990 [4 hazards]'\n"
      "done; echo '========= RACECHECK SUMMARY: 10 hazards displayed (0 errors, 10 warnings)';;\n"
      "memcheck) echo '========= Invalid __global__ write of size 4 bytes'\n"
      "  echo '=========     at at::mine(float *)+0x90'\n" // of device code no name is torch's
      "  echo '========= ERROR SUMMARY: 1 error';;\n"
      "*) echo '" +
      std::string{clean} + "';;\nesac > $4\n");
  auto result = run(tool, "on_accept");
  auto x = result.open();
  auto findings = x->getMemory().getFindings();
  ASSERT_EQ(findings.size(), 8u);
  EXPECT_STREQ(findings[0].getRule().cStr(), "memory_out_of_bounds");
  EXPECT_EQ(findings[0].getSeverity(), wire::Severity::WARNING);
  EXPECT_EQ(findings[1].getSeverity(), wire::Severity::INFO);
}

TEST_F(memory_checks, stand_behind_what_is_timed_on_the_same_cores) {
  auto tool = write_sanitizer("[ $(nice) -ge 5 ] && echo '" + std::string{clean} + "' > $4\n");
  EXPECT_TRUE(run(tool, "on_accept").open()->getMemory().getComplete());
}

TEST_F(memory_checks, without_a_report_are_a_problem_and_no_finding) {
  for (auto* body : {"exit 1\n", "echo '========= ERROR SUMMARY: 3 errors' > $4\n"}) {
    auto result = run(write_sanitizer(body), "on_accept");
    auto memory = result.open();
    EXPECT_FALSE(memory->getMemory().getComplete());
    EXPECT_EQ(memory->getMemory().getFindings().size(), 0u);
    EXPECT_EQ(memory->getMemory().getProblems().size(), 4u) << body;
    EXPECT_EQ(memory->getFault().getClass(), wire::FaultClass::NONE);
  }
  auto none = run("", "on_accept");
  EXPECT_THAT(none.open()->getMemory().getProblems()[0].cStr(), HasSubstr("no compute-sanitizer"));
}

TEST_F(memory_checks, look_at_a_library_too) {
  auto tool = write_sanitizer("printf '" + std::string{race} + "\n' > $4\n");
  auto result = run(tool, "on_accept", true, 30'000, row_sum(contract_kind::native));
  EXPECT_EQ(result.open()->getMemory().getFindings().size(), 1u);
}

task_ptr module_task() {
  auto what = std::make_shared<task>();
  what->id = "torch/mine";
  what->contract = contract_kind::torch;
  what->terms.backend = "cuda";
  what->torch.code = "import torch\n"
                     "def get_init_inputs(): return []\n"
                     "def get_inputs(): return [torch.ones(3), 7]\n";
  return what;
}

TEST_F(memory_checks, of_a_module_without_python_say_so) {
  auto result = run(write_sanitizer("exit 1\n"), "on_accept", true, 30'000, module_task());
  auto x = result.open();
  EXPECT_FALSE(x->getMemory().getComplete());
  EXPECT_THAT(x->getMemory().getProblems()[0].cStr(), HasSubstr("there is no Python"));
}

// The tool calls forward on the CPU; a kernel of torch's own is not the candidate's.
TEST_F(memory_checks, call_a_module_on_what_the_problem_draws) {
  python_ =
      std::getenv("KERNELMILL_PYTHON") ? std::getenv("KERNELMILL_PYTHON") : "/usr/bin/python3";
  if (!ask_python(processes_, python_)) GTEST_SKIP() << "no torch";
  std::ofstream{artifact()} << pack_torch_artifact(
      {"import torch\n"
       "class ModelNew(torch.nn.Module):\n"
       "    def forward(self, x, n): print('forward', x.sum().item() + n)\n",
       {},
       {}});
  auto report = [](const char* kernel) {
    return "========= Invalid __global__ read of size 4 bytes\n"
           "=========     at " +
           std::string{kernel} + "+0x90\n========= ERROR SUMMARY: 1 error\n";
  };
  auto tool = write_sanitizer("shift 4; \"$@\" cpu > /tmp/said || exit 9\n"
                              "grep -q 'forward 10' /tmp/said && printf '" +
                              report("mine(float *)") + report("at::native::copy(float *)") +
                              "' > /proc/self/fd/5\n");
  auto result = run(tool, "on_accept", true, 120'000, module_task());
  auto x = result.open();
  auto memory = x->getMemory();
  ASSERT_EQ(memory.getFindings().size(), 1u)
      << (memory.getProblems().size() > 0 ? memory.getProblems()[0].cStr() : "");
  EXPECT_THAT(memory.getFindings()[0].getEvidence().cStr(), HasSubstr("mine(float *)"));
}

TEST_F(memory_checks, have_one_limit_of_time_for_all) {
  auto result = run(write_sanitizer("sleep 30\n"), "on_accept", true, 1'000);
  auto x = result.open();
  auto problems = x->getMemory().getProblems();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0].cStr(), HasSubstr("racecheck: it did not end in time"));
  EXPECT_THAT(problems[1].cStr(), HasSubstr("no time is left"));
  EXPECT_LT(x->getSeconds(), 15);
}

TEST_F(memory_checks, have_no_more_time_than_an_evaluation_has_left_of_its_deadline) {
  auto tool = write_sanitizer("sleep 30\n");
  auto result = run(tool, "always", true, 30'000, row_sum(), 39); // of 40 s
  auto x = result.open();
  EXPECT_EQ(x->getMemory().getProblems().size(), 2u);
  EXPECT_LT(x->getSeconds(), 15);
}

} // namespace memory_checks_test
} // namespace kernelmill
