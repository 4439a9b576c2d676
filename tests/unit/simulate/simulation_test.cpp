#include <cmath>

#include <gtest/gtest.h>

#include "launch/analysis/simulate/simulation.hpp"

namespace kernelmill::simulating {

namespace simulation_test {

/// Nothing takes time but what a test gives it.
workload work(uint64_t episodes, uint32_t turns) {
  workload result;
  result.episodes = episodes;
  result.max_turns = turns;
  return result;
}

cluster_size plenty() {
  cluster_size result;
  result.max_live = 1'000'000;
  result.in_flight = result.compilers = result.slots = 1'000'000;
  return result;
}

const stage_figures& figures(const simulation_result& x, const char* stage) {
  for (const auto& one : x.stages)
    if (one.name == stage) return one;
  throw std::runtime_error{stage};
}

TEST(simulation, one_slot_and_constant_times_take_as_long_as_all_evaluations_together) {
  auto what = work(100, 1);
  what.evaluate = distribution::constant(2);
  auto on = plenty();
  on.slots = 1;
  auto x = simulate(what, on);
  EXPECT_DOUBLE_EQ(x.seconds, 200);
  EXPECT_EQ(x.turns, 100u);
  EXPECT_DOUBLE_EQ(x.turns_per_hour(), 1800);
  auto slot = figures(x, "evaluate");
  EXPECT_DOUBLE_EQ(slot.busy, 1);
  EXPECT_EQ(slot.queue_most, 99u);
  EXPECT_DOUBLE_EQ(slot.wait_mean, 99); // 0, 2, 4, ... 198
  EXPECT_DOUBLE_EQ(slot.wait_p50, 98);
  EXPECT_DOUBLE_EQ(slot.wait_p90, 178);
  EXPECT_EQ(x.limit, "evaluate");
}

TEST(simulation, with_plenty_of_everything_a_run_is_as_long_as_one_episode) {
  auto what = work(500, 4);
  what.policy = distribution::constant(10);
  what.build = distribution::constant(5);
  what.evaluate = distribution::constant(1);
  auto x = simulate(what, plenty());
  EXPECT_DOUBLE_EQ(x.seconds, 64);
  EXPECT_DOUBLE_EQ(x.episode_mean, 64);
  EXPECT_DOUBLE_EQ(figures(x, "build").wait_p90, 0);
  EXPECT_EQ(x.limit, "the run's length");
}

TEST(simulation, one_commit_holds_all_that_wait_for_it) {
  auto what = work(500, 1);
  what.commit = distribution::constant(0.5);
  auto x = simulate(what, plenty());
  EXPECT_DOUBLE_EQ(x.seconds, 1); // the first to come, and then all others
  EXPECT_EQ(figures(x, "commit").queue_most, 499u);
}

TEST(simulation, the_window_of_the_policy_is_servers_times_in_flight) {
  auto what = work(600, 1);
  what.policy = distribution::constant(10);
  auto on = plenty();
  on.servers = 3;
  on.in_flight = 20;
  auto x = simulate(what, on);
  EXPECT_EQ(figures(x, "policy").servers, 60u);
  EXPECT_DOUBLE_EQ(x.seconds, 100);
  EXPECT_DOUBLE_EQ(figures(x, "policy").busy, 1);
  EXPECT_EQ(x.limit, "policy");
}

TEST(simulation, a_long_tail_does_not_hide_what_was_full_before) {
  auto what = work(1000, 1);
  what.policy = distribution::measured({1, 1, 1, 1, 1, 1, 1, 1, 1, 400});
  auto on = plenty();
  on.in_flight = 100;
  auto x = simulate(what, on);
  EXPECT_LT(figures(x, "policy").busy, 0.85);
  EXPECT_GT(figures(x, "policy").busy_full, 0.99);
  EXPECT_EQ(x.limit, "policy");
}

TEST(simulation, no_more_episodes_live_than_max_live) {
  auto what = work(1000, 1);
  what.policy = distribution::constant(10);
  auto on = plenty();
  on.max_live = 10;
  auto x = simulate(what, on);
  EXPECT_DOUBLE_EQ(x.seconds, 1000);
  EXPECT_NEAR(x.live_mean, 10, 1e-9);
  EXPECT_EQ(x.limit, "episode.max_live");
}

// -- queues that books know -----------------------------------------------------------------------

TEST(simulation, littles_law_holds_at_every_stage_and_for_episodes) {
  auto what = work(3000, 4);
  what.policy = distribution::lognormal(20, 60);
  what.build = distribution::lognormal(5, 15);
  what.evaluate = distribution::uniform(0.1, 3);
  what.commit = distribution::constant(0.01);
  cluster_size on;
  on.max_live = 300;
  on.in_flight = 200;
  on.compilers = 60;
  on.slots = 12;
  auto x = simulate(what, on);
  for (const auto& one : x.stages)
    EXPECT_NEAR(one.queue_mean, static_cast<double>(one.jobs) / x.seconds * one.wait_mean,
                1e-6 * (1 + one.queue_mean))
        << one.name;
  EXPECT_NEAR(x.live_mean, static_cast<double>(x.episodes) / x.seconds * x.episode_mean, 1e-6);
  EXPECT_EQ(x.turns, 12'000u);
}

/// The mean wait of M/D/1 and M/M/1 at load r, in service times, is r/(2(1-r)) and r/(1-r). Many
/// episodes that each think for long make arrivals that are nearly Poisson's.
double mean_wait(const distribution& service, double load, uint32_t servers) {
  constexpr uint32_t live = 3000;
  auto what = work(400'000, 1);
  what.evaluate = service;
  // Arrivals come at live / (thinking + little): thinking sets the load.
  auto thinking = live * service.mean() / (load * servers);
  what.policy = distribution::uniform(0, 2 * thinking);
  auto on = plenty();
  on.max_live = live;
  on.slots = servers;
  return figures(simulate(what, on), "evaluate").wait_mean / service.mean();
}

TEST(simulation, one_server_with_constant_service_waits_as_m_d_1_does) {
  EXPECT_NEAR(mean_wait(distribution::constant(1), 0.5, 1), 0.5, 0.05);
  EXPECT_NEAR(mean_wait(distribution::constant(1), 0.8, 1), 2.0, 0.25);
}

TEST(simulation, many_servers_with_constant_service_wait_as_m_d_c_does) {
  // M/D/c is close to half of M/M/c, whose mean wait is Erlang's C / (c (1 - r)).
  auto erlang_c = [](double r, int c) {
    double term = 1, sum = 0; // (c r)^k / k!
    for (int k = 0; k < c; ++k) {
      sum += term;
      term *= c * r / (k + 1);
    }
    auto last = term / (1 - r);
    return last / (sum + last);
  };
  auto expected = erlang_c(0.8, 8) / (8 * 0.2) / 2;
  EXPECT_NEAR(mean_wait(distribution::constant(1), 0.8, 8), expected, 0.15 * expected);
}

// -- what runs tell -------------------------------------------------------------------------------

TEST(simulation, the_same_seed_gives_the_same_figures_and_another_one_others) {
  auto what = work(500, 3);
  what.policy = distribution::lognormal(2, 6);
  what.evaluate = distribution::constant(0.3);
  what.builds = 0.9;
  what.evaluations = 0.8;
  cluster_size on;
  auto a = simulate(what, on), b = simulate(what, on);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(figures(a, "evaluate").wait_mean, figures(b, "evaluate").wait_mean);
  what.seed = 2;
  EXPECT_NE(simulate(what, on).seconds, a.seconds);
}

TEST(simulation, answers_without_a_kernel_and_builds_that_fail_go_no_further) {
  auto what = work(20'000, 1);
  what.builds = 0.5;
  what.evaluations = 0.4;
  auto x = simulate(what, plenty());
  EXPECT_EQ(figures(x, "policy").jobs, 20'000u);
  EXPECT_NEAR(static_cast<double>(figures(x, "build").jobs), 10'000, 300);
  EXPECT_NEAR(static_cast<double>(figures(x, "evaluate").jobs), 4'000, 250);
  EXPECT_EQ(figures(x, "commit").jobs, 20'000u);
}

TEST(simulation, builds_from_the_cache_take_no_time) {
  auto what = work(10'000, 1);
  what.build = distribution::constant(1);
  what.cached = 0.75;
  auto on = plenty();
  on.compilers = 1;
  EXPECT_NEAR(simulate(what, on).seconds, 2500, 150);
}

TEST(simulation, episodes_have_as_many_turns_as_were_measured_but_no_more_than_allowed) {
  auto what = work(10'000, 3);
  what.turns = {1, 9};
  EXPECT_NEAR(static_cast<double>(simulate(what, plenty()).turns), 20'000, 500); // 1 or 3
}

TEST(simulation, more_of_what_limits_is_faster_and_more_of_the_rest_is_not) {
  auto what = work(2000, 2);
  what.policy = distribution::constant(1);
  what.evaluate = distribution::constant(1);
  cluster_size on;
  on.max_live = 2000;
  on.in_flight = 1000;
  on.compilers = 100;
  on.slots = 10;
  auto all = alternatives(what, on);
  ASSERT_EQ(all.size(), 10u);
  auto seconds = [&](uint32_t nodes, uint32_t servers) {
    for (const auto& x : all)
      if (x.nodes == nodes && x.servers == servers) return x.result.seconds;
    return 0.0;
  };
  EXPECT_NEAR(seconds(1, 1) / seconds(4, 1), 4, 0.1);
  EXPECT_NEAR(seconds(1, 1) / seconds(1, 4), 1, 0.01);
}

TEST(simulation, a_run_without_episodes_takes_no_time) {
  auto x = simulate(work(0, 4), plenty());
  EXPECT_EQ(x.seconds, 0);
  EXPECT_EQ(x.turns_per_hour(), 0);
}

} // namespace simulation_test

} // namespace kernelmill::simulating
