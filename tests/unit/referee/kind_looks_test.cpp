// Whose kinds are timed that were only to be checked: a device whose candidate is right and slow on
// some of them.

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/device/kind_looks.hpp"

using namespace kernelmill;
using testing::ElementsAre;

namespace {

constexpr double fixed = 0.15e-3;
constexpr double usual = 50e-6;

// Rows of a few calls, by kind; what is not named takes what the task's own contents take.
class fake_device {
public:
  std::map<size_t, double> call;      // seconds
  std::map<size_t, double> disturbed; // the first row of a kind is longer by so much
  std::optional<size_t> gateless;     // a kind of which no row can be timed
  std::optional<size_t> ends;         // a kind whose second row there is not
  std::vector<size_t> again;

  looked_row row(size_t kind) {
    if (kind == gateless) return std::nullopt;
    row_times x;
    x.calls = 7;
    x.done = fixed + x.calls * (call.count(kind) ? call[kind] : usual);
    if (disturbed.count(kind)) x.done += disturbed[kind];
    disturbed.erase(kind);
    return x;
  }

  std::optional<std::vector<size_t>> slow_kinds() {
    kind_looks looks;
    for (size_t kind = 7; kind < 13; ++kind) looks.saw(kind, row(kind));
    return looks.slow_kinds(
        usual, [](size_t, const row_times& x) { return call_seconds(x, fixed, 0); },
        [&](size_t kind) -> std::optional<looked_row> {
          again.push_back(kind);
          if (kind == ends) return std::nullopt;
          return row(kind);
        });
  }
};

TEST(kind_looks, whoever_is_as_fast_as_elsewhere_is_not_timed_there) {
  fake_device x;
  x.call[8] = 1.2 * usual;
  EXPECT_TRUE(x.slow_kinds()->empty());
  EXPECT_TRUE(x.again.empty());
}

TEST(kind_looks, who_is_slow_on_a_kind_that_is_only_checked_is_timed_on_it) {
  fake_device x;
  x.call[9] = 1.4 * usual;
  x.call[12] = 5 * usual;
  EXPECT_THAT(*x.slow_kinds(), ElementsAre(9, 12));
  EXPECT_THAT(x.again, ElementsAre(9, 12));
}

TEST(kind_looks, one_row_that_somebody_made_longer_is_no_doubt) {
  fake_device x;
  x.disturbed[10] = 1e-3;
  EXPECT_TRUE(x.slow_kinds()->empty());
  EXPECT_THAT(x.again, ElementsAre(10));
}

TEST(kind_looks, where_rows_cannot_be_timed_the_kind_is) {
  fake_device x;
  x.gateless = 11;
  EXPECT_THAT(*x.slow_kinds(), ElementsAre(11));
}

TEST(kind_looks, a_candidate_that_ends_meanwhile_ends_it) {
  fake_device x;
  x.call[9] = 2 * usual;
  x.ends = 9;
  EXPECT_FALSE(x.slow_kinds());
}

TEST(kind_looks, what_was_seen_by_another_clock_is_forgotten) {
  kind_looks looks;
  looks.saw(7, std::nullopt);
  looks.forget();
  auto never = [](size_t) -> std::optional<looked_row> { return std::nullopt; };
  EXPECT_TRUE(looks
                  .slow_kinds(
                      usual, [](size_t, const row_times&) { return 1.0; }, never)
                  ->empty());
}

} // namespace
