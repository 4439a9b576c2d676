#include "messages/evidence.hpp"

#include <algorithm>
#include <string_view>

#include "messages/copied.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

namespace {

// The gate was reached and decided.
bool is_decided(wire::Verdict::Reader verdict, std::string_view gate) {
  for (auto x : verdict.getGates())
    if (gate == x.getName().cStr())
      return x.getStatus() == wire::GateStatus::PASS || x.getStatus() == wire::GateStatus::FAIL;
  return false;
}

bool is_there(wire::Content::Reader x) {
  if (x.isOfCompletion()) return x.getOfCompletion().getSize() > 0;
  return x.isArtifact() || x.getInline().size() > 0;
}

// What a process said of itself is half of what was compared outside of it.
bool is_own_word(wire::Verdict::Reader verdict) {
  for (auto x : verdict.getFindings())
    if (x.getRule() == "own_word") return true;
  return false;
}

bool is_critical(wire::Verdict::Reader verdict) {
  for (auto x : verdict.getFindings())
    if (x.getSeverity() == wire::Severity::CRITICAL) return true;
  return false;
}

void need(episode_use& use, bool holds, const char* reason) {
  if (holds) return;
  use.eligible = false;
  use.reasons.emplace_back(reason);
}

} // namespace

double evidence_score(const evidence_parts& x) {
  return .35 * x.correctness + .25 * x.performance + .20 * x.determinism + .10 * x.build +
         .05 * x.profile + .05 * x.lineage;
}

evidence_parts evidence_parts_of(wire::TurnRecord::Reader turn) {
  return evidence_parts_of(turn, turn.getVerdict());
}

evidence_parts evidence_parts_of(wire::TurnRecord::Reader turn, wire::Verdict::Reader verdict) {
  evidence_parts result;
  // A later turn's prompt is the feedback of the one before it.
  bool asked = turn.getTurn() > 0 ? turn.getParentTurnId().size() > 0 : turn.getPrompt().size() > 0;
  result.lineage = (0.0 + (turn.getTurnId().size() > 0) + asked +
                    (is_there(turn.getCompletion().getText()) || turn.getCalls().size() > 0) +
                    (is_there(turn.getCandidate()) && turn.getCandidateSha256().size() > 0)) /
                   4;
  if (!is_judged(verdict)) return result;
  auto build = turn.getFacts().getBuild();
  bool said = build.getCompiled() || build.getDiagnostics().size() > 0 || build.getLog().size() > 0;
  result.build = (build.getToolchain().size() > 0 ? 0.5 : 0) + (said ? 0.5 : 0);
  auto evaluation = turn.getFacts().getEvaluation();
  result.correctness = evaluation.getCases().size() > 0 && is_decided(verdict, "correctness");
  if (is_own_word(verdict)) result.correctness /= 2;
  result.determinism = is_decided(verdict, "determinism");
  result.performance = evaluation.getTiming().getMeasured();
  result.profile = turn.getFacts().getProfile().getAvailable();
  return result;
}

const char* to_string(turn_quality x) noexcept {
  switch (x) {
    case turn_quality::positive: return "positive";
    case turn_quality::near_miss: return "near_miss";
    case turn_quality::negative: return "negative";
    case turn_quality::unusable: break;
  }
  return "unusable";
}

turn_quality quality_of(wire::TurnRecord::Reader turn) {
  return quality_of(turn, turn.getVerdict());
}

turn_quality quality_of(wire::TurnRecord::Reader turn, wire::Verdict::Reader verdict) {
  if (!is_judged(verdict)) return turn_quality::unusable;
  if (verdict.getOutcome() == wire::Outcome::ACCEPTED)
    return is_unchanged(verdict) ? turn_quality::negative : turn_quality::positive;
  auto cases = turn.getFacts().getEvaluation().getCases();
  unsigned passed = 0;
  for (auto x : cases) passed += x.getPass();
  bool near = turn.getFacts().getBuild().getCompiled() && cases.size() > 0 &&
              2 * passed >= cases.size() && !is_critical(verdict);
  return near ? turn_quality::near_miss : turn_quality::negative;
}

void run_evidence::add(wire::TurnRecord::Reader turn) {
  if (turn.getVerdict().getOutcome() == wire::Outcome::OPEN) return;
  ++turns_;
  sum_ += evidence_score(evidence_parts_of(turn));
  near_misses_ += quality_of(turn) == turn_quality::near_miss;
}

std::optional<double> run_evidence::mean() const {
  return turns_ > 0 ? std::optional{sum_ / static_cast<double>(turns_)} : std::nullopt;
}

void evidence_summary::add(wire::TurnRecord::Reader turn, wire::Verdict::Reader verdict) {
  auto parts = evidence_parts_of(turn, verdict);
  turns_.push_back({turn.getTurn(), evidence_score(parts), parts, quality_of(turn, verdict),
                    is_paid(verdict), is_critical(verdict),
                    verdict.getOutcome() == wire::Outcome::OPEN});
}

episode_evidence evidence_summary::finish(std::optional<uint32_t> best_turn,
                                          std::optional<wire::EpisodeKind> kind) const {
  episode_evidence result;
  const seen* best = nullptr;
  for (const auto& x : turns_) {
    result.quality = std::max(result.quality, x.quality);
    if (x.turn == best_turn.value_or(turns_.back().turn)) best = &x;
  }
  if (best) result.score = best->score;
  auto all = [&](auto holds) { return std::all_of(turns_.begin(), turns_.end(), holds); };
  bool judged = best && best->quality != turn_quality::unusable;
  bool decided = judged && (best->parts.correctness > 0 || best->parts.build > 0);
  bool traced = all([](const seen& x) { return x.parts.lineage >= 0.75; });
  for (auto* use : {&result.benchmark, &result.sft, &result.rl}) {
    use->eligible = true;
    need(*use, best_turn.has_value(), "the episode has not ended");
    need(*use, !turns_.empty(), "it has no turn");
    need(*use, traced, "a turn lacks its prompt, its answer or its candidate");
  }
  need(result.benchmark, judged,
       best && best->open ? "no candidate was submitted"
                          : "our own faults kept its best turn from being judged");
  need(result.benchmark, decided, "nothing says whether its best turn is right");
  need(result.sft, kind == wire::EpisodeKind::USABLE_POSITIVE_SFT, "it is not usable_positive_sft");
  need(result.rl, all([](const seen& x) { return x.paid; }), "a turn has no reward");
  need(result.rl, all([](const seen& x) {
         return x.open || x.parts.build > 0 || x.quality == turn_quality::negative;
       }),
       "a turn has no verdict");
  return result;
}

} // namespace kernelmill
