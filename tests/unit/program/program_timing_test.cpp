// What is paid for times that a process tells of itself.

#include "gpu/program/program_timing.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kernelmill;
using testing::HasSubstr;

namespace program_timing_test {

// Processes whose whole times have this noise (standard deviation, seconds).
class processes {
public:
  explicit processes(double noise, unsigned seed = 1) : random_(seed), noise_(0, noise) {}

  /// `gain`: what the candidate really saves; `claim`: what its clock inside says it takes.
  std::vector<program_sample> samples(size_t count, double inside_baseline, double gain,
                                      double claim) {
    std::vector<program_sample> result;
    for (size_t i = 0; i < count; ++i)
      result.push_back(
          {0.5 + noise_(random_), 0.5 - gain + noise_(random_), inside_baseline, claim});
    return result;
  }

private:
  std::mt19937 random_;
  std::normal_distribution<double> noise_;
};

TEST(program_timing, of_processes_alone_pays_their_ratio) {
  std::vector<program_sample> samples(8, {0.4, 0.2, 0, 0});
  auto x = pay_program(samples, false);
  EXPECT_NEAR(x.paid.estimate, 2, 1e-9);
  EXPECT_NEAR(x.paid.low, 2, 1e-9);
  EXPECT_TRUE(x.confirmed);
  EXPECT_NEAR(x.candidate_seconds, 0.2, 1e-12);
}

TEST(program_timing, pays_a_gain_that_the_processes_confirm) {
  auto x = pay_program(processes{0.0005}.samples(12, 0.030, 0.020, 0.010), true);
  EXPECT_TRUE(x.confirmed);
  EXPECT_GT(x.paid.low, 2.5);
  EXPECT_LE(x.paid.estimate, 3.0 + 1e-9);
  EXPECT_NEAR(x.inside.estimate, 3, 1e-9);
}

TEST(program_timing, pays_of_a_claim_what_the_processes_show) {
  auto x = pay_program(processes{0.0005}.samples(12, 0.030, 0.015, 0.0001), true);
  EXPECT_NEAR(x.paid.estimate, 2, 0.2);
  EXPECT_NEAR(x.inside.estimate, 300, 1);
}

TEST(program_timing, pays_nothing_for_a_claim_that_nothing_confirms) {
  unsigned paid = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    auto x = pay_program(processes{0.005, seed}.samples(12, 0.030, 0, 0.0001), true);
    paid += x.paid.low > 1;
  }
  EXPECT_LE(paid, 10u); // of a one-sided 2.5 % five
}

TEST(program_timing, says_that_a_gain_below_the_noise_is_not_confirmed) {
  auto x = pay_program(processes{0.02}.samples(12, 0.002, 0.001, 0.001), true);
  EXPECT_FALSE(x.confirmed);
  EXPECT_EQ(x.paid.estimate, 1);
  EXPECT_EQ(x.paid.low, 1);
  EXPECT_THAT(x.note, HasSubstr("not confirmed"));
}

TEST(program_timing, charges_a_process_that_is_slower_whatever_its_clock_says) {
  auto x = pay_program(processes{0.0005}.samples(12, 0.030, -0.030, 0.0001), true);
  EXPECT_LT(x.paid.high, 1);
  EXPECT_NEAR(x.paid.estimate, 0.5, 0.05);
}

TEST(program_timing, takes_a_program_at_its_word_that_it_is_slower) {
  auto x = pay_program(processes{0.02}.samples(12, 0.030, 0, 0.060), true);
  EXPECT_NEAR(x.paid.estimate, 0.5, 1e-9);
  EXPECT_TRUE(x.confirmed);
}

} // namespace program_timing_test
