// Sanitizers that are shell scripts, in real walls; there need be no GPU.

#include "gpu/examine/memory_checks.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/device_artifact.hpp"
#include "tests/unit/examine/row_sum.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace {

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
                                    bool correct = true, uint32_t limit_ms = 30'000) {
    auto what = row_sum();
    auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
      x.setLibraryPath(artifact());
      x.setSanitize(when);
      x.setSanitizeMs(limit_ms);
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
    return with_memory_checks({walls_, options, sanitizer}, *what, *view, judged);
  }

  spawner processes_;
  sandbox walls_;
  temporary_directory folder_;
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

TEST_F(memory_checks, have_one_limit_of_time_for_all) {
  auto result = run(write_sanitizer("sleep 30\n"), "on_accept", true, 1'000);
  auto x = result.open();
  auto problems = x->getMemory().getProblems();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0].cStr(), HasSubstr("racecheck: it did not end in time"));
  EXPECT_THAT(problems[1].cStr(), HasSubstr("no time is left"));
  EXPECT_LT(x->getSeconds(), 15);
}

} // namespace
} // namespace kernelmill
