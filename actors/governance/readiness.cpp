#include <fmt/format.h>

#include "actors/governance/judge.hpp"
#include "messages/copied.hpp"

namespace kernelmill {

namespace {

using evidence = readiness_evidence;
using wire::EpisodeKind;

bool holds_text(wire::Content::Reader x) {
  if (x.isOfCompletion()) return x.getOfCompletion().getSize() > 0;
  return x.isArtifact() ? x.getArtifact().getSha256().size() > 0 : x.getInline().size() > 0;
}

bool has_critical(wire::Verdict::Reader verdict) {
  for (auto finding : verdict.getFindings())
    if (finding.getSeverity() == wire::Severity::CRITICAL) return true;
  return false;
}

// How many gates in a row a turn passed: the measure of "got worse". Speed is no step: a correct
// kernel that became slower is still a correct kernel.
unsigned char passed_in_a_row(wire::Verdict::Reader verdict) {
  unsigned char count = 0;
  for (auto gate : verdict.getGates()) {
    if (gate.getStatus() != wire::GateStatus::PASS || count == 5) break;
    ++count;
  }
  return count;
}

evidence::cause cause_of(wire::TurnFacts::Reader facts) {
  auto build = facts.getBuild();
  if (!build.getCompiled()) {
    bool said = build.getDiagnostics().size() > 0 || build.getLog().size() > 0;
    return said ? evidence::cause::build : evidence::cause::none;
  }
  auto evaluation = facts.getEvaluation();
  for (auto c : evaluation.getCases())
    if (!c.getPass()) return evidence::cause::cases;
  return evaluation.getFault().getMessage().size() > 0 ? evidence::cause::fault
                                                       : evidence::cause::none;
}

bool judged(const evidence& x) {
  return x.outcome != wire::Outcome::INFRASTRUCTURE;
}

std::string why_it_failed(const evidence& x) {
  switch (x.shown) {
    case evidence::cause::build:
      return fmt::format("turn t{} failed to build, with the compiler's words", x.turn);
    case evidence::cause::cases: return fmt::format("turn t{} gave wrong results", x.turn);
    case evidence::cause::fault:
      return fmt::format("turn t{} was ended by a fault of its kernel, with the cause", x.turn);
    case evidence::cause::none: break;
  }
  return {};
}

// Names what is missing to reproduce the last turn; empty when nothing is.
std::vector<std::string> missing_provenance(std::span<const evidence> turns) {
  std::vector<std::string> missing;
  auto need = [&](bool there, const evidence& x, const char* what) {
    if (!there) missing.push_back(fmt::format("turn t{} lacks {}", x.turn, what));
  };
  uint32_t number = 0;
  for (const auto& x : turns) {
    need(x.turn == number++, x, "the turn before it");
    need(x.has_id, x, "its id");
    if (!judged(x)) continue;
    need(x.has_prompt, x, "its prompt");
    need(x.has_completion, x, "its completion");
  }
  const auto& last = turns.back();
  need(last.has_candidate, last, "its candidate");
  need(last.has_toolchain, last, "the toolchain");
  need(last.has_cases, last, "the cases of its evaluation");
  return missing;
}

readiness positive_or_benchmark(std::span<const evidence> turns) {
  const auto& last = turns.back();
  if (auto missing = missing_provenance(turns); !missing.empty())
    return {EpisodeKind::BENCHMARK_ONLY, std::move(missing)};
  if (last.copied)
    return {EpisodeKind::BENCHMARK_ONLY,
            {fmt::format("turn t{} hands back what the prompt showed", last.turn)}};
  readiness result{EpisodeKind::USABLE_POSITIVE_SFT,
                   {fmt::format("turn t{} is accepted and every step to it is kept", last.turn)}};
  for (const auto& x : turns)
    if (x.shown != evidence::cause::none)
      result.reasons.push_back(why_it_failed(x) + "; it was repaired");
  if (last.slower)
    result.reasons.emplace_back("the kernel is correct but not faster than the baseline");
  if (last.not_timed)
    result.reasons.emplace_back("the kernel is correct; how fast it is could not be measured");
  return result;
}

readiness negative(std::span<const evidence> turns) {
  const auto& last = turns.back();
  for (const auto& x : turns)
    if (x.gates > last.gates)
      return {EpisodeKind::USABLE_NEGATIVE_TRANSITION,
              {fmt::format("it got worse: turn t{} passed {} gates, turn t{} only {}", x.turn,
                           x.gates, last.turn, last.gates)}};
  readiness result{EpisodeKind::USABLE_NEGATIVE_DEBUG, {}};
  for (const auto& x : turns)
    if (x.shown != evidence::cause::none) result.reasons.push_back(why_it_failed(x));
  if (result.reasons.empty())
    return {EpisodeKind::UNUSABLE, {"no turn shows both a kernel and why it failed"}};
  return result;
}

} // namespace

evidence evidence_of(wire::TurnRecord::Reader turn) {
  return evidence_of(turn, turn.getVerdict());
}

evidence evidence_of(wire::TurnRecord::Reader turn, wire::Verdict::Reader verdict) {
  evidence x;
  x.turn = turn.getTurn();
  x.outcome = verdict.getOutcome();
  x.has_id = turn.getTurnId().size() > 0;
  if (!judged(x)) return x;
  x.gates = passed_in_a_row(verdict);
  x.critical = has_critical(verdict);
  // A later turn's prompt is the feedback of the one before it, which is stored there.
  x.has_prompt = turn.getTurn() > 0 || turn.getPrompt().size() > 0;
  x.has_completion = holds_text(turn.getCompletion().getText()) || turn.getCalls().size() > 0;
  x.has_candidate = holds_text(turn.getCandidate()) && turn.getCandidateSha256().size() > 0;
  x.has_toolchain = turn.getFacts().getBuild().getToolchain().size() > 0;
  x.has_cases = turn.getFacts().getEvaluation().getCases().size() > 0;
  bool accepted = x.outcome == wire::Outcome::ACCEPTED;
  x.slower = accepted && verdict.getCategory() == "slower";
  x.not_timed = accepted && verdict.getCategory() == "not_timed";
  x.copied = accepted && is_unchanged(verdict);
  if (!accepted && x.has_candidate) x.shown = cause_of(turn.getFacts());
  return x;
}

readiness readiness_of_episode(std::span<const evidence> turns) {
  size_t end = turns.size();
  while (end > 0 && !judged(turns[end - 1])) --end;
  if (end == 0)
    return {
        EpisodeKind::UNUSABLE,
        {turns.empty() ? "it has no turns" : "our own faults kept every turn from being judged"}};
  auto until_last = turns.first(end);
  for (const auto& x : until_last)
    if (x.critical)
      return {EpisodeKind::USABLE_NEGATIVE_TRANSITION,
              {fmt::format("turn t{} was rejected for an integrity violation", x.turn)}};
  auto result = until_last.back().outcome == wire::Outcome::ACCEPTED
                    ? positive_or_benchmark(until_last)
                    : negative(until_last);
  if (end < turns.size())
    result.reasons.emplace_back("it ends with a turn that our own fault kept from being judged");
  return result;
}

namespace {

void require(run_readiness::use& use, bool holds, std::string reason) {
  if (holds) return;
  use.eligible = false;
  use.reasons.push_back(std::move(reason));
}

} // namespace

run_readiness readiness_of_run(const run_counts& x) {
  run_readiness result;
  const double lost = x.episodes > 0 ? static_cast<double>(x.infrastructure) / x.episodes : 0;
  auto lost_text =
      fmt::format("{} of {} episodes were lost to our own faults", x.infrastructure, x.episodes);
  for (auto* use : {&result.benchmark_reporting, &result.sft_collection, &result.rl_reward_trace}) {
    use->eligible = true;
    require(*use, x.episodes > 0 && x.turns > 0, "there is no turn");
    require(*use, x.sandbox_complete,
            "a layer of the sandbox was missing: `kernelmill doctor`, where it ran, names it");
  }
  // A score over the tasks that happened to work is not the score of the run.
  require(result.benchmark_reporting, x.complete, "not every planned episode ended");
  require(result.benchmark_reporting, x.infrastructure == 0, lost_text);
  require(result.sft_collection, x.usable_positive_sft > 0, "no episode is usable_positive_sft");
  const double holes =
      x.episodes > 0 ? static_cast<double>(x.infrastructure + x.unpaid) / x.episodes : 0;
  auto unpaid_text = fmt::format("{} of {} episodes have a turn that the machine could not time",
                                 x.unpaid, x.episodes);
  // Advantages compare siblings: groups with many holes mislead a trainer.
  require(result.rl_reward_trace, x.complete, "not every planned episode ended");
  require(result.rl_reward_trace, lost <= 0.1, lost_text + ", more than one in ten");
  require(result.rl_reward_trace, lost > 0.1 || holes <= 0.1,
          unpaid_text + ": with those that were lost, more than one in ten");
  if (result.rl_reward_trace.eligible && x.infrastructure > 0)
    result.rl_reward_trace.reasons.push_back(lost_text + " and are left out");
  if (result.rl_reward_trace.eligible && x.unpaid > 0)
    result.rl_reward_trace.reasons.push_back(unpaid_text + " and are left out");
  for (const auto& alarm : x.alarms) result.rl_reward_trace.reasons.push_back(alarm);
  return result;
}

} // namespace kernelmill
