#include <algorithm>

#include "storage/export/rows/row_values.hpp"
#include "storage/export/rows/rows.hpp"

// A pair compares two answers to one and the same prompt, so only first turns are compared, of a
// fork the first that are its own: later ones were asked after different attempts. Answers are
// ranked by their reward, and the best is held against the worst, the second best against the
// second worst, and so on to the middle; no answer is in two pairs.

namespace kernelmill::exports {

namespace {

struct answer {
  const episode* of;
  const turn* first;
};

bool same_prompt(const answer& a, const answer& b) {
  return std::equal(a.first->added.begin(), a.first->added.end(), b.first->added.begin(),
                    b.first->added.end(), [](const message& x, const message& y) {
                      return x.role == y.role && x.content == y.content;
                    });
}

/// Whether `a` is better than `b` beyond the noise of the clock.
bool beats(const turn& a, const turn& b) {
  if (!a.accepted() || *a.reward <= *b.reward || a.answer == b.answer) return false;
  if (!b.accepted()) return true;
  return a.faster && b.faster && a.faster->low > b.faster->high;
}

std::vector<answer> ranked(const group& from, const row_context& in) {
  std::vector<answer> result;
  for (const auto& e : from.episodes) {
    auto own = first_own(e);
    if (own == e.turns.size()) continue;
    const auto& first = e.turns[own];
    if (first.lost())
      in.leave_out("infrastructure_turns");
    else if (first.open())
      in.leave_out("open_turns");
    else if (!first.reward)
      in.leave_out("not_timed_turns");
    else if (!result.empty() && !same_prompt({&e, &first}, result.front()))
      in.leave_out("other_prompts");
    else
      result.push_back({&e, &first});
  }
  std::stable_sort(result.begin(), result.end(), [](const answer& a, const answer& b) {
    return *a.first->reward > *b.first->reward;
  });
  return result;
}

row side(const group& from, const answer& x) {
  return {{"id", name_of(from, *x.of, *x.first)},
          {"turn_id", x.first->id},
          {"model", x.first->model},
          {"outcome", outcome_word(x.first->outcome)},
          {"category", x.first->category},
          {"reward", number(x.first->reward)},
          {"speedup", speedup_json(x.first->faster)},
          {"code", x.first->code}};
}

row message_of(const answer& x) {
  return row::array({message_json(answer_of(*x.first))});
}

row row_of(const group& from, const answer& chosen, const answer& rejected) {
  row result = {{"prompt", messages_json(conversation(*chosen.of, first_own(*chosen.of)))},
                {"chosen", message_of(chosen)},
                {"rejected", message_of(rejected)},
                {"margin", *chosen.first->reward - *rejected.first->reward}};
  add_task(result, from);
  result["group"] = from.number;
  result["chosen_answer"] = side(from, chosen);
  result["rejected_answer"] = side(from, rejected);
  return result;
}

} // namespace

expected<void> preference_rows(const group& from, const row_context& in, const row_taker& to) {
  if (!from.ended) {
    in.leave_out("open_groups");
    return {};
  }
  auto answers = ranked(from, in);
  size_t pairs = 0;
  for (size_t i = 0, j = answers.size(); i + 1 < j; ++i) {
    --j;
    if (!beats(*answers[i].first, *answers[j].first)) continue;
    ++pairs;
    if (auto ok = to(row_of(from, answers[i], answers[j])); !ok) return ok;
  }
  if (pairs == 0) in.leave_out("groups_without_contrast");
  return {};
}

} // namespace kernelmill::exports
