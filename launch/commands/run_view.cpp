#include "launch/commands/run_view.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "actors/governance/bias.hpp"
#include "launch/analysis/watch/run_now.hpp"
#include "launch/analysis/watch/stage_times.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"
#include "messages/json.hpp"
#include "messages/judged.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

void note_turn(episode_view& x, wire::TurnRecord::Reader turn, uint32_t shared_turns) {
  x.task = turn.getEpisode().getTask();
  ++x.turns;
  auto verdict = turn.getVerdict();
  x.categories.emplace_back(verdict.getCategory());
  x.not_timed += verdict.getCategory() == "not_timed";
  if (is_judged(verdict) && is_paid(verdict))
    x.best_reward = std::fmax(x.best_reward, verdict.getReward()); // of a number
  reporting::keep_best(x.best, reporting::counted_speedup(turn, shared_turns));
}

json use_json(const episode_use& x) {
  return {{"eligible", x.eligible}, {"reasons", x.reasons}};
}

/// A use of docs/explanation/governance.md in the words of a sentence; of another version as it is.
std::string use_words(const std::string& use) {
  static const std::map<std::string, std::string> words{
      {"benchmark", "usable as a benchmark result"},
      {"sft", "usable for SFT"},
      {"rl", "usable for RL"},
      {"benchmark_reporting", "usable for benchmark reports"},
      {"sft_collection", "usable for SFT"},
      {"rl_reward_trace", "usable for RL"}};
  auto known = words.find(use);
  return known == words.end() ? use : known->second;
}

std::string use_line(const std::string& use, bool eligible,
                     const std::vector<std::string>& reasons) {
  auto first = use_words(use) + ": ";
  std::string result = eligible ? "yes" : "no";
  for (const auto& reason : reasons) result += "; " + cli::clean(reason);
  return cli::hanging(first, first.size(), result);
}

episode_view view_episode(uint32_t group, const stored_episode& stored, uint32_t shared_turns) {
  episode_view x;
  x.group = group;
  x.member = stored.member;
  x.outcome = "open";
  for (const auto& record : stored.turns) note_turn(x, record.open()->getTurn(), shared_turns);
  x.evidence = evidence_of_episode(stored);
  if (stored.end) {
    auto opened = stored.end->open();
    auto end = opened->getEpisode();
    x.task = end.getEpisode().getTask();
    x.outcome = enum_name(capnp::DynamicEnum{end.getOutcome()});
    x.stop_reason = end.getStopReason();
    if (end.getReturns().size() > 0) x.first_return = end.getReturns()[0];
  } else {
    x.first_return = std::numeric_limits<double>::quiet_NaN();
  }
  return x;
}

void note_episode(task_view& x, const episode_view& e) {
  ++x.episodes;
  x.turns += e.turns;
  x.accepted += e.outcome == "accepted";
  x.rejected += e.outcome == "rejected";
  x.infrastructure += e.outcome == "infrastructure";
  x.open += e.outcome == "open";
  x.not_timed += e.not_timed;
  x.unpaid += e.outcome != "infrastructure" && e.outcome != "open" && std::isnan(e.first_return);
  reporting::keep_best(x.best, e.best);
}

// As the run's end counts them: what a fault of a machine or of a server left open is lost to it
// until it is resumed. An episode without a committed turn is in no record.
void count_lost_open(run_view& view) {
  if (view.lost_open == 0 || view.state == "cancelled") return;
  for (auto& [id, x] : view.tasks) x.infrastructure += std::exchange(x.open, 0);
}

void note_loss(loss_ledger& losses, wire::TurnRecord::Reader turn) {
  auto text = turn.getCompletion().getText();
  losses.note(turn.getEpisode().getTask().cStr(), turn.getFacts().getParsed().getLanguage().cStr(),
              text.isArtifact() ? text.getArtifact().getSize() : text.getInline().size(),
              turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE);
}

// Records come in the order of sessions, and then in that of ends.
bool note(run_view& view, wire::Record::Reader record) {
  auto x = record.getRun();
  view.worked.add(x);
  view.sessions = std::max(view.sessions, x.getOpening() + 1);
  bool latest = x.getOpening() + 1 == view.sessions;
  if (!latest || x.getState() == "running") return true;
  view.state = x.getState();
  view.readiness = x.getReadiness().cStr();
  view.fault = fault_of(x.getFault());
  view.lost_open = watch::lost_open_of(x);
  return true;
}

} // namespace

expected<run_view> view_run(const run_directory& run, const uint32_t* group) {
  auto from = open_for_reading(run);
  KM_TRY(from);
  auto shared = reporting::shared_turns_of(run);
  KM_TRY(shared);
  run_view view;
  view.speedups = reporting::speedup_figures{*shared};
  view.run = run.name;
  view.directory = run.path;
  if (auto ok = from->scan_openings(run.name, [&](auto record) { return note(view, record); }); !ok)
    return tl::unexpected<error>{ok.error()};
  loss_ledger losses;
  auto visit = [&](const stored_group& g) -> expected<void> {
    for (const auto& stored : g.episodes) {
      for (const auto& record : stored.turns) {
        auto opened = record.open();
        note_loss(losses, opened->getTurn());
        view.evidence.add(opened->getTurn());
        view.speedups.add(opened->getTurn());
        view.worked.add(opened->getTurn().getCommittedAt());
        if (opened->getTurn().getTurn() < *shared) continue;
        watch::add_stages(view.stages, opened->getTurn());
        watch::add_slot_seconds(view.slots, opened->getTurn());
      }
      if (stored.end) {
        auto end = stored.end->open();
        view.speedups.add(end->getEpisode());
        view.worked.add(end->getEpisode().getCommittedAt());
      }
      view.episodes.push_back(view_episode(g.group, stored, *shared));
      note_episode(view.tasks[view.episodes.back().task], view.episodes.back());
    }
    return {};
  };
  if (group) {
    auto one = read_group(*from, run.name, *group);
    KM_TRY(one);
    (void)visit(*one);
  } else if (auto all = for_each_group(*from, run.name, visit); !all) {
    return tl::unexpected<error>{all.error()};
  }
  count_lost_open(view);
  view.alarms = losses.alarms();
  return view;
}

episode_evidence evidence_of_episode(const stored_episode& x) {
  evidence_summary sum;
  for (const auto& record : x.turns) {
    auto opened = record.open();
    sum.add(opened->getTurn(), opened->getTurn().getVerdict());
  }
  if (!x.end) return sum.finish(std::nullopt, std::nullopt);
  auto opened = x.end->open();
  auto end = opened->getEpisode();
  return sum.finish(end.getBestTurn(), end.getReadiness().getKind());
}

json evidence_json(const episode_evidence& x) {
  return {{"score", x.score},
          {"quality", to_string(x.quality)},
          {"benchmark", use_json(x.benchmark)},
          {"sft", use_json(x.sft)},
          {"rl", use_json(x.rl)}};
}

std::string label_text(const std::string& kind) {
  static const std::map<std::string, std::string> words{
      {"usable_positive_sft", "positive example for SFT"},
      {"usable_negative_debug", "negative example of debugging"},
      {"usable_negative_transition", "negative example of an edit"},
      {"benchmark_only", "for benchmark results alone"}};
  auto known = words.find(kind);
  return known == words.end() ? kind : known->second + " (" + kind + ")";
}

std::string evidence_text(const episode_evidence& x) {
  return fmt::format("evidence {:.2f}, {}\n", x.score, to_string(x.quality)) +
         use_line("benchmark", x.benchmark.eligible, x.benchmark.reasons) +
         use_line("sft", x.sft.eligible, x.sft.reasons) +
         use_line("rl", x.rl.eligible, x.rl.reasons);
}

std::string evidence_text(const run_view& view) {
  auto mean = view.evidence.mean();
  if (!mean) return {};
  auto near = view.evidence.near_misses();
  auto result =
      fmt::format("evidence {:.2f}; near misses: {} turn{}\n", *mean, near, near == 1 ? "" : "s");
  auto uses = json::parse(view.readiness, nullptr, false);
  if (!uses.is_object()) return result;
  for (const auto& [name, use] : uses.items())
    if (use.is_object())
      result += use_line(name, use.value("eligible", false),
                         use.value("reasons", std::vector<std::string>{}));
  return result;
}

std::string speedup_text(const best_speedup& x) {
  return x ? fmt::format("{:.2f} [{:.2f}, {:.2f}]", x->estimate, x->low, x->high) : "-";
}

std::vector<std::string> speedup_cells(const best_speedup& x) {
  auto part = [&](double reporting::measured_speedup::*value) {
    return x ? std::optional{(*x).*value} : std::nullopt;
  };
  return cli::interval_cells(speedup_text(x), part(&reporting::measured_speedup::estimate),
                             part(&reporting::measured_speedup::low),
                             part(&reporting::measured_speedup::high));
}

std::string speedups_text(const run_view& view) {
  auto geomean = view.speedups.geomean();
  if (!geomean) return {};
  return fmt::format("best speedup {}, geomean speedup {:.2f} of {} episodes\n",
                     speedup_text(view.speedups.best()), *geomean, view.speedups.timed_episodes());
}

namespace {

/// Whether no process works on the run, as far as that is known.
bool is_at_rest(const std::string& state) {
  return state == "interrupted" || state == "failed" || state == "cancelled" ||
         state == "incomplete";
}

} // namespace

std::string state_text(const run_view& view) {
  auto result = view.state;
  if (view.fault.cls != fault_class::none) {
    result += ": " + cli::clean(view.fault.message);
    if (!view.fault.hint.empty()) result += "\nnext: " + cli::clean(view.fault.hint);
  }
  if (is_at_rest(view.state))
    if (auto go_on = watch::how_to_continue(view.state, view.directory); !go_on.empty())
      result += "\nnext: " + go_on;
  return result;
}

std::string task_table(const run_view& view) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [id, x] : view.tasks) {
    rows.push_back({id, fmt::to_string(x.episodes), fmt::to_string(x.turns),
                    fmt::to_string(x.accepted), fmt::to_string(x.rejected),
                    fmt::to_string(x.infrastructure)});
    cli::add_cells(rows.back(), speedup_cells(x.best));
  }
  std::vector<std::string> head{"TASK", "EPISODES>", "TURNS>", "ACCEPTED>", "REJECTED>", "INFRA>"};
  cli::add_cells(head, cli::interval_headers("BEST SPEEDUP"));
  return cli::format_table(head, rows);
}

std::string alarm_text(const std::string& alarm) {
  return cli::hanging("bias alarm: ", 12, cli::clean(alarm));
}

std::string not_timed_text(uint64_t turns, uint64_t unpaid) {
  if (turns == 0) return {};
  auto result = fmt::format("{} turn{} right and not timed", turns, turns == 1 ? "" : "s");
  if (unpaid > 0)
    result +=
        fmt::format("; {} episode{} for that in no comparison", unpaid, unpaid == 1 ? "" : "s");
  return result + "\n";
}

std::string not_timed_text(const run_view& view) {
  uint64_t turns = 0, unpaid = 0;
  for (const auto& [id, x] : view.tasks) {
    turns += x.not_timed;
    unpaid += x.unpaid;
  }
  return not_timed_text(turns, unpaid);
}

json to_json(const run_view& view) {
  json result = {{"run", view.run},
                 {"directory", view.directory},
                 {"state", view.state},
                 {"openings", view.sessions},
                 {"fault", nullptr}};
  if (view.fault.cls != fault_class::none)
    result["fault"] = {{"class", std::string{to_string(view.fault.cls)}},
                       {"category", view.fault.category},
                       {"message", view.fault.message},
                       {"hint", view.fault.hint}};
  result["tasks"] = json::array();
  for (const auto& [id, x] : view.tasks)
    result["tasks"].push_back({{"task", id},
                               {"episodes", x.episodes},
                               {"turns", x.turns},
                               {"accepted", x.accepted},
                               {"rejected", x.rejected},
                               {"infrastructure", x.infrastructure},
                               {"open", x.open},
                               {"not_timed", x.not_timed},
                               {"unpaid", x.unpaid},
                               {"best_speedup", reporting::to_json(x.best)}});
  result["episodes"] = json::array();
  for (const auto& e : view.episodes)
    result["episodes"].push_back({{"id", fmt::format("g{}.e{}", e.group, e.member)},
                                  {"task", e.task},
                                  {"turns", e.turns},
                                  {"outcome", e.outcome},
                                  {"stop_reason", e.stop_reason},
                                  {"best_reward", e.best_reward},
                                  {"return", e.first_return},
                                  {"best_speedup", reporting::to_json(e.best)},
                                  {"categories", e.categories},
                                  {"evidence", evidence_json(e.evidence)}});
  result["alarms"] = view.alarms;
  result["best_speedup"] = reporting::to_json(view.speedups.best());
  result["best_speedup_lower"] = reporting::lower_json(view.speedups.best());
  auto geomean = view.speedups.geomean();
  result["geomean_speedup"] = geomean ? json(*geomean) : json(nullptr);
  auto evidence = view.evidence.mean();
  result["evidence"] = evidence ? json(*evidence) : json(nullptr);
  result["near_misses"] = view.evidence.near_misses();
  auto uses = json::parse(view.readiness, nullptr, false);
  bool finished = view.state == "finished";
  result["readiness"] = finished && uses.is_object() ? std::move(uses) : json(nullptr);
  return result;
}

} // namespace kernelmill::commands
