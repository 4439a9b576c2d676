// What an episode asks the policy for, from its state alone.

#include <gtest/gtest.h>

#include "actors/episode/episode_records.hpp"

namespace kernelmill {
namespace request_test {

Message<wire::CompletionRequest> request_of(uint64_t run_seed, int64_t sampling_seed,
                                            uint32_t member, uint32_t turn) {
  auto settings = std::make_shared<episode_settings>();
  settings->run_seed = run_seed;
  settings->sampling = build<wire::CompletionRequest>(
      [&](wire::CompletionRequest::Builder x) { x.initSampling().setSeed(sampling_seed); });
  auto what = std::make_shared<task>();
  what->id = "native/row_sum";
  episode_state state{nullptr};
  state.settings = settings;
  state.where = {std::make_shared<const std::string>("first"), what, 0, member, member};
  state.first_prompt = std::make_shared<const prompt_text>();
  state.turn = turn;
  return completion_request(state, std::chrono::seconds{1});
}

int64_t seed_of(const Message<wire::CompletionRequest>& x) {
  return x.open()->getSampling().getSeed();
}

TEST(completion_request, has_a_seed_of_its_own_when_one_is_asked_for) {
  auto first = seed_of(request_of(1, 0, 0, 0));
  EXPECT_GE(first, 0);
  EXPECT_EQ(first, seed_of(request_of(1, 0, 0, 0)));
  EXPECT_NE(first, seed_of(request_of(1, 0, 1, 0))) << "siblings would say the same";
  EXPECT_NE(first, seed_of(request_of(1, 0, 0, 1)));
  EXPECT_NE(first, seed_of(request_of(2, 0, 0, 0))) << "run.seed changes nothing";
  EXPECT_EQ(seed_of(request_of(1, -1, 0, 0)), -1) << "none was asked for";
}

} // namespace request_test
} // namespace kernelmill
