#pragma once

// What several readers ask of an evaluation or a verdict.

#include <optional>
#include <string_view>
#include <type_traits>

#include "messages/evaluate.capnp.h"
#include "messages/verdict.capnp.h"

namespace kernelmill {

/// Whether a turn's reward means anything: not where the infrastructure failed, and not where the
/// machine could not time a right kernel.
inline bool is_paid(wire::Verdict::Reader x) {
  return x.getOutcome() != wire::Outcome::INFRASTRUCTURE && !x.getUnpaid();
}

/// Whether a turn was judged: neither lost to the infrastructure nor one that asked for no verdict.
inline bool is_judged(wire::Verdict::Reader x) {
  return x.getOutcome() == wire::Outcome::ACCEPTED || x.getOutcome() == wire::Outcome::REJECTED;
}

/// The speedup against a problem's model as it is, where another baseline is paid: an estimate
/// without an interval. Nothing where the paid one is that, or where it was not estimated.
inline std::optional<double> eager_speedup(wire::Timing::Reader x) {
  if (!x.getMeasured() || !(x.getEagerMs() > 0) || !(x.getCandidateMs() > 0)) return std::nullopt;
  return x.getEagerMs() / x.getCandidateMs();
}

/// Whether an answer says more of the machine than of what was asked: a fault of the
/// infrastructure, or a right candidate that this machine could not time. `Reader` is of a result
/// with a `fault`.
template <class Reader>
bool is_to_be_repeated(Reader x) {
  if constexpr (std::is_same_v<Reader, wire::EvaluateResult::Reader>)
    if (x.getTiming().getNotTimed() == wire::NotTimed::MACHINE) return true;
  return x.getFault().getClass() == wire::FaultClass::INFRASTRUCTURE;
}

/// Whether a fault says that a referee ended, hung or lost its Python. A candidate that could bring
/// that about would get no reward, so it is tried again only after a control.
inline bool is_loss_of_referee(std::string_view category) {
  return category == "referee_timeout" || category == "referee_lost" || category == "python_failed";
}

/// Whether an evaluation leaves nothing for which a judge would reject the candidate. What comes
/// after an evaluation, such as a profile, is for such candidates alone.
inline bool is_acceptable(wire::EvaluateResult::Reader x) {
  for (auto found : x.getFindings())
    if (found.getSeverity() == wire::Severity::CRITICAL) return false;
  return x.getFault().getClass() == wire::FaultClass::NONE && x.getCorrect() &&
         x.getDeterministic();
}

} // namespace kernelmill
