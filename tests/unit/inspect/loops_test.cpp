// Loops by where jumps lead. The code was written for these tests.

#include "gpu/inspect/loops.hpp"

#include <gtest/gtest.h>

using namespace kernelmill;

namespace loops_test {

kernel_listing of(std::vector<const char*> lines) {
  kernel_listing result{"k", {}};
  for (const auto* text : lines) result.lines.push_back({1, text});
  return result;
}

// Heads and last lines of loops, with their depth.
struct span {
  size_t head, last;
  uint32_t depth;
  bool operator==(const span&) const = default;
};

std::vector<span> spans(const kernel_listing& x) {
  std::vector<span> result;
  auto found = loops_of(x);
  EXPECT_TRUE(found);
  if (found)
    for (const auto& loop : *found) result.push_back({loop.head, loop.body.back(), loop.depth});
  return result;
}

TEST(Loops, OfPtxAreFoundWithTheirNesting) {
  auto x = of({"mov.u32 %r1, 0;", "$L__BB0_1:", "add.s32 %r2, %r1, 1;",
               "$L__BB0_2:", "fma.rn.f32 %f1, %f2, %f3, %f1;", "@%p1 bra $L__BB0_2;",
               "add.s32 %r1, %r1, 1;", "@%p2 bra.uni $L__BB0_1;", "ret;"});
  EXPECT_EQ(spans(x), (std::vector<span>{{1, 7, 1}, {3, 5, 2}}));
}

TEST(Loops, ABlockThatWasMovedBehindTheCodeAndJumpsBackIsNone) {
  auto x = of({"@P0 BRA `(.L_x_2) ;", ".L_x_1:", "FADD R1, R1, R2 ;", "EXIT ;",
               ".L_x_2:", "FMUL R1, R1, R3 ;", "BRA `(.L_x_1) ;"});
  EXPECT_TRUE(spans(x).empty());
}

TEST(Loops, HaveSuchABlockInTheirBodyAndAreStillOne) {
  auto x = of({".L_x_0:", "@P0 BRA `(.L_x_2) ;", ".L_x_1:", "FADD R1, R1, R2 ;",
               "@P1 BRA `(.L_x_0) ;", "EXIT ;", ".L_x_2:", "FMUL R1, R1, R3 ;", "BRA `(.L_x_1) ;"});
  auto found = loops_of(x);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].body, (std::vector<size_t>{0, 1, 2, 3, 4, 6, 7, 8})) << "EXIT is outside";
}

TEST(Loops, TheTrapBehindAKernelIsNone) {
  EXPECT_TRUE(spans(of({"EXIT ;", ".L_x_0:", "BRA `(.L_x_0);"})).empty());
  // Such code can be reached, too: a lane that waits for ever does no work.
  EXPECT_TRUE(spans(of({"@P0 EXIT ;", ".L_x_0:", "BRA `(.L_x_0);"})).empty());
}

TEST(Loops, OfFunctionsInAKernelsSectionAreFound) {
  auto x = of({"CALL.REL.NOINC `($k$f) ;", "EXIT ;", "$k$f:", ".L_x_1:", "FADD R1, R1, R2 ;",
               "@P0 BRA `(.L_x_1) ;", "RET.REL.NODEC R4 `(k) ;"});
  EXPECT_EQ(spans(x), (std::vector<span>{{3, 5, 1}}));
}

TEST(Loops, AJumpMayHaveASecondCondition) {
  auto x = of({".L_x_1:", "FADD R1, R1, R2 ;", "@!P1 BRA !P3, `(.L_x_1) ;", "EXIT ;"});
  EXPECT_EQ(spans(x), (std::vector<span>{{0, 2, 1}}));
  auto divergent = of({"BRA.DIV UR4, `(.L_x_2) ;", "EXIT ;", ".L_x_2:", "EXIT ;"});
  EXPECT_TRUE(spans(divergent).empty());
}

TEST(Loops, WithoutLabelsAreFoundByAddress) {
  kernel_listing x{"k",
                   {{0, "MOV R1, RZ ;", 0x0},
                    {0, "FADD R1, R1, R2 ;", 0x10},
                    {0, "@P0 BRA 0x10 ;", 0x20},
                    {0, "EXIT ;", 0x30}}};
  EXPECT_EQ(spans(x), (std::vector<span>{{1, 2, 1}}));
}

TEST(Loops, OfGcnAreFound) {
  auto x = of({"s_mov_b32 s0, 0", ".LBB0_1:", "v_add_f32 v0, v0, v1", "s_cbranch_scc1 .LBB0_1",
               "s_endpgm"});
  EXPECT_EQ(spans(x), (std::vector<span>{{1, 3, 1}}));
}

TEST(Loops, AreUnknownWhereAJumpsTargetIs) {
  EXPECT_FALSE(loops_of(of({"BRX R2 -0x10 ;", "EXIT ;"})));
  EXPECT_FALSE(loops_of(of({"brx.idx %r1, $L__table;", "ret;"})));
  EXPECT_FALSE(loops_of(of({"@P0 BRA `(.L_x_9) ;", "EXIT ;"}))) << "a listing that was cut";
}

// A chain that is entered at each of its places, and can be walked both ways: the dominators of it
// change once a place, all of them.
TEST(Loops, AreUnknownWhereItWouldTakeLongToFindThem) {
  constexpr int count = 4080;
  kernel_listing x{"k", {}};
  auto add = [&](std::string text) { x.lines.push_back({1, std::move(text)}); };
  auto number = [](int i) { return std::to_string(i); };
  add("@p bra C0;");
  for (int i = 0; i < count; ++i) add("@p bra C" + number(i) + ";");
  add("ret;");
  for (int i = count - 1; i >= 0; --i) {
    add("C" + number(i) + ":");
    if (i + 1 < count) add("@p bra C" + number(i + 1) + ";");
  }
  add("ret;");
  EXPECT_FALSE(loops_of(x));
}

TEST(Loops, OfNothingAreNone) {
  auto found = loops_of({});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());
}

} // namespace loops_test
