#include "gpu/toolchain/diagnostics.hpp"

#include <gmock/gmock.h>

namespace kernelmill {
namespace diagnostics_test {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(diagnostics, of_the_compiler_have_file_line_and_column) {
  auto list = parse_diagnostics("kernel.cpp: In function 'void solve()':\n"
                                "kernel.cpp:3:5: error: 'y' was not declared in this scope\n"
                                "    3 |     y = 1;\n"
                                "      |     ^\n"
                                "/usr/include/c++/12/vector:64:9: note: candidate: 'a::b'\n"
                                "kernel.cpp:9:1: warning: no return statement: none\n");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].file, "kernel.cpp");
  EXPECT_EQ(list[0].line, 3u);
  EXPECT_EQ(list[0].column, 5u);
  EXPECT_EQ(list[0].severity, "error");
  EXPECT_EQ(list[0].message, "'y' was not declared in this scope");
  EXPECT_EQ(list[1].file, "/usr/include/c++/12/vector");
  EXPECT_EQ(list[1].severity, "note");
  EXPECT_EQ(list[2].message, "no return statement: none");
}

TEST(diagnostics, words_of_a_line_directive_are_no_file) {
  for (const char* name : {"Gates all pass, accepted", "accepted"}) {
    auto found = parse_diagnostics(std::string{name} + ":1:2: error: expected ';'\n");
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_EQ(found[0].file, "") << name;
  }
  auto nvcc = parse_diagnostics("Gates all pass(3): error: expected a \";\"\n");
  ASSERT_EQ(nvcc.size(), 1u);
  EXPECT_EQ(nvcc[0].file, "");
  EXPECT_EQ(nvcc[0].line, 3u);
  auto header = parse_diagnostics("/usr/include/c++/12/vector:64:1: error: no\n");
  ASSERT_EQ(header.size(), 1u);
  EXPECT_EQ(header[0].file, "/usr/include/c++/12/vector");
  auto inline_source = parse_diagnostics("x.cuda_sources:1:2: error: no\n");
  ASSERT_EQ(inline_source.size(), 1u);
  EXPECT_EQ(inline_source[0].file, "x.cuda_sources");
}

TEST(diagnostics, of_nvcc_have_file_and_line) {
  auto list = parse_diagnostics(
      "kernel.cu(8): error: identifier \"parts\" is undefined\n"
      "      if (threadIdx.x == 0) y[blockIdx.x] = parts[0];\n"
      "kernel.cu(5): warning #177-D: variable \"q\" was declared but never referenced\n"
      "1 error detected in the compilation of \"kernel.cu\".\n"
      "ptxas error   : Entry function '_Z1kv' uses too much shared data (0x40000 bytes)\n");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].file, "kernel.cu");
  EXPECT_EQ(list[0].line, 8u);
  EXPECT_EQ(list[0].severity, "error");
  EXPECT_EQ(list[0].message, "identifier \"parts\" is undefined");
  EXPECT_EQ(list[1].severity, "warning");
  EXPECT_EQ(list[2].file, "");
  EXPECT_THAT(list[2].message, HasSubstr("too much shared data"));
}

TEST(diagnostics, of_nvrtc_and_its_assembler_are_found) {
  auto list = parse_diagnostics(
      "kernel.cu(1): catastrophic error: cannot open source file \"torch/extension.h\"\n"
      "  #include \"torch/extension.h\"\n"
      "kernel.cu(3): internal error: assertion failed at: \"x.c\", line 4\n"
      "ptxas application ptx input, line 23; error   : Not a name of any known instruction: 'foo'\n"
      "ptxas /tmp/tmpxft_0000079d_00000000-6_k.ptx, line 9; error   : Unknown symbol '%f1'\n"
      "ptxas fatal   : Unresolved extern function '_Z9elsewheref'\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas warning : Stack size for entry function 'f' cannot be statically determined\n");
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0].file, "kernel.cu");
  EXPECT_EQ(list[0].line, 1u);
  EXPECT_EQ(list[0].message, "cannot open source file \"torch/extension.h\"");
  EXPECT_EQ(list[1].line, 3u);
  EXPECT_EQ(list[2].file, "");
  EXPECT_EQ(list[2].line, 0u);
  EXPECT_EQ(list[2].message, "Not a name of any known instruction: 'foo'");
  EXPECT_EQ(list[3].message, "Unknown symbol '%f1'");
  EXPECT_EQ(list[4].message, "Unresolved extern function '_Z9elsewheref'");
  for (const auto& x : list) EXPECT_EQ(x.severity, "error");
}

TEST(kernel_resources, of_nvrtc_are_taken_out_of_the_text) {
  std::string text =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'f' for 'sm_90'\n"
      "ptxas info    : Function properties for f\n"
      "ptxas         .     16 bytes stack frame, 4 bytes spill stores, 8 bytes spill "
      "loads\n"
      "ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem\n"
      "ptxas info    : Compile time = 9.125 ms\n";
  auto list = take_kernel_resources(text);
  EXPECT_EQ(text, "");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].name, "f");
  EXPECT_EQ(list[0].registers, 10u);
  EXPECT_EQ(list[0].stack_frame, 16u);
  EXPECT_EQ(list[0].spill_stores, 4u);
  EXPECT_EQ(list[0].spill_loads, 8u);
  EXPECT_EQ(list[0].shared_bytes, 1024u);
}

TEST(kernel_resources, are_taken_out_of_the_text) {
  std::string text = "kernel.cu(5): warning #177-D: unused\n"
                     "ptxas info    : 0 bytes gmem\n"
                     "ptxas info    : Compiling entry function '_Z7row_sumPKfPfi' for 'sm_90'\n"
                     "ptxas info    : Function properties for _Z7row_sumPKfPfi\n"
                     "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
                     "ptxas info    : Used 31 registers, used 1 barriers, 1024 bytes smem\n"
                     "ptxas info    : Compile time = 55.398 ms\n"
                     "ptxas info    : Compiling entry function 'plain' for 'sm_90'\n"
                     "ptxas info    : Used 8 registers, used 0 barriers\n";
  auto list = take_kernel_resources(text);
  EXPECT_EQ(text, "kernel.cu(5): warning #177-D: unused\n");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "row_sum(float const*, float*, int)");
  EXPECT_EQ(list[0].registers, 31u);
  EXPECT_EQ(list[0].stack_frame, 16u);
  EXPECT_EQ(list[0].spill_stores, 8u);
  EXPECT_EQ(list[0].spill_loads, 12u);
  EXPECT_EQ(list[0].shared_bytes, 1024u);
  EXPECT_EQ(list[1].name, "plain");
  EXPECT_EQ(list[1].registers, 8u);
  EXPECT_EQ(list[1].shared_bytes, 0u);
}

TEST(kernel_resources, of_a_text_that_only_looks_like_ptxas_are_none) {
  std::string text = "    0 bytes stack frame, 0 bytes spill stores\nptxas info    : Used\n";
  EXPECT_TRUE(take_kernel_resources(text).empty());
}

TEST(hip_kernel_resources, are_taken_out_of_the_text_with_the_lines_that_they_quote) {
  std::string mark = " [-Rpass-analysis=kernel-resource-usage]\n";
  std::string text = "kernel.hip:3:1: warning: unused variable 'q' [-Wunused-variable]\n"
                     "kernel.hip:5:1: remark: Function Name: _Z7row_sumPKfPfi" +
                     mark + "__global__ void row_sum(const float* x, float* y, int cols) {\n^\n";
  for (auto* x : {"SGPRs: 6", "VGPRs: 31", "AGPRs: 0", "ScratchSize [bytes/lane]: 16",
                  "Occupancy [waves/SIMD]: 8", "SGPRs Spill: 3", "VGPRs Spill: 2",
                  "LDS Size [bytes/block]: 1024"})
    text += std::string{"kernel.hip:5:1: remark:     "} + x + mark;
  text += "kernel.hip:9:1: remark: Function Name: plain" + mark +
          "kernel.hip:9:2: error: something else\n    quoted\n"
          "1 warning generated when compiling for gfx90a.\n";
  auto list = take_hip_kernel_resources(text);
  EXPECT_EQ(text, "kernel.hip:3:1: warning: unused variable 'q' [-Wunused-variable]\n"
                  "kernel.hip:9:2: error: something else\n    quoted\n"
                  "1 warning generated when compiling for gfx90a.\n");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "row_sum(float const*, float*, int)");
  EXPECT_EQ(list[0].registers, 31u);
  EXPECT_EQ(list[0].stack_frame, 16u);
  EXPECT_EQ(list[0].spill_stores, 8u);
  EXPECT_EQ(list[0].spill_loads, 8u);
  EXPECT_EQ(list[0].shared_bytes, 1024u);
  EXPECT_EQ(list[1].name, "plain");
  EXPECT_EQ(list[1].registers, 0u);
}

TEST(hip_kernel_resources, of_other_remarks_are_none) {
  std::string text = "kernel.hip:5:1: remark: VGPRs: 3\nkernel.hip:6:1: remark: hello\n";
  auto before = text;
  EXPECT_TRUE(take_hip_kernel_resources(text).empty());
  EXPECT_EQ(text, before);
}

// By the tables of the CUDA C++ Programming Guide and the occupancy calculator.
TEST(register_occupancy, is_the_share_of_warps_that_the_registers_leave) {
  EXPECT_EQ(register_occupancy(1, "sm_90"), 1);
  EXPECT_EQ(register_occupancy(32, "sm_90"), 1);
  EXPECT_EQ(register_occupancy(33, "sm_90"),
            48.0 / 64); // a warp takes 5 units of 256: 51, in fours
  EXPECT_EQ(register_occupancy(40, "sm_90"), 48.0 / 64);
  EXPECT_EQ(register_occupancy(64, "sm_90"), 32.0 / 64);
  EXPECT_EQ(register_occupancy(128, "sm_90"), 16.0 / 64);
  EXPECT_EQ(register_occupancy(255, "sm_90"), 8.0 / 64);
}

TEST(register_occupancy, counts_the_warps_that_the_architecture_can_have) {
  EXPECT_EQ(register_occupancy(40, "sm_86"), 1); // 48 of 48
  EXPECT_EQ(register_occupancy(64, "sm_86"), 32.0 / 48);
  EXPECT_EQ(register_occupancy(64, "sm_75"), 1); // 32 of 32
  EXPECT_EQ(register_occupancy(128, "sm_80"), 0.25);
  EXPECT_EQ(register_occupancy(255, "sm_120"), 8.0 / 48);
}

TEST(register_occupancy, never_grows_with_the_registers_and_is_never_none) {
  double last = 1;
  for (uint32_t registers = 1; registers <= 255; ++registers) {
    auto x = register_occupancy(registers, "sm_90");
    EXPECT_GT(x, 0) << registers;
    EXPECT_LE(x, last) << registers;
    last = x;
  }
}

TEST(register_occupancy, is_0_where_nothing_is_known) {
  EXPECT_EQ(register_occupancy(0, "sm_90"), 0);
  for (auto* architecture : {"", "sm_9", "sm_90a", "gfx90a", "native"})
    EXPECT_EQ(register_occupancy(32, architecture), 0) << architecture;
}

TEST(diagnostics, of_clang_without_a_place_are_found) {
  auto list = parse_diagnostics(
      "error: local memory (262144) exceeds limit (65536) in function '_Z1kPf'\n"
      "lld: error: undefined hidden symbol: elsewhere(float*)\n"
      ">>> referenced by /tmp/kernel-96f266/kernel-gfx90a.o:(k(float*))\n"
      "clang: error: amdgcn-link command failed with exit code 1 (use -v to see invocation)\n");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].file, "");
  EXPECT_EQ(list[0].severity, "error");
  EXPECT_THAT(list[0].message, HasSubstr("exceeds limit"));
  EXPECT_EQ(list[1].file, "");
  EXPECT_EQ(list[1].message, "undefined hidden symbol: elsewhere(float*)");
}

TEST(diagnostics, of_assembler_linker_and_driver_are_found) {
  auto list = parse_diagnostics("kernel.s:4: Error: file not found: /etc/passwd\n"
                                "/usr/bin/ld: kernel.o: in function `solve':\n"
                                "kernel.cpp:(.text+0x1): undefined reference to `f()'\n"
                                "cc1plus: fatal error: too many things\n");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].line, 4u);
  EXPECT_EQ(list[0].column, 0u);
  EXPECT_EQ(list[1].file, "");
  EXPECT_EQ(list[1].message, "undefined reference to `f()'");
  EXPECT_EQ(list[2].file, "");
  EXPECT_EQ(list[2].message, "too many things");
}

TEST(diagnostics, are_found_only_where_a_line_has_their_shape) {
  EXPECT_TRUE(parse_diagnostics("").empty());
  EXPECT_TRUE(parse_diagnostics("a line\n:::\n:1:2: error: x\nkernel.cpp:3:5:\n").empty());
  EXPECT_TRUE(parse_diagnostics("kernel.cpp:99999999999999:5 error: x\n").empty());
  EXPECT_EQ(parse_diagnostics("kernel.cpp:1:1: error: ").size(), 1u);
}

TEST(diagnostics, stop_at_a_hundred) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "kernel.cpp:1:1: error: x\n";
  EXPECT_EQ(parse_diagnostics(text).size(), 100u);
}

TEST(a_log, loses_the_paths_of_the_sandbox) {
  auto log = clean_log("/build/kernel.cpp:1:1: error: x\n/tmp/ccAb12Cd.o: y\n", 1000);
  EXPECT_EQ(log, "kernel.cpp:1:1: error: x\nkernel.o: y\n");
  EXPECT_EQ(clean_log("/tmp/kernel-9034ee.o: x\n/tmp/kernel-96f266/kernel-gfx90a.o: y\n", 1000),
            "kernel.o: x\nkernel-gfx90a.o: y\n");
}

TEST(a_log, is_cut_after_a_whole_line) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "a line of text\n";
  auto log = clean_log(text, 100);
  EXPECT_LE(log.size(), 100u);
  EXPECT_THAT(log, EndsWith("text\n... (cut)\n"));
  EXPECT_EQ(clean_log(std::string(1000, 'x'), 100), "... (cut)\n");
}

TEST(a_log, is_valid_utf_8_without_control_characters) {
  EXPECT_EQ(clean_log("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 100),
            "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(clean_log("\xff \xc3 \xc0\x80 \xed\xa0\x80 \xf5\x80\x80\x80", 100), "? ? ?? ??? ????");
  EXPECT_EQ(clean_log(std::string{"a\x1b[31m\0b\t\n\x7f", 12}.substr(0, 10), 100), "a?[31m?b\t\n");
}

// A candidate can name its file so (#line): what it is then called stands at the front of a line.
TEST(kernel_resources, of_no_kernel_belong_to_none) {
  std::string text = "ptxas info(1): error: 8 bytes stack frame, 4 bytes spill stores\n";
  EXPECT_TRUE(take_kernel_resources(text).empty());
  text = "ptxas info    : Used 32 registers\n";
  EXPECT_TRUE(take_kernel_resources(text).empty());
}

// "k(P<P<int, int>, P<int, int>>*)", and so on: each level is twice as long as the one before.
std::string doubling_symbol(int levels) {
  auto number = [](int i) { // S_, S0_, ... SZ_
    return "S" + (i == 0 ? "" : std::string(1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i - 1])) +
           "_";
  };
  std::string x = "S_IiiE";
  for (int i = 1; i < levels; ++i) x = "S_I" + x + number(i) + "E";
  return "_Z1k1PI" + x + number(levels) + "E";
}

TEST(a_symbol, is_read_unless_its_name_could_be_long) {
  EXPECT_EQ(readable_symbol("_Z4sumsPKfS0_Pfi"), "sums(float const*, float const*, float*, int)");
  EXPECT_EQ(readable_symbol(doubling_symbol(2)),
            "k(P<P<P<int, int>, P<int, int> >, P<P<int, int>, P<int, int> > >)");
  EXPECT_EQ(readable_symbol("_Z1kIJiffEEvDpT_"), "void k<int, float, float>(int, float, float)");
  EXPECT_EQ(readable_symbol("f"), "f");
  auto whole = doubling_symbol(9); // a few thousand letters
  EXPECT_EQ(readable_symbol(whole), whole);
  auto bomb = doubling_symbol(34); // a hundred gigabytes
  EXPECT_EQ(readable_symbol(bomb), bomb);
}

TEST(a_symbol, of_a_template_with_many_arguments_of_one_namespace_is_read) {
  EXPECT_EQ(readable_symbol("_ZN3cub18DeviceReduceKernelINS_6PolicyENS_3SumENS_3MaxENS_3MinEEEvPf"),
            "void cub::DeviceReduceKernel<cub::Policy, cub::Sum, cub::Max, cub::Min>(float*)");
}

} // namespace diagnostics_test
} // namespace kernelmill
