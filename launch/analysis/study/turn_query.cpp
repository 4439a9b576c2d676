#include "launch/analysis/study/turn_query.hpp"

#include <algorithm>

#include <kj/exception.h>

namespace kernelmill::study {

namespace {

// Besides the fields; they never leave.
constexpr const char* order_key = "\x01order";

bool knows_later(const std::vector<std::string>& fields) {
  for (const auto& x : turn_fields())
    if (x.when != known_with::turn &&
        std::find(fields.begin(), fields.end(), x.name) != fields.end())
      return true;
  return false;
}

void add(std::vector<std::string>& to, const std::string& x) {
  if (std::find(to.begin(), to.end(), x) == to.end()) to.push_back(x);
}

/// A row that waits for the end of its episode or its group.
struct waiting {
  uint32_t member, turn;
  json row;
};

} // namespace

expected<turn_query> turn_query::parse(turn_question what) {
  turn_query result;
  auto wanted = watch::parse_condition(what.where, turn_keys());
  KM_TRY(wanted);
  for (auto& x : what.fields) {
    auto known = watch::known_key(x, turn_keys());
    KM_TRY(known);
    x = *known;
  }
  result.wanted_ = std::move(*wanted);
  result.first_ = result.all_ = result.wanted_.keys;
  for (const auto& x : what.fields) add(result.all_, x);
  if (!what.sort.empty()) {
    result.down_ = what.sort.starts_with("-");
    auto known = watch::known_key(what.sort.substr(result.down_), turn_keys());
    KM_TRY(known);
    result.sort_key_ = *known;
    add(result.all_, *known);
  }
  result.waits_ = knows_later(result.first_);
  result.waits_for_row_ = knows_later(result.all_);
  result.what_ = std::move(what);
  return result;
}

bool turn_query::is_full() const {
  return sort_key_.empty() && what_.limit > 0 && given_ >= what_.limit;
}

expected<void> turn_query::take(json row, const row_taker& to) {
  ++matched_;
  if (!sort_key_.empty()) {
    row[order_key] = matched_; // equals stay in the order of the store
    auto before = [this](const json& a, const json& b) {
      if (watch::stands_before(a, b, sort_key_, down_)) return true;
      return !watch::stands_before(b, a, sort_key_, down_) && a[order_key] < b[order_key];
    };
    if (what_.limit > 0 && kept_.size() >= what_.limit) {
      if (!before(row, kept_.front())) return {};
      std::pop_heap(kept_.begin(), kept_.end(), before);
      kept_.pop_back();
    }
    kept_.push_back(std::move(row));
    std::push_heap(kept_.begin(), kept_.end(), before);
    return {};
  }
  if (is_full()) return {};
  ++given_;
  json result = json::object();
  for (const auto& x : what_.fields) result[x] = std::move(row[x]);
  return to(std::move(result));
}

expected<void> turn_query::read_group(const store& from, const turn_source& of, uint32_t group,
                                      const row_taker& to) {
  expected<void> outcome;
  std::vector<waiting> rows;
  auto on_turn = [&](wire::TurnRecord::Reader turn) -> expected<void> {
    ++turns_;
    json row = json::object();
    KM_TRY(add_fields(row, turn, of, first_));
    if (!waits_ && !wanted_.holds(row)) return {};
    KM_TRY(add_fields(row, turn, of, all_));
    if (!waits_for_row_) return take(std::move(row), to);
    rows.push_back({turn.getEpisode().getMember(), turn.getTurn(), std::move(row)});
    for (const auto* flag : {"ended", "best"}) // until an end says otherwise
      if (auto i = rows.back().row.find(flag); i != rows.back().row.end()) *i = false;
    return {};
  };
  auto scanned = from.scan_group(of.run, group, [&](wire::Record::Reader record) {
    if (record.isTurn()) {
      outcome = on_turn(record.getTurn());
    } else if (record.isEpisode()) {
      auto end = record.getEpisode();
      for (auto& x : rows)
        if (x.member == end.getEpisode().getMember()) add_fields(x.row, end, x.turn, all_);
    } else if (record.isGroup()) {
      for (auto& x : rows) add_fields(x.row, record.getGroup(), x.member, all_);
    }
    return outcome.has_value() && !is_full();
  });
  KM_TRY(outcome);
  KM_TRY(scanned);
  for (auto& x : rows) {
    if (is_full()) break;
    if (waits_ && !wanted_.holds(x.row)) continue;
    KM_TRY(take(std::move(x.row), to));
  }
  return {};
}

expected<void> turn_query::read(const store& from, const turn_source& of, const row_taker& to) {
  auto groups = from.groups(of.run);
  KM_TRY(groups);
  for (auto group : *groups) {
    if (is_full()) break;
    KM_TRY(read_group(from, of, group, to));
  }
  return {};
}

expected<void> turn_query::finish(const row_taker& to) {
  if (sort_key_.empty()) return {};
  std::sort(kept_.begin(), kept_.end(), [this](const json& a, const json& b) {
    if (watch::stands_before(a, b, sort_key_, down_)) return true;
    return !watch::stands_before(b, a, sort_key_, down_) && a[order_key] < b[order_key];
  });
  for (auto& row : kept_) {
    json result = json::object();
    for (const auto& x : what_.fields) result[x] = std::move(row[x]);
    ++given_;
    KM_TRY(to(std::move(result)));
  }
  kept_.clear();
  return {};
}

} // namespace kernelmill::study
