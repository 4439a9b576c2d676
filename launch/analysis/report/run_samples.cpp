#include "launch/analysis/report/run_samples.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "launch/analysis/report/speedups.hpp"
#include "storage/lineage/fork.hpp"
#include "storage/lineage/group_reader.hpp"

namespace kernelmill::reporting {

namespace {

/// Longer messages are a compiler's log; the store has them.
constexpr size_t message_bytes = 2000;

std::string str(capnp::Text::Reader x) {
  return {x.cStr(), x.size()};
}

void note_timing(sample& x, wire::Timing::Reader t) {
  auto s = t.getSpeedup();
  if (!(s.getEstimate() > 0)) return;
  x.speedup = speedup_interval{s.getEstimate(), s.getLow(), s.getHigh()};
  x.candidate = run_time{t.getCandidateMs(), t.getSamples()};
  x.reference = run_time{t.getReferenceMs(), t.getSamples()};
  x.overhead_ms = t.getOverheadMs();
}

sample sample_of(const std::string& run, wire::TurnRecord::Reader turn) {
  sample x;
  auto e = turn.getEpisode();
  auto facts = turn.getFacts();
  auto verdict = turn.getVerdict();
  auto evaluation = facts.getEvaluation();
  x.task = str(e.getTask());
  x.turn = fmt::format("{}/g{}.e{}.t{}", run, e.getGroup(), e.getMember(), turn.getTurn());
  x.compiled = facts.getBuild().getCompiled();
  x.correct = verdict.getOutcome() == wire::Outcome::ACCEPTED;
  if (is_timed(turn)) note_timing(x, evaluation.getTiming());
  x.contract = str(facts.getContract());
  x.backend = str(facts.getBackend());
  x.hardware = str(evaluation.getDevice());
  x.category = str(verdict.getCategory());
  x.message = str(verdict.getFault().getMessage()).substr(0, message_bytes);
  x.cases = evaluation.getCases().size();
  for (auto c : evaluation.getCases()) x.cases_passed += c.getPass();
  return x;
}

double lower_bound(const sample& x) {
  return x.speedup && x.speedup->low ? *x.speedup->low : 0;
}

/// Whether `x` stands for its episode rather than `y`, which came before.
bool stands_before(const sample& x, const sample& y) {
  if (x.correct != y.correct) return x.correct;
  if (x.correct) return lower_bound(x) > lower_bound(y);
  return x.compiled || !y.compiled;
}

sample nothing_submitted(const std::string& task) {
  sample x;
  x.task = task;
  x.category = "nothing_submitted";
  return x;
}

class collector {
public:
  /// `shared_turns`: first turns of a fork; they count for the run that they come from.
  collector(const run_directory& run, sample_unit by, uint32_t shared_turns)
      : run_(run.name), by_(by), shared_turns_(shared_turns) {}

  void take(const stored_episode& stored) {
    std::vector<sample> judged;
    std::vector<bool> lost;
    std::vector<uint32_t> numbers; // of the turns of `judged`
    std::string task;
    for (const auto& record : stored.turns) {
      auto opened = record.open();
      auto turn = opened->getTurn();
      task = str(turn.getEpisode().getTask());
      if (!result_.kinds.contains(task))
        result_.kinds[task] = {str(turn.getFacts().getVerb()),
                               str(turn.getFacts().getOperatorFamily())};
      if (turn.getTurn() < shared_turns_) continue;
      if (turn.getVerdict().getOutcome() == wire::Outcome::OPEN) continue; // it is no sample
      lost.push_back(turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE);
      if (lost.back()) continue;
      judged.push_back(sample_of(run_, turn));
      numbers.push_back(turn.getTurn());
    }
    bool ended_badly = false;
    if (stored.end) {
      auto opened = stored.end->open();
      auto end = opened->getEpisode();
      task = str(end.getEpisode().getTask());
      ended_badly = end.getOutcome() == wire::Outcome::INFRASTRUCTURE;
    }
    note_first_correct(judged, numbers);
    if (by_ == sample_unit::turn) return take_turns(task, lost, judged);
    auto id = next_id_[task]++;
    if (!stored.end)
      result_.without.push_back({task, left_out::reason::open});
    else if (ended_badly)
      result_.without.push_back({task, left_out::reason::infrastructure});
    else {
      // An agent that handed nothing in has failed its task.
      if (judged.empty()) judged.push_back(nothing_submitted(task));
      take_best(id, judged);
    }
  }

  sample_set result() { return std::move(result_); }

private:
  void note_first_correct(std::vector<sample>& judged, const std::vector<uint32_t>& numbers) const {
    auto first =
        std::find_if(judged.begin(), judged.end(), [](const auto& x) { return x.correct; });
    if (first != judged.end())
      first->turns_to_first_correct =
          numbers[static_cast<size_t>(first - judged.begin())] + 1 - shared_turns_;
  }

  void take_turns(const std::string& task, const std::vector<bool>& lost,
                  std::vector<sample>& judged) {
    auto next = judged.begin();
    for (bool gone : lost) {
      auto id = next_id_[task]++;
      if (gone) {
        result_.without.push_back({task, left_out::reason::infrastructure});
        continue;
      }
      next->id = id;
      result_.samples.push_back(std::move(*next++));
    }
  }

  void take_best(uint64_t id, std::vector<sample>& judged) {
    auto* best = &judged.front();
    std::optional<uint32_t> turns;
    for (auto& x : judged) {
      if (x.turns_to_first_correct) turns = x.turns_to_first_correct;
      if (&x != best && stands_before(x, *best)) best = &x;
    }
    best->id = id;
    best->turns_to_first_correct = turns;
    result_.samples.push_back(std::move(*best));
  }

  std::string run_;
  sample_unit by_;
  uint32_t shared_turns_;
  std::map<std::string, uint64_t> next_id_;
  sample_set result_;
};

} // namespace

expected<sample_set> read_samples(const store& from, const run_directory& run, sample_unit by) {
  auto fork = fork_of(run);
  KM_TRY(fork);
  collector all{run, by, *fork ? (*fork)->turns : 0};
  auto done = for_each_group(from, run.name, [&](const stored_group& group) -> expected<void> {
    for (const auto& episode : group.episodes) all.take(episode);
    return {};
  });
  KM_TRY(done);
  return all.result();
}

} // namespace kernelmill::reporting
