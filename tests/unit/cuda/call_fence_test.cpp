// What a fence asks of the driver, shown with one of our own: a GPU is not needed for that.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/cuda/call_fence.hpp"

using namespace kernelmill;
using testing::ElementsAre;

namespace call_fence_test {

std::vector<std::string> asked;
int context_fault = 0; // of orders for contexts
int event_fault = 0;   // of making an event

cuda::driver driver_of_our_own(bool has_context_orders) {
  asked.clear();
  context_fault = event_fault = 0;
  cuda::driver x;
  x.primary_retain = [](cuda::context* into, int) {
    *into = reinterpret_cast<cuda::context>(&asked);
    return 0;
  };
  x.event_create = [](cuda::event* into, unsigned flags) {
    EXPECT_EQ(flags, cuda::event_without_time);
    *into = event_fault == 0 ? reinterpret_cast<cuda::event>(&asked) : nullptr;
    return event_fault;
  };
  x.event_record = [](cuda::event, cuda::stream where) {
    asked.emplace_back(where == nullptr ? "default stream" : "a stream");
    return 0;
  };
  if (!has_context_orders) return x;
  x.context_record = [](cuda::context, cuda::event) {
    asked.emplace_back("record all");
    return context_fault;
  };
  x.context_wait = [](cuda::context, cuda::event) {
    asked.emplace_back("hold all");
    return 0;
  };
  return x;
}

TEST(call_fence, holds_all_streams_until_all_that_was_given_is_over) {
  auto driver = driver_of_our_own(true);
  cuda::call_fence fence{driver};
  EXPECT_EQ(fence.set(), 0);
  EXPECT_EQ(fence.set(), 0);
  EXPECT_THAT(asked, ElementsAre("record all", "hold all", "record all", "hold all"));
}

TEST(call_fence, orders_streams_of_the_default_stream_where_a_driver_is_older) {
  auto driver = driver_of_our_own(false);
  cuda::call_fence fence{driver};
  EXPECT_EQ(fence.set(), 0);
  EXPECT_THAT(asked, ElementsAre("default stream"));
}

TEST(call_fence, asks_once_for_an_order_that_the_driver_does_not_have) {
  auto driver = driver_of_our_own(true);
  context_fault = cuda::not_supported;
  cuda::call_fence fence{driver};
  EXPECT_EQ(fence.set(), 0);
  EXPECT_EQ(fence.set(), 0);
  EXPECT_THAT(asked, ElementsAre("record all", "default stream", "default stream"));
}

TEST(call_fence, never_asks_for_less_because_an_order_was_refused_once) {
  auto driver = driver_of_our_own(true);
  cuda::call_fence fence{driver};
  context_fault = 900; // a stream is captured
  EXPECT_EQ(fence.set(), 900);
  context_fault = 0;
  EXPECT_EQ(fence.set(), 0);
  EXPECT_THAT(asked, ElementsAre("record all", "record all", "hold all"));
}

TEST(call_fence, says_what_is_wrong_when_it_cannot_be_made) {
  auto driver = driver_of_our_own(true);
  event_fault = 2;
  cuda::call_fence fence{driver};
  EXPECT_EQ(fence.set(), 2);
  EXPECT_THAT(asked, testing::IsEmpty());
}

} // namespace call_fence_test
