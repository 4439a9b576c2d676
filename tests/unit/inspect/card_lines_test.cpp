// Lines of findings; the SASS was written from nvdisasm's format.

#include "gpu/inspect/card_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kernelmill;

namespace card_lines_test {

constexpr const char* source = "__global__ void f(float* x) {\n"
                               "  float big[64];\n"
                               "  big[threadIdx.x] = x[0] * 1.5;\n"
                               "  atomicAdd(x, big[1]);\n"
                               "}\n";

kernel_listing sass() {
  return {"void f<4>(float*)",
          {{3, "LDG.E R3, desc[UR4][R2.64] ;"},
           {3, "F2F.F64.F32 R4, R3 ;"},
           {3, "DMUL R4, R4, 1.5 ;"},
           {3, "@!P0 STL [R1], R3 ;"},
           {4, "LDL R3, [R1+0x4] ;"},
           {4, "LDL R4, [R1+0x8] ;"},
           {4, "REDUX.SUM UR5, R3 ;"},
           {4, "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R3 ;"},
           {0, "LDL R3, [R1] ;"},
           {5, "BAR.SYNC.DEFER_BLOCKING 0x0 ;"},
           {5, "BSYNC B0 ;"}}};
}

kernel_listing ptx() {
  return {"f(float*)",
          {{3, "ld.global.f32 %f1, [%rd1];"},
           {3, "cvt.f64.f32 %fd1, %f1;"},
           {3, "ld.shared.f64 %fd2, [%r1];"},
           {4, "@%p1 atom.global.add.f32 %f2, [%rd1], %f1;"},
           {5, "bar.sync 0;"}}};
}

std::vector<std::pair<uint32_t, uint32_t>> found(const char* what, const listed_text& text,
                                                 const char* kernel = "f(float *)") {
  std::vector<std::pair<uint32_t, uint32_t>> result;
  for (const auto& x : lines_with(what, text, kernel)) result.emplace_back(x.line, x.instructions);
  return result;
}

using lines = std::vector<std::pair<uint32_t, uint32_t>>;

TEST(CardLines, OfSassTellSpillsAndTheRest) {
  listed_text x{source, {ptx()}, {sass()}};
  EXPECT_EQ(found("local memory", x), (lines{{4, 2}, {3, 1}})) << "most instructions first";
  EXPECT_EQ(found("double precision", x), (lines{{3, 2}}));
  EXPECT_EQ(found("atomics", x), (lines{{4, 1}})) << "REDUX is none";
  EXPECT_EQ(found("barriers", x), (lines{{5, 1}})) << "BSYNC is none";
  EXPECT_EQ(found("global memory", x), (lines{{3, 1}}));
  EXPECT_TRUE(found("local memory", x, "other(float *)").empty());
}

TEST(CardLines, OfPtxAreTakenWhereSassHasNone) {
  auto without = sass();
  for (auto& line : without.lines) line.source_line = 0;
  listed_text x{source, {ptx()}, {without}};
  EXPECT_TRUE(found("local memory", x).empty());
  EXPECT_EQ(found("double precision", x), (lines{{3, 1}})) << "a load computes nothing";
  EXPECT_EQ(found("atomics", x), (lines{{4, 1}}));
  EXPECT_EQ(found("shared memory", x), (lines{{3, 1}}));
  EXPECT_EQ(found("barriers", x), (lines{{5, 1}}));
}

TEST(CardLines, AreAddedToFindingsThatInstructionsExplain) {
  std::vector<bottleneck_finding> findings{{"atomics", 0.7, {}, {}, {}}, {"tail", 0.5, {}, {}, {}}};
  add_lines({{source, {ptx()}, {}}}, "f(float *)", findings);
  ASSERT_EQ(findings[0].lines.size(), 1u);
  EXPECT_EQ(findings[0].lines[0].source, "atomicAdd(x, big[1]);");
  EXPECT_EQ(findings[0].lines[0].what, "atomics");
  EXPECT_TRUE(findings[1].lines.empty());
}

TEST(card_lines, instances_of_a_template_are_told_apart) {
  auto of = [](const char* name, uint32_t line) {
    return kernel_listing{name, {{line, "STL [R1], R2 ;"}}};
  };
  listed_text text{
      "a\nb\n", {}, {of("void f<float>(float*)", 1), of("void f<double>(double*)", 2)}};
  auto spilled = lines_with("local memory", text, "void f<double>(double*)");
  ASSERT_EQ(spilled.size(), 1u);
  EXPECT_EQ(spilled[0].line, 2u);
  EXPECT_EQ(lines_with("local memory", text, "f").size(), 2u) << "as ncu may name them";
}

TEST(card_lines, a_name_is_bare_without_types_and_folders) {
  EXPECT_EQ(bare_name("void reduce<(int)256>(float *)"), "reduce");
  EXPECT_EQ(bare_name("(anonymous namespace)::sums(float const*)"), "sums");
  EXPECT_EQ(bare_name("<unnamed>::sums(const float *)"), "sums");
  EXPECT_EQ(bare_name("sums"), "sums");
  EXPECT_EQ(bare_name(""), "");
}

TEST(card_lines, kernels_of_an_unnamed_namespace_are_told_apart) {
  for (std::string unnamed : {"(anonymous namespace)::", "<unnamed>::"}) {
    listed_text text;
    text.source = source;
    text.ptx = {{"(anonymous namespace)::one(float*)", {{3, "ld.local.f32 %f1, [%rd1];"}}},
                {"(anonymous namespace)::two(float*)", {{4, "st.local.f32 [%rd1], %f1;"}}}};
    auto found = lines_with("local memory", text, "void " + unnamed + "two(float *)");
    ASSERT_EQ(found.size(), 1u) << unnamed;
    EXPECT_EQ(found[0].line, 4u);
  }
}

} // namespace card_lines_test
