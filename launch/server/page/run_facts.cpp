#include "launch/server/page/run_facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "messages/json.hpp"
#include "messages/judged.hpp"

namespace kernelmill::page {

namespace {

void keep_greater(std::optional<double>& best, double x) {
  if (!std::isnan(x) && (!best || x > *best)) best = x;
}

/// Takes records in the order of the store: the turns of an episode, then its end.
class facts_reader {
public:
  facts_reader(run_facts& to, uint32_t shared_turns)
      : to_(to), shared_turns_(shared_turns), scores_(shared_turns) {
    to_.summary.speedups = reporting::speedup_figures{shared_turns};
  }

  void add(wire::Record::Reader x) {
    watch::add_record(to_.summary, x, shared_turns_);
    scores_.add(x);
    if (x.isTurn()) add_turn(x.getTurn());
    if (x.isEpisode()) add_end(x.getEpisode());
  }

  void finish() {
    close_episode();
    to_.scores = scores_.finish();
    auto latest = [](const auto& a, const auto& b) { return a.committed_at > b.committed_at; };
    std::stable_sort(to_.findings.begin(), to_.findings.end(), latest);
    std::sort(to_.uses.begin(), to_.uses.end(),
              [](const slot_use& a, const slot_use& b) { return a.begin > b.begin; });
    for (auto* all : {&to_.rewards, &to_.speedups})
      for (auto& [position, values] : *all) std::sort(values.begin(), values.end());
    to_.episodes.shrink_to_fit();
    to_.findings.shrink_to_fit();
    to_.uses.shrink_to_fit();
  }

private:
  std::string_view keep(std::string_view x) {
    if (x.empty()) return {};
    // Most are those of the record before; `latest_` saves making a string to look one up.
    for (auto known : latest_)
      if (known == x) return known;
    std::string_view kept = *to_.words.emplace(x).first;
    latest_[next_++ % latest_.size()] = kept;
    return kept;
  }

  std::string_view word(capnp::DynamicEnum x) { return keep(enum_name(std::move(x))); }
  std::string_view word(capnp::Text::Reader x) { return keep({x.begin(), x.size()}); }

  void close_episode() {
    if (!to_.episodes.empty()) to_.episodes.back().categories = keep(categories_);
    categories_.clear();
  }

  episode_facts& episode_of(wire::EpisodeRef::Reader x) {
    auto group = x.getGroup(), member = x.getMember();
    auto& all = to_.episodes;
    if (all.empty() || all.back().group != group || all.back().member != member) {
      close_episode();
      auto& one = all.emplace_back();
      one.group = group;
      one.member = member;
      one.task = word(x.getTask());
    }
    return all.back();
  }

  void add_turn(wire::TurnRecord::Reader x) {
    auto verdict = x.getVerdict();
    auto category = word(verdict.getCategory());
    auto& episode = episode_of(x.getEpisode());
    if (episode.turns++ > 0) categories_ += ' ';
    categories_ += category;
    episode.accepted_turns += verdict.getOutcome() == wire::Outcome::ACCEPTED;
    episode.committed_at = x.getCommittedAt();
    auto position = x.getTurn();
    if (is_judged(verdict) && is_paid(verdict)) {
      keep_greater(episode.best_reward, verdict.getReward());
      if (position >= shared_turns_ && std::isfinite(verdict.getReward()))
        to_.rewards[position].push_back(verdict.getReward());
    }
    if (auto counted = reporting::counted_speedup(x, shared_turns_)) {
      to_.speedups[position].push_back(counted->estimate);
      if (reporting::keep_best(episode.best_speedup, counted)) episode.best_turn = position;
    }
    add_findings(episode, x, category);
    add_use(episode, x, category);
  }

  void add_findings(episode_facts& episode, wire::TurnRecord::Reader x, std::string_view category) {
    auto verdict = x.getVerdict();
    for (auto f : verdict.getFindings()) {
      ++episode.findings;
      to_.findings.push_back({episode.group, episode.member, x.getTurn(), episode.task,
                              word(f.getRule()), word(capnp::DynamicEnum{f.getSeverity()}),
                              category, word(capnp::DynamicEnum{verdict.getOutcome()}),
                              f.getEvidence().cStr(), x.getCommittedAt()});
    }
  }

  void add_use(const episode_facts& episode, wire::TurnRecord::Reader x,
               std::string_view category) {
    auto facts = x.getFacts().getEvaluation();
    if (facts.getSeconds() <= 0) return;
    // The slot's part ends before what comes after it: profile and judgement.
    auto seconds = x.getSeconds();
    auto end = x.getCommittedAt() - seconds.getProfile() - seconds.getJudge();
    auto lane = facts.getDeviceUuid().size() > 0 ? facts.getDeviceUuid() : facts.getDevice();
    to_.uses.push_back({word(lane), category, episode.group, episode.member, x.getTurn(),
                        end - facts.getSeconds(), end,
                        std::max(0.0, seconds.getEvaluate() - facts.getSeconds())});
  }

  void add_end(wire::EpisodeRecord::Reader x) {
    auto& episode = episode_of(x.getEpisode());
    episode.said_turns = x.getTurns();
    episode.has_ended = true;
    episode.outcome = word(capnp::DynamicEnum{x.getOutcome()});
    episode.stop_reason = word(x.getStopReason());
    episode.committed_at = x.getCommittedAt();
    auto returns = x.getReturns();
    if (returns.size() > 0 && !std::isnan(returns[0])) episode.first_return = returns[0];
  }

  run_facts& to_;
  const uint32_t shared_turns_;
  study::score_reader scores_;
  std::string categories_; ///< of the episode that is read
  std::array<std::string_view, 8> latest_{};
  size_t next_ = 0;
};

} // namespace

size_t run_facts::bytes() const {
  auto result = sizeof *this + episodes.capacity() * sizeof(episode_facts) +
                findings.capacity() * sizeof(finding_facts) + uses.capacity() * sizeof(slot_use);
  for (const auto& x : findings) result += x.evidence.capacity();
  for (const auto* all : {&rewards, &speedups})
    for (const auto& [position, values] : *all) result += values.capacity() * sizeof(double);
  for (const auto& [task, x] : scores)
    result += x.episodes.capacity() * sizeof(study::episode_score);
  constexpr size_t of_node = 32; // and what the allocator adds to it
  for (const auto& x : words) result += sizeof x + x.capacity() + of_node;
  return result + summary.speedups.timed_episodes() * sizeof(double);
}

std::string name_of(const episode_facts& x) {
  return fmt::format("g{}.e{}", x.group, x.member);
}

expected<run_facts> read_facts(const watch::world& in, const run_directory& run,
                               const std::function<bool()>& goes_on) {
  auto from = watch::open_store_of(in, run);
  KM_TRY(from);
  auto shared = reporting::shared_turns_of(run);
  KM_TRY(shared);
  run_facts result;
  result.run = run.name;
  facts_reader reader{result, *shared};
  constexpr uint64_t looks_after = 256; // records
  uint64_t read = 0;
  bool stopped = false;
  auto ok = (*from)->scan_run(run.name, [&](wire::Record::Reader x) {
    reader.add(x);
    return !goes_on || ++read % looks_after != 0 || !(stopped = !goes_on());
  });
  KM_TRY(ok);
  if (stopped)
    return infrastructure_error("busy", "failed to read " + run.path + ": it was to end early",
                                "ask again");
  reader.finish();
  return result;
}

} // namespace kernelmill::page
