#include "launch/analysis/watch/stored.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <thread>
#include <utility>

#include "launch/analysis/watch/stage_times.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"
#include "messages/judged.hpp"
#include "storage/search_end.hpp"

namespace kernelmill::watch {

namespace {

constexpr std::chrono::seconds longest_change{
    2}; ///< that a process keeps a store while it opens or closes it
constexpr std::chrono::milliseconds one_look{5};

void note_run(stored_summary& to, wire::RunRecord::Reader x) {
  to.sessions = std::max(to.sessions, x.getOpening() + 1);
  to.worked.add(x);
  if (x.getOpening() + 1 < to.sessions || x.getState() == "running") return;
  to.state = x.getState().cStr();
  to.fault = fault_of(x.getFault());
  to.lost_open = lost_open_of(x);
}

void note_seconds(stored_summary& to, wire::TurnRecord::Reader turn) {
  for (const auto& x : stage_times(turn)) {
    auto& sum = to.stages[x.stage];
    sum.seconds += x.seconds;
    sum.work += x.work;
    if (x.seconds > 0) to.durations[x.stage].add(x.seconds);
  }
}

void note_trouble(stored_summary& to, const std::string& turn, wire::Verdict::Reader verdict) {
  if (verdict.getOutcome() != wire::Outcome::INFRASTRUCTURE) return;
  auto fault = fault_of(verdict.getFault());
  auto& x = to.troubles[fault.category.empty() ? std::string{verdict.getCategory().cStr()}
                                               : fault.category];
  ++x.turns;
  x.message = fault.message;
  x.hint = fault.hint;
  x.turn = turn;
}

void note_turn(stored_summary& to, wire::TurnRecord::Reader x, uint32_t shared_turns) {
  auto verdict = x.getVerdict();
  auto timing = x.getFacts().getEvaluation().getTiming();
  auto ref = x.getEpisode();
  episode_id id{{}, {}, ref.getGroup(), ref.getMember()};
  auto name = short_name(id, x.getTurn());
  ++to.turns;
  if (to.first_turn_at == 0 || x.getCommittedAt() < to.first_turn_at)
    to.first_turn_at = x.getCommittedAt();
  bool open = verdict.getOutcome() == wire::Outcome::OPEN;
  to.open_turns += open;
  to.evidence.add(x);
  to.format += reporting::passes(verdict, "format");
  to.built += reporting::passes(verdict, "build");
  to.correct += reporting::passes(verdict, "correctness");
  bool timed = reporting::is_timed(x);
  to.timed += timed;
  to.faster += timed && timing.getSpeedup().getLow() > 1;
  ++to.categories[verdict.getCategory().cStr()];
  if (to.speedups.add(x)) to.best_turn = name;
  for (auto finding : verdict.getFindings()) ++to.findings[finding.getRule().cStr()];
  if (x.getTurn() >= shared_turns) { // those before took its origin's time
    ++to.own_turns;
    note_seconds(to, x);
  }
  note_trouble(to, name, verdict);
  to.prompt_tokens += x.getCompletion().getPromptTokens();
  to.completion_tokens += x.getCompletion().getCompletionTokens();
  if (auto model = x.getCompletion().getModel(); model.size() > 0) to.models.emplace(model.cStr());
  to.worked.add(x.getCommittedAt());
}

void note_episode(stored_summary& to, wire::EpisodeRecord::Reader x) {
  ++to.episodes;
  to.ended_turns += x.getTurns();
  to.speedups.add(x);
  to.accepted += x.getOutcome() == wire::Outcome::ACCEPTED;
  to.rejected += x.getOutcome() == wire::Outcome::REJECTED;
  to.closed_as_lost += x.getOutcome() == wire::Outcome::INFRASTRUCTURE;
  auto best = std::numeric_limits<double>::quiet_NaN();
  for (auto reward : x.getRewards()) best = std::fmax(best, reward);
  if (!std::isnan(best)) {
    to.reward_sum += best;
    ++to.rewarded;
  }
  to.worked.add(x.getCommittedAt());
}

} // namespace

expected<store> open_for_reading(const run_directory& run) {
  store_options options;
  options.directory = run.store;
  options.read_only = true;
  auto from = store::open(options);
  if (!from || !has_journal(run)) return from;
  bool found = false;
  auto ok = from->scan_openings(run.name, [&](auto) { return !(found = true); });
  KM_TRY(ok);
  if (!found)
    return tl::unexpected<error>{run_incomplete(run, "its records in " + run.store + " are", true)};
  return from;
}

// While this process opens or closes a run, the run's store is not shared for a moment. The same
// holds for another reader of this process.
expected<std::shared_ptr<const store>> open_store_of(const world& in, const run_directory& run) {
  for (auto until = std::chrono::steady_clock::now() + longest_change;;) {
    if (in.shared_store)
      if (auto shared = in.shared_store(run)) return shared;
    auto opened = open_for_reading(run);
    if (opened) return std::make_shared<const store>(std::move(*opened));
    bool changes = in.shared_store && opened.error().category == "store_locked";
    if (!changes || std::chrono::steady_clock::now() > until)
      return tl::unexpected<error>{std::move(opened.error())};
    std::this_thread::sleep_for(one_look);
  }
}

uint64_t lost_open_of(wire::RunRecord::Reader end) {
  auto said = json::parse(end.getReadiness().cStr(), nullptr, false);
  return said.is_object() ? count_in(said, "lost_open", 0) : 0;
}

void add_stages(std::map<std::string, stage_sum>& to, wire::TurnRecord::Reader turn) {
  for (const auto& x : stage_times(turn)) {
    to[x.stage].seconds += x.seconds;
    to[x.stage].work += x.work;
  }
}

expected<uint64_t> lost_open_of(const store& from, const std::string& run) {
  stored_summary own;
  auto ok = from.scan_openings(run, [&](wire::Record::Reader x) {
    note_run(own, x.getRun());
    return true;
  });
  KM_TRY(ok);
  return own.lost_open;
}

void stage_durations::add(double seconds) {
  auto place = std::lower_bound(limits.begin(), limits.end(), seconds) - limits.begin();
  ++counts[static_cast<size_t>(place)];
  sum += seconds;
}

void add_record(stored_summary& to, wire::Record::Reader x, uint32_t shared_turns) {
  switch (x.which()) {
    case wire::Record::RUN: note_run(to, x.getRun()); break;
    case wire::Record::TURN: note_turn(to, x.getTurn(), shared_turns); break;
    case wire::Record::EPISODE: note_episode(to, x.getEpisode()); break;
    case wire::Record::GROUP: ++to.groups; break;
  }
}

expected<stored_summary> summarize(const world& in, const run_directory& run) {
  auto from = open_store_of(in, run);
  KM_TRY(from);
  auto shared = reporting::shared_turns_of(run);
  KM_TRY(shared);
  stored_summary result;
  result.speedups = reporting::speedup_figures{*shared};
  auto ok = (*from)->scan_run(run.name, [&](wire::Record::Reader x) {
    add_record(result, x, *shared);
    return true;
  });
  KM_TRY(ok);
  return result;
}

expected<std::shared_ptr<const stored_summary>> find_summary(const world& in,
                                                             const run_directory& run) {
  if (in.kept_summary) return in.kept_summary(run);
  auto read = summarize(in, run);
  KM_TRY(read);
  return std::make_shared<const stored_summary>(std::move(*read));
}

expected<stored_summary> summarize_silent(const world& in, const run_directory& run,
                                          stored_summary before) {
  stored_summary now;
  {
    auto from = open_store_of(in, run);
    KM_TRY(from);
    auto ok = (*from)->scan_openings(run.name, [&](wire::Record::Reader x) {
      note_run(now, x.getRun());
      return true;
    });
    KM_TRY(ok);
  }
  if (now.state == "open") return before;
  return summarize(in, run);
}

run_plan read_plan(const run_directory& run) {
  run_plan result;
  auto manifest = read_json(run.manifest_file());
  auto config = read_json(run.config_file());
  if (!manifest || !config) return result;
  result.search = asks_for_search(*config);
  auto tasks = manifest->find("tasks");
  auto section = config->find("tasks");
  if (tasks == manifest->end() || !tasks->is_array() || section == config->end() ||
      !section->is_object())
    return result;
  try {
    result.episodes = tasks->size() * section->value("groups", uint64_t{1}) *
                      section->value("group_size", uint64_t{1});
  } catch (const json::exception&) { // of another version
  }
  return result;
}

} // namespace kernelmill::watch
