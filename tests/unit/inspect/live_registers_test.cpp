// Registers that are live, as nvdisasm prints them beside another listing of the same cubin.

#include <gtest/gtest.h>

#include "tests/unit/inspect/golden_listing.hpp"

using namespace kernelmill;

namespace live_registers_test {

const code_line* line_with(const kernel_listing& x, std::string_view text) {
  for (const auto& line : x.lines)
    if (line.text.starts_with(text)) return &line;
  return nullptr;
}

TEST(LiveRegisters, OfEveryInstructionAreKnown) {
  auto list = recorded_sass();
  ASSERT_EQ(list.size(), 5u);
  for (const auto& kernel : list)
    for (const auto& line : kernel.lines)
      EXPECT_EQ(line.live.has_value(), !line.text.ends_with(":"))
          << kernel.name << ": " << line.text;
}

TEST(LiveRegisters, AreThoseOfTheRecordedTable) {
  auto scaled = kernel_of(recorded_sass(), "scaled");
  ASSERT_NE(line_with(scaled, "LDG.E.128"), nullptr);
  EXPECT_EQ(line_with(scaled, "LDG.E.128")->live, 10u);
  EXPECT_EQ(line_with(scaled, "EXIT")->live, 1u);
}

TEST(LiveRegisters, OfASourceLineAreTheMost) {
  auto rows =
      side_by_side(read_golden("kernels_sm90.cu"), {}, {kernel_of(recorded_sass(), "scaled")});
  ASSERT_EQ(rows.size(), 1u);
  for (const auto& row : rows[0].rows) {
    EXPECT_EQ(row.sass.size(), row.sass_live.size());
    if (row.line == 8) {
      EXPECT_EQ(row.live(), 10u) << row.source;
    }
  }
}

TEST(LiveRegisters, WhereNoneIsLiveIsZeroAndWithoutATableUnknown) {
  constexpr const char* sass = "\t.section\t.text.k,\"ax\",@progbits\n"
                               ".text.k:\n"
                               "        /*0000*/                   NOP ;\n"
                               "        /*0010*/                   EXIT ;\n";
  constexpr const char* life = "                // | PRED  | GPR   |\n"
                               "                // |   #   |   #   |\n"
                               ".text.k:        // |       |       |\n"
                               "  /*0000*/ NOP ;  // |   3   |       |\n"
                               "  /*0010*/ EXIT ; // |   3   |   2   |\n";
  auto list = read_sass(sass, "kernel.cu");
  ASSERT_EQ(list.size(), 1u);
  ASSERT_EQ(list[0].lines.size(), 2u);
  add_live_registers(life, list);
  EXPECT_EQ(list[0].lines[0].live, 0u);
  EXPECT_EQ(list[0].lines[1].live, 2u) << "the column is found by its name";
  auto without = read_sass(sass, "kernel.cu");
  add_live_registers("nvdisasm error   : Cannot print life ranges as flow analysis is disabled\n",
                     without);
  EXPECT_FALSE(without[0].lines[0].live);
  add_live_registers("  // | PRED |\n.text.k: // | |\n  /*0000*/ NOP ; // | 3 |\n", without);
  EXPECT_FALSE(without[0].lines[0].live) << "a table without general registers";
}

TEST(RecordedSass, HasNoNopsBehindTheEndAndKeepsLabels) {
  for (const auto& kernel : recorded_sass()) {
    ASSERT_FALSE(kernel.lines.empty());
    EXPECT_TRUE(kernel.lines.back().text.starts_with("BRA ")) << kernel.lines.back().text;
  }
  auto summed = kernel_of(recorded_sass(), "summed");
  EXPECT_NE(line_with(summed, ".L_x_"), nullptr);
}

TEST(RecordedSass, OfAHeadersCodeHasTheLineThatCallsIt) {
  for (const auto& line : kernel_of(recorded_sass(), "multiplied").lines)
    if (!line.text.ends_with(":") && !line.text.starts_with("BRA")) {
      EXPECT_GE(line.source_line, 42u) << line.text;
    }
}

TEST(Sass, OfAFunctionInAKernelsSectionHasNotTheLineBefore) {
  auto x = read_sass(".text.k:\n"
                     "\t//## File \"/build/kernel.cu\", line 5\n"
                     "        /*0000*/                   EXIT ;\n"
                     "$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath:\n"
                     "        /*0010*/                   SHF.R.U32.HI R10, RZ, 0x17, R3 ;\n",
                     "kernel.cu");
  ASSERT_EQ(x.size(), 1u);
  ASSERT_EQ(x[0].lines.size(), 3u);
  EXPECT_EQ(x[0].lines[0].source_line, 5u);
  EXPECT_EQ(x[0].lines[2].source_line, 0u) << "CUDA's own code has no line of ours";
}

} // namespace live_registers_test
