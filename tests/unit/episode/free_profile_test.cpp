// What a turn on a GPU knows of its kernels without anybody measuring for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/episode/turn_facts.hpp"

using namespace kernelmill;

namespace free_profile_test {

Message<wire::TurnFacts> facts_on(const std::string& backend,
                                  const Message<wire::ProfileResult>& measured = {}) {
  task what;
  what.id = "native/row_sum";
  what.terms.backend = backend;
  parsed_completion parsed;
  parsed.ok = true;
  parsed.kernel = "extern \"C\" __global__ void sums() {}";
  auto built = build<wire::BuildResult>([](wire::BuildResult::Builder x) {
    x.setCompiled(true);
    x.setToolchain("nvcc 13.0 -arch=sm_90");
    auto kernel = x.initKernels(1)[0];
    kernel.setName("sums()");
    kernel.setRegisters(255);
    kernel.setSpillStores(64);
  });
  const error none{fault_class::none, {}, {}, {}};
  const std::string sha256(64, 'a');
  const shown_code shown{what, {}};
  return build<wire::TurnFacts>([&](wire::TurnFacts::Builder out) {
    set_turn_facts(out, {what, parsed, sha256}, {built, {}, measured, none, 0, 1}, shown);
  });
}

TEST(free_profile, is_in_the_facts_of_a_turn_on_a_gpu) {
  auto facts = facts_on("cuda");
  auto view = facts.open();
  auto x = view->getProfile();
  EXPECT_TRUE(x.getAvailable());
  EXPECT_EQ(std::string{x.getCard().getBottleneck().cStr()}, "register_spills");
}

TEST(free_profile, takes_the_place_of_a_reason_why_there_is_none) {
  auto reason = build<wire::ProfileResult>(
      [](wire::ProfileResult::Builder x) { x.initMissing(1).set(0, "not here"); });
  EXPECT_TRUE(facts_on("cuda", reason).open()->getProfile().getAvailable());
  EXPECT_FALSE(facts_on("cpu", reason).open()->getProfile().getAvailable());
}

TEST(free_profile, leaves_a_measured_one_alone) {
  auto measured = build<wire::ProfileResult>([](wire::ProfileResult::Builder x) {
    x.setAvailable(true);
    x.initCard().setBottleneck("latency");
  });
  auto facts = facts_on("cuda", measured);
  EXPECT_EQ(std::string{facts.open()->getProfile().getCard().getBottleneck().cStr()}, "latency");
}

TEST(free_profile, is_not_there_on_a_cpu) {
  EXPECT_FALSE(facts_on("cpu").open()->getProfile().getAvailable());
}

} // namespace free_profile_test
