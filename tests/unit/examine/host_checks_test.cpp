// g++'s sanitizers around kernels with one planted error each and around kernels without, and what
// hostile code can do there. All of it in real walls.

#include "gpu/examine/host_checks.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/examine/memory_checks.hpp"
#include "gpu/referee/clock.hpp"
#include "tests/unit/examine/row_sum.hpp"

namespace kernelmill {
namespace host_checks_test {

namespace fs = std::filesystem;

using testing::HasSubstr;

const std::map<std::string, memory_fault> planted = {
    {"heap_read_past_end", memory_fault::out_of_bounds},
    {"heap_write_past_end", memory_fault::out_of_bounds},
    {"stack_past_end", memory_fault::out_of_bounds},
    {"global_past_end", memory_fault::out_of_bounds},
    {"use_after_free", memory_fault::use_after_free},
    {"use_after_scope", memory_fault::use_after_free},
    {"signed_overflow", memory_fault::undefined},
    {"shift_too_far", memory_fault::undefined},
    {"misaligned", memory_fault::misaligned},
    {"sum_of_all", memory_fault::race},
    {"threads_that_count", memory_fault::race},
    {"no_barrier_between_loops", memory_fault::race}};

// "bad__memcheck__heap_read_past_end.cpp"
struct kernel {
  bool is_bad = false;
  std::string check;
  std::string name;
  std::string source;
  uint32_t line = 0; ///< of the error
};

kernel read_kernel(const fs::path& path) {
  auto file = path.stem().string();
  auto first = file.find("__");
  auto second = file.find("__", first + 2);
  kernel result{file.starts_with("bad"),
                file.substr(first + 2, second - first - 2),
                file.substr(second + 2),
                {},
                0};
  std::ifstream in{path};
  uint32_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find("// HERE") != line.npos) result.line = number;
    result.source += line + "\n";
  }
  return result;
}

std::vector<kernel> all_kernels() {
  std::vector<kernel> result;
  auto folder =
      std::string{std::getenv("KERNELMILL_SOURCE_DIR")} + "/tests/unit/examine/host_kernels";
  for (const auto& x : fs::directory_iterator{folder}) result.push_back(read_kernel(x.path()));
  std::sort(result.begin(), result.end(), [](auto& a, auto& b) {
    return std::tie(a.name, a.is_bad) < std::tie(b.name, b.is_bad);
  });
  return result;
}

class host_check_of : public testing::Test {
protected:
  host_check_of()
      : processes_(*spawner::launch(std::string{std::getenv("KERNELMILL_BIN_DIR")} +
                                    "/kernelmill-spawner")),
        walls_(processes_) {
    options_.program = std::string{std::getenv("KERNELMILL_BIN_DIR")} + "/kernelmill-candidate";
  }

  void SetUp() override {
    for (auto check : host_checks)
      if (!sanitizer_runtime(walls_, {}, check)) GTEST_SKIP() << "g++ came without its sanitizers";
  }

  expected<sanitizer_examination> run(const std::string& source, host_check check) {
    return examine_on_host(walls_, options_, {}, *what_, source, check);
  }

  // In solve(), on row_sum's arguments.
  expected<sanitizer_examination> run_lines(const std::string& lines, host_check check,
                                            const std::string& before = {}) {
    return run(before +
                   "extern \"C\" void solve(const float* x, float* y, int rows, int cols) {\n" +
                   lines + "\n}\n",
               check);
  }

  spawner processes_;
  sandbox walls_;
  examine_options options_;
  task_ptr what_ = row_sum(contract_kind::native, "cpu");
};

// -- planted errors -------------------------------------------------------------------------------

TEST_F(host_check_of, kernels_with_one_error_each_and_without) {
  std::map<std::string, std::array<int, 4>> table; // bad found, bad missed, good blamed, good clean
  std::ostringstream odd;
  for (const auto& x : all_kernels()) {
    bool found = false;
    bool in_line = false;
    bool other = false;
    for (auto check : host_checks) {
      auto result = run(x.source, check);
      ASSERT_TRUE(result) << x.name << ": " << render(result.error());
      EXPECT_EQ(result->report.problem, sanitizer_problem::none) << x.name << result->run.report;
      for (const auto& one : result->report.findings) {
        bool is_it = x.is_bad && to_string(check) == x.check && one.family == planted.at(x.name);
        found = found || is_it;
        in_line = in_line || (is_it && one.at.line == x.line);
        other = other || !is_it;
        if (!is_it || one.at.line != x.line)
          odd << x.name << ": " << to_string(check) << " " << to_string(one.family) << " "
              << one.words << " in " << one.at.kernel << " at " << one.at.file << ":" << one.at.line
              << "\n";
        EXPECT_THAT(one.at.kernel, testing::AnyOf(HasSubstr("solve"), "operator()")) << x.name;
        EXPECT_FALSE(one.hint.empty());
      }
    }
    auto& row = table[x.check];
    x.is_bad ? ++row[found ? 0 : 1] : ++row[other ? 2 : 3];
    if (x.is_bad) {
      EXPECT_TRUE(found) << x.name;
      EXPECT_TRUE(in_line) << x.name << " is not said to be in line " << x.line;
    }
    EXPECT_TRUE(x.is_bad || !other) << x.name << " has no error";
  }
  std::cout << "            bad: found  missed   good: blamed  clean\n";
  std::array<int, 4> sum{};
  for (const auto& [check, row] : table) {
    std::printf("%-10s %11d %7d %14d %6d\n", check.c_str(), row[0], row[1], row[2], row[3]);
    for (size_t i = 0; i < 4; ++i) sum[i] += row[i];
  }
  std::cout << odd.str() << std::flush;
  EXPECT_THAT(sum, testing::ElementsAre(12, 0, 0, 12));
}

TEST_F(host_check_of, openmp_that_synchronizes_is_no_race) {
  auto x = run_lines(R"(
  int hits = 0, one = 0, copied = 0; float total = 0, most = -1e30f; double locked = 0;
  omp_lock_t lock; omp_init_lock(&lock);
#pragma omp parallel for schedule(dynamic)
  for (unsigned long r = 0; r < (unsigned long)rows; ++r) y[r] = x[r * cols];
#pragma omp parallel for schedule(guided) reduction(+ : total) reduction(max : most)
  for (int r = rows - 1; r >= 0; --r) { total += y[r]; most = y[r] > most ? y[r] : most; }
#pragma omp parallel firstprivate(copied)
  {
#pragma omp for schedule(runtime) nowait
    for (int r = 0; r < rows; ++r) y[r] += 1;
#pragma omp barrier
#pragma omp single
    one = int(y[0]);
#pragma omp single copyprivate(copied)
    copied = one;
#pragma omp critical(name)
    hits += copied;
#pragma omp atomic
    total += 1;
#pragma omp barrier
    omp_set_lock(&lock); locked += hits; omp_unset_lock(&lock);
#pragma omp sections
    {
#pragma omp section
      one = 3;
#pragma omp section
      y[0] = 2;
    }
#pragma omp master
    y[0] += one;
  }
  std::vector<std::thread> many; std::mutex guard;
  for (int i = 0; i < 4; ++i) many.emplace_back([&, i] { std::lock_guard g{guard}; locked += i; });
  for (auto& t : many) t.join();
  y[0] += locked + hits + most;)",
                     host_check::threads,
                     "#include <mutex>\n#include <omp.h>\n#include <thread>\n#include <vector>\n");
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_TRUE(x->report.findings.empty()) << x->run.report;
  EXPECT_EQ(x->report.problem, sanitizer_problem::none) << x->run.report;
}

TEST_F(host_check_of, a_race_of_a_dynamic_loop_is_found_with_any_order_of_threads) {
  auto x = run_lines("#pragma omp parallel for schedule(dynamic)\n"
                     "  for (int r = 0; r < rows; ++r) y[0] += x[r * cols];",
                     host_check::threads);
  ASSERT_TRUE(x) << render(x.error());
  ASSERT_FALSE(x->report.findings.empty()) << x->run.report;
  EXPECT_EQ(x->report.findings[0].family, memory_fault::race);
  EXPECT_EQ(x->report.findings[0].space, "heap");
  ASSERT_FALSE(x->report.findings[0].others.empty());
  EXPECT_EQ(x->report.findings[0].others[0].file, "kernel.cpp");
}

TEST_F(host_check_of, openmp_that_the_thread_check_does_not_know_has_no_report) {
  auto x = run_lines("#pragma omp parallel\n#pragma omp single\n#pragma omp task\n  y[0] = x[0];",
                     host_check::threads);
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().cls, fault_class::candidate);
  EXPECT_THAT(x.error().message, HasSubstr("GOMP_task"));
}

// -- hostile code ---------------------------------------------------------------------------------

TEST_F(host_check_of, code_that_ends_the_process_has_no_report) {
  auto x = run_lines("  _exit(0);", host_check::memory, "#include <unistd.h>\n");
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->report.problem, sanitizer_problem::no_report);
}

TEST_F(host_check_of, code_that_blames_itself_is_believed) {
  auto x = run_lines("  fputs(\"kernel.cpp:1:2: runtime error: mine\\n\", stderr);",
                     host_check::memory, "#include <cstdio>\n");
  ASSERT_TRUE(x) << render(x.error());
  ASSERT_EQ(x->report.findings.size(), 1u);
  EXPECT_EQ(x->report.findings[0].words, "mine");
}

TEST_F(host_check_of, code_that_does_not_end_is_ended) {
  options_.limit_ms = 6'000;
  auto x = run_lines("  for (volatile int i = 0;; i = 1) {}", host_check::threads);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_TRUE(x->run.timed_out);
  EXPECT_EQ(x->report.problem, sanitizer_problem::no_report);
  EXPECT_LT(x->run.seconds, 16);
}

TEST_F(host_check_of, code_that_takes_all_memory_is_ended) {
  auto x =
      run_lines("  for (long i = 0; i < 64; ++i) {\n"
                "    char* p = (char*)mmap(0, 256 << 20, 3, 0x22, -1, 0);\n"
                "    for (long k = 0; k < (256 << 20); k += 4096) ((volatile char*)p)[k] = 1;\n"
                "  }",
                host_check::threads, "#include <sys/mman.h>\n");
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_FALSE(x->run.timed_out);
  EXPECT_NE(x->run.status.code, 0);
  EXPECT_EQ(x->report.problem, sanitizer_problem::no_report);
}

// What the walls forbid is told by a finding that the kernel prints.
TEST_F(host_check_of, code_has_the_inner_walls_of_a_candidate) {
  for (auto check : host_checks) {
    auto x = run_lines(R"(
  auto may = [](const char* what, bool can) {
    if (can) fprintf(stderr, "kernel.cpp:1:1: runtime error: can %s\n", what);
  };
  may("fork", fork() >= 0);
  may("write", open("/tmp/x", O_CREAT | O_WRONLY, 0600) >= 0);
  may("talk", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
  char program[] = "/usr/bin/true"; char* words[] = {program, nullptr};
  may("see programs", access(program, X_OK) == 0);
  may("exec", execv("/kernelmill-candidate", words) == 0);
  may("ptrace", ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
  may("signal init", kill(1, 0) == 0);)",
                       check,
                       "#include <cstdio>\n#include <fcntl.h>\n#include <signal.h>\n"
                       "#include <sys/ptrace.h>\n#include <sys/socket.h>\n#include <unistd.h>\n");
    ASSERT_TRUE(x) << render(x.error());
    EXPECT_EQ(x->report.problem, sanitizer_problem::none) << x->run.report;
    for (const auto& one : x->report.findings) ADD_FAILURE() << one.words;
  }
}

// -- in an evaluation -----------------------------------------------------------------------------

Message<wire::EvaluateResult> checked(sandbox& walls, const examine_options& options,
                                      const task& what, const std::string& source,
                                      const char* compiler = "/usr/bin/g++") {
  auto request = build<wire::EvaluateRequest>([&](wire::EvaluateRequest::Builder x) {
    x.setSanitize("on_accept");
    x.setSanitizeMs(60'000);
    x.setSource(source);
  });
  auto judged = build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
    x.setCorrect(true);
    x.setDeterministic(true);
  });
  host_compiler by;
  by.path = compiler;
  auto view = request.open();
  return with_memory_checks({walls, options, {}, {}, by}, what, *view, judged, now_seconds());
}

TEST_F(host_check_of, an_evaluation_finds_an_access_out_of_bounds) {
  auto result = checked(walls_, options_, *what_,
                        "extern \"C\" void solve(const float*, float* y, int rows, int) {\n"
                        "  y[rows] = 0;\n}\n");
  auto x = result.open();
  ASSERT_EQ(x->getMemory().getFindings().size(), 1u);
  auto found = x->getMemory().getFindings()[0];
  EXPECT_STREQ(found.getRule().cStr(), "memory_out_of_bounds");
  EXPECT_EQ(found.getSeverity(), wire::Severity::WARNING);
  EXPECT_THAT(found.getEvidence().cStr(),
              testing::AllOf(HasSubstr("memcheck in solve"), HasSubstr("heap-buffer-overflow"),
                             HasSubstr("kernel.cpp:2")));
}

TEST_F(host_check_of, an_evaluation_that_finds_nothing_says_what_a_cpu_cannot_check) {
  auto result = checked(walls_, options_, *what_,
                        "extern \"C\" void solve(const float*, float* y, int rows, int) {\n"
                        "  for (int r = 0; r < rows; ++r) y[r] = 0;\n}\n");
  auto x = result.open();
  EXPECT_TRUE(x->getMemory().getComplete());
  EXPECT_EQ(x->getMemory().getFindings().size(), 0u);
  ASSERT_EQ(x->getMemory().getProblems().size(), 1u);
  EXPECT_THAT(x->getMemory().getProblems()[0].cStr(), HasSubstr("MemorySanitizer"));
}

TEST_F(host_check_of, an_evaluation_without_the_libraries_has_no_report_and_no_fault) {
  // Some other program in place of g++: it says what it is asked, and no path.
  auto result =
      checked(walls_, options_, *what_, "extern \"C\" void solve() {}\n", "/usr/bin/echo");
  auto x = result.open();
  EXPECT_FALSE(x->getMemory().getComplete());
  ASSERT_GE(x->getMemory().getProblems().size(), 2u);
  EXPECT_THAT(x->getMemory().getProblems()[0].cStr(), HasSubstr("memcheck: failed to find lib"));
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE);
}

} // namespace host_checks_test
} // namespace kernelmill
