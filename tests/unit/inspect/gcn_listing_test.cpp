// Assembly as clang 15 wrote it; see golden/README.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/inspect/listing.hpp"
#include "messages/base/files.hpp"

using namespace kernelmill;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace gcn_listing_test {

constexpr const char* source =
    R"(__device__ float half_of(float x) { return x * 0.5f; }
__device__ __attribute__((noinline)) float apart(float x) { return x / 3.0f; }
__global__ void reverse(const float* x, float* y, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) part[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = half_of(part[255 - threadIdx.x]) + apart(x[0]);
}
)";

std::string recorded() {
  return read_whole(KERNELMILL_TREE "/tests/unit/inspect/golden/kernels_gfx90a_recorded_cut.s")
      .value_or("");
}

std::string code_of_line(const kernel_view& view, uint32_t line) {
  std::string result;
  for (const auto& row : view.rows)
    if (row.line == line)
      for (const auto& x : row.gcn) result += x + "\n";
  return result;
}

TEST(Gcn, HasKernelsAndCalledFunctionsWithTheLineOfEachInstruction) {
  auto x = read_gcn(recorded(), "kernel.hip");
  ASSERT_EQ(x.size(), 3u);
  EXPECT_EQ(x[0].name, "apart(float)");
  EXPECT_EQ(x[1].name, "reverse(float const*, float*, int)");
  EXPECT_EQ(x[2].name, "spilled(float const*, float*)");
  EXPECT_EQ(x[0].lines[0].text, "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)");
  EXPECT_EQ(x[0].lines.back().text, "s_setpc_b64 s[30:31]");
  EXPECT_EQ(x[0].lines.back().source_line, 2u);
  EXPECT_EQ(x[1].lines.back().text, "s_endpgm");
  EXPECT_EQ(x[1].lines.back().source_line, 9u);
}

TEST(Gcn, StandsBesideItsSource) {
  auto views = side_by_side(source, {}, {}, read_gcn(recorded(), "kernel.hip"));
  ASSERT_EQ(views.size(), 3u);
  const auto& reverse = views[1];
  EXPECT_THAT(code_of_line(reverse, 6),
              AllOf(HasSubstr("global_load_dword"), HasSubstr("ds_write_b32")));
  EXPECT_THAT(code_of_line(reverse, 8),
              AllOf(HasSubstr("ds_read_b32"), HasSubstr("global_store_dword"),
                    HasSubstr("s_swappc_b64"), Not(HasSubstr("ds_write"))));
  EXPECT_THAT(code_of_line(reverse, 0), HasSubstr("s_barrier"))
      << "a header's line is none of ours";
  for (const auto& row : reverse.rows)
    if (row.line == 6) {
      EXPECT_EQ(row.source, "if (i < n) part[threadIdx.x] = x[i];");
    }
}

TEST(Gcn, KeepsTargetsOfBranchesAndNoLabelsOfTables) {
  auto kernels = read_gcn(recorded(), "kernel.hip");
  std::string all;
  for (const auto& line : kernels.at(1).lines) all += line.text + "\n";
  EXPECT_THAT(all, AllOf(HasSubstr(".LBB1_4:"), Not(HasSubstr(".Ltmp")), Not(HasSubstr(".loc")),
                         Not(HasSubstr("; kernel.hip")), Not(HasSubstr("amdhsa"))));
}

TEST(Gcn, ResourcesAreThoseOfTheMetadata) {
  auto x = read_gcn_resources(recorded());
  ASSERT_EQ(x.size(), 2u) << "apart() is no kernel";
  EXPECT_EQ(x[0].name, "reverse(float const*, float*, int)");
  EXPECT_EQ(x[0].vgprs, 9u);
  EXPECT_EQ(x[0].sgprs, 39u);
  EXPECT_EQ(x[0].agprs, 0u);
  EXPECT_EQ(x[0].lds_bytes, 1024u);
  EXPECT_EQ(x[0].scratch_bytes, 0u);
  EXPECT_EQ(x[0].wavefront, 64u);
  EXPECT_EQ(x[0].waves, 8u);
  EXPECT_GT(x[0].code_bytes, 0u);
  EXPECT_EQ(x[1].vgprs, 64u);
  EXPECT_EQ(x[1].scratch_bytes, 816u);
  EXPECT_EQ(x[1].lds_bytes, 0u);
}

TEST(Gcn, SpillsAreRead) {
  auto x = read_gcn_resources("amdhsa.kernels:\n"
                              "  - .agpr_count:     4\n"
                              "    .args:\n"
                              "      - .size:           8\n"
                              "    .name:           first\n"
                              "    .sgpr_spill_count: 3\n"
                              "    .vgpr_spill_count: 7\n"
                              "  - .name:           second\n"
                              "amdhsa.target:   amdgcn\n"
                              "    .vgpr_spill_count: 9\n");
  ASSERT_EQ(x.size(), 2u);
  EXPECT_EQ(x[0].agprs, 4u);
  EXPECT_EQ(x[0].sgpr_spills, 3u);
  EXPECT_EQ(x[0].vgpr_spills, 7u);
  EXPECT_EQ(x[1].name, "second");
  EXPECT_EQ(x[1].vgpr_spills, 0u);
}

TEST(GcnMix, CountsWhatInstructionsDo) {
  auto x = read_gcn(recorded(), "kernel.hip");
  auto mix = instruction_mix(x[1]);
  EXPECT_EQ(mix["global memory"], 2u);
  EXPECT_EQ(mix["shared memory"], 2u);
  EXPECT_EQ(mix["scalar memory"], 3u);
  EXPECT_EQ(mix["barriers"], 1u);
  EXPECT_EQ(mix["waits"], 5u);
  EXPECT_EQ(mix["floating point"], 1u);
  EXPECT_EQ(mix["local memory"], 0u);
  EXPECT_GT(instruction_mix(x[2])["local memory"], 20u) << "an array that is a thread's own";
  kernel_listing other{"k", {}};
  for (auto* text :
       {"v_mfma_f32_32x32x8f16 a[0:15], v[0:1], v[2:3], a[0:15]", "v_add_f64 v[0:1]",
        "scratch_load_dword v0", "buffer_gl0_inv", "v_mov_b32_e32 v0, v1", "s_add_u32 s0, s1, s2"})
    other.lines.push_back({0, text});
  auto seen = instruction_mix(other);
  for (auto* name : {"matrix cores", "double precision", "local memory", "barriers", "moves",
                     "scalar arithmetic"})
    EXPECT_EQ(seen[name], 1u) << name;
}

TEST(Gcn, OfNothingIsNothing) {
  EXPECT_TRUE(read_gcn("", "kernel.hip").empty());
  EXPECT_TRUE(read_gcn("\t.type\n\t.loc\n.file \"\n", "kernel.hip").empty());
  EXPECT_TRUE(read_gcn_resources("amdhsa.kernels:\n    .name: x\n; Occupancy: 3\n").empty());
}

} // namespace gcn_listing_test
