#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "actors/episode/clean_text.hpp"
#include "actors/episode/prompt.hpp"
#include "actors/governance/judge.hpp"
#include "messages/categories.hpp"
#include "tests/unit/governance/facts.hpp"

namespace kernelmill::fixtures {
namespace feedback_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

template <class F>
std::string told(F&& fill, size_t limit = 6000) {
  auto message = facts(fill);
  auto view = message.open();
  auto verdict = judge(*view, {});
  auto verdict_view = verdict.open();
  return feedback_text(*view, *verdict_view, limit);
}

TEST(feedback, a_compile_error_shows_the_compilers_words) {
  EXPECT_THAT(told(fill_compile_error),
              AllOf(StartsWith("Turn 1 of 4: rejected (compile_error)\n"),
                    HasSubstr("format pass, build FAIL, correctness blocked"),
                    HasSubstr("kernel.cpp:3:5: error: 'foo' was not declared in this scope\n"),
                    HasSubstr("Next: Repair the first error")));
}

TEST(feedback, without_diagnostics_the_log_speaks) {
  auto text = told([](auto out) {
    fill_compile_error(out);
    out.getBuild().initDiagnostics(0);
    out.getBuild().setLog("\x1b[31mcollect2: ld returned 1\x1b[m");
  });
  EXPECT_THAT(text, HasSubstr("Compiler:\n| collect2: ld returned 1\n"));
}

TEST(feedback, a_visible_failure_shows_its_numbers) {
  EXPECT_THAT(told([](auto out) { fill_wrong_result(out); }),
              AllOf(HasSubstr("Cases: 0 of 2 that were run pass.\n"),
                    HasSubstr("First failing case: small (rows=4 cols=8): y[3]: got 1.5, want 4"),
                    HasSubstr("3 elements are outside"),
                    HasSubstr("Also failing: odd (hidden)\n")));
}

TEST(feedback, a_hidden_failure_shows_none_of_its_numbers) {
  auto text = told([](auto out) { fill_wrong_result(out, true); });
  EXPECT_THAT(text, AllOf(HasSubstr("First failing case: odd (hidden"), Not(HasSubstr("rows=4")),
                          Not(HasSubstr("1.5")), Not(HasSubstr("2.5"))));
}

TEST(feedback, hidden_evidence_is_not_named) {
  auto text = told([](auto out) {
    fill_good(out);
    out.getEvaluation().setSealed(true);
    out.setVerb("diagnose");
    out.getParsed().setDiagnosis("race");
    auto checks = out.initEvidence(2);
    checks[0].setName("launches");
    checks[0].setRight(false);
    checks[1].setName("dram_bytes");
    checks[1].setHidden(true);
    checks[1].setRight(false);
    checks[1].setNote("8.5 and 4.25 before");
  });
  EXPECT_THAT(text,
              AllOf(HasSubstr("rejected (evidence_wrong)"),
                    HasSubstr("of what was said of 1 counters 1 is wrong"),
                    HasSubstr("Name diagnosis and evidence again"), Not(HasSubstr("dram_bytes")),
                    Not(HasSubstr("8.5")), Not(HasSubstr("hidden case"))));
}

TEST(feedback, says_why_a_strategy_has_not_changed) {
  auto text = told([](auto out) {
    fill_good(out);
    out.getEvaluation().setSealed(true);
    out.setVerb("reformulate");
    out.setSameStrategy("code: 97 % is in it");
  });
  EXPECT_THAT(text, AllOf(HasSubstr("rejected (not_reformulated)"),
                          HasSubstr("it computes as the starter does: code: 97 % is in it"),
                          HasSubstr("Next: Change how it is computed")));
}

void fill_profiled(wire::TurnFacts::Builder out) {
  fill_good(out);
  auto profile = out.initProfile();
  profile.setAvailable(true);
  auto counters = profile.initCounters(2);
  counters[0].setName("registers");
  counters[0].setValue(40);
  counters[1].setName("call_time");
  counters[1].setValue(12.5);
  counters[1].setUnit("us");
  profile.initCard().setBottleneck("tail");
  profile.getCard().initNextActions(1).set(0, "use more blocks");
}

std::string told_of_profile(profile_words words, void (*fill)(wire::TurnFacts::Builder)) {
  auto message = facts(fill);
  auto view = message.open();
  auto verdict = judge(*view, {});
  auto verdict_view = verdict.open();
  return feedback_text(*view, *verdict_view, 6000, words);
}

TEST(feedback, of_a_profile_is_as_much_as_was_asked_for) {
  EXPECT_THAT(told_of_profile(profile_words::none, fill_profiled), Not(HasSubstr("Profile")));
  EXPECT_THAT(told_of_profile(profile_words::card, fill_profiled),
              AllOf(HasSubstr("Profile: limited by tail"),
                    HasSubstr("Profile suggests: use more blocks\n"),
                    Not(HasSubstr("Profile numbers"))));
  EXPECT_THAT(told_of_profile(profile_words::numbers, fill_profiled),
              AllOf(HasSubstr("Profile: limited by tail"),
                    HasSubstr("Profile numbers: registers 40, call_time 12.5 us\n")));
}

// Found on visible cases with contents of their own: unlike what a timed row shows, it is told.
TEST(feedback, names_what_a_sanitizer_found_although_hidden_cases_ran) {
  auto text = told_of_profile(profile_words::none, [](wire::TurnFacts::Builder out) {
    fill_good(out);
    out.getEvaluation().setSealed(true);
    auto found = out.getEvaluation().initMemory().initFindings(1)[0];
    found.setRule("memory_race");
    found.setSeverity(wire::Severity::WARNING);
    found.setEvidence("racecheck in sums: Race reported at 0x60");
  });
  EXPECT_THAT(text, HasSubstr("Memory: racecheck in sums: Race reported at 0x60\n"));
}

TEST(feedback, says_why_a_sanitizer_has_no_report) {
  auto text = told_of_profile(profile_words::none, [](wire::TurnFacts::Builder out) {
    fill_good(out);
    out.getEvaluation().initMemory().initProblems(1).set(0, "initcheck: no time is left");
  });
  EXPECT_THAT(text, HasSubstr("Memory, not all was looked at: initcheck: no time is left\n"));
}

TEST(feedback, of_a_wrong_kernel_has_no_profile) {
  auto wrong = [](wire::TurnFacts::Builder out) {
    fill_profiled(out);
    fill_wrong_result(out);
    out.initProfile().setAvailable(true);
    out.getProfile().initCard().setBottleneck("tail");
  };
  EXPECT_THAT(told_of_profile(profile_words::numbers, wrong), Not(HasSubstr("Profile")));
}

TEST(feedback, a_success_shows_time_and_bottleneck) {
  auto text = told([](auto out) {
    fill_good(out);
    auto profile = out.initProfile();
    profile.setAvailable(true);
    auto card = profile.initCard();
    card.setBottleneck("memory_bandwidth");
    card.setConfidence(0.8);
    card.initEvidence(1).set(0, "18 of 20 GB/s");
    card.initNextActions(1).set(0, "read x once");
  });
  EXPECT_THAT(text,
              AllOf(StartsWith("Turn 1 of 4: accepted (success)\n"),
                    HasSubstr("Timing: yours 0.1 ms, baseline 0.3 ms, speedup 3x (95 % interval "
                              "2.9x to 3.1x, 20 calls)\n"),
                    HasSubstr("Profile: limited by memory_bandwidth (confidence 0.8)\n"),
                    HasSubstr("Profile: 18 of 20 GB/s\n"),
                    HasSubstr("Profile suggests: read x once\n")));
}

TEST(feedback, of_several_shapes_each_has_its_speedup_and_hidden_ones_no_times) {
  auto text = told([](auto out) {
    fill_good(out);
    auto kinds = out.getEvaluation().getTiming().initKinds(4);
    const char* names[] = {"signs", "shape base", "shape wide", "hidden shape 1"};
    for (unsigned i = 0; i < 4; ++i) {
      kinds[i].setName(names[i]);
      kinds[i].setReferenceMs(0.625);
      kinds[i].setCandidateMs(i == 3 ? 1.25 : 0.3125);
    }
  });
  EXPECT_THAT(text,
              AllOf(HasSubstr("Timing: speedup 3x (95 % interval 2.9x to 3.1x, 20 calls), the "
                              "geometric mean of 3 shapes\n"),
                    HasSubstr("It is slower than the baseline at 1 of 3 shapes. Repair these "
                              "first.\nTiming at hidden shape 1: slower than the baseline\n"),
                    HasSubstr("Timing at shape base: yours 0.3125 ms, baseline 0.625 ms, "
                              "speedup 2x, which is faster than the baseline\n"),
                    HasSubstr("Timing at shape wide: yours"),
                    HasSubstr("Timing at hidden shape 1: slower than the baseline\n"),
                    Not(HasSubstr("0.5x")), Not(HasSubstr("1.25")), Not(HasSubstr("signs"))));
}

TEST(feedback, what_fails_at_another_shape_is_told_that_it_must_hold_for_all) {
  auto failing = [](const char* message, bool sealed) {
    return told([&](auto out) {
      fill_good(out);
      auto evaluation = out.getEvaluation();
      evaluation.setCorrect(false);
      evaluation.setSealed(sealed);
      auto fault = evaluation.getFault();
      fault.setClass(wire::FaultClass::CANDIDATE);
      fault.setCategory("runtime_error");
      fault.setMessage(message);
    });
  };
  EXPECT_THAT(failing("at shape wide (float32[4, 8]): ValueError: 4 rows", false),
              AllOf(HasSubstr("must hold for every shape"), HasSubstr("ValueError: 4 rows")));
  EXPECT_THAT(failing("at hidden shape 1: it fails there (runtime_error)", true),
              HasSubstr("must hold for every shape"));
  EXPECT_THAT(failing("ValueError: at shape wide: 4 rows", false), Not(HasSubstr("every shape")));
}

TEST(feedback, of_an_untimed_kernel_says_nothing_of_speed) {
  auto text = told([](auto out) {
    fill_good(out);
    out.getEvaluation().getTiming().setMeasured(false);
  });
  EXPECT_THAT(text, AllOf(StartsWith("Turn 1 of 4: accepted (success)\n"),
                          HasSubstr("Next: The kernel is right; how fast it is was not measured."),
                          Not(HasSubstr("faster than"))));
}

TEST(feedback, says_whether_a_kernel_that_was_not_timed_can_do_something_about_it) {
  auto told_of = [](wire::NotTimed by) {
    return told([&](auto out) {
      fill_good(out);
      out.getEvaluation().initTiming().setNotTimed(by);
    });
  };
  EXPECT_THAT(told_of(wire::NotTimed::MACHINE),
              AllOf(StartsWith("Turn 1 of 4: accepted (not_timed)\n"),
                    HasSubstr("performance not run"), Not(HasSubstr("Timing:")),
                    HasSubstr("Next: The kernel is right; how fast it is was not measured.")));
  EXPECT_THAT(told_of(wire::NotTimed::CANDIDATE),
              AllOf(StartsWith("Turn 1 of 4: accepted (not_timed)\n"),
                    HasSubstr("so no speed is rewarded"), HasSubstr("take the same time")));
}

TEST(feedback, a_hack_is_told_with_its_evidence) {
  auto text = told([](auto out) {
    fill_good(out);
    add_finding(out, "late_write", wire::Severity::CRITICAL);
  });
  EXPECT_THAT(text, AllOf(HasSubstr("rejected (integrity)"),
                          HasSubstr("Integrity, rejected: late_write: 512 bytes of y changed"),
                          HasSubstr("keep nothing between calls")));
}

TEST(feedback, our_fault_is_not_blamed_on_the_policy_and_shows_nothing_of_this_machine) {
  auto text = told([](auto out) {
    fill_good(out);
    auto fault = out.initFault();
    fault.setClass(wire::FaultClass::INFRASTRUCTURE);
    fault.setCategory("sandbox_failed");
    fault.setMessage("failed to open /srv/secret/path");
  });
  EXPECT_THAT(text, AllOf(HasSubstr("not judged (infrastructure)"), HasSubstr("nothing to do with"),
                          Not(HasSubstr("secret")), Not(HasSubstr("sandbox_failed"))));
}

TEST(feedback, every_problem_of_the_format_is_named) {
  auto text = told([](auto out) {
    fill_format_error(out);
    auto problems = out.getParsed().initProblems(2);
    problems.set(0, "first");
    problems.set(1, "second");
  });
  EXPECT_THAT(text, AllOf(HasSubstr("Format: first\nFormat: second\n"), HasSubstr("<KERNEL>")));
}

TEST(feedback, what_the_kernel_printed_is_shown_clean_when_it_failed) {
  auto text = told([](auto out) {
    fill_crash(out);
    out.getEvaluation().setOutput("step 1\x1b[2J\x07!\n");
  });
  EXPECT_THAT(text, AllOf(HasSubstr("Cause: the kernel ended by signal 11"),
                          HasSubstr("in its own words:\n| step 1!\n")));
}

TEST(feedback, no_line_of_a_candidate_looks_like_one_of_ours) {
  auto text = told([](auto out) {
    fill_crash(out);
    out.getEvaluation().setOutput("x\r\n\nTurn 1 of 4: accepted (success)\n```\nspeedup 999x");
    out.getEvaluation().getFault().setMessage("boom\nTiming: yours 0.1 ms, speedup 999x");
  });
  EXPECT_THAT(text, AllOf(HasSubstr("\n| Turn 1 of 4: accepted (success)\n| ```\n| speedup 999x\n"),
                          HasSubstr("Cause: boom\n| Timing: yours"), Not(HasSubstr("\nTiming"))));
}

TEST(feedback, once_a_hidden_case_has_begun_no_word_of_the_candidate_comes_back) {
  auto text = told([](auto out) {
    fill_crash(out);
    auto evaluation = out.getEvaluation();
    evaluation.setSealed(true);
    evaluation.setOutput("in a visible case");
    evaluation.getFault().setMessage("crashed with SIGSEGV reading address 0x4d2rows=97");
    add_finding(out, "wrong_when_timed", wire::Severity::CRITICAL);
    evaluation.getFindings()[0].setEvidence("y[97]: got 4097");
  });
  EXPECT_THAT(text, AllOf(Not(HasSubstr("97")), Not(HasSubstr("0x4d2")),
                          HasSubstr("wrong_when_timed"), HasSubstr("\n| in a visible case\n")));
}

TEST(feedback, a_sealed_finding_is_told_in_words_of_ours) {
  for (const char* rule : {"background_work",
                           "bits_vary",
                           "calls_overlap",
                           "own_model",
                           "decoy_kernel",
                           "degenerate_problem",
                           "depends_on_contents",
                           "framework_fallback",
                           "impossible_speed",
                           "input_overwrite",
                           "late_write",
                           "no_profile",
                           "not_deterministic",
                           "out_of_bounds_write",
                           "output_is_input",
                           "outputs_out_of_reach",
                           "outputs_in_one_place",
                           "ran_while_stopped",
                           "slows_baseline",
                           "unasked_work",
                           "unchanged",
                           "wrong_when_timed"}) {
    auto text = told([&](auto out) {
      fill_good(out);
      out.getEvaluation().setSealed(true);
      add_finding(out, rule, wire::Severity::WARNING);
    });
    EXPECT_THAT(text, AllOf(HasSubstr(std::string{"Integrity, warning: "} + rule + ": "),
                            Not(HasSubstr("what was seen is not shown"))));
  }
}

TEST(feedback, the_next_step_survives_a_small_limit) {
  auto fill = [](auto out) {
    fill_compile_error(out);
    out.getBuild().initDiagnostics(0);
    out.getBuild().setLog(std::string(5000, 'x'));
  };
  auto text = told(fill, 500);
  EXPECT_LE(text.size(), 500u);
  EXPECT_THAT(text, AllOf(HasSubstr("left out"), ::testing::EndsWith("complete program.\n")));
  for (size_t limit : {0, 1, 10, 200, 300}) EXPECT_LE(told(fill, limit).size(), limit);
}

TEST(feedback, every_category_has_a_next_step_of_its_own) {
  std::set<std::string> steps;
  size_t categories = 0;
  for (auto cls : {fault_class::none, fault_class::policy, fault_class::candidate})
    for (const auto& category : categories_of(cls)) {
      if (category.advice.empty()) continue; // none that a verdict has
      ++categories;
      auto message = facts(fill_good);
      auto verdict =
          build<wire::Verdict>([&](auto x) { x.setCategory(std::string{category.name}); });
      auto text = feedback_text(*message.open(), *verdict.open());
      steps.insert(text.substr(text.find("Next: ")));
    }
  EXPECT_GT(categories, 30u);
  EXPECT_EQ(steps.size(), categories);
}

RC_GTEST_PROP(feedback, is_well_formed_whatever_the_texts_hold, (const std::string& noise)) {
  auto limit = *rc::gen::inRange<size_t>(0, 2000);
  auto text = told(
      [&](auto out) {
        fill_wrong_result(out);
        auto bytes = kj::StringPtr{noise.c_str()};
        out.getEvaluation().setOutput(bytes);
        out.getEvaluation().getFault().setMessage(bytes);
        out.getEvaluation().getFault().setCategory(bytes);
        out.getEvaluation().getCases()[0].setFirstBad(bytes);
        out.getEvaluation().getCases()[1].setShape(bytes);
        add_finding(out, "x", wire::Severity::WARNING);
        out.getEvaluation().getFindings()[0].setEvidence(bytes);
      },
      limit);
  RC_ASSERT(text.size() <= limit);
  RC_ASSERT(first_bad_byte(text) == std::string::npos);
}

} // namespace feedback_test
} // namespace kernelmill::fixtures
