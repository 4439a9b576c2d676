#include "actors/episode/tools/shaping.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelmill {
namespace shaping_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

shaped_call call(const char* tool, const char* input = "", const char* output = "") {
  shaped_call x;
  x.what = find_tool(tool);
  x.steps = 1;
  x.input = input;
  x.output = output;
  return x;
}

shaped_call bench(const char* of, bool right, double low = 0, double high = 0) {
  auto x = call("bench", of, of);
  x.measured = x.what;
  x.built = true;
  x.accepted = right;
  x.low = low;
  x.high = high;
  return x;
}

shaped_call compare(const char* left, const char* right) {
  auto x = call("compare");
  x.left = left;
  x.right = right;
  return x;
}

shaped_call submit(const char* what) {
  auto x = call("submit", what, what);
  x.measured = x.what;
  x.built = true;
  return x;
}

/// A verdict by the gates that a submission passes.
Message<wire::Verdict> verdict(wire::Outcome outcome, std::vector<const char*> gates) {
  return build<wire::Verdict>([&](wire::Verdict::Builder x) {
    x.setOutcome(outcome);
    auto list = x.initGates(static_cast<unsigned>(gates.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setName(gates[i]);
      list[i].setStatus(wire::GateStatus::PASS);
    }
  });
}

class episode {
public:
  std::map<std::string, double> turn(std::vector<shaped_call> calls,
                                     const Message<wire::Verdict>* submitted = nullptr) {
    std::map<std::string, double> result;
    auto take = [&](const wire::Verdict::Reader* x) {
      for (const auto& part : ledger_.take("optimize", calls, x))
        result[part.name] = part.value * part.weight;
    };
    if (submitted == nullptr) return take(nullptr), result;
    auto view = submitted->open();
    auto reader = *view;
    take(&reader);
    return result;
  }

private:
  shaping_ledger ledger_{shaping_kind::optimize_v1};
};

TEST(shaping, without_a_kind_no_call_earns_or_costs) {
  shaping_ledger ledger;
  std::vector<shaped_call> calls{bench("c0", true, 1, 2), compare("c0", "c1")};
  EXPECT_THAT(ledger.take("optimize", calls, nullptr), IsEmpty());
}

TEST(shaping, each_call_costs_and_all_of_an_episode_no_more_than_0_2) {
  episode x;
  EXPECT_THAT(x.turn({call("inspect"), call("write_candidate"), bench("c0", true)}),
              ElementsAre(Pair("tool_cost", -0.08)));
  auto tested = call("test_patch", "c0", "c1");
  tested.measured = find_tool("eval");
  tested.built = tested.accepted = true;
  EXPECT_THAT(x.turn({tested}), ElementsAre(Pair("tool_cost", -0.09)));
  EXPECT_THAT(x.turn({call("run"), call("run")}), ElementsAre(Pair("tool_cost", -0.03)));
  EXPECT_THAT(x.turn({call("run")}), IsEmpty()) << "it has reached its limit";
}

TEST(shaping, a_refused_call_costs_where_it_took_a_step) {
  auto refused = call("patch_candidate", "c0", "c0");
  refused.refused = true;
  shaped_call unknown;
  unknown.refused = true;
  unknown.steps = 1;
  EXPECT_THAT(episode{}.turn({refused, unknown}), ElementsAre(Pair("tool_cost", -0.05)));
  refused.steps = 0;
  EXPECT_THAT(episode{}.turn({refused}), IsEmpty());
}

TEST(shaping, a_comparison_that_shows_something_earns_once) {
  episode x;
  EXPECT_THAT(x.turn({call("write_candidate", "", "c0"), compare("c0", "c1")}),
              ElementsAre(Pair("tool_cost", -0.05)));
  EXPECT_THAT(x.turn({bench("c0", true, 1, 1.1), call("patch_candidate", "c0", "c1"),
                      bench("c1", true, 1.2, 1.3), compare("c1", "c0")}),
              ElementsAre(Pair("best_known_supersede", 0.01), Pair("compare_use", 0.02),
                          Pair("tool_cost", -0.11)));
  EXPECT_THAT(x.turn({compare("c0", "c1"), compare("c0", "c0")}),
              ElementsAre(Pair("tool_cost", -0.02)))
      << "whichever is named first";
}

TEST(shaping, regressions_cost_up_to_0_08_and_going_back_earns_something) {
  episode x;
  (void)x.turn({bench("c0", true, 2, 2.1), bench("c1", false), bench("c2", true, 1, 1.1),
                bench("c3", false)});
  EXPECT_EQ(x.turn({compare("c0", "c1")})["candidate_regression"], -0.06);
  EXPECT_EQ(x.turn({compare("c2", "c0")})["candidate_regression"], -0.02);
  EXPECT_THAT(x.turn({compare("c0", "c3")}),
              testing::Not(testing::Contains(testing::Key("candidate_regression"))));
  EXPECT_EQ(x.turn({call("revert", "c3", "c0")})["revert_recovery"], 0.01);
  EXPECT_EQ(x.turn({call("revert", "c3", "c0")}).count("revert_recovery"), 0u);
}

TEST(shaping, recoveries_earn_up_to_0_03) {
  episode x;
  (void)x.turn({bench("c0", false), bench("c1", true), bench("c2", true), bench("c3", true)});
  EXPECT_EQ(x.turn({compare("c0", "c1")})["best_known_supersede"], 0.015);
  EXPECT_EQ(x.turn({compare("c0", "c2")})["best_known_supersede"], 0.015);
  EXPECT_EQ(x.turn({compare("c0", "c3")}).count("best_known_supersede"), 0u);
}

TEST(shaping, a_promoted_candidate_closes_well) {
  auto good = verdict(wire::Outcome::ACCEPTED, {"correctness", "performance", "originality"});
  episode x;
  EXPECT_THAT(x.turn({call("promote", "c1", "c1")}), ElementsAre(Pair("tool_cost", -0.02)));
  EXPECT_THAT(x.turn({submit("c1")}, &good), ElementsAre(Pair("promote_closeout", 0.02)));
  episode other;
  (void)other.turn({call("promote", "c1", "c1")});
  EXPECT_THAT(other.turn({submit("c0")}, &good), IsEmpty());
}

TEST(shaping, a_near_miss_needs_a_patch_a_comparison_and_a_right_result) {
  auto slow = verdict(wire::Outcome::ACCEPTED, {"correctness", "integrity", "originality"});
  auto cheat = verdict(wire::Outcome::REJECTED, {"correctness", "originality"});
  auto wrong = verdict(wire::Outcome::REJECTED, {});
  std::vector<shaped_call> work{bench("c0", true, 1, 2), call("patch_candidate", "c0", "c1"),
                                bench("c1", true, 1, 2), compare("c0", "c1")};
  for (const auto* end : {&slow, &cheat, &wrong}) {
    episode x;
    (void)x.turn(work);
    EXPECT_EQ(x.turn({submit("c1")}, end).count("near_miss_progress"), end == &slow ? 1u : 0u);
  }
  EXPECT_THAT(episode{}.turn({submit("c1")}, &slow), IsEmpty());
}

TEST(shaping, every_tool_has_a_cost_that_fits_an_episode) {
  for (const auto& x : all_tools()) {
    EXPECT_GE(cost_of(x.kind), 0) << x.name;
    EXPECT_LE(cost_of(x.kind), 50) << x.name;
  }
}

} // namespace shaping_test
} // namespace kernelmill
