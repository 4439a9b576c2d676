#pragma once

// INTERNAL to gpu/referee and gpu/torch: what rests on the noise of a clock or a counter is
// measured twice, in a fresh process and on other contents, before anybody is called a cheat.

#include "gpu/referee/evaluation.hpp"

namespace kernelmill {

/// Whether all that speaks against the candidate rests on timing, or something of ours failed
/// beside it. What is certain, a wrong result or a write out of bounds, needs no second look.
bool wants_second_look(const evaluation_record& x);

/// What two measurements say together. The same rule broken twice holds, with the second's
/// evidence; a rule that is not broken again leaves the slower one, if the second is sound.
/// Else a doubt stays, and the candidate is not timed.
evaluation_record confirmed(const evaluation_record& first, evaluation_record second);

/// The result where nobody can look again: not timed, and nobody is accused.
evaluation_record doubted(evaluation_record x);

/// Evaluates by `look`, which returns a record, once more where that is needed and `left` says that
/// there are as many seconds left as the first time took.
template <class Look, class Left>
evaluation_record with_second_look(Look look, Left left) {
  double before = left();
  auto first = look();
  if (!wants_second_look(first)) return first;
  double after = left();
  if (after < before - after) return doubted(std::move(first));
  return confirmed(first, look());
}

} // namespace kernelmill
