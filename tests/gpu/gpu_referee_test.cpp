// Candidates on a real GPU, through the toolchain and the referee of a node: what each ending is
// called, and that the next candidate finds the card as if nothing had been.

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/cuda/devices.hpp"
#include "gpu/referee/referee_client.hpp"
#include "gpu/sandbox/sandbox.hpp"
#include "gpu/task/task.hpp"
#include "gpu/toolchain/compiler_facts.hpp"
#include "gpu/toolchain/toolchain.hpp"
#include "messages/digest.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw std::runtime_error(std::string{name} + " is not set; run this by ctest");
  return value;
}

std::string checkout() {
  return from_environment("KERNELMILL_SOURCE_DIR");
}

std::string read_source(const std::string& path) {
  std::ifstream in{checkout() + "/" + path, std::ios::binary};
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) throw std::runtime_error("failed to read " + path);
  return text.str();
}

// A solve() for row_sum that launches a kernel with this body.
std::string row_sum(const std::string& body, const std::string& geometry = "rows, 1") {
  return "__global__ void f(float* x, float* y, int rows, int cols) {\n" + body +
         "\n}\nextern \"C\" void solve(const float* x, float* y, int rows, int cols) {\n"
         "  f<<<" +
         geometry + ">>>(const_cast<float*>(x), y, rows, cols);\n}\n";
}

const std::string honest_body = R"(
  float sum = 0;
  for (int j = 0; j < cols; ++j) sum += x[long(blockIdx.x) * cols + j];
  y[blockIdx.x] = sum;)";

class gpu_referee : public testing::Test {
protected:
  void SetUp() override {
    auto monitor = cuda::gpu_monitor::open();
    if (!monitor) GTEST_SKIP() << render(monitor.error());
    if (find_nvcc().empty()) GTEST_SKIP() << "no nvcc on this machine";
    const auto& gpu = monitor->gpus().front();
    auto programs = from_environment("KERNELMILL_BIN_DIR");
    auto processes = spawner::launch(programs + "/kernelmill-spawner");
    ASSERT_TRUE(processes) << render(processes.error());
    processes_.emplace(std::move(*processes));
    walls_.emplace(*processes_);
    toolchain_options compiler;
    compiler.backend = "cuda";
    compiler.architecture = gpu.architecture;
    compiler.cache_directory = scratch_.path() + "/build";
    toolchain_.emplace(*walls_, compiler);
    referee_options options;
    options.cache_directory = scratch_.path() + "/referee";
    options.gpu_node = gpu.node;
    options.gpu_uuid = gpu.uuid;
    auto referee = referee_client::launch(*processes_, programs + "/kernelmill-referee", options);
    ASSERT_TRUE(referee) << render(referee.error());
    referee_.emplace(std::move(*referee));
    auto what = load_task(checkout() + "/configs/tasks", "native/row_sum");
    ASSERT_TRUE(what) << render(what.error());
    task_ = std::move(*what);
  }

  void TearDown() override {
    if (referee_) {
      EXPECT_EQ(referee_->restarts(), 0u) << "a candidate must not be able to end its referee";
    }
  }

  Message<wire::EvaluateResult> evaluate(const std::string& source, bool timed = false) {
    auto asked = build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
      x.setTask(task_.id);
      x.setContract("native");
      x.setBackend("cuda");
      x.setSource(source);
      x.setSha256(sha256_hex(source));
    });
    auto built = toolchain_->build(*asked.open());
    auto library = built.open();
    if (!library->getCompiled())
      throw std::runtime_error(std::string{"the test's candidate does not compile: "} +
                               library->getFault().getMessage().cStr() + "\n" +
                               library->getLog().cStr());
    auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
      x.setTaskDir(task_.directory);
      x.setTaskDigest(task_.digest);
      x.setCandidateSha256(sha256_hex(source));
      x.setLibraryPath(library->getLibraryPath());
      x.setLibrarySha256(library->getLibrarySha256());
      x.initTiming().setEnabled(timed);
      x.setDeadlineMs(60'000);
    });
    auto result = referee_->evaluate(request, 90'000);
    if (!result) throw std::runtime_error(render(result.error()));
    return *result;
  }

  void expect_honest_is_fine() {
    auto result = evaluate(row_sum(honest_body));
    EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
    EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::NONE);
    EXPECT_THAT(critical_rules(result), testing::IsEmpty());
  }

  static std::string category(const Message<wire::EvaluateResult>& result) {
    auto x = result.open();
    EXPECT_FALSE(x->getCorrect());
    EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::CANDIDATE) << summary(result);
    return x->getFault().getCategory();
  }

  static std::vector<std::string> critical_rules(const Message<wire::EvaluateResult>& result) {
    std::vector<std::string> rules;
    auto x = result.open();
    for (auto finding : x->getFindings())
      if (finding.getSeverity() == wire::Severity::CRITICAL) rules.push_back(finding.getRule());
    return rules;
  }

  static std::string summary(const Message<wire::EvaluateResult>& result) {
    auto x = result.open();
    std::string text = std::string{x->getFault().getCategory()} + ": " +
                       x->getFault().getMessage().cStr() + " | " + x->getTiming().getNote().cStr() +
                       " | printed: " + x->getOutput().cStr();
    for (auto finding : x->getFindings())
      text += std::string{" | "} + finding.getRule().cStr() + ": " + finding.getEvidence().cStr();
    return text;
  }

  temporary_directory scratch_;
  std::optional<spawner> processes_;
  std::optional<sandbox> walls_;
  std::optional<native_toolchain> toolchain_;
  std::optional<referee_client> referee_;
  task task_;
};

TEST_F(gpu_referee, the_baseline_is_correct_and_as_fast_as_itself) {
  auto result = evaluate(read_source("configs/tasks/native/row_sum/baseline.cu"), true);
  auto x = result.open();
  EXPECT_TRUE(x->getCorrect()) << summary(result);
  EXPECT_TRUE(x->getDeterministic());
  EXPECT_THAT(critical_rules(result), testing::IsEmpty()) << summary(result);
  EXPECT_GT(x->getCases().size(), 4u);
  for (auto c : x->getCases()) EXPECT_TRUE(c.getPass()) << c.getName().cStr();
  auto t = x->getTiming();
  ASSERT_TRUE(t.getMeasured()) << summary(result);
  EXPECT_STREQ(t.getClock().cStr(), "outside, slope of rows");
  EXPECT_EQ(t.getShape(), "rows=8192 cols=8192");
  EXPECT_GE(t.getSamples(), 4u);
  EXPECT_GT(t.getCandidateMs(), 0);
  EXPECT_GT(t.getRooflineMs(), 0);
  EXPECT_GE(t.getCandidateMs(), t.getRooflineMs());
  auto speedup = t.getSpeedup();
  EXPECT_LE(speedup.getLow(), speedup.getEstimate());
  EXPECT_GE(speedup.getHigh(), speedup.getEstimate());
  EXPECT_NEAR(speedup.getEstimate(), 1, 0.1);
  EXPECT_LE(speedup.getLow(), 1.1);
  EXPECT_GE(speedup.getHigh(), 0.9);
  std::printf("candidate %.4f ms, baseline %.4f ms, speedup %.3f [%.3f, %.3f], roofline %.4f ms, "
              "%u samples, %s, %s\n",
              t.getCandidateMs(), t.getReferenceMs(), speedup.getEstimate(), speedup.getLow(),
              speedup.getHigh(), t.getRooflineMs(), t.getSamples(), t.getNote().cStr(),
              x->getDevice().cStr());
}

TEST_F(gpu_referee, a_wrong_kernel_is_told_where) {
  auto result = evaluate(row_sum("y[blockIdx.x] = 1;"));
  EXPECT_EQ(category(result), "wrong_result");
  EXPECT_THAT(result.open()->getFault().getMessage().cStr(), HasSubstr("y[0]: got 1, want"));
}

TEST_F(gpu_referee, an_illegal_address_is_told_and_the_next_candidate_is_fine) {
  auto result = evaluate(row_sum("*(volatile float*)16 = cols;"));
  EXPECT_EQ(category(result), "illegal_access") << summary(result);
  EXPECT_NE(result.open()->getFault().getHint(), "");
  expect_honest_is_fine();
}

TEST_F(gpu_referee, an_endless_kernel_is_timed_out_and_the_next_candidate_is_fine) {
  auto result = evaluate(row_sum("for (volatile float* out = y;;) out[0] = out[0] + 1;", "1, 1"));
  EXPECT_EQ(category(result), "timed_out") << summary(result);
  expect_honest_is_fine();
}

TEST_F(gpu_referee, a_write_to_an_input_is_the_candidates_fault) {
  auto result = evaluate(row_sum(honest_body + "x[long(blockIdx.x) * cols] = 0;"));
  EXPECT_NE(category(result), "") << summary(result);
  // Read-only for it, or found changed when it is looked at.
  bool found = result.open()->getFault().getCategory() == "illegal_access";
  for (auto& rule : critical_rules(result)) found = found || rule == "input_overwrite";
  EXPECT_TRUE(found) << summary(result);
  expect_honest_is_fine();
}

TEST_F(gpu_referee, a_write_behind_an_output_is_found) {
  auto result = evaluate(read_source("tests/exploits/gpu_corpus/hacks/out_of_bounds_behind.cu"));
  EXPECT_THAT(category(result), AnyOf("out_of_bounds_write", "illegal_access", "device_error"))
      << summary(result);
  if (result.open()->getFault().getCategory() == "out_of_bounds_write") {
    EXPECT_THAT(critical_rules(result), Contains("out_of_bounds_write"));
  }
  expect_honest_is_fine();
}

} // namespace
} // namespace kernelmill
