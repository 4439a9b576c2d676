#include "actors/search/searched_episode.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include "actors/episode/clean_text.hpp"
#include "actors/episode/completion_parser.hpp"
#include "actors/search/search_niche.hpp"
#include "messages/base/text.hpp"
#include "messages/copied.hpp"

namespace kernelmill::search {

namespace {

constexpr size_t max_idea = 160;

std::string inline_text(wire::Content::Reader x) {
  if (!x.isInline()) return {};
  auto text = x.getInline();
  return {text.begin(), text.size()};
}

std::string first_line(const std::string& thought) {
  std::string_view rest{thought};
  std::string result;
  append_clean(result, trimmed(next_line(rest)).substr(0, max_idea), max_idea);
  return result;
}

search_cost cost_of(wire::TurnRecord::Reader x) {
  auto completion = x.getCompletion();
  auto facts = x.getFacts();
  search_cost result{1, completion.getPromptTokens(), completion.getCompletionTokens(),
                     facts.getEvaluation().getSeconds() + facts.getProfile().getSeconds()};
  for (auto call : x.getCalls()) result.slot_seconds += call.getGpuSeconds();
  return result;
}

// A copy of what the prompt showed is nothing new, however right it is.
node node_of(wire::TurnRecord::Reader x) {
  node result;
  auto verdict = x.getVerdict();
  if (verdict.getOutcome() == wire::Outcome::INFRASTRUCTURE) return result;
  result.sha256 = x.getCandidateSha256().cStr();
  bool right = verdict.getOutcome() == wire::Outcome::ACCEPTED && !result.sha256.empty() &&
               !is_unchanged(verdict);
  result.state = right ? node_state::verified : node_state::failed;
  auto timing = x.getFacts().getEvaluation().getTiming();
  auto speedup = timing.getSpeedup();
  bool sound =
      std::isfinite(speedup.getLow()) && std::isfinite(speedup.getHigh()) && speedup.getLow() > 0;
  if (!right || !timing.getMeasured() || !sound) return result;
  result.low = speedup.getLow();
  result.estimate = speedup.getEstimate();
  result.high = speedup.getHigh();
  return result;
}

bool is_better(const node& x, const node& than) {
  if (than.state != node_state::verified) return true; // the last one, at least
  return x.state == node_state::verified && x.low > than.low;
}

} // namespace

search_cost& search_cost::operator+=(const search_cost& x) {
  turns += x.turns;
  prompt_tokens += x.prompt_tokens;
  completion_tokens += x.completion_tokens;
  slot_seconds += x.slot_seconds;
  return *this;
}

double search_budget::dollars_of(const search_cost& x) const {
  return (static_cast<double>(x.prompt_tokens) * prompt_price +
          static_cast<double>(x.completion_tokens) * completion_price) /
         1e6;
}

bool search_budget::allows(const search_cost& used) const {
  if (slot_seconds > 0 && used.slot_seconds >= slot_seconds) return false;
  if (tokens > 0 && used.prompt_tokens + used.completion_tokens >= tokens) return false;
  return dollars <= 0 || dollars_of(used) < dollars;
}

searched_episode searched(wire::EpisodeHistory::Reader history, std::string name,
                          const report_form& form) {
  searched_episode result;
  result.name = std::move(name);
  for (auto turn : history.getTurns()) {
    if (turn.getTurn() == 0 && turn.getParents().size() > 0)
      result.parent = turn.getParents()[0].cStr();
    result.cost += cost_of(turn);
    auto made = node_of(turn);
    if (made.state == node_state::lost || !is_better(made, result.what)) continue;
    result.what = std::move(made);
    result.turn = turn.getTurn();
    result.source = inline_text(turn.getCandidate());
    result.language = turn.getFacts().getParsed().getLanguage().cStr();
    result.idea = first_line(parse_completion(inline_text(turn.getCompletion().getText())).thought);
    result.category = turn.getVerdict().getCategory().cStr();
    result.report = verdict_text(turn.getFacts(), turn.getVerdict(), form.bytes, form.profile);
  }
  result.what.niche = niche_of(result.source);
  return result;
}

} // namespace kernelmill::search
