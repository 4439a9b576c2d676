// Facts of recorded code. The numbers were counted in the listings by hand and by grep.

#include "gpu/inspect/code_quality.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/inspect/instruction_subjects.hpp"
#include "tests/unit/inspect/golden_listing.hpp"

using namespace kernelmill;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

namespace code_quality_test {

code_quality quality(std::string_view kernel) {
  return quality_of(kernel_of(recorded_sass(), kernel));
}

counted_accesses accesses(const code_quality& x, std::string_view what) {
  for (const auto& one : x.accesses)
    if (one.what == what) return one;
  return {};
}

counted_code kind(const code_quality& x, std::string_view what) {
  for (const auto& one : x.kinds)
    if (one.what == what) return one;
  ADD_FAILURE() << "no kind " << what;
  return {};
}

TEST(CodeQuality, TellsHowWideLoadsAndStoresAre) {
  auto x = quality("scaled");
  auto loads = accesses(x, "global loads"), stores = accesses(x, "global stores");
  EXPECT_THAT(loads.by_bits, ElementsAre(Pair(128, 1)));
  EXPECT_EQ(loads.wide_share(), 1);
  EXPECT_THAT(loads.lines, ElementsAre(line_count{8, 1}));
  EXPECT_THAT(stores.lines, ElementsAre(line_count{11, 1}));
  auto narrow = accesses(quality("summed"), "global loads");
  EXPECT_THAT(narrow.by_bits, ElementsAre(Pair(32, 4)));
  EXPECT_EQ(narrow.wide_share(), 0);
}

TEST(CodeQuality, CountsLocalMemoryOfAKernelThatSpills) {
  auto x = quality("crowded");
  EXPECT_EQ(kind(x, "local memory").instructions, 144u);
  EXPECT_EQ(accesses(x, "local loads").instructions, 72u);
  EXPECT_EQ(accesses(x, "local stores").instructions, 72u);
  for (const auto& line : kind(x, "local memory").lines)
    EXPECT_TRUE(line.line == 37 || line.line == 39) << line.line;
  EXPECT_EQ(kind(quality("summed"), "local memory").instructions, 0u);
}

TEST(CodeQuality, NamesDoublePrecisionOfAKernelWithoutDoubles) {
  auto x = quality("doubled");
  EXPECT_EQ(kind(x, "double precision").instructions, 3u) << "there, DMUL, and back";
  EXPECT_EQ(x.mix["double precision"], 3u) << "both count the same";
  EXPECT_THAT(kind(x, "double precision").lines, ElementsAre(line_count{16, 3}));
  EXPECT_EQ(x.takes_doubles, false);
  EXPECT_EQ(kind(quality("summed"), "double precision").instructions, 0u);
}

TEST(CodeQuality, SaysNothingOfParametersThatANameDoesNotTell) {
  auto takes = [](const char* name) { return quality_of({name, {}}).takes_doubles; };
  EXPECT_EQ(takes("scaled"), std::nullopt) << "extern \"C\"";
  EXPECT_EQ(takes("f(float const*, unsigned int)"), false);
  EXPECT_EQ(takes("void f<4>(double*)"), true);
  EXPECT_EQ(takes("(anonymous namespace)::f(float*)"), false);
  EXPECT_EQ(takes("f(settings)"), std::nullopt) << "it may hold doubles";
  EXPECT_EQ(takes("f(float (*)(double))"), std::nullopt);
}

TEST(CodeQuality, SaysNothingOfParametersBesideAFunction) {
  kernel_listing x{"(anonymous namespace)::f(double, void (*)(float))", {{1, "DADD R2, R2, R4 ;"}}};
  EXPECT_EQ(quality_of(x).takes_doubles, std::nullopt);
  x.name = "(anonymous namespace)::f(float*)";
  EXPECT_EQ(quality_of(x).takes_doubles, false);
}

TEST(CodeQuality, FindsTensorCoresByTheLineThatCallsTheHeader) {
  auto x = quality("multiplied");
  EXPECT_THAT(kind(x, "tensor cores").lines, ElementsAre(line_count{50, 2}));
  EXPECT_EQ(kind(quality("scaled"), "tensor cores").instructions, 0u) << "HFMA2.MMA is none";
}

TEST(CodeQuality, FindsLoopsWithWhatStandsInThemSeveralTimes) {
  auto x = quality("summed");
  ASSERT_TRUE(x.loops);
  ASSERT_EQ(x.loops->size(), 2u);
  const auto& unrolled = (*x.loops)[0];
  const auto& tree = (*x.loops)[1];
  EXPECT_EQ(unrolled.last_line, 24u);
  EXPECT_EQ(unrolled.barriers, 0u);
  bool four_loads = false;
  for (const auto& one : unrolled.repeated)
    four_loads = four_loads || (one.line == 24 && one.opcode == "LDG.E" && one.times == 4);
  EXPECT_TRUE(four_loads);
  EXPECT_EQ(tree.first_line, 27u);
  EXPECT_EQ(tree.last_line, 29u);
  EXPECT_EQ(tree.barriers, 1u);
  EXPECT_THAT(kind(x, "barriers").lines, ElementsAre(line_count{28, 1}));
  EXPECT_THAT(kind(x, "atomics").lines, ElementsAre(line_count{31, 1}));
  EXPECT_THAT(*quality("scaled").loops, IsEmpty()) << "the trap behind the end is none";
}

TEST(CodeQuality, OfPtxFindsTheSameLoopsAndWidths) {
  auto x = quality_of(kernel_of(recorded_ptx(), "summed"));
  ASSERT_TRUE(x.loops);
  EXPECT_EQ(x.loops->size(), 2u);
  EXPECT_EQ(accesses(x, "global loads").instructions, 4u);
  EXPECT_EQ(kind(x, "barriers").instructions, 1u);
  EXPECT_FALSE(x.live) << "PTX has registers without end";
  auto wide = quality_of(kernel_of(recorded_ptx(), "scaled"));
  EXPECT_THAT(accesses(wide, "global loads").by_bits, ElementsAre(Pair(128, 1)));
  EXPECT_EQ(wide.mix["global memory"], 2u) << "cvta.to.global reads nothing";
}

TEST(CodeQuality, OfGcnFindsWhatItsNamesTell) {
  auto list = read_gcn(read_golden("kernels_gfx90a_recorded_cut.s"), "kernel.hip");
  auto x = quality_of(kernel_of(list, "reverse"));
  EXPECT_EQ(accesses(x, "global loads").instructions, 1u);
  EXPECT_EQ(accesses(x, "shared stores").instructions, 1u);
  EXPECT_EQ(kind(x, "barriers").instructions, 1u);
  EXPECT_EQ(kind(quality_of(kernel_of(list, "spilled")), "local memory").instructions, 27u);
}

TEST(CodeQuality, HasThePeakOfLiveRegisters) {
  auto x = quality("summed");
  ASSERT_TRUE(x.live);
  EXPECT_EQ(x.live->registers, 19u);
  EXPECT_EQ(x.live->line, 24u);
}

TEST(Accesses, HaveTheirWidthInTheName) {
  auto bits = [](const char* text) {
    auto found = access_of(text);
    return found ? found->bits : 0;
  };
  EXPECT_EQ(bits("LDG.E.128.CONSTANT R8, desc[UR4][R2.64] ;"), 128u);
  EXPECT_EQ(bits("@!P0 STG.E.64 desc[UR4][R2.64], R4 ;"), 64u);
  EXPECT_EQ(bits("LDG.E.U8 R3, desc[UR4][R2.64] ;"), 8u) << "R2.64 is an address, no width";
  EXPECT_EQ(bits("LDS.U.128 R4, [R2] ;"), 128u);
  EXPECT_EQ(bits("LDG.E R3, desc[UR4][R2.64] ;"), 32u);
  EXPECT_EQ(bits("ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];"), 128u);
  EXPECT_EQ(bits("ld.global.nc.L1::no_allocate.v2.b64 {%rd1, %rd2}, [%rd3];"), 128u);
  EXPECT_EQ(bits("st.shared::cta.b16 [%r1], %rs1;"), 16u);
  EXPECT_EQ(bits("@%p1 ld.global.b8 %rs1, [%rd1];"), 8u);
  EXPECT_EQ(bits("global_load_dwordx4 v[0:3], v4, s[0:1]"), 128u);
  EXPECT_EQ(bits("global_store_short v0, v1, s[0:1]"), 16u);
  EXPECT_EQ(bits("ds_read2_b32 v[0:1], v2 offset1:1"), 64u);
  EXPECT_EQ(bits("buffer_store_dword v0, off, s[0:3], 0"), 32u);
  for (const char* none :
       {"LDGSTS.E.128 [R1], desc[UR4][R2.64] ;", "LDGDEPBAR ;", "ld.param.u64 %rd1, [p];",
        "LD.E R1, [R2.64] ;", "flat_load_dword v0, v[1:2]", "atom.global.add.f32 %f1, [%rd1], %f2;",
        "global_atomic_add_f32 v0, v1, s[0:1]", "LDC R1, c[0x0][0x28] ;", "$L__BB0_1:"})
    EXPECT_EQ(access_of(none), std::nullopt) << none;
}

TEST(Subjects, OfPtxHaveCopiesOfTmaAmongTheAsynchronous) {
  for (const char* copy :
       {"cp.async.ca.shared.global [%r1], [%rd1], 16;",
        "cp.async.bulk.tensor.2d.global.shared::cta "
        "[%rd1, {%r1, %r2}], [%r3];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 "
        "[%r1], [%rd1, {%r2, %r3}], [%r4];"})
    EXPECT_TRUE(is_about(copy, "asynchronous copies")) << copy;
  for (const char* other :
       {"cp.async.commit_group;", "cp.async.wait_group 0;", "cp.async.wait_all;",
        "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];"})
    EXPECT_FALSE(is_about(other, "asynchronous copies")) << other;
}

TEST(Subjects, TellNamesApartThatBeginAlike) {
  EXPECT_TRUE(is_about("HMMA.16816.F32 R4, R8, R12, R4 ;", "tensor cores"));
  EXPECT_FALSE(is_about("HFMA2.MMA R5, -RZ, RZ, 0, 0 ;", "tensor cores"));
  EXPECT_TRUE(
      is_about("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {...};", "tensor cores"));
  EXPECT_FALSE(is_about("wgmma.commit_group.sync.aligned;", "tensor cores"));
  EXPECT_TRUE(is_about("cp.async.cg.shared.global [%r1], [%rd1], 16;", "asynchronous copies"));
  EXPECT_FALSE(is_about("cp.async.wait_group 0;", "asynchronous copies"));
  EXPECT_FALSE(is_about("LDGDEPBAR ;", "global memory"));
  EXPECT_TRUE(is_about("LDGSTS.E.128 [R1], desc[UR4][R2.64] ;", "asynchronous copies"));
  EXPECT_FALSE(is_about("REDUX.SUM UR5, R3 ;", "atomics"));
  EXPECT_TRUE(is_about("CALL.REL.NOINC `($f$g) ;", "calls"));
  EXPECT_TRUE(is_about("v_mfma_f32_32x32x8f16 a[0:15], v[0:1], v[2:3], a[0:15]", "tensor cores"));
  kernel_listing x{"k", {{1, "REDUX.SUM UR5, R3 ;"}, {1, "LDGDEPBAR ;"}, {1, "I2F.F64 R2, R4 ;"}}};
  auto mix = instruction_mix(x);
  EXPECT_EQ(mix["integer"], 1u);
  EXPECT_EQ(mix["barriers"], 1u);
  EXPECT_EQ(mix["double precision"], 1u);
  EXPECT_EQ(mix.size(), 3u);
}

} // namespace code_quality_test
