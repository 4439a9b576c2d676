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
#include "messages/base/digest.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace gpu_referee_test {

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

// The same as device code.
std::string device_row_sum(const std::string& body,
                           const std::string& launch = "<<<rows, 1>>>(x, y, rows, cols)") {
  return "// launch: f" + launch +
         "\nextern \"C\" __global__ void f(float* x, float* y, int rows, int cols) {\n" + body +
         "\n}\n";
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
    compiler.device_compiler = programs + "/kernelmill-nvrtc";
    compiler.cache_directory = scratch_.path() + "/build";
    toolchain_.emplace(*walls_, compiler);
    referee_options options;
    options.cache_directory = scratch_.path() + "/referee";
    options.gpu_node = gpu.node;
    options.gpu_uuid = uuid_ = gpu.uuid;
    auto referee = referee_client::launch(*processes_, programs + "/kernelmill-referee", options);
    ASSERT_TRUE(referee) << render(referee.error());
    referee_.emplace(std::move(*referee));
    auto what = load_task(checkout() + "/configs/tasks", "native/row_sum");
    ASSERT_TRUE(what) << render(what.error());
    task_ = **what;
  }

  void TearDown() override {
    if (referee_) {
      EXPECT_EQ(referee_->restarts(), 0u) << "a candidate must not be able to end its referee";
    }
  }

  Message<wire::EvaluateResult> evaluate(const std::string& source, bool timed = false,
                                         const char* contract = "native") {
    auto asked = build<wire::BuildRequest>([&](wire::BuildRequest::Builder x) {
      x.setTask(task_.id);
      x.setContract(contract);
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
      x.setContract(contract);
      x.initTiming().setEnabled(timed);
      x.setDeadlineMs(60'000);
    });
    auto result = referee_->evaluate(request, 90'000);
    if (!result) throw std::runtime_error(render(result.error()));
    return *result;
  }

  Message<wire::EvaluateResult> evaluate_device(const std::string& source, bool timed = false) {
    return evaluate(source, timed, "device");
  }

  void expect_honest_is_fine() { expect_accepted(evaluate(row_sum(honest_body))); }

  void expect_honest_device_code_is_fine() {
    expect_accepted(evaluate_device(device_row_sum(honest_body)));
  }

  static void expect_accepted(const Message<wire::EvaluateResult>& result) {
    EXPECT_TRUE(result.open()->getCorrect()) << summary(result);
    EXPECT_EQ(result.open()->getFault().getClass(), wire::FaultClass::NONE) << summary(result);
    EXPECT_THAT(critical_rules(result), testing::IsEmpty()) << summary(result);
  }

  // By its name; negative when there is none.
  static double quantity(capnp::List<wire::Quantity>::Reader list, const std::string& name) {
    for (auto x : list)
      if (x.getName() == name.c_str()) return x.getValue();
    return -1;
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
  std::string uuid_;
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
  EXPECT_STREQ(t.getClock().cStr(), "outside, rows less the baseline's intercept");
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
  EXPECT_STREQ(x->getDeviceUuid().cStr(), uuid_.c_str());
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

// -- what no clock sees --------------------------------------------------------------------------

// Either they are those of other contents, or they were worked out while the clock ran.
TEST_F(gpu_referee, answers_of_an_untimed_call_and_rows_made_slow_gain_nothing) {
  for (const char* contract : {"native", "device"})
    for (const char* name : {"harvest_in_untimed_call.cu", "slow_in_short_rows.cu"}) {
      auto folder = std::string{contract} == "device" ? "device/hacks/" : "hacks/";
      auto result = evaluate(read_source(std::string{"tests/exploits/gpu_corpus/"} + folder + name),
                             true, contract);
      auto speedup = result.open()->getTiming().getSpeedup();
      if (result.open()->getCorrect()) {
        EXPECT_LE(speedup.getLow(), 1.02) << contract << " " << name << ": " << summary(result);
      }
      std::printf("%s %s: speedup %.3f [%.3f, %.3f], %s\n", contract, name, speedup.getEstimate(),
                  speedup.getLow(), speedup.getHigh(), summary(result).c_str());
    }
}

// It has the rows of all kinds of contents and both clocks; a library that waits for its own work
// has one.
TEST_F(gpu_referee, both_times_of_a_call_are_told_and_the_times_of_each_kind) {
  auto baseline = read_source("configs/tasks/native/row_sum/baseline.cu");
  auto result = evaluate(baseline, true);
  auto t = result.open()->getTiming();
  for (double ms : {t.getCandidateCallMs(), t.getReferenceCallMs(), t.getCandidateDeviceMs(),
                    t.getReferenceDeviceMs()})
    EXPECT_NEAR(ms, t.getCandidateMs(), 0.15 * t.getCandidateMs()) << summary(result);
  EXPECT_GE(t.getKinds().size(), 4u);
  for (auto kind : t.getKinds()) {
    EXPECT_GT(kind.getCalls(), 0u) << kind.getName().cStr();
    std::printf("%s: %.4f of %.4f ms\n", kind.getName().cStr(), kind.getCandidateMs(),
                kind.getReferenceMs());
  }
}

TEST_F(gpu_referee, a_library_that_waits_within_a_call_is_timed_by_call_only) {
  auto source = read_source("configs/tasks/native/row_sum/baseline.cu");
  auto name = source.rfind("solve");
  source.replace(name, 5, "inner");
  source += "\nextern \"C\" void solve(const float* x, float* y, int rows, int cols) {\n"
            "  inner(x, y, rows, cols);\n  cudaDeviceSynchronize();\n}\n";
  auto result = evaluate(source, true);
  expect_accepted(result);
  auto t = result.open()->getTiming();
  EXPECT_TRUE(t.getMeasured()) << summary(result);
  EXPECT_THAT(t.getNote().cStr(), HasSubstr("was not measured")) << summary(result);
  EXPECT_EQ(t.getCandidateDeviceMs(), t.getCandidateCallMs());
}

TEST_F(gpu_referee, other_bits_within_the_bound_are_a_note) {
  auto what = load_task(checkout() + "/configs/tasks", "native/matmul");
  ASSERT_TRUE(what) << render(what.error());
  task_ = **what;
  auto result =
      evaluate(read_source("tests/exploits/gpu_corpus/honest/matmul_split_k_atomics.cu"), true);
  expect_accepted(result);
  EXPECT_TRUE(result.open()->getDeterministic()) << summary(result);
}

// -- device code ----------------------------------------------------------------------------------

using gpu_device_code = gpu_referee;

TEST_F(gpu_device_code, that_is_honest_is_accepted_and_both_clocks_agree) {
  auto source = read_source("tests/exploits/gpu_corpus/device/honest/row_sum_baseline.cu");
  auto result = evaluate_device(source, true);
  expect_accepted(result);
  auto x = result.open();
  EXPECT_TRUE(x->getDeterministic());
  EXPECT_GT(x->getCases().size(), 4u);
  for (auto c : x->getCases()) EXPECT_TRUE(c.getPass()) << c.getName().cStr();
  auto t = x->getTiming();
  ASSERT_TRUE(t.getMeasured()) << summary(result);
  EXPECT_EQ(t.getShape(), "rows=8192 cols=8192");
  EXPECT_GE(t.getCandidateMs(), t.getRooflineMs());
  auto events = quantity(x->getConditions(), "time_by_events");
  EXPECT_NEAR(events, t.getCandidateMs(), 0.05 * t.getCandidateMs()) << summary(result);
  EXPECT_GT(quantity(x->getConditions(), "sm_clock"), 0);
  for (auto finding : x->getFindings())
    EXPECT_STRNE(finding.getRule().cStr(), "clocks_disagree") << finding.getEvidence().cStr();
  // The task's baseline is the same kernel.
  EXPECT_NEAR(t.getSpeedup().getEstimate(), 1, 0.15) << summary(result);
  for (auto* part : {"task", "process", "load", "correctness", "timing"})
    EXPECT_GE(quantity(x->getSpans(), part), 0) << part;
  std::printf("candidate %.4f ms, by events %.4f ms, baseline %.4f ms, %u samples, %s\n",
              t.getCandidateMs(), events, t.getReferenceMs(), t.getSamples(), t.getNote().cStr());
}

TEST_F(gpu_device_code, of_two_launches_with_scratch_is_accepted) {
  expect_accepted(evaluate_device(R"(// scratch: part[4 * rows * 2]
// launch: halves<<<dim3(2, rows), dim3(1, 1)>>>(x, part, cols, (cols + 1) / 2)
// launch: total<<<ceil_div(rows, 32), 32>>>(part, y, rows)
extern "C" __global__ void halves(const float* x, float* part, int cols, int half) {
  float sum = 0;
  for (int j = blockIdx.x * half; j < min(cols, int(blockIdx.x + 1) * half); ++j)
    sum += x[long(blockIdx.y) * cols + j];
  part[2 * blockIdx.y + blockIdx.x] = sum;
}
extern "C" __global__ void total(const float* part, float* y, int rows) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i < rows) y[i] = part[2 * i] + part[2 * i + 1];
}
)"));
}

TEST_F(gpu_device_code, may_declare_a_64_bit_integer_and_ask_for_shared_memory) {
  expect_accepted(evaluate_device(R"(// launch: f<<<rows, 1, 64 * 1024>>>(x, y, cols)
extern "C" __global__ void f(const float* x, float* y, long long cols) {
  extern __shared__ float room[];
  room[16383] = 0;
  for (long long j = 0; j < cols; ++j) room[16383] += x[blockIdx.x * cols + j];
  y[blockIdx.x] = room[16383];
}
)"));
}

TEST_F(gpu_device_code, is_run_by_one_process_after_another_candidate_of_it) {
  expect_honest_device_code_is_fine();
  auto second = evaluate_device(device_row_sum(honest_body + " // another"));
  expect_accepted(second);
  EXPECT_LT(quantity(second.open()->getSpans(), "process"), 0.01);
  expect_honest_is_fine(); // of the other contract, in between
  expect_honest_device_code_is_fine();
}

TEST_F(gpu_device_code, that_is_wrong_is_told_where) {
  auto result = evaluate_device(device_row_sum("y[blockIdx.x] = 1;"));
  EXPECT_EQ(category(result), "wrong_result");
  EXPECT_THAT(result.open()->getFault().getMessage().cStr(), HasSubstr("y[0]: got 1, want"));
  // No error of the GPU: the same process goes on.
  auto next = evaluate_device(device_row_sum(honest_body));
  expect_accepted(next);
  EXPECT_LT(quantity(next.open()->getSpans(), "process"), 0.01);
}

TEST_F(gpu_device_code, at_an_illegal_address_is_told_and_its_process_replaced) {
  auto result = evaluate_device(device_row_sum("*(volatile float*)16 = cols;"));
  EXPECT_EQ(category(result), "illegal_access") << summary(result);
  EXPECT_NE(result.open()->getFault().getHint(), "");
  expect_honest_device_code_is_fine();
  expect_honest_is_fine();
}

TEST_F(gpu_device_code, without_an_end_is_timed_out_and_its_process_replaced) {
  auto result = evaluate_device(device_row_sum(
      "for (volatile float* out = y;;) out[0] = out[0] + 1;", "<<<1, 1>>>(x, y, rows, cols)"));
  EXPECT_EQ(category(result), "timed_out") << summary(result);
  expect_honest_device_code_is_fine();
}

TEST_F(gpu_device_code, of_a_geometry_that_the_gpu_refuses_is_a_bad_launch) {
  for (auto* geometry :
       {"<<<rows, 2048>>>", "<<<rows, dim3(32, 32, 2)>>>", "<<<rows, 0>>>", "<<<rows - rows, 1>>>",
        "<<<dim3(1, 1, 70000), 1>>>", "<<<rows, 1, 300 * 1024>>>", "<<<rows, 1, -1>>>",
        "<<<rows, 1, 2 * 1024 * 1024>>>"}) {
    auto result =
        evaluate_device(device_row_sum(honest_body, std::string{geometry} + "(x, y, rows, cols)"));
    EXPECT_EQ(category(result), "bad_launch") << geometry << ": " << summary(result);
    EXPECT_NE(result.open()->getFault().getHint(), "") << geometry;
    expect_honest_device_code_is_fine();
  }
}

TEST_F(gpu_device_code, whose_arguments_do_not_fit_its_kernel_is_a_bad_launch) {
  for (auto* list : {"(x, y, rows)", "(x, y)", "()", "(x, y, rows, cols, 1)", "(x, rows, y, cols)",
                     "(x, y, rows, x)"}) {
    auto result = evaluate_device(device_row_sum(honest_body, std::string{"<<<rows, 1>>>"} + list));
    EXPECT_EQ(category(result), "bad_launch") << list << ": " << summary(result);
    expect_honest_device_code_is_fine();
  }
}

TEST_F(gpu_device_code, that_names_what_there_is_not_is_told_what) {
  auto unknown = evaluate_device(device_row_sum(honest_body, "<<<rows, 1>>>(x, y, rows, columns)"));
  EXPECT_EQ(category(unknown), "bad_launch") << summary(unknown);
  EXPECT_THAT(unknown.open()->getFault().getMessage().cStr(),
              testing::AllOf(HasSubstr("line 1: "), HasSubstr("columns")));
  auto missing = evaluate_device("// launch: g<<<rows, 1>>>(x, y, rows, cols)\n" +
                                 device_row_sum(honest_body));
  EXPECT_EQ(category(missing), "missing_symbol") << summary(missing);
  EXPECT_THAT(missing.open()->getFault().getMessage().cStr(), HasSubstr("kernel g"));
  expect_honest_device_code_is_fine();
}

TEST_F(gpu_device_code, that_goes_beyond_its_scratch_is_told) {
  auto source = [](const char* index) {
    return "// scratch: s[1024]\n// launch: f<<<rows, 1>>>(x, y, s, cols)\n"
           "extern \"C\" __global__ void f(const float* x, float* y, float* s, int cols) {\n"
           "  s[" +
           std::string{index} +
           "] = 1;\n  float sum = 0;\n"
           "  for (int j = 0; j < cols; ++j) sum += x[long(blockIdx.x) * cols + j];\n"
           "  y[blockIdx.x] = sum;\n}\n";
  };
  expect_accepted(evaluate_device(source("255")));
  auto result = evaluate_device(source("256")); // the first that is not its own
  EXPECT_EQ(category(result), "illegal_access") << summary(result);
  expect_honest_device_code_is_fine();
}

TEST_F(gpu_device_code, that_writes_behind_an_output_is_found) {
  auto result = evaluate_device(
      read_source("tests/exploits/gpu_corpus/device/hacks/out_of_bounds_behind.cu"));
  EXPECT_THAT(category(result), AnyOf("out_of_bounds_write", "illegal_access", "device_error"))
      << summary(result);
  expect_honest_device_code_is_fine();
}

} // namespace gpu_referee_test
} // namespace kernelmill
