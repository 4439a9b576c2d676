// Listings as nvcc and nvdisasm print them; those of SASS were written from the format.

#include "gpu/inspect/listing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/inspect/listing_parts.hpp"

using namespace kernelmill;
using testing::ElementsAre;
using testing::HasSubstr;

namespace listing_test {

constexpr const char* ptx = R"(.version 9.0
.target sm_90
.address_size 64

.visible .entry _Z5twicePKfPf(
	.param .u64 _Z5twicePKfPf_param_0
)
{
	.reg .f32 	%f<3>;
	.loc	1 2 0

	ld.param.u64 	%rd1, [_Z5twicePKfPf_param_0];
$L__BB0_1:
	.loc	1 3 5
	ld.global.f32 	%f1, [%rd1];
	.loc	2 77 10, function_name $L__info_string0, inlined_at 1 4 9
	mul.f32 	%f2, %f1, 0f40000000;
	.loc	2 99 1
	st.global.f32 	[%rd1], %f2;
	@%p1 bra 	$L__BB0_1;
	ret;

}
	.file	1 "/build/kernel.cu"
	.file	2 "/usr/local/cuda/include/sm_30.hpp"
	.section	.debug_str
	{
$L__info_string0:
.b8 95
	}
)";

constexpr const char* sass = R"(	.headerflags	@"EF_CUDA_SM90"
//--------------------- .text._Z5twicePKfPf          --------------------------
	.section	.text._Z5twicePKfPf,"ax",@progbits
	.align	128
.text._Z5twicePKfPf:
        //## File "/build/kernel.cu", line 2
        /*0000*/                   LDC R1, c[0x0][0x28] ;                /* 0x00000a00ff017b82 */
                                                                          /* 0x000fe20000000800 */
        //## File "/build/kernel.cu", line 3
        /*0010*/              @!P0 LDG.E R3, desc[UR4][R2.64] ;
        //## File "/usr/local/cuda/include/sm_30.hpp", line 77 inlined at "/build/kernel.cu", line 4
        //## File "/build/kernel.cu", line 4
        /*0020*/                   FMUL R3, R3, 2 ;
        /*0030*/                   EXIT ;
)";

std::vector<uint32_t> lines_of(const kernel_listing& x) {
  std::vector<uint32_t> result;
  for (const auto& line : x.lines) result.push_back(line.source_line);
  return result;
}

TEST(Ptx, HasTheLineOfEachInstruction) {
  auto x = read_ptx(ptx, "kernel.cu");
  ASSERT_EQ(x.size(), 1u);
  EXPECT_EQ(x[0].name, "twice(float const*, float*)");
  ASSERT_EQ(x[0].lines.size(), 7u);
  EXPECT_EQ(x[0].lines[0].text, "ld.param.u64 %rd1, [_Z5twicePKfPf_param_0];");
  EXPECT_EQ(x[0].lines[1].text, "$L__BB0_1:");
  // What was inlined from a header counts where it was called; a header alone has no line of ours.
  EXPECT_THAT(lines_of(x[0]), ElementsAre(2, 2, 3, 4, 0, 0, 0));
}

// As Triton's compiler and candidates write it.
TEST(Ptx, HasLabelsWithCommentsAndWhatStandsBehindABraceOrALabel) {
  auto found = read_ptx(".visible .entry k(\n)\n{\n"
                        "$L__BB0_1: // =>This Inner Loop Header: Depth=1\n"
                        "{ .reg .b32 t;\n mov.u32 t, 1; L1: add.u32 t, t, 1;\n}\n"
                        "// .entry other(\n"
                        "mma.sync.f32\n{%f1,\n%f2}, {%f3};\n"
                        "@%p1 bra $L__BB0_1;\n"
                        "{ ret; }\n"
                        "}\nbar.sync 0;\n",
                        "kernel.cu");
  ASSERT_EQ(found.size(), 1u);
  std::vector<std::string> texts;
  for (const auto& line : found[0].lines) texts.push_back(line.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"$L__BB0_1:", "mov.u32 t, 1;",
                                             "L1:", "add.u32 t, t, 1;", "mma.sync.f32",
                                             "%f2}, {%f3};", "@%p1 bra $L__BB0_1;", "ret;"}));
}

TEST(Listing, IsFullWithAsManyLinesOrKernelsAsAreRead) {
  EXPECT_FALSE(is_full({{"k", std::vector<code_line>(99'999)}}));
  EXPECT_TRUE(is_full({{"k", std::vector<code_line>(100'000)}}));
  EXPECT_TRUE(is_full(std::vector<kernel_listing>(64)));
}

TEST(Sass, HasTheLineOfEachInstruction) {
  auto x = read_sass(sass, "kernel.cu");
  ASSERT_EQ(x.size(), 1u);
  EXPECT_EQ(x[0].name, "twice(float const*, float*)");
  ASSERT_EQ(x[0].lines.size(), 4u);
  EXPECT_EQ(x[0].lines[0].text, "LDC R1, c[0x0][0x28] ;");
  EXPECT_THAT(lines_of(x[0]), ElementsAre(2, 3, 4, 4));
}

TEST(Sass, OfCuobjdumpHasNoLines) {
  auto x = read_sass("\t\tFunction : twice\n\t.headerflags @\"EF\"\n"
                     "        /*0000*/                   MOV R1, c[0x0][0x28] ;   /* 0x0a */\n",
                     "kernel.cu");
  ASSERT_EQ(x.size(), 1u);
  EXPECT_EQ(x[0].name, "twice");
  EXPECT_THAT(lines_of(x[0]), ElementsAre(0));
}

TEST(Mix, CountsWhatInstructionsDo) {
  auto of_ptx = instruction_mix(read_ptx(ptx, "kernel.cu")[0]);
  EXPECT_EQ(of_ptx["global memory"], 2u);
  EXPECT_EQ(of_ptx["floating point"], 1u);
  EXPECT_EQ(of_ptx["control"], 2u) << "a guard is no opcode, a label no instruction";
  auto of_sass = instruction_mix(read_sass(sass, "kernel.cu")[0]);
  EXPECT_EQ(of_sass["global memory"], 1u);
  EXPECT_EQ(of_sass["floating point"], 1u);
  EXPECT_EQ(of_sass["control"], 1u);
}

TEST(Quoted, IsTheFirstOrTheLast) {
  using listing_parts::quoted_in;
  using listing_parts::which_quoted;
  constexpr const char* two = ".file 1 \"/usr/include\" \"hip.h\" md5 0x16";
  EXPECT_EQ(quoted_in(two, which_quoted::first), "/usr/include");
  EXPECT_EQ(quoted_in(two, which_quoted::last), "hip.h");
  for (auto which : {which_quoted::first, which_quoted::last}) {
    EXPECT_EQ(quoted_in("x \"one\" y", which), "one");
    EXPECT_EQ(quoted_in("x \"\" y", which), "");
    for (const char* none : {"", "x", "\"", "x \" y", "x\""})
      EXPECT_EQ(quoted_in(none, which), "") << none;
  }
}

TEST(SideBySide, PutsBothListingsToTheirLine) {
  auto x = side_by_side("// one\nvoid twice\n  load\n  mul\n", read_ptx(ptx, "kernel.cu"),
                        read_sass(sass, "kernel.cu"));
  ASSERT_EQ(x.size(), 1u);
  ASSERT_EQ(x[0].rows.size(), 4u);
  EXPECT_EQ(x[0].rows[0].line, 0u);
  EXPECT_EQ(x[0].rows[2].line, 3u);
  EXPECT_EQ(x[0].rows[2].source, "load");
  EXPECT_THAT(x[0].rows[2].ptx[0], HasSubstr("ld.global"));
  EXPECT_THAT(x[0].rows[2].sass[0], HasSubstr("LDG"));
}

TEST(SideBySide, OfNothingIsNothing) {
  EXPECT_TRUE(side_by_side("int x;\n", {}, {}).empty());
  EXPECT_TRUE(read_ptx("", "kernel.cu").empty());
  EXPECT_TRUE(read_sass("garbage\n/*00", "kernel.cu").empty());
}

} // namespace listing_test
