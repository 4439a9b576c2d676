#include "launch/server/page/comparing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/study/comparison.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "launch/server/page/documents.hpp"
#include "launch/server/page/listing.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::page {

namespace {

const std::vector<std::string>& keys_of_groups() {
  static const std::vector<std::string> all{
      "group", "task",   "members",   "ended", "accepted", "rejected",          "infrastructure",
      "turns", "reward", "deviation", "low",   "high",     "best_speedup_lower"};
  return all;
}

using members = std::span<const episode_facts>; ///< of one group

json number_or_null(double x) {
  return std::isfinite(x) ? json(x) : json(nullptr);
}

/// Mean, deviation and ends of the best rewards of a group: what a trainer's advantage is made of.
void add_rewards(row_builder& to, members of_group) {
  std::vector<double> all;
  for (const auto& x : of_group)
    if (x.best_reward && std::isfinite(*x.best_reward)) all.push_back(*x.best_reward);
  double sum = 0, squares = 0;
  for (auto x : all) sum += x;
  auto count = static_cast<double>(all.size());
  for (auto x : all) squares += (x - sum / count) * (x - sum / count);
  auto nan = std::numeric_limits<double>::quiet_NaN();
  to.add("reward", number_or_null(all.empty() ? nan : sum / count));
  to.add("deviation", number_or_null(all.size() < 2 ? nan : std::sqrt(squares / (count - 1))));
  to.add("low", number_or_null(all.empty() ? nan : *std::min_element(all.begin(), all.end())));
  to.add("high", number_or_null(all.empty() ? nan : *std::max_element(all.begin(), all.end())));
}

json member_rows(members of_group) {
  auto result = json::array();
  for (const auto& x : of_group)
    result.push_back(
        {{"id", name_of(x)},
         {"outcome", x.outcome},
         {"turns", x.turns},
         {"best_reward", x.best_reward ? number_or_null(*x.best_reward) : json(nullptr)},
         {"best_speedup_lower", reporting::lower_json(x.best_speedup)}});
  return result;
}

void add_group_row(row_builder& to, members of_group) {
  to.add("group", fmt::format("g{}", of_group.front().group));
  to.add("task", of_group.front().task);
  uint64_t ended = 0, turns = 0;
  std::optional<reporting::measured_speedup> best;
  std::map<std::string_view, uint64_t> outcomes;
  for (const auto& x : of_group) {
    ended += x.has_ended;
    turns += x.turns;
    reporting::keep_best(best, x.best_speedup);
    ++outcomes[x.outcome];
  }
  to.add("members", of_group.size());
  to.add("ended", ended);
  for (const char* outcome : {"accepted", "rejected", "infrastructure"})
    to.add(outcome, outcomes[outcome]);
  to.add("turns", turns);
  add_rewards(to, of_group);
  to.add("best_speedup_lower", reporting::lower_json(best));
  if (to.wants("episodes")) to.add("episodes", member_rows(of_group));
}

/// Two sides may be of one store, which a process opens only once at a time.
class sides {
public:
  sides(const watch::world& in, kept_runs& kept) : in_(in), kept_(kept) {}

  /// Of each side that is a whole run. REQUIRES: none is open yet, for the same reason.
  expected<void> read_facts(std::initializer_list<std::string> all) {
    for (const auto& what : all) {
      if (what.find('/') != what.npos) continue;
      auto where = run_below(in_, what);
      KM_TRY(where);
      auto facts = kept_.facts_of(in_, *where);
      KM_TRY(facts);
      scores_[where->path] = {*facts, &(*facts)->scores};
    }
    return {};
  }

  expected<study::compared_side> open(const std::string& what) {
    auto slash = what.find('/');
    auto where = run_below(in_, what.substr(0, slash));
    KM_TRY(where);
    study::compared_side result;
    result.whole_run = slash == std::string::npos;
    if (!result.whole_run) {
      auto name = parse_name(what.substr(slash + 1));
      if (!name)
        return configuration_error("usage",
                                   "failed to read '" + what + "': it is no group, episode or turn",
                                   "name one like RUN/g3, RUN/g3.e1 or RUN/g3.e1.t2");
      result.name = *name;
    }
    auto& run = runs_[where->path];
    if (!run) {
      auto& lineage = stores_[where->store];
      if (!lineage) {
        auto opened = watch::open_store_of(in_, *where);
        KM_TRY(opened);
        lineage = std::move(*opened);
      }
      auto read = study::read_run(*where, lineage, scores_[where->path]);
      KM_TRY(read);
      run = std::move(*read);
    }
    result.run = run;
    return result;
  }

private:
  const watch::world& in_;
  kept_runs& kept_;
  std::map<std::string, std::shared_ptr<const study::run_scores>> scores_; ///< by a run's path
  std::map<std::string, std::shared_ptr<const study::opened_run>> runs_;
  std::map<std::string, std::shared_ptr<const store>> stores_; ///< by their folder
};

} // namespace

expected<json> groups_document(const run_facts& facts, const json& query) {
  const auto& all = facts.episodes;
  std::vector<members> groups;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].group == all[begin].group) ++end;
    groups.push_back({all.data() + begin, end - begin});
  }
  auto add = [&](size_t i, row_builder& to) { add_group_row(to, groups[i]); };
  return listed(groups.size(), add, query, keys_of_groups(), "groups");
}

expected<json> compare_document(const watch::world& in, const json& query, kept_runs& kept) {
  auto of_a = text_in(query, "a"), of_b = text_in(query, "b");
  sides open{in, kept};
  KM_TRY(open.read_facts({of_a, of_b}));
  auto a = open.open(of_a);
  KM_TRY(a);
  auto b = open.open(of_b);
  KM_TRY(b);
  return study::compare_sides(*a, *b, {});
}

} // namespace kernelmill::page
