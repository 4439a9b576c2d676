#include "storage/export/rows/filter.hpp"

#include <algorithm>

namespace kernelmill::exports {

namespace {

bool holds(const std::set<std::string>& wanted, const std::string& word) {
  return wanted.empty() || wanted.contains(word);
}

// By the reward; a right answer without a time stands before a wrong one only.
bool is_better(const turn& a, const turn& b) {
  if (a.reward && b.reward) return *a.reward > *b.reward;
  if (a.accepted() != b.accepted()) return a.accepted();
  return a.reward.has_value() && !b.reward;
}

bool takes_calls(const filter& f, const turn& x) {
  return (f.kinds.empty() || has_transition(x, f.kinds)) && (!f.patch_bearing || bears_patch(x));
}

} // namespace

bool takes(const filter& f, const std::string& split, const std::string& verb) {
  return holds(f.splits, split) && holds(f.verbs, verb);
}

bool takes(const filter& f, const episode& x) {
  return holds(f.governance, x.governance);
}

bool takes(const filter& f, const turn& x) {
  if (x.lost() || x.shared || !holds(f.transitions, x.transition)) return false;
  if (!takes_calls(f, x)) return false;
  if (f.accepted && !x.accepted()) return false;
  return !f.min_reward || (x.reward && *x.reward >= *f.min_reward);
}

bool takes_episode(const filter& all, const episode& x) {
  if (!takes(all, x)) return false;
  auto f = all;
  if (f.by_calls()) {
    bool any = std::any_of(x.turns.begin(), x.turns.end(),
                           [&](const turn& y) { return !y.shared && takes_calls(f, y); });
    if (!any) return false;
    f.kinds.clear();
    f.patch_bearing = false;
  }
  if (f.transitions.empty() && !f.min_reward && !f.accepted) return true;
  if (x.best_turn >= x.turns.size()) return false;
  const auto* best = &x.turns[x.best_turn];
  if (best->shared) // a fork is asked for what is its own
    for (size_t i = first_own(x); i < x.turns.size(); ++i)
      if (best->shared || is_better(x.turns[i], *best)) best = &x.turns[i];
  return takes(f, *best);
}

std::vector<size_t> turns_taken(const filter& f, const episode& x) {
  std::vector<size_t> result;
  for (size_t i = 0; i < x.turns.size(); ++i) {
    if (!takes(f, x.turns[i])) continue;
    if (!f.best_of_episode || result.empty())
      result.push_back(i);
    else if (is_better(x.turns[i], x.turns[result.front()]))
      result.front() = i;
  }
  return result;
}

filter with_defaults_of_sft(filter f) {
  if (!f.governance.empty()) return f;
  f.governance = {"usable_positive_sft"};
  f.accepted = true;
  return f;
}

} // namespace kernelmill::exports
