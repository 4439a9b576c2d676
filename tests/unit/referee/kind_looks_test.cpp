// Whose kinds are timed that were only to be checked: a device whose candidate is right and slow on
// some of them.

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/referee/kind_looks.hpp"

using namespace kernelmill;
using testing::ElementsAre;

namespace kind_looks_test {

constexpr double usual = 50e-6;

// Looks by kind; what is not named takes what the task's own contents take.
class fake_device {
public:
  std::map<size_t, double> call;      // seconds
  std::map<size_t, double> disturbed; // the first look at a kind takes so much longer
  std::optional<size_t> gateless;     // a kind of which no row can be timed
  std::optional<size_t> ends;         // a kind whose second row there is not
  std::vector<size_t> again;

  kind_look look(size_t kind) {
    if (kind == gateless) return {kind, {}};
    double seconds = call.count(kind) ? call[kind] : usual;
    if (disturbed.count(kind)) seconds += disturbed[kind];
    disturbed.erase(kind);
    return {kind, seconds};
  }

  std::optional<std::vector<size_t>> found() {
    std::vector<kind_look> looks;
    for (size_t kind = 7; kind < 13; ++kind) looks.push_back(look(kind));
    return slow_kinds(looks, usual, [&](size_t kind) -> std::optional<kind_look> {
      again.push_back(kind);
      if (kind == ends) return std::nullopt;
      return look(kind);
    });
  }
};

TEST(kind_looks, a_candidate_as_fast_as_elsewhere_is_not_timed_there) {
  fake_device x;
  x.call[8] = 1.2 * usual;
  EXPECT_TRUE(x.found()->empty());
  EXPECT_TRUE(x.again.empty());
}

TEST(kind_looks, a_candidate_that_is_slow_on_a_kind_that_is_only_checked_is_timed_on_it) {
  fake_device x;
  x.call[9] = 1.4 * usual;
  x.call[12] = 5 * usual;
  EXPECT_THAT(*x.found(), ElementsAre(9, 12));
  EXPECT_THAT(x.again, ElementsAre(9, 12));
}

TEST(kind_looks, one_row_that_others_made_longer_is_no_doubt) {
  fake_device x;
  x.disturbed[10] = 0.1e-3;
  EXPECT_TRUE(x.found()->empty());
  EXPECT_THAT(x.again, ElementsAre(10));
}

TEST(kind_looks, where_rows_cannot_be_timed_the_kind_is) {
  fake_device x;
  x.gateless = 11;
  EXPECT_THAT(*x.found(), ElementsAre(11));
}

TEST(kind_looks, a_candidate_that_ends_meanwhile_ends_it) {
  fake_device x;
  x.call[9] = 2 * usual;
  x.ends = 9;
  EXPECT_FALSE(x.found());
}

} // namespace kind_looks_test
