#include "launch/judging/replaying.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "actors/episode/completion_parser.hpp"
#include "messages/base/digest.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"

namespace kernelmill {

namespace {

std::string text_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

replay_check check(const char* level, std::string what, bool equal, std::string detail) {
  return {level, std::move(what), equal ? sameness::equal : sameness::different,
          equal ? std::string{} : std::move(detail)};
}

replay_check check_texts(const char* level, const char* what, const std::string& before,
                         const std::string& now) {
  return check(level, what, before == now, fmt::format("was \"{}\", is \"{}\"", before, now));
}

bool equal_numbers(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

std::string case_text(wire::CaseResult::Reader x) {
  return fmt::format("{} [{}] {}: error {:.9g}, bound {:.9g}, {} bad", x.getName().cStr(),
                     x.getShape().cStr(), x.getPass() ? "pass" : "fail", x.getMaxError(),
                     x.getBound(), x.getBadCount());
}

// What was drawn from the seed, and what the candidate made of it.
bool same_case(wire::CaseResult::Reader a, wire::CaseResult::Reader b) {
  return a.getName() == b.getName() && a.getShape() == b.getShape() &&
         a.getHidden() == b.getHidden() && a.getDistribution() == b.getDistribution() &&
         a.getPass() == b.getPass() && equal_numbers(a.getMaxError(), b.getMaxError()) &&
         equal_numbers(a.getBound(), b.getBound()) && a.getBadCount() == b.getBadCount() &&
         a.getFirstBad() == b.getFirstBad();
}

replay_check compare_cases(wire::EvaluateResult::Reader before, wire::EvaluateResult::Reader now) {
  auto xs = before.getCases();
  auto ys = now.getCases();
  if (xs.size() != ys.size())
    return {"correctness", "cases", sameness::different,
            fmt::format("{} cases ran, were {}", ys.size(), xs.size())};
  unsigned different = 0;
  std::string first;
  for (unsigned i = 0; i < xs.size(); ++i) {
    if (same_case(xs[i], ys[i])) continue;
    if (different++ == 0) first = "was " + case_text(xs[i]) + "; is " + case_text(ys[i]);
  }
  return check("correctness", "cases", different == 0,
               fmt::format("{} of {} differ; {}", different, xs.size(), first));
}

std::string rules_of(wire::EvaluateResult::Reader x) {
  std::vector<std::string> rules;
  for (auto finding : x.getFindings())
    if (finding.getSeverity() == wire::Severity::CRITICAL)
      rules.push_back(text_of(finding.getRule()));
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  return fmt::format("{}", fmt::join(rules, " "));
}

replay_check compare_times(wire::Timing::Reader before, wire::Timing::Reader now) {
  if (!before.getMeasured() || !now.getMeasured())
    return {"timing", "speedup", sameness::not_compared,
            !before.getMeasured() ? "the run did not time it" : "it was not timed now"};
  auto a = before.getSpeedup(), b = now.getSpeedup();
  bool overlap = a.getLow() <= b.getHigh() && b.getLow() <= a.getHigh();
  return check("timing", "speedup", overlap,
               fmt::format("was {:.3g} [{:.3g}, {:.3g}], is {:.3g} [{:.3g}, {:.3g}]",
                           a.getEstimate(), a.getLow(), a.getHigh(), b.getEstimate(), b.getLow(),
                           b.getHigh()));
}

std::string_view untimed(std::string_view category) {
  return category == "slower" || category == "not_timed" ? "success" : category;
}

} // namespace

expected<stored_texts> read_texts(wire::TurnRecord::Reader turn, const artifact_store& artifacts) {
  stored_texts result;
  auto completion = artifacts.text(turn.getCompletion().getText());
  KM_TRY(completion);
  auto candidate = artifacts.candidate(turn);
  KM_TRY(candidate);
  result.completion = std::move(*completion);
  result.candidate = std::move(*candidate);
  auto where = turn.getEpisode();
  episode_id id{text_of(where.getRun()), text_of(where.getTask()), where.getGroup(),
                where.getMember()};
  auto& to = result.checks;
  to.push_back(
      check_texts("record", "turn id", text_of(turn.getTurnId()), turn_id(id, turn.getTurn())));
  if (turn.getCalls().size() > 0) { // its calls wrote the candidate, not its text
    if (result.candidate.empty()) return result;
    to.push_back(check_texts("record", "candidate", text_of(turn.getCandidateSha256()),
                             sha256_hex(result.candidate)));
    result.usable = to.back().said == sameness::equal;
    return result;
  }
  auto parsed = parse_completion(result.completion);
  bool ok = turn.getFacts().getParsed().getOk();
  to.push_back(check("record", "format", parsed.ok == ok,
                     ok ? "no kernel can be taken from the completion now"
                        : "a kernel can be taken from the completion now"));
  if (!ok || !parsed.ok) return result;
  to.push_back(check_texts("record", "candidate", text_of(turn.getCandidateSha256()),
                           sha256_hex(result.candidate)));
  to.push_back(check("record", "build input", parsed.kernel == result.candidate,
                     "the completion holds other code than the candidate"));
  result.usable = to[2].said == sameness::equal && to[3].said == sameness::equal;
  return result;
}

Message<wire::TurnFacts> facts_again(wire::TurnRecord::Reader turn, wire::BuildResult::Reader built,
                                     const Message<wire::EvaluateResult>& evaluated,
                                     const std::optional<error>& fault) {
  capnp::MallocMessageBuilder builder;
  builder.setRoot(turn.getFacts());
  auto facts = builder.getRoot<wire::TurnFacts>();
  facts.setBuild(built);
  facts.setEvaluation(*evaluated.open());
  // What was wrong with the answer is wrong with it now; the rest is found again.
  if (facts.getFault().getClass() != wire::FaultClass::POLICY) facts.disownFault();
  if (fault) set_fault(facts.initFault(), *fault);
  return Message<wire::TurnFacts>{builder};
}

std::vector<replay_check> compare_builds(wire::BuildResult::Reader before,
                                         wire::BuildResult::Reader now) {
  std::vector<replay_check> result;
  result.push_back(check_texts("build", "toolchain", text_of(before.getToolchain()),
                               text_of(now.getToolchain())));
  result.push_back(check("build", "compiles", before.getCompiled() == now.getCompiled(),
                         before.getCompiled() ? "it did; it does not now: " + text_of(now.getLog())
                                              : "it did not; it does now"));
  auto a = text_of(before.getLibrarySha256()), b = text_of(now.getLibrarySha256());
  if (a.empty() || b.empty())
    result.push_back({"build", "library", sameness::not_compared, "there is no library"});
  else
    result.push_back(check_texts("build", "library", a, b));
  return result;
}

std::vector<replay_check> compare_evaluations(wire::EvaluateResult::Reader before,
                                              wire::EvaluateResult::Reader now) {
  auto word = [](bool x) { return std::string{x ? "yes" : "no"}; };
  std::vector<replay_check> result;
  if (before.getSeed().size() == 0)
    result.push_back({"correctness", "seed", sameness::not_compared, "the run kept none"});
  else
    result.push_back(check_texts("correctness", "seed", seed_hex(before), seed_hex(now)));
  result.push_back(compare_cases(before, now));
  result.push_back(
      check_texts("correctness", "correct", word(before.getCorrect()), word(now.getCorrect())));
  result.push_back(check_texts("correctness", "deterministic", word(before.getDeterministic()),
                               word(now.getDeterministic())));
  result.push_back(
      check_texts("correctness", "critical violations", rules_of(before), rules_of(now)));
  result.push_back(compare_times(before.getTiming(), now.getTiming()));
  return result;
}

// A replay runs no sanitizers.
static bool is_not_repeated(wire::Gate::Reader before, wire::Gate::Reader now) {
  return now.getStatus() == wire::GateStatus::NOT_RUN && before.getName() == "memory_safety" &&
         before.getStatus() == wire::GateStatus::PASS;
}

bool verdict_stands(wire::Verdict::Reader before, wire::Verdict::Reader now) {
  if (before.getOutcome() != now.getOutcome() ||
      untimed(before.getCategory().cStr()) != untimed(now.getCategory().cStr()))
    return false;
  auto xs = before.getGates(), ys = now.getGates();
  if (xs.size() != ys.size()) return false;
  for (unsigned i = 0; i < xs.size(); ++i)
    if (xs[i].getName() != "performance" && xs[i].getStatus() != ys[i].getStatus() &&
        !is_not_repeated(xs[i], ys[i]))
      return false;
  return true;
}

std::string seed_hex(wire::EvaluateResult::Reader x) {
  std::string result;
  for (auto byte : x.getSeed()) result += fmt::format("{:02x}", byte);
  return result;
}

} // namespace kernelmill
