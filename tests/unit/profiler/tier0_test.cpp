#include "gpu/profiler/tier0.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kernelmill;
using testing::HasSubstr;

namespace tier0_test {

expression parsed(const std::string& text) {
  auto result = expression::parse(text);
  EXPECT_TRUE(result);
  return *result;
}

task row_sum(contract_kind contract) {
  task x;
  x.id = "native/row_sum";
  x.contract = contract;
  x.terms.backend = "cuda";
  x.timed.scalars = {{"rows", 4096}, {"cols", 1024}};
  x.bytes = parsed("4 * rows * cols");
  x.flops = parsed("rows * cols");
  return x;
}

struct kernel {
  std::string name;
  uint32_t registers = 32, shared = 0, spilled = 0;
};

Message<wire::BuildResult> built(const std::vector<kernel>& kernels) {
  return build<wire::BuildResult>([&](wire::BuildResult::Builder x) {
    x.setCompiled(true);
    x.setToolchain("NVRTC 13.0 -std=c++20 -arch=sm_90");
    auto list = x.initKernels(static_cast<unsigned>(kernels.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setName(kernels[i].name);
      list[i].setRegisters(kernels[i].registers);
      list[i].setSharedBytes(kernels[i].shared);
      list[i].setSpillStores(kernels[i].spilled);
      list[i].setOccupancy(1);
    }
  });
}

Message<wire::EvaluateResult> timed(double call_us, double device_us) {
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
    auto t = x.initTiming();
    t.setMeasured(true);
    t.setCandidateMs(call_us / 1e3);
    t.setCandidateCallMs(call_us / 1e3);
    t.setCandidateDeviceMs(device_us / 1e3);
    auto list = x.initCounters(3);
    list[0].setName("machine_memory_bandwidth");
    list[0].setValue(4e12);
    list[1].setName("machine_flops");
    list[1].setValue(6e13);
    list[2].setName("machine_multiprocessors");
    list[2].setValue(132);
  });
}

struct seen {
  std::map<std::string, double> counters;
  std::string bottleneck;
  std::string evidence;
  bool available = false;
};

seen profile_of(const task& what, const std::string& source, const Message<wire::BuildResult>& b,
                const Message<wire::EvaluateResult>& e) {
  auto found = tier0_profile(what, source, *b.open(), *e.open());
  seen result;
  if (!found) return result;
  auto x = found->open();
  for (auto c : x->getCounters()) result.counters[c.getName().cStr()] = c.getValue();
  result.bottleneck = x->getCard().getBottleneck().cStr();
  result.available = x->getAvailable();
  if (x->getCard().getEvidence().size() > 0) result.evidence = x->getCard().getEvidence()[0].cStr();
  EXPECT_THAT(std::string{x->getMissing()[0].cStr()}, HasSubstr("hardware counters of the GPU"));
  return result;
}

constexpr const char* two_launches = "// scratch: partial[4 * rows * 8]\n"
                                     "// launch: sums<<<dim3(8, rows), 256, 1024>>>(x, partial)\n"
                                     "// launch: total<<<ceil_div(rows, 128), 128>>>(partial, y)\n";

// The card is told to the next turn, whose prompt has room for other things, too.
TEST(Tier0, SpillsAreToldByLineWithinABudget) {
  std::string text;
  for (int i = 1; i <= 9; ++i) text += "  acc[" + std::string(60, '0') + "] += w;\n";
  auto x = build<wire::BuildResult>([&](wire::BuildResult::Builder out) {
    out.setCompiled(true);
    auto kernels = out.initKernels(1);
    kernels[0].setName("sums");
    kernels[0].setRegisters(255);
    kernels[0].setSpillStores(512);
    kernels[0].setOccupancy(0.125);
    auto list = out.initDiagnostics(6);
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setLine(i + 2);
      list[i].setSeverity("remark");
      list[i].setMessage(i < 5 ? "spill in sums: 6 instructions of local memory"
                               : "something else");
    }
  });
  auto what = row_sum(contract_kind::native);
  auto found = tier0_profile(what, text, *x.open(), *timed(20, 18).open());
  ASSERT_TRUE(found);
  auto opened = found->open();
  EXPECT_EQ(std::string{opened->getCard().getBottleneck().cStr()}, "register_spills");
  std::string place;
  for (auto line : opened->getCard().getEvidence())
    if (std::string{line.cStr()}.starts_with("in the source: ")) place = line.cStr();
  EXPECT_THAT(place, HasSubstr("line 2 `acc[000"));
  EXPECT_THAT(place, HasSubstr("(6 of local memory); line 3"));
  EXPECT_LE(place.size(), 320u);
}

// A build with many kernels has many warnings, and a message may be read a few times alone.
TEST(Tier0, OfManyKernelsWithManyRemarksIsRead) {
  constexpr unsigned count = 40, remarks = 100;
  auto x = build<wire::BuildResult>([&](wire::BuildResult::Builder out) {
    out.setCompiled(true);
    auto kernels = out.initKernels(count);
    for (unsigned i = 0; i < count; ++i) {
      kernels[i].setName("k" + std::to_string(i));
      kernels[i].setRegisters(32);
      kernels[i].setSpillStores(i == 7 ? 512 : 0);
    }
    auto list = out.initDiagnostics(remarks);
    for (unsigned i = 0; i < remarks; ++i) {
      list[i].setLine(1);
      list[i].setSeverity("remark");
      list[i].setMessage("spill in k7: 6 instructions of local memory");
    }
  });
  auto found = tier0_profile(row_sum(contract_kind::native), "acc += w;\n", *x.open(),
                             *timed(20, 18).open());
  ASSERT_TRUE(found);
  EXPECT_EQ(std::string{found->open()->getCard().getBottleneck().cStr()}, "register_spills");
}

TEST(Tier0, HasTheCallsPlaceUnderTheRoofline) {
  auto x = profile_of(row_sum(contract_kind::native), {}, built({{"f"}}), timed(20, 10));
  EXPECT_DOUBLE_EQ(x.counters["arithmetic_intensity"], 0.25);
  EXPECT_DOUBLE_EQ(x.counters["achieved_bandwidth"], 4.0 * 4096 * 1024 / 10e-6);
  EXPECT_DOUBLE_EQ(x.counters["ridge_point"], 15);
  auto torch = profile_of(row_sum(contract_kind::torch), {}, built({{"f"}}), timed(20, 10));
  EXPECT_FALSE(torch.counters.contains("arithmetic_intensity")) << "it declares nothing";
  EXPECT_FALSE(torch.counters.contains("achieved_flops"));
}

TEST(Tier0, ADeviceCandidateTellsItsLaunchesAndOccupancy) {
  auto x = profile_of(row_sum(contract_kind::device), two_launches,
                      built({{"sums", 40, 512}, {"total", 16}}), timed(20, 18));
  ASSERT_TRUE(x.available);
  EXPECT_EQ(x.counters["launches"], 2);
  EXPECT_EQ(x.counters["sums/block_threads"], 256);
  EXPECT_EQ(x.counters["sums/grid_blocks"], 8 * 4096);
  EXPECT_EQ(x.counters["sums/dynamic_shared"], 1024);
  EXPECT_EQ(x.counters["sums/static_shared"], 512);
  EXPECT_EQ(x.counters["sums/theoretical_occupancy"], 75) << "6 blocks of 8 warps, by registers";
  EXPECT_NEAR(x.counters["sums/waves"], 8 * 4096 / (132.0 * 6), 1e-9);
  EXPECT_EQ(x.counters["total/grid_blocks"], 32);
}

TEST(Tier0, TheShareOfTheRooflineIsByTheTasksBytes) {
  auto x = profile_of(row_sum(contract_kind::native), {}, built({{"sums(const float *)"}}),
                      timed(5.3, 5));
  // 16.8 MB at 4 TB/s take 4.19 us.
  EXPECT_NEAR(x.counters["roofline_memory"], 100 * 4.194304 / 5, 0.01);
  EXPECT_EQ(x.bottleneck, "memory_bandwidth");
}

TEST(Tier0, LaunchesThatTakeLongerThanTheWorkAreSaid) {
  auto x = profile_of(row_sum(contract_kind::native), {}, built({{"sums(const float *)"}}),
                      timed(40, 12));
  EXPECT_EQ(x.bottleneck, "launch_overhead");
}

TEST(Tier0, SpillsAreKnownBeforeAnythingRan) {
  auto x =
      profile_of(row_sum(contract_kind::native), {}, built({{"sums(const float *)", 255, 0, 400}}),
                 Message<wire::EvaluateResult>{});
  EXPECT_EQ(x.bottleneck, "register_spills");
  EXPECT_EQ(x.counters["sums(const float *)/spill_bytes"], 400);
}

TEST(Tier0, OfSeveralKernelsTheOneWithAFlawIsNamed) {
  auto x = profile_of(row_sum(contract_kind::native), {},
                      built({{"first()"}, {"second()", 255, 0, 400}, {"third()"}}), timed(5.3, 5));
  EXPECT_EQ(x.bottleneck, "register_spills");
  EXPECT_THAT(x.evidence, HasSubstr("(of second())"));
}

TEST(Tier0, AGridThatDoesNotFillTheGpuIsSaid) {
  auto x = profile_of(row_sum(contract_kind::device), "// launch: sums<<<4, 256>>>(x, y)\n",
                      built({{"sums", 32}}), timed(30, 29));
  EXPECT_EQ(x.bottleneck, "tail");
}

TEST(Tier0, IsNothingOnACpuAndOfWhatWasNotBuilt) {
  auto what = row_sum(contract_kind::native);
  Message<wire::BuildResult> nothing;
  EXPECT_FALSE(tier0_profile(what, {}, *nothing.open(), *timed(1, 1).open()));
  what.terms.backend = "cpu";
  EXPECT_FALSE(tier0_profile(what, {}, *built({{"f"}}).open(), *timed(1, 1).open()));
}

TEST(Tier0, UnreadableLaunchesAreLeftOut) {
  auto x =
      profile_of(row_sum(contract_kind::device), "// launch: sums<<<rows * 99999999999, 0>>>()\n",
                 built({{"sums", 32}}), timed(30, 29));
  EXPECT_TRUE(x.available);
  EXPECT_FALSE(x.counters.contains("sums/grid_blocks"));
}

} // namespace tier0_test
