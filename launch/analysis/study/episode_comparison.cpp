#include "launch/analysis/study/episode_comparison.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/study/wire_values.hpp"
#include "messages/judged.hpp"

namespace kernelmill::study {

namespace {

json turn_summary(wire::TurnRecord::Reader x) {
  auto verdict = x.getVerdict();
  auto timing = x.getFacts().getEvaluation().getTiming();
  json result = {{"category", std::string{verdict.getCategory()}},
                 {"reward", is_paid(verdict) ? number(verdict.getReward()) : json(nullptr)},
                 {"speedup", nullptr},
                 {"code_sha256", std::string{x.getCandidateSha256()}}};
  if (timing.getMeasured())
    result["speedup"] = reporting::to_json(reporting::of_interval(timing.getSpeedup()));
  return result;
}

double reward_of(const Message<wire::Record>& record) {
  auto opened = record.open();
  auto verdict = opened->getTurn().getVerdict();
  return is_paid(verdict) ? verdict.getReward() : -std::numeric_limits<double>::infinity();
}

/// The first of the turns with the highest reward.
const Message<wire::Record>* best_turn(const stored_episode& x) {
  auto best = std::max_element(x.turns.begin(), x.turns.end(), [](const auto& a, const auto& b) {
    return reward_of(a) < reward_of(b);
  });
  return best == x.turns.end() ? nullptr : &*best;
}

json end_of(const stored_episode& x) {
  json result = {{"task", nullptr},         {"outcome", "open"},    {"stop_reason", nullptr},
                 {"turns", x.turns.size()}, {"best_turn", nullptr}, {"return", nullptr},
                 {"governance", nullptr}};
  if (!x.turns.empty()) {
    auto opened = x.turns.front().open();
    result["task"] = std::string{opened->getTurn().getEpisode().getTask()};
  }
  if (!x.end) return result;
  auto opened = x.end->open();
  auto end = opened->getEpisode();
  result["task"] = std::string{end.getEpisode().getTask()};
  result["outcome"] = word(end.getOutcome());
  result["stop_reason"] = std::string{end.getStopReason()};
  result["best_turn"] = end.getBestTurn();
  if (end.getReturns().size() > 0) result["return"] = number(end.getReturns()[0]);
  result["governance"] = word(end.getReadiness().getKind());
  return result;
}

json differing(const json& a, const json& b) {
  json result = json::array();
  for (const auto& [key, value] : a.items())
    if (value != b[key]) result.push_back({{"key", key}, {"a", value}, {"b", b[key]}});
  return result;
}

/// Two turns in full, by name; null when one of them is not there.
expected<json> compare_records(uint32_t group_a, uint32_t member_a, const Message<wire::Record>* a,
                               const compared_source& of_a, uint32_t group_b, uint32_t member_b,
                               const Message<wire::Record>* b, const compared_source& of_b) {
  if (!a || !b) return json(nullptr);
  auto x = a->open(), y = b->open();
  auto name = [](const compared_source& of, uint32_t group, uint32_t member,
                 wire::TurnRecord::Reader turn) {
    return fmt::format("{}/g{}.e{}.t{}", of.run, group, member, turn.getTurn());
  };
  compared_turn left{name(of_a, group_a, member_a, x->getTurn()), x->getTurn(), of_a.artifacts,
                     of_a.config};
  compared_turn right{name(of_b, group_b, member_b, y->getTurn()), y->getTurn(), of_b.artifacts,
                      of_b.config};
  auto groups = compare_turns(left, right);
  KM_TRY(groups);
  return json{{"a", left.name}, {"b", right.name}, {"groups", std::move(*groups)}};
}

json group_end(const stored_group& x) {
  json result = {
      {"task", nullptr}, {"members", x.episodes.size()}, {"mean", nullptr}, {"deviation", nullptr}};
  if (!x.episodes.empty()) result["task"] = end_of(x.episodes.front())["task"];
  if (!x.end) return result;
  auto opened = x.end->open();
  auto end = opened->getGroup();
  result["mean"] = number(end.getMean());
  result["deviation"] = number(end.getDeviation());
  return result;
}

json advantage_of(const stored_group& x, uint32_t member) {
  if (!x.end) return nullptr;
  auto opened = x.end->open();
  auto all = opened->getGroup().getAdvantages();
  return member < all.size() ? number(all[member]) : json(nullptr);
}

json member_summary(const stored_group& of, const stored_episode& x) {
  auto end = end_of(x);
  const auto* best = best_turn(x);
  return {{"outcome", end["outcome"]},
          {"turns", end["turns"]},
          {"return", end["return"]},
          {"advantage", advantage_of(of, x.member)},
          {"best_reward", best ? number(reward_of(*best)) : json(nullptr)}};
}

const stored_episode* member_of(const stored_group& x, uint32_t member) {
  for (const auto& e : x.episodes)
    if (e.member == member) return &e;
  return nullptr;
}

const stored_episode* best_member(const stored_group& x) {
  const stored_episode* result = nullptr;
  for (const auto& e : x.episodes) {
    const auto* best = best_turn(e);
    if (best && (!result || reward_of(*best) > reward_of(*best_turn(*result)))) result = &e;
  }
  return result;
}

} // namespace

expected<json> compare_episodes(uint32_t group_a, const stored_episode& a,
                                const compared_source& of_a, uint32_t group_b,
                                const stored_episode& b, const compared_source& of_b) {
  json result = {{"values", differing(end_of(a), end_of(b))}, {"turns", json::array()}};
  result["first_difference"] = nullptr;
  for (size_t i = 0; i < std::max(a.turns.size(), b.turns.size()); ++i) {
    auto side = [&](const stored_episode& x) {
      return i < x.turns.size() ? turn_summary(x.turns[i].open()->getTurn()) : json(nullptr);
    };
    json x = side(a), y = side(b);
    bool same = !x.is_null() && !y.is_null() && x["code_sha256"] == y["code_sha256"];
    if (!same && result["first_difference"].is_null()) result["first_difference"] = i;
    result["turns"].push_back(
        {{"turn", i}, {"same_code", same}, {"a", std::move(x)}, {"b", std::move(y)}});
  }
  auto best =
      compare_records(group_a, a.member, best_turn(a), of_a, group_b, b.member, best_turn(b), of_b);
  KM_TRY(best);
  result["best"] = std::move(*best);
  return result;
}

expected<json> compare_groups(const stored_group& a, const compared_source& of_a,
                              const stored_group& b, const compared_source& of_b) {
  json result = {{"values", differing(group_end(a), group_end(b))}, {"members", json::array()}};
  std::set<uint32_t> members;
  for (const auto* x : {&a, &b})
    for (const auto& e : x->episodes) members.insert(e.member);
  for (auto member : members) {
    auto side = [&](const stored_group& x) {
      const auto* e = member_of(x, member);
      return e ? member_summary(x, *e) : json(nullptr);
    };
    result["members"].push_back({{"member", member}, {"a", side(a)}, {"b", side(b)}});
  }
  const auto *best_a = best_member(a), *best_b = best_member(b);
  result["best"] = nullptr;
  if (!best_a || !best_b) return result;
  auto best = compare_records(a.group, best_a->member, best_turn(*best_a), of_a, b.group,
                              best_b->member, best_turn(*best_b), of_b);
  KM_TRY(best);
  result["best"] = std::move(*best);
  return result;
}

} // namespace kernelmill::study
