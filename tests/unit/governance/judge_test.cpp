#include "actors/governance/judge.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <capnp/schema.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/governance/reward.hpp"
#include "messages/judged.hpp"
#include "tests/unit/governance/facts.hpp"

namespace kernelmill::fixtures {
namespace judge_test {

using ::testing::HasSubstr;
using wire::GateStatus;
using wire::Outcome;

struct seen {
  Outcome outcome;
  std::string category, fault_category, fault_message;
  wire::FaultClass fault;
  double reward;
  std::map<std::string, GateStatus> gates;
  std::map<std::string, std::string> reasons;
  std::map<std::string, double> components;
};

seen read(const Message<wire::Verdict>& verdict) {
  auto view = verdict.open();
  seen x{view->getOutcome(),
         view->getCategory().cStr(),
         view->getFault().getCategory().cStr(),
         view->getFault().getMessage().cStr(),
         view->getFault().getClass(),
         view->getReward(),
         {},
         {},
         {}};
  for (auto gate : view->getGates()) {
    x.gates[gate.getName().cStr()] = gate.getStatus();
    x.reasons[gate.getName().cStr()] = gate.getReason().cStr();
  }
  for (auto part : view->getComponents())
    x.components[part.getName().cStr()] = part.getValue() * part.getWeight();
  return x;
}

template <class F>
seen judged(F&& fill, const governance_config& config = {}) {
  auto message = facts(fill);
  auto view = message.open();
  return read(judge(*view, config));
}

TEST(judge, a_fast_correct_kernel_passes_every_gate) {
  auto x = judged(fill_good);
  EXPECT_EQ(x.outcome, Outcome::ACCEPTED);
  EXPECT_EQ(x.category, "success");
  EXPECT_EQ(x.fault, wire::FaultClass::NONE);
  EXPECT_EQ(x.gates.size(), 8u);
  EXPECT_EQ(x.gates["memory_safety"], GateStatus::NOT_RUN);
  EXPECT_THAT(x.reasons["memory_safety"], HasSubstr("did not look at it"));
  x.gates.erase("memory_safety");
  for (auto& [name, status] : x.gates) EXPECT_EQ(status, GateStatus::PASS) << name;
  EXPECT_DOUBLE_EQ(x.reward, 0.3 + 2.9);
}

TEST(judge, a_completion_without_a_kernel_blocks_all_that_follows) {
  auto x = judged(fill_format_error);
  EXPECT_EQ(x.outcome, Outcome::REJECTED);
  EXPECT_EQ(x.category, "format_error");
  EXPECT_EQ(x.fault, wire::FaultClass::POLICY);
  EXPECT_EQ(x.gates["format"], GateStatus::FAIL);
  EXPECT_EQ(x.reasons["format"], "There is no kernel.");
  for (auto name : {"build", "correctness", "determinism", "integrity", "performance"}) {
    EXPECT_EQ(x.gates[name], GateStatus::BLOCKED) << name;
    EXPECT_EQ(x.reasons[name], "format failed") << name;
  }
  EXPECT_EQ(x.reward, 0);
}

TEST(judge, a_compile_error_is_the_candidates_fault) {
  auto x = judged(fill_compile_error);
  EXPECT_EQ(x.category, "compile_error");
  EXPECT_EQ(x.fault, wire::FaultClass::CANDIDATE);
  EXPECT_EQ(x.gates["format"], GateStatus::PASS);
  EXPECT_EQ(x.gates["build"], GateStatus::FAIL);
  EXPECT_EQ(x.reasons["correctness"], "build failed");
}

TEST(judge, wrong_results_fail_correctness_and_block_determinism) {
  auto x = judged([](auto out) { fill_wrong_result(out); });
  EXPECT_EQ(x.category, "wrong_result");
  EXPECT_EQ(x.gates["correctness"], GateStatus::FAIL);
  EXPECT_EQ(x.gates["determinism"], GateStatus::BLOCKED);
  EXPECT_EQ(x.gates["integrity"], GateStatus::PASS);
  EXPECT_EQ(x.gates["performance"], GateStatus::BLOCKED);
}

TEST(judge, wrong_results_without_a_fault_are_still_wrong) {
  auto x = judged([](auto out) {
    fill_wrong_result(out);
    out.getEvaluation().initFault();
  });
  EXPECT_EQ(x.category, "wrong_result");
  EXPECT_THAT(x.fault_message, HasSubstr("small"));
}

TEST(judge, the_evaluators_category_is_kept) {
  EXPECT_EQ(judged(fill_crash).category, "crashed");
}

TEST(judge, other_results_from_the_same_inputs) {
  auto x = judged([](auto out) {
    fill_good(out);
    out.getEvaluation().setDeterministic(false);
  });
  EXPECT_EQ(x.outcome, Outcome::REJECTED);
  EXPECT_EQ(x.category, "not_deterministic");
  EXPECT_EQ(x.reward, 0);
}

void fill_race(wire::TurnFacts::Builder out) {
  fill_good(out);
  auto found = out.getEvaluation().initMemory().initFindings(1)[0];
  found.setRule("memory_race");
  found.setSeverity(wire::Severity::WARNING);
  found.setEvidence("racecheck in sums: Race reported");
}

TEST(judge, a_race_in_a_right_kernel_rejects_it_unless_the_preset_only_tells) {
  for (const auto& name : reward_presets()) {
    governance_config config;
    config.preset = name;
    config.reward = *reward_preset(name);
    auto x = judged(fill_race, config);
    EXPECT_EQ(x.gates["memory_safety"], GateStatus::FAIL);
    EXPECT_THAT(x.reasons["memory_safety"], HasSubstr("memory_race: racecheck in sums"));
    bool rejects = name != "kevin";
    EXPECT_EQ(x.outcome, rejects ? Outcome::REJECTED : Outcome::ACCEPTED) << name;
    EXPECT_EQ(x.category, rejects ? "memory_safety" : "success");
    EXPECT_EQ(x.gates["performance"], rejects ? GateStatus::BLOCKED : GateStatus::PASS);
    EXPECT_EQ(x.components["correct"] > 0, !rejects);
    EXPECT_GE(x.reward, 0) << "no cheat";
  }
}

TEST(judge, what_a_sanitizer_is_not_sure_of_or_cannot_say_fails_no_gate) {
  governance_config strict;
  auto sure = judged(
      [](auto out) {
        fill_race(out);
        out.getEvaluation().getMemory().getFindings()[0].setSeverity(wire::Severity::INFO);
        out.getEvaluation().getMemory().setComplete(true);
      },
      strict);
  EXPECT_EQ(sure.gates["memory_safety"], GateStatus::PASS);
  auto without = judged(
      [](auto out) {
        fill_good(out);
        out.getEvaluation().initMemory().initProblems(1).set(0, "racecheck: it has no report");
      },
      strict);
  EXPECT_EQ(without.outcome, Outcome::ACCEPTED);
  EXPECT_EQ(without.gates["memory_safety"], GateStatus::NOT_RUN);
  EXPECT_EQ(without.reasons["memory_safety"], "racecheck: it has no report");
}

TEST(judge, a_critical_finding_takes_the_whole_reward) {
  governance_config config;
  config.reward = {.format = 1, .build = 1, .partial = 1, .integrity_penalty = 0.5};
  auto x = judged(
      [](auto out) {
        fill_good(out);
        add_finding(out, "late_write", wire::Severity::CRITICAL);
      },
      config);
  EXPECT_EQ(x.outcome, Outcome::REJECTED);
  EXPECT_EQ(x.category, "integrity");
  EXPECT_THAT(x.reasons["integrity"], HasSubstr("late_write: 512 bytes"));
  EXPECT_EQ(x.reward, -0.5);
}

TEST(judge, a_critical_finding_explains_a_crash) {
  auto x = judged([](auto out) {
    fill_crash(out);
    add_finding(out, "input_overwrite", wire::Severity::CRITICAL);
  });
  EXPECT_EQ(x.category, "integrity");
  EXPECT_EQ(x.gates["correctness"], GateStatus::FAIL);
  EXPECT_EQ(x.gates["integrity"], GateStatus::FAIL);
}

TEST(judge, a_warning_rejects_nothing) {
  auto x = judged([](auto out) {
    fill_good(out);
    add_finding(out, "background_work", wire::Severity::WARNING);
  });
  EXPECT_EQ(x.outcome, Outcome::ACCEPTED);
}

TEST(judge, a_copy_of_what_was_shown_is_correct_and_earns_no_speed) {
  auto copied = [](auto out) {
    fill_good(out);
    out.setUnchanged("the starter");
  };
  auto x = judged(copied);
  EXPECT_EQ(x.outcome, Outcome::ACCEPTED);
  EXPECT_EQ(x.category, "unchanged");
  EXPECT_EQ(x.gates["originality"], GateStatus::FAIL);
  EXPECT_DOUBLE_EQ(x.reward, 0.3);
  governance_config generous;
  generous.reward.unchanged_speed = 1;
  EXPECT_DOUBLE_EQ(judged(copied, generous).reward, 1.3);
  auto message = facts(copied);
  auto verdict = judge(*message.open(), {});
  ASSERT_EQ(verdict.open()->getFindings().size(), 1u);
  EXPECT_STREQ(verdict.open()->getFindings()[0].getRule().cStr(), "unchanged");
}

TEST(judge, a_copied_example_earns_nothing) {
  for (const char* preset : {"kevin", "staged", "sparse", "stage3"})
    for (const char* what : {"an example of the prompt", "what a tool found", "what was shown"}) {
      governance_config config;
      config.preset = preset;
      config.reward = *reward_preset(preset);
      config.reward.unchanged_speed = 1;
      auto x = judged(
          [&](auto out) {
            fill_good(out);
            out.setUnchanged(what);
          },
          config);
      EXPECT_EQ(x.outcome, Outcome::ACCEPTED);
      EXPECT_EQ(x.category, "unchanged");
      EXPECT_EQ(x.reward, 0) << preset << ", " << what;
    }
}

// Cases in order; the candidate passes those before `k` and then crashes, which ends the judgement,
// or is wrong, after which the visible ones still run.
TEST(judge, a_crash_pays_no_more_than_a_wrong_result_at_the_same_case) {
  constexpr unsigned all = 8;
  for (const char* preset : {"correctness", "staged"})
    for (unsigned k = 0; k < all; ++k)
      for (unsigned right_after = 0; right_after < all - k; ++right_after) {
        auto paid = [&](unsigned ran, bool crash) {
          governance_config config;
          config.preset = preset;
          config.reward = *reward_preset(preset);
          return judged(
                     [&](auto out) {
                       crash ? fill_crash(out) : fill_wrong_result(out);
                       out.getEvaluation().setCaseCount(all);
                       auto cases = out.getEvaluation().initCases(ran);
                       for (unsigned i = 0; i < ran; ++i) fill_case(cases[i], "c", false, i != k);
                     },
                     config)
              .reward;
        };
        EXPECT_LE(paid(k + 1, true), paid(k + 1 + right_after, false)) << preset << k;
        EXPECT_LE(paid(k, true), paid(k + 1, false)) << preset << k;
      }
}

TEST(judge, a_slow_correct_kernel_is_accepted_and_named_slower) {
  auto x = judged([](auto out) {
    fill_good(out);
    out.getEvaluation().getTiming().getSpeedup().setLow(0.8);
  });
  EXPECT_EQ(x.outcome, Outcome::ACCEPTED);
  EXPECT_EQ(x.category, "slower");
  EXPECT_EQ(x.gates["performance"], GateStatus::FAIL);
  EXPECT_DOUBLE_EQ(x.reward, 0.3 + 0.8);
}

TEST(judge, what_was_not_to_be_timed_has_no_speed_term) {
  auto x = judged([](auto out) {
    fill_good(out);
    out.getEvaluation().getTiming().setMeasured(false);
  });
  EXPECT_EQ(x.outcome, Outcome::ACCEPTED);
  EXPECT_EQ(x.category, "success");
  EXPECT_EQ(x.gates["performance"], GateStatus::NOT_RUN);
  EXPECT_DOUBLE_EQ(x.reward, 0.3);
}

void fill_not_timed(wire::TurnFacts::Builder out, wire::NotTimed by) {
  fill_good(out);
  auto timing = out.getEvaluation().initTiming();
  timing.setNotTimed(by);
  timing.setNote("not measured, because the machine is too busy");
}

TEST(judge, what_the_machine_could_not_time_is_not_paid_by_any_preset) {
  for (const auto& name : reward_presets()) {
    auto message = facts([](auto out) { fill_not_timed(out, wire::NotTimed::MACHINE); });
    auto view = message.open();
    auto verdict = judge(*view, {.preset = name, .reward = *reward_preset(name)});
    auto x = read(verdict);
    EXPECT_EQ(x.outcome, Outcome::ACCEPTED) << name;
    EXPECT_EQ(x.category, "not_timed") << name;
    EXPECT_EQ(x.gates["performance"], GateStatus::NOT_RUN) << name;
    EXPECT_THAT(x.reasons["performance"], HasSubstr("too busy")) << name;
    EXPECT_TRUE(x.components.empty()) << name;
    EXPECT_FALSE(is_paid(*verdict.open())) << name;
  }
}

// Else a kernel that is slow would make itself hard to time, and be rid of its comparison.
TEST(judge, what_could_not_be_timed_of_its_own_doing_is_paid_as_correct_alone) {
  auto message = facts([](auto out) { fill_not_timed(out, wire::NotTimed::CANDIDATE); });
  auto view = message.open();
  auto verdict = judge(*view, {});
  auto x = read(verdict);
  EXPECT_EQ(x.category, "not_timed");
  EXPECT_TRUE(is_paid(*verdict.open()));
  EXPECT_DOUBLE_EQ(x.reward, 0.3);
  EXPECT_EQ(x.components["speed"], 0);
}

TEST(judge, a_copy_is_called_one_also_where_it_was_not_timed) {
  auto x = judged([](auto out) {
    fill_not_timed(out, wire::NotTimed::MACHINE);
    out.setUnchanged("the task's baseline");
  });
  EXPECT_EQ(x.category, "unchanged");
  EXPECT_DOUBLE_EQ(x.reward, 0.3);
}

TEST(judge, a_speedup_that_is_no_number_pays_nothing_and_fails_its_gate) {
  auto x = judged([](auto out) {
    fill_good(out);
    out.getEvaluation().getTiming().getSpeedup().setLow(std::numeric_limits<double>::quiet_NaN());
  });
  EXPECT_EQ(x.gates["performance"], GateStatus::FAIL);
  EXPECT_DOUBLE_EQ(x.reward, 0.3);
}

TEST(judge, the_wrong_label_fails_a_diagnose_task) {
  auto x = judged([](auto out) {
    fill_good(out);
    out.setVerb("diagnose");
    out.getParsed().setDiagnosis("false_sharing");
    out.setDiagnosisRight(false);
  });
  EXPECT_EQ(x.outcome, Outcome::REJECTED);
  EXPECT_EQ(x.category, "diagnosis_wrong");
}

TEST(judge, a_diagnose_task_without_a_label_is_a_format_error) {
  auto x = judged([](auto out) {
    fill_good(out);
    out.setVerb("diagnose");
  });
  EXPECT_EQ(x.category, "format_error");
}

void fill_evidence(wire::TurnFacts::Builder out, bool said, bool measured) {
  fill_good(out);
  out.setVerb("diagnose");
  out.getParsed().setDiagnosis("race");
  auto checks = out.initEvidence(2);
  checks[0].setName("launches");
  checks[0].setRight(said);
  checks[1].setName("dram_bytes");
  checks[1].setHidden(true);
  checks[1].setRight(measured);
}

TEST(judge, evidence_of_a_diagnosis_must_be_right_too) {
  for (auto [said, measured] : {std::pair{false, true}, std::pair{true, false}}) {
    auto x = judged([&](auto out) { fill_evidence(out, said, measured); });
    EXPECT_EQ(x.outcome, Outcome::REJECTED);
    EXPECT_EQ(x.category, "evidence_wrong");
    EXPECT_EQ(x.gates["correctness"], GateStatus::FAIL);
  }
  auto x = judged([](auto out) { fill_evidence(out, true, true); });
  EXPECT_EQ(x.outcome, Outcome::ACCEPTED);
  x = judged([](auto out) {
    fill_evidence(out, false, false);
    out.setDiagnosisRight(false);
  });
  EXPECT_EQ(x.category, "diagnosis_wrong");
}

TEST(judge, a_reformulation_that_computes_as_before_is_none) {
  auto x = judged([](auto out) {
    fill_good(out);
    out.setVerb("reformulate");
    out.setSameStrategy("code: 97 % is in it");
  });
  EXPECT_EQ(x.outcome, Outcome::REJECTED);
  EXPECT_EQ(x.category, "not_reformulated");
  EXPECT_EQ(x.components["speed"], 0);
}

TEST(judge, our_fault_at_any_stage_is_never_a_reward) {
  using fault_of_stage = wire::Fault::Builder (*)(wire::TurnFacts::Builder);
  const fault_of_stage stages[] = {
      [](wire::TurnFacts::Builder out) { return out.initFault(); },
      [](wire::TurnFacts::Builder out) { return out.getBuild().initFault(); },
      [](wire::TurnFacts::Builder out) { return out.getEvaluation().initFault(); },
  };
  governance_config config;
  config.reward.integrity_penalty = 5;
  for (auto stage : stages)
    for (auto cls : {wire::FaultClass::INFRASTRUCTURE, wire::FaultClass::CONFIGURATION}) {
      auto x = judged(
          [&](auto out) {
            fill_good(out);
            add_finding(out, "late_write", wire::Severity::CRITICAL);
            auto fault = stage(out);
            fault.setClass(cls);
            fault.setCategory("peer_closed");
          },
          config);
      EXPECT_EQ(x.outcome, Outcome::INFRASTRUCTURE);
      EXPECT_EQ(x.category, "peer_closed");
      EXPECT_TRUE(std::isnan(x.reward)) << "0 is what a bad kernel earns";
      EXPECT_TRUE(x.components.empty());
      EXPECT_EQ(x.gates["correctness"], GateStatus::BLOCKED);
    }
}

TEST(judge, a_card_changes_no_byte_of_a_verdict) {
  for (const auto& name : reward_presets()) {
    governance_config config;
    config.preset = name;
    config.reward = *reward_preset(name);
    auto bytes = [&](const char* bottleneck) {
      auto message = facts([&](wire::TurnFacts::Builder out) {
        fill_good(out);
        if (*bottleneck == 0) return;
        out.initProfile().setAvailable(true);
        out.getProfile().getCard().setBottleneck(bottleneck);
        out.getProfile().getCard().setConfidence(0.9);
      });
      auto view = message.open();
      auto verdict = judge(*view, config);
      return std::string{verdict.data(), verdict.size()};
    };
    EXPECT_EQ(bytes("register_spills"), bytes("")) << name;
  }
}

TEST(judge, the_profilers_fault_leaves_the_verdict_alone) {
  auto x = judged([](auto out) {
    fill_good(out);
    out.initProfile().initFault().setClass(wire::FaultClass::INFRASTRUCTURE);
  });
  EXPECT_EQ(x.outcome, Outcome::ACCEPTED);
}

TEST(judge, facts_that_stop_without_a_reason_are_our_fault) {
  for (bool compiled : {false, true}) {
    auto x = judged([&](auto out) {
      fill_good(out);
      out.initEvaluation();
      if (!compiled) out.initBuild();
    });
    EXPECT_EQ(x.outcome, Outcome::INFRASTRUCTURE);
    EXPECT_EQ(x.category, "incomplete_facts");
  }
  EXPECT_EQ(judged([](auto) {}).outcome, Outcome::REJECTED); // no completion: a format error
}

TEST(judge, sol_says_where_there_is_no_roofline) {
  governance_config config{.preset = "sol", .reward = *reward_preset("sol")};
  auto blind = judged(fill_good, config);
  EXPECT_EQ(blind.reward, 0.3);
  EXPECT_THAT(blind.reasons["performance"], HasSubstr("no roofline below the baseline is known"));
  auto seeing = judged(
      [](wire::TurnFacts::Builder x) {
        fill_good(x);
        auto timing = x.getEvaluation().getTiming();
        timing.setReferenceMs(2.9);
        timing.setRooflineMs(0.5);
      },
      config);
  EXPECT_DOUBLE_EQ(seeing.reward, 0.3 + 1 / (1 + 0.5 / 2.4));
  EXPECT_THAT(seeing.reasons["performance"], testing::Not(HasSubstr("roofline")));
}

TEST(judge, optimize_v1_pays_by_gates) {
  governance_config config{.preset = "optimize_v1", .reward = *reward_preset("optimize_v1")};
  EXPECT_DOUBLE_EQ(judged(fill_good, config).reward, 1);
  auto with = [&](auto change) {
    return judged([&](wire::TurnFacts::Builder x) { fill_good(x), change(x); }, config).reward;
  };
  auto slow = [](auto x) { x.getEvaluation().getTiming().getSpeedup().setLow(0.5); };
  EXPECT_DOUBLE_EQ(with(slow), 0.35);
  EXPECT_DOUBLE_EQ(with([&](auto x) { slow(x), x.setVerb("debug"); }), 0.95);
  EXPECT_DOUBLE_EQ(with([](auto x) { x.getEvaluation().setDeterministic(false); }), 0.25);
  EXPECT_DOUBLE_EQ(with([](auto x) { x.setUnchanged("the starter"); }), 0.35);
  EXPECT_EQ(with([](auto x) { add_finding(x, "late_write", wire::Severity::CRITICAL); }), 0);
}

TEST(judge, components_add_up_to_the_reward) {
  for (const auto& name : reward_presets()) {
    governance_config config;
    config.preset = name;
    config.reward = *reward_preset(name);
    auto x = judged(fill_good, config);
    double sum = 0;
    for (auto& [part, value] : x.components) sum += value;
    EXPECT_DOUBLE_EQ(x.reward, sum) << name;
  }
}

void collect(capnp::StructSchema schema, std::set<std::string>& names) {
  std::string full = schema.getProto().getDisplayName().cStr();
  if (!names.insert(full.substr(full.find(':') + 1)).second) return;
  for (auto field : schema.getFields()) {
    auto type = field.getType();
    while (type.isList()) type = type.asList().getElementType();
    if (type.isStruct()) collect(type.asStruct(), names);
    if (type.isEnum()) names.insert(type.asEnum().getShortDisplayName().cStr());
  }
}

// The judge sees TurnFacts and nothing else, and nothing reachable from there is about readiness.
TEST(judge, readiness_cannot_enter_the_reward) {
  std::set<std::string> names;
  collect(capnp::Schema::from<wire::TurnFacts>(), names);
  EXPECT_TRUE(names.contains("TurnFacts"));
  EXPECT_TRUE(names.contains("FaultClass"));
  EXPECT_FALSE(names.contains("Readiness"));
  EXPECT_FALSE(names.contains("EpisodeKind"));
  EXPECT_FALSE(names.contains("EpisodeRecord"));
}

} // namespace judge_test
} // namespace kernelmill::fixtures
