#include "launch/server/page/comparing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "launch/analysis/report/speedups.hpp"
#include "launch/analysis/study/comparison.hpp"
#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "launch/server/page/documents.hpp"
#include "messages/base/json_value.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"

namespace kernelmill::page {

namespace {

const std::vector<std::string>& keys_of_groups() {
  static const std::vector<std::string> all{
      "group", "task",   "members",   "ended", "accepted", "rejected",          "infrastructure",
      "turns", "reward", "deviation", "low",   "high",     "best_speedup_lower"};
  return all;
}

struct group_member {
  uint64_t turns = 0;
  std::string outcome = "open";
  double best_reward = std::numeric_limits<double>::quiet_NaN();
  std::optional<reporting::measured_speedup> best_speedup;
};

struct group_so_far {
  std::string task;
  std::map<uint32_t, group_member> members;
};

using groups_so_far = std::map<uint32_t, group_so_far>;

group_member& member_of(groups_so_far& to, wire::EpisodeRef::Reader x) {
  auto& group = to[x.getGroup()];
  if (group.task.empty()) group.task = x.getTask().cStr();
  return group.members[x.getMember()];
}

void note_turn_of_member(group_member& to, wire::TurnRecord::Reader x, uint32_t shared_turns) {
  ++to.turns;
  auto verdict = x.getVerdict();
  if (is_judged(verdict) && is_paid(verdict))
    to.best_reward = std::fmax(to.best_reward, verdict.getReward());
  reporting::keep_best(to.best_speedup, reporting::counted_speedup(x, shared_turns));
}

json number_or_null(double x) {
  return std::isfinite(x) ? json(x) : json(nullptr);
}

/// Mean, deviation and ends of the best rewards of a group: what a trainer's advantage is made of.
void add_rewards(json& row, const std::map<uint32_t, group_member>& members) {
  std::vector<double> all;
  for (const auto& [number, x] : members)
    if (std::isfinite(x.best_reward)) all.push_back(x.best_reward);
  double sum = 0, squares = 0;
  for (auto x : all) sum += x;
  auto count = static_cast<double>(all.size());
  for (auto x : all) squares += (x - sum / count) * (x - sum / count);
  auto nan = std::numeric_limits<double>::quiet_NaN();
  row["reward"] = number_or_null(all.empty() ? nan : sum / count);
  row["deviation"] = number_or_null(all.size() < 2 ? nan : std::sqrt(squares / (count - 1)));
  row["low"] = number_or_null(all.empty() ? nan : *std::min_element(all.begin(), all.end()));
  row["high"] = number_or_null(all.empty() ? nan : *std::max_element(all.begin(), all.end()));
}

json row_of_group(uint32_t number, const group_so_far& x) {
  json row = {{"group", fmt::format("g{}", number)}, {"task", x.task}};
  uint64_t ended = 0, turns = 0;
  std::optional<reporting::measured_speedup> best;
  std::map<std::string, uint64_t> outcomes;
  auto members = json::array();
  for (const auto& [member, one] : x.members) {
    ended += one.outcome != "open";
    turns += one.turns;
    reporting::keep_best(best, one.best_speedup);
    ++outcomes[one.outcome];
    members.push_back({{"id", fmt::format("g{}.e{}", number, member)},
                       {"outcome", one.outcome},
                       {"turns", one.turns},
                       {"best_reward", number_or_null(one.best_reward)},
                       {"best_speedup_lower", reporting::lower_json(one.best_speedup)}});
  }
  row["members"] = x.members.size();
  row["ended"] = ended;
  for (const char* outcome : {"accepted", "rejected", "infrastructure"})
    row[outcome] = outcomes[outcome];
  row["turns"] = turns;
  add_rewards(row, x.members);
  row["best_speedup_lower"] = reporting::lower_json(best);
  row["episodes"] = std::move(members);
  return row;
}

/// Two sides may be of one store, which a process opens only once at a time.
class sides {
public:
  explicit sides(const watch::world& in) : in_(in) {}

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
      auto read = study::read_run(*where, lineage);
      KM_TRY(read);
      run = std::move(*read);
    }
    result.run = run;
    return result;
  }

private:
  const watch::world& in_;
  std::map<std::string, std::shared_ptr<const study::opened_run>> runs_;
  std::map<std::string, std::shared_ptr<const store>> stores_; ///< by their folder
};

} // namespace

expected<json> groups_document(const watch::world& in, const run_directory& run,
                               const json& query) {
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  auto shared = reporting::shared_turns_of(run);
  KM_TRY(shared);
  groups_so_far groups;
  auto ok = (*from)->scan_run(run.name, [&](wire::Record::Reader x) {
    if (x.isTurn())
      note_turn_of_member(member_of(groups, x.getTurn().getEpisode()), x.getTurn(), *shared);
    if (x.isEpisode())
      member_of(groups, x.getEpisode().getEpisode()).outcome =
          enum_name(capnp::DynamicEnum{x.getEpisode().getOutcome()});
    return true;
  });
  KM_TRY(ok);
  std::vector<json> rows;
  for (const auto& [number, x] : groups) rows.push_back(row_of_group(number, x));
  auto chosen = watch::chosen_rows(std::move(rows), query, keys_of_groups());
  KM_TRY(chosen);
  return paged(std::move(*chosen), query, "groups");
}

expected<json> compare_document(const watch::world& in, const json& query) {
  sides open{in};
  auto a = open.open(text_in(query, "a"));
  KM_TRY(a);
  auto b = open.open(text_in(query, "b"));
  KM_TRY(b);
  return study::compare_sides(*a, *b, {});
}

} // namespace kernelmill::page
