// What ncu and compute-sanitizer wrote on an H200 (golden/*_recorded*): the parsers and the rules
// must go on reading it as they did there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/cards.hpp"
#include "gpu/profiler/ncu_report.hpp"
#include "gpu/profiler/sanitizer_report.hpp"
#include "tests/unit/profiler/golden.hpp"

using namespace kernelmill;
using testing::ElementsAre;
using testing::HasSubstr;

namespace recorded_test {

bool is_limit(std::string_view kind) {
  return kind == "memory_bandwidth" || kind == "compute" || kind == "latency";
}

// Kernels are called flaw__KIND__NAME and clean__KIND__NAME.
TEST(Recorded, CardsNameTheFlawOfEachKernelAndInventNone) {
  auto x = read_ncu_report(golden("ncu_full_recorded.csv"));
  EXPECT_EQ(x.problem, ncu_problem::none) << x.words;
  ASSERT_EQ(x.kernels.size(), 30u);
  unsigned flaws = 0;
  for (const auto& kernel : x.kernels) {
    const auto& name = kernel.metrics.kernel;
    auto cards = read_cards(kernel.metrics.values);
    ASSERT_FALSE(cards.empty()) << name;
    if (name.starts_with("clean__")) {
      EXPECT_TRUE(is_limit(cards[0].kind)) << name << " is told as " << cards[0].kind;
      continue;
    }
    auto begin = std::string{"flaw__"}.size();
    EXPECT_EQ(cards[0].kind, name.substr(begin, name.find("__", begin) - begin)) << name;
    ++flaws;
  }
  EXPECT_EQ(flaws, 20u);
}

TEST(Recorded, EachMetricOfTheFullPackIsANumber) {
  auto x = read_ncu_report(golden("ncu_full_recorded.csv"));
  for (const auto& kernel : x.kernels) EXPECT_THAT(kernel.missing, ElementsAre()) << kernel.launch;
}

TEST(Recorded, AWriteBehindABufferHasItsAddressAndTheKernelThatCalled) {
  auto x = read_sanitizer_report(golden("memcheck_past_end_recorded_cut.txt"));
  EXPECT_EQ(x.errors, 67u);
  ASSERT_EQ(x.findings.size(), 2u);
  const auto& f = x.findings[0];
  EXPECT_EQ(f.family, memory_fault::out_of_bounds);
  EXPECT_EQ(f.address, "0x7f60b8802000");
  EXPECT_EQ(f.at.kernel, "bad__memcheck__write_past_end") << "not what was inlined into it";
  EXPECT_EQ(f.at.line, 14u);
  EXPECT_EQ(f.thread, "(0,0,0)");
  EXPECT_EQ(f.block, "(4,0,0)");
  EXPECT_EQ(x.findings[1].family, memory_fault::api_error);
}

TEST(Recorded, AMisalignedReadIsNotCalledOutOfBounds) {
  auto x = read_sanitizer_report(golden("memcheck_misaligned_recorded.txt"));
  ASSERT_FALSE(x.findings.empty());
  EXPECT_EQ(x.findings[0].family, memory_fault::misaligned);
  EXPECT_EQ(x.findings[0].bytes, 16u);
  EXPECT_GT(x.findings[0].times, 1u);
}

TEST(Recorded, RacesHaveBothSidesAndTheirHazards) {
  auto x = read_sanitizer_report(golden("racecheck_next_tile_recorded.txt"));
  EXPECT_EQ(x.errors, 3u);
  ASSERT_EQ(x.findings.size(), 3u);
  EXPECT_EQ(x.findings[0].family, memory_fault::race);
  EXPECT_EQ(x.findings[0].hazards, 1024u);
  EXPECT_EQ(x.findings[0].at.line, 76u);
  ASSERT_EQ(x.findings[0].others.size(), 1u);
  EXPECT_EQ(x.findings[0].others[0].line, 74u);
}

TEST(Recorded, ErrorsThatWereNotPrintedAreCountedOnce) {
  EXPECT_EQ(read_sanitizer_report(golden("synccheck_branch_recorded_cut.txt")).errors, 128u);
  auto x = read_sanitizer_report(golden("initcheck_partly_recorded_cut.txt"));
  EXPECT_EQ(x.errors, 256u);
  ASSERT_FALSE(x.findings.empty());
  EXPECT_EQ(x.findings[0].family, memory_fault::uninitialized);
  EXPECT_EQ(x.findings[0].address, "0x7f4f3c8013fc");
}

TEST(Recorded, ACleanReportIsClean) {
  auto x = read_sanitizer_report(golden("racecheck_clean_recorded.txt"));
  EXPECT_EQ(x.problem, sanitizer_problem::none);
  EXPECT_TRUE(x.findings.empty());
  EXPECT_EQ(x.errors, 0u);
}

} // namespace recorded_test
