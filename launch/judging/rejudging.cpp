#include "launch/judging/rejudging.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "actors/episode/completion_parser.hpp"
#include "actors/episode/episode_score.hpp"
#include "actors/episode/tools/shaping.hpp"
#include "actors/episode/transition.hpp"
#include "actors/episode/turn_facts.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

namespace {

bool same_number(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool same_numbers(capnp::List<double>::Reader a, capnp::List<double>::Reader b) {
  if (a.size() != b.size()) return false;
  for (unsigned i = 0; i < a.size(); ++i)
    if (!same_number(a[i], b[i])) return false;
  return true;
}

void count_verdict(rejudging_counts& counts, wire::Verdict::Reader before,
                   wire::Verdict::Reader after) {
  ++counts.turns;
  counts.equal += is_same_verdict(before, after);
  counts.other_outcome += before.getOutcome() != after.getOutcome();
  counts.other_reward += !same_number(before.getReward(), after.getReward());
  if (!is_paid(before) || !is_paid(after)) return;
  ++counts.paid_both;
  counts.reward_before += before.getReward();
  counts.reward_after += after.getReward();
}

// Of mode `tools`: a submission that was judged succeeds or fails by its verdict.
const char* state_after(const char* before, const std::vector<scored_turn>& turns) {
  std::string_view said{before};
  if (turns.empty() || (said != "success" && said != "failure")) return before;
  return turns.back().accepted ? "success" : "failure";
}

class rejudging_of_group {
public:
  rejudging_of_group(const scoring_rules& rules, rejudging_counts& counts,
                     const answer_reader& read)
      : rules_(rules), counts_(counts), read_(read) {}

  expected<std::vector<Message<wire::Record>>> run(const stored_group& facts) {
    ++counts_.groups;
    for (const auto& x : facts.episodes) KM_TRY(judge_episode(x));
    if (facts.end) end_group(facts.end->open()->getGroup());
    return std::move(records_);
  }

private:
  expected<Message<wire::Verdict>> judge_turn(wire::TurnRecord::Reader turn) const {
    if (!reads_answer(rules_.judge.reward) || !read_) return judge(turn.getFacts(), rules_.judge);
    auto texts = read_(turn);
    KM_TRY(texts);
    auto thought = parse_completion(texts->completion).thought;
    auto facts = with_answer(turn.getFacts(), thought, texts->kernel);
    return judge(*facts.open(), rules_.judge);
  }

  expected<void> judge_episode(const stored_episode& facts) {
    ++counts_.episodes;
    shaping_ledger shaping{rules_.judge.reward.shaping};
    std::vector<scored_turn> scored;
    std::vector<past_candidate> before;
    for (const auto& record : facts.turns) {
      auto view = record.open();
      auto turn = view->getTurn();
      bool has_calls = turn.getCalls().size() > 0; // they said what became of its candidates
      if (turn.getVerdict().getOutcome() == wire::Outcome::OPEN) { // there is nothing to judge
        auto verdict = has_calls ? open_verdict(shaping.take(turn, nullptr), rules_.judge.reward)
                                 : copy_of<wire::Verdict>(turn.getVerdict());
        auto open = verdict.open();
        scored.push_back(score_of(turn, *open));
        add_turn(turn, *open, turn.getTransition().cStr());
        continue;
      }
      auto said = judge_turn(turn);
      KM_TRY(said);
      auto of_trial = said->open();
      auto reader = *of_trial;
      auto verdict = with_calls(*said, shaping.take(turn, &reader), rules_.judge.reward);
      auto judged = verdict.open();
      count_verdict(counts_, turn.getVerdict(), *judged);
      scored.push_back(score_of(turn, *judged));
      std::string sha256 = turn.getCandidateSha256();
      bool accepted = scored.back().accepted;
      add_turn(turn, *judged,
               has_calls ? turn.getTransition().cStr() : transition_of(before, sha256, accepted));
      before.push_back({std::move(sha256), accepted});
    }
    if (facts.end) end_episode(facts.member, facts.end->open()->getEpisode(), scored);
    return {};
  }

  void add_turn(wire::TurnRecord::Reader from, wire::Verdict::Reader verdict,
                const char* transition) {
    records_.push_back(build<wire::Record>([&](wire::Record::Builder record) {
      auto x = record.initTurn();
      x.setTurnId(from.getTurnId());
      x.setEpisode(from.getEpisode());
      x.setTurn(from.getTurn());
      x.setTransition(transition);
      x.setVerdict(verdict);
    }));
  }

  void end_episode(uint32_t member, wire::EpisodeRecord::Reader from,
                   const std::vector<scored_turn>& turns) {
    records_.push_back(build<wire::Record>([&](wire::Record::Builder record) {
      auto x = record.initEpisode();
      x.setEpisode(from.getEpisode());
      x.setStopReason(from.getStopReason());
      score_episode(x, turns, rules_.gamma, is_left_out(from.getStopReason().cStr()),
                    from.getUnspentTurns());
      x.setSeconds(from.getSeconds());
      x.setTerminalState(state_after(from.getTerminalState().cStr(), turns));
      x.setSteps(from.getSteps());
      x.setGpuSeconds(from.getGpuSeconds());
    }));
    auto view = records_.back().open();
    auto now = view->getEpisode();
    returns_[member] = compared_return(now);
    counts_.equal_ends += same_numbers(now.getReturns(), from.getReturns()) &&
                          now.getReadiness().getKind() == from.getReadiness().getKind();
  }

  // As many members as the run's own record compared: one that never ended has no return.
  void end_group(wire::GroupRecord::Reader from) {
    std::vector<std::optional<double>> returns(from.getReturns().size());
    for (const auto& [member, value] : returns_)
      if (member < returns.size()) returns[member] = value;
    records_.push_back(build<wire::Record>([&](wire::Record::Builder record) {
      auto x = record.initGroup();
      x.setRun(from.getRun());
      x.setTask(from.getTask());
      x.setGroup(from.getGroup());
      score_group(x, returns, rules_.advantage);
    }));
  }

  const scoring_rules& rules_;
  rejudging_counts& counts_;
  const answer_reader& read_;
  std::vector<Message<wire::Record>> records_;
  std::map<uint32_t, std::optional<double>> returns_;
};

} // namespace

bool is_same_verdict(wire::Verdict::Reader a, wire::Verdict::Reader b) {
  auto x = capnp::canonicalize(a);
  auto y = capnp::canonicalize(b);
  return x.asBytes() == y.asBytes();
}

expected<std::vector<Message<wire::Record>>> rejudge(const stored_group& facts,
                                                     const scoring_rules& rules,
                                                     rejudging_counts& counts,
                                                     const answer_reader& read) {
  return rejudging_of_group{rules, counts, read}.run(facts);
}

} // namespace kernelmill
