// One completion has the same requests and the same facts in a run and in `eval`, `judge` and
// `serve`.

#include <gtest/gtest.h>

#include "actors/episode/episode_records.hpp"
#include "launch/judging/candidate_judging.hpp"
#include "launch/machine/timing_policy.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill {
namespace turn_facts_test {

constexpr const char* starter = "extern \"C\" void solve(float* x) { x[0] = 1; }";

std::shared_ptr<task> diagnose_task(contract_kind contract = contract_kind::native) {
  auto x = std::make_shared<task>();
  x->id = "native/race";
  x->directory = "/tasks/native/race";
  x->digest = "d1";
  x->verb = "diagnose";
  x->operator_family = "reduction";
  x->contract = contract;
  x->starter = starter;
  x->diagnoses = {"race", "overflow"};
  x->diagnosis = "race";
  return x;
}

std::string completion_of(const std::string& kernel, const std::string& diagnosis) {
  auto text = "<KERNEL>\n```cpp\n" + kernel + "\n```\n</KERNEL>";
  return diagnosis.empty() ? text : text + "<DIAGNOSIS>" + diagnosis + "</DIAGNOSIS>";
}

template <class T>
std::string bytes(const Message<T>& x) {
  return {x.data(), x.size()};
}

/// One completion on both ways.
class both_ways : public testing::Test {
protected:
  void take(const task_ptr& what, const std::string& completion) {
    offered_.what = what;
    offered_.parsed = parse_completion(completion);
    offered_.sha256 = sha256_hex(offered_.parsed.kernel);
    auto settings = std::make_shared<episode_settings>();
    settings->max_turns = 1;
    settings->timing = timing_policy({}, "device");
    state_.settings = settings;
    state_.where = {std::make_shared<const std::string>("first"), what, 0, 0, 0};
    prompts_ = std::make_shared<prompt_cache>();
    state_.first_prompt = prompts_->open(*what, {});
    state_.current = std::make_unique<episode_state::turn_scratch>();
    state_.current->parsed = offered_.parsed;
    state_.current->candidate_sha256 = offered_.sha256;
    built_ = build<wire::BuildResult>([](wire::BuildResult::Builder x) {
      x.setCompiled(true);
      x.setLibraryPath("/cache/a.so");
      x.setLibrarySha256("b2");
    });
    state_.current->build = built_;
  }

  void evaluate() {
    evaluated_ = build<wire::EvaluateResult>([](wire::EvaluateResult::Builder x) {
      x.setCorrect(true);
      x.setDeterministic(true);
    });
    state_.current->evaluation = evaluated_;
  }

  Message<wire::TurnFacts> of_run() const { return turn_facts(state_); }
  Message<wire::TurnFacts> of_eval() const {
    return facts_of(offered_, built_, evaluated_, std::nullopt);
  }

  offered_candidate offered_;
  episode_state state_{nullptr};
  std::shared_ptr<prompt_cache> prompts_;
  Message<wire::BuildResult> built_;
  Message<wire::EvaluateResult> evaluated_;
};

TEST_F(both_ways, a_completion_without_a_diagnosis_has_the_same_facts) {
  take(diagnose_task(), completion_of("int a;", ""));
  evaluate();
  EXPECT_EQ(bytes(of_run()), bytes(of_eval()));
  EXPECT_FALSE(of_run().open()->getDiagnosisRight());
  EXPECT_FALSE(of_eval().open()->getDiagnosisRight());
}

TEST_F(both_ways, a_label_is_right_or_wrong_alike) {
  for (const auto* label : {"race", "overflow"}) {
    take(diagnose_task(), completion_of("int a;", label));
    evaluate();
    EXPECT_EQ(bytes(of_run()), bytes(of_eval())) << label;
    EXPECT_EQ(of_eval().open()->getDiagnosisRight(), std::string{"race"} == label);
  }
}

TEST_F(both_ways, a_copy_is_one_after_an_evaluation_alone) {
  take(diagnose_task(), completion_of(starter, "race"));
  EXPECT_EQ(bytes(of_run()), bytes(of_eval()));
  EXPECT_FALSE(of_eval().open()->hasUnchanged() && of_eval().open()->getUnchanged().size() > 0);
  evaluate();
  EXPECT_EQ(bytes(of_run()), bytes(of_eval()));
  EXPECT_EQ(of_run().open()->getUnchanged(), "the starter");
}

TEST_F(both_ways, what_cannot_be_read_has_the_same_facts) {
  take(diagnose_task(), "no kernel here");
  built_ = {};
  state_.current->build = {};
  EXPECT_EQ(bytes(of_run()), bytes(of_eval()));
  EXPECT_GT(of_run().open()->getParsed().getProblems().size(), 0u);
}

TEST_F(both_ways, the_requests_are_the_same) {
  for (auto contract : {contract_kind::native, contract_kind::torch}) {
    take(diagnose_task(contract), completion_of("int a;", "race"));
    auto asked = build_request(candidate_of(state_), build_deadline(state_));
    EXPECT_EQ(bytes(asked), bytes(build_request_of(offered_)));
    EXPECT_EQ(asked.open()->hasTaskDigest(), contract == contract_kind::torch);
    auto evaluation = evaluate_request_of({}, offered_, *built_.open());
    ASSERT_TRUE(evaluation) << evaluation.error().message;
    EXPECT_EQ(bytes(evaluation_request(state_)), bytes(*evaluation));
  }
}

TEST_F(both_ways, reports_of_tools_stand_beside_the_facts) {
  take(diagnose_task(), completion_of("int a;", "race"));
  auto& current = *state_.current;
  current.evaluation = build<wire::EvaluateResult>([](wire::EvaluateResult::Builder x) {
    auto reports = x.initMemory().initReports(2);
    reports[0].setName("memcheck.txt");
    reports[0].setText("nothing");
    reports[1].setName("ncu.csv");
    reports[1].setText(std::string(5000, 'x'));
  });
  current.profile = build<wire::ProfileResult>(
      [](wire::ProfileResult::Builder x) { x.initReports(1)[0].setName("counters.csv"); });
  current.facts = turn_facts(state_);
  EXPECT_EQ(current.facts.open()->getEvaluation().getMemory().getReports().size(), 0u);
  EXPECT_EQ(current.facts.open()->getProfile().getReports().size(), 0u);
  auto kept_by = [&](wire::Outcome outcome) {
    auto verdict = build<wire::Verdict>([&](wire::Verdict::Builder x) { x.setOutcome(outcome); });
    artifact_batch artifacts;
    auto record = build<wire::TurnRecord>(
        [&](wire::TurnRecord::Builder x) { set_reports(x, current, *verdict.open(), artifacts); });
    std::string result;
    auto view = record.open();
    for (auto x : view->getReports())
      result += std::string{x.getTool()} + " " + x.getName().cStr() + ";";
    if (!result.empty()) {
      auto stored = artifacts.message();
      EXPECT_EQ(stored.open()->getArtifacts().size(), 1u); // what is long
    }
    return result;
  };
  EXPECT_EQ(kept_by(wire::Outcome::ACCEPTED), ""); // the turn is not of the share
  current.plan.reports = true;
  EXPECT_EQ(kept_by(wire::Outcome::REJECTED), "");
  EXPECT_EQ(kept_by(wire::Outcome::ACCEPTED),
            "sanitizer memcheck.txt;profiler ncu.csv;profiler counters.csv;");
}

TEST(keeps_reports, is_a_share_of_turns_and_the_same_each_time) {
  int kept = 0;
  for (int i = 0; i < 1000; ++i) {
    auto id = sha256_hex(std::to_string(i));
    EXPECT_FALSE(keeps_reports(id, 0));
    EXPECT_TRUE(keeps_reports(id, 1));
    EXPECT_EQ(keeps_reports(id, 0.25), keeps_reports(id, 0.25));
    kept += keeps_reports(id, 0.25);
  }
  EXPECT_NEAR(kept, 250, 60);
}

} // namespace turn_facts_test
} // namespace kernelmill
