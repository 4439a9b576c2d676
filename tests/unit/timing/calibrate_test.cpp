#include "gpu/timing/calibrate.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "gpu/timing/thresholds.hpp"

namespace kernelmill::timing::calibrate_test {

// A baseline whose batches take 0.3 ms besides calls.
struct baseline {
  double call = 100e-6;
  unsigned ends_after = ~0u;
  unsigned batches = 0;

  bool operator()(const batch_order& order, unsigned calls, batch_sample& into) {
    if (++batches > ends_after) return false;
    into = {};
    into.calls = order.form == batch_form::single ? 1 : calls;
    into.inside = into.calls * call;
    into.out = 300e-6 + into.inside;
    into.fill = 1e-3;
    return true;
  }
};

TEST(timing_calibration, finds_how_many_calls_fill_a_batch) {
  for (auto [call, most, calls] : {std::tuple{100e-6, 240u, 25u}, std::tuple{5e-6, 32u, 32u},
                                   std::tuple{20e-3, 8u, 1u}, std::tuple{1e-3, 1u, 1u}}) {
    baseline x{call};
    auto found = learn_baseline(std::ref(x), batch_seconds, most);
    ASSERT_TRUE(found) << call;
    EXPECT_EQ(found->calls, calls) << call;
    EXPECT_NEAR(found->before.call, call, 1e-9);
    EXPECT_NEAR(found->before.besides.fixed, 300e-6, 1e-9);
    EXPECT_NEAR(found->before.fill_of({}), 1e-3, 1e-9);
  }
}

TEST(timing_calibration, ends_where_a_batch_cannot_be_made) {
  for (unsigned after : {0u, 1u, 5u, 10u}) {
    baseline x{100e-6, after};
    EXPECT_FALSE(learn_baseline(std::ref(x), batch_seconds, 32)) << after;
  }
}

} // namespace kernelmill::timing::calibrate_test
