#include <gtest/gtest.h>

#include "actors/policy_client/adaptive_window.hpp"
#include "actors/policy_client/server_metrics.hpp"

namespace kernelmill {
namespace adaptive_window_test {

using namespace std::chrono_literals;

const adaptive_window::time_point start = adaptive_window::time_point{} + 1h;

// A round trip in which every place is taken and every request is answered.
void round_trip(adaptive_window& x, adaptive_window::time_point now = start) {
  for (auto n = x.size(); n > 0; --n) x.succeed(now, x.size());
}

server_load load(double running, double waiting, double cache = 0) {
  return {running, waiting, cache};
}

TEST(adaptive_window, starts_modest_and_never_above_its_limit) {
  EXPECT_EQ(adaptive_window(16000).size(), adaptive_window::default_first);
  EXPECT_EQ(adaptive_window(64).size(), 64u);
  EXPECT_EQ(adaptive_window(0).size(), 1u);
  EXPECT_EQ(adaptive_window(8, 0).size(), 1u);
}

TEST(adaptive_window, reaches_its_limit_in_a_few_round_trips) {
  adaptive_window x{16000};
  for (int i = 0; i < 6; ++i) round_trip(x);
  EXPECT_EQ(x.size(), 16000u);
  round_trip(x);
  EXPECT_EQ(x.size(), 16000u);
  EXPECT_EQ(x.why(start), "at policy.max_in_flight");
}

TEST(adaptive_window, does_not_grow_while_places_are_free) {
  adaptive_window x{1000, 10};
  for (int i = 0; i < 100; ++i) x.succeed(start, 9);
  EXPECT_EQ(x.size(), 10u);
  EXPECT_EQ(x.why(start), "growing");
}

TEST(adaptive_window, halves_once_for_all_that_was_on_its_way) {
  adaptive_window x{1000, 100};
  for (int i = 0; i < 100; ++i) x.refuse(start + i * 10ms, start - 1s);
  EXPECT_EQ(x.size(), 50u);
  x.refuse(start + 2s, start + 1s);
  EXPECT_EQ(x.size(), 25u);
  EXPECT_EQ(x.why(start), "growing; halved 2 times by 429 and 503");
}

TEST(adaptive_window, grows_slowly_above_what_the_server_was_content_with) {
  adaptive_window x{10000, 1600};
  x.refuse(start, start - 1s);
  EXPECT_EQ(x.size(), 800u);
  round_trip(x);
  EXPECT_NEAR(x.size(), 850, 2);
  for (int i = 0; i < 9; ++i) round_trip(x);
  EXPECT_NEAR(x.size(), 1300, 20);
}

TEST(adaptive_window, can_always_go_down_and_come_back) {
  adaptive_window x{10000, 1024};
  for (int i = 1; i <= 4; ++i) x.refuse(start + i * 2s, start + i * 2s - 1s);
  EXPECT_EQ(x.size(), 64u);
  round_trip(x);
  EXPECT_NEAR(x.size(), 68, 1) << "a sixteenth more";
  adaptive_window y{100, 1};
  y.refuse(start, start - 1s);
  EXPECT_EQ(y.size(), 1u) << "never none";
  for (int i = 0; i < 3; ++i) round_trip(y);
  EXPECT_GE(y.size(), 3u);
}

TEST(adaptive_window, is_held_while_many_wait_in_the_server) {
  adaptive_window x{10000, 300};
  x.observe(start, load(256, 40));
  round_trip(x, start + 1s);
  EXPECT_EQ(x.size(), 300u);
  EXPECT_EQ(x.why(start + 1s), "held: 40 requests wait in the server");
  x.observe(start + 3s, load(256, 8));
  round_trip(x, start + 3s);
  EXPECT_EQ(x.size(), 600u);
}

TEST(adaptive_window, is_held_while_the_cache_is_full) {
  adaptive_window x{10000, 300};
  x.observe(start, load(256, 0, 0.97));
  round_trip(x, start);
  EXPECT_EQ(x.size(), 300u);
  EXPECT_EQ(x.why(start), "held: the server's cache is 97 % full");
}

TEST(adaptive_window, an_old_figure_holds_nothing) {
  adaptive_window x{10000, 300};
  x.observe(start, load(256, 256));
  round_trip(x, start + 16s);
  EXPECT_EQ(x.size(), 600u);
}

TEST(adaptive_window, shrinks_while_more_wait_than_run_but_not_below_what_runs) {
  adaptive_window x{10000, 1000};
  x.observe(start, load(256, 744));
  EXPECT_EQ(x.size(), 875u);
  for (int i = 0; i < 50; ++i) x.observe(start, load(256, 300));
  EXPECT_EQ(x.size(), 256u);
  adaptive_window small{64, 10};
  small.observe(start, load(256, 900));
  EXPECT_EQ(small.size(), 10u) << "others fill that server";
}

// A server that takes `capacity` requests at once and refuses the rest, over 200 round trips.
TEST(adaptive_window, stays_near_what_a_server_takes) {
  for (uint32_t capacity : {10u, 100u, 3000u}) {
    adaptive_window x{16000};
    auto now = start;
    uint64_t refused = 0;
    uint64_t sent = 0;
    uint32_t lowest = 16000;
    for (int i = 0; i < 200; ++i) {
      auto before = now;
      now += 10s;
      auto n = x.size();
      for (uint32_t k = 0; k < n; ++k) {
        if (k < capacity)
          x.succeed(now, x.size()); // what waits takes each place at once
        else
          x.refuse(now, before);
      }
      if (i < 20) continue;
      lowest = std::min(lowest, x.size());
      sent += n;
      refused += n > capacity ? n - capacity : 0;
    }
    EXPECT_GE(lowest * 2 + 1, capacity);
    EXPECT_LT(static_cast<double>(refused) / static_cast<double>(sent), 0.05) << capacity;
  }
}

TEST(server_metrics, vllm_s_figures_are_summed_over_engines) {
  auto x = parse_server_load("# HELP vllm:num_requests_running Number of requests.\n"
                             "# TYPE vllm:num_requests_running gauge\n"
                             "vllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} 12.0\n"
                             "vllm:num_requests_running{engine=\"1\",model_name=\"a } b\"} 8.0\n"
                             "vllm:num_requests_waiting{engine=\"0\"} 3.0\r\n"
                             "vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 99.0\n"
                             "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
                             "vllm:kv_cache_usage_perc{engine=\"1\"} 9.5e-01\n");
  ASSERT_TRUE(x);
  EXPECT_EQ(x->running, 20);
  EXPECT_EQ(x->waiting, 3);
  EXPECT_EQ(x->cache, 0.95);
}

TEST(server_metrics, sglang_and_llamacpp_have_their_own_names) {
  auto x = parse_server_load("sglang:num_running_reqs{model_name=\"m\"} 8\n"
                             "sglang:num_queue_reqs{model_name=\"m\"} 4\n"
                             "sglang:token_usage{model_name=\"m\"} 0.5 1700000000000\n");
  ASSERT_TRUE(x);
  EXPECT_EQ(x->running, 8);
  EXPECT_EQ(x->waiting, 4);
  EXPECT_EQ(x->cache, 0.5);
  auto y = parse_server_load("llamacpp:requests_processing 1\nllamacpp:requests_deferred 46");
  ASSERT_TRUE(y);
  EXPECT_EQ(y->running, 1);
  EXPECT_EQ(y->waiting, 46);
  EXPECT_FALSE(y->cache);
}

TEST(server_metrics, what_makes_no_sense_is_no_figure) {
  EXPECT_FALSE(parse_server_load(""));
  EXPECT_FALSE(parse_server_load("<html>not found</html>"));
  EXPECT_FALSE(parse_server_load("vllm:num_requests_waiting NaN\nvllm:num_requests_running{\n"
                                 "vllm:kv_cache_usage_perc -1\nsglang:token_usage"));
}

TEST(server_metrics, stand_at_the_root_of_the_server) {
  EXPECT_EQ(metrics_address("http://127.0.0.1:8000/v1"), "http://127.0.0.1:8000/metrics");
  EXPECT_EQ(metrics_address("http://h:1/a/b/v1/"), "http://h:1/metrics");
  EXPECT_EQ(metrics_address("https://h"), "https://h/metrics");
}

} // namespace adaptive_window_test
} // namespace kernelmill
