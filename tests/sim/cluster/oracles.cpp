#include "tests/sim/cluster/oracles.hpp"

#include <cmath>

namespace kernelmill::sim {

namespace {

std::string verdict_of(wire::TurnRecord::Reader turn) {
  return std::string{turn.getVerdict().getCategory().cStr()} + " " +
         std::to_string(static_cast<int>(turn.getVerdict().getOutcome())) + " " +
         std::to_string(turn.getVerdict().getReward());
}

std::string essence_of(wire::TurnRecord::Reader turn) {
  return std::string{turn.getTurnId().cStr()} + " " + turn.getCandidateSha256().cStr() + " " +
         verdict_of(turn);
}

bool is_lost(wire::TurnRecord::Reader turn) {
  return turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE;
}

// One life's records, held against each promise in turn.
class inspection {
public:
  inspection(const life& x, const truth& calm) : life_(x), calm_(calm) {
    for (auto& [key, record] : x.disk->records()) look_at(key, *record.open());
    look_at_acknowledgements();
    look_at_episodes();
    look_at_the_end();
  }

  std::vector<std::string> broken;

private:
  using episode_key = std::tuple<std::string, uint32_t, uint32_t>;

  static episode_key key_of(wire::EpisodeRef::Reader x) {
    return {x.getRun().cStr(), x.getGroup(), x.getMember()};
  }

  void say(const std::string& what) { broken.push_back(what); }

  void look_at(const std::string& key, wire::Record::Reader record) {
    switch (record.which()) {
      case wire::Record::TURN: return look_at_turn(key, record.getTurn());
      case wire::Record::EPISODE: return look_at_episode(key, record.getEpisode());
      case wire::Record::GROUP: ++groups_[record.getGroup().getRun().cStr()]; return;
      case wire::Record::RUN:
        if (record.getRun().getState() == "finished") ++finished_[record.getRun().getRun().cStr()];
    }
  }

  void look_at_turn(const std::string& key, wire::TurnRecord::Reader turn) {
    auto& seen = lost_[key_of(turn.getEpisode())];
    if (turn.getTurn() != seen.size())
      say("exactly once: turn " + std::to_string(seen.size()) + " is missing before " + key);
    seen.push_back(is_lost(turn));
    ++turns_[turn.getEpisode().getRun().cStr()];
    auto facts = turn.getFacts();
    bool ours = facts.getEvaluation().getFault().getClass() == wire::FaultClass::INFRASTRUCTURE ||
                facts.getBuild().getFault().getClass() == wire::FaultClass::INFRASTRUCTURE;
    if (ours && !is_lost(turn)) say("no infrastructure reward: " + key + " is paid");
    if (is_lost(turn))
      look_at_loss(key, turn.getVerdict().getCategory().cStr());
    else
      compare(key, turn);
  }

  // A file that a power cut has torn costs time: it is sent or built again, and no turn is lost.
  void look_at_loss(const std::string& key, const std::string& category) {
    bool emptied = life_.marks.contains(to_string(fault_kind::shelf_lost));
    if (category == "parcel_damaged" || (category == "library_lost" && !emptied))
      say("damage heals: " + key + " is lost to " + category);
  }

  // A policy server may lie; what it said is then judged as it was said.
  void compare(const std::string& key, wire::TurnRecord::Reader turn) {
    auto same = calm_.turns.find(key);
    if (same == calm_.turns.end()) return say("exactly once: no calm life has " + key);
    if (same->second == essence_of(turn)) return;
    std::string sha = turn.getCandidateSha256();
    auto candidate = calm_.candidates.find(sha);
    bool lie = life_.lies.contains(sha) && candidate != calm_.candidates.end() &&
               candidate->second == verdict_of(turn);
    if (!lie) say("right verdict: " + key + " says " + essence_of(turn) + ", not " + same->second);
  }

  void look_at_episode(const std::string& key, wire::EpisodeRecord::Reader x) {
    ++episodes_[x.getEpisode().getRun().cStr()];
    // Its turns stand before it, as in the store.
    const auto& seen = lost_[key_of(x.getEpisode())];
    if (x.getTurns() != seen.size())
      say("nothing is lost: " + key + " tells of " + std::to_string(x.getTurns()) + " turns, " +
          std::to_string(seen.size()) + " are there");
    for (uint32_t i = 0; i < std::min<size_t>(x.getRewards().size(), seen.size()); ++i)
      if (seen[i] && !std::isnan(x.getRewards()[i]))
        say("no infrastructure reward: turn " + std::to_string(i) + " of " + key + " has one");
  }

  void look_at_acknowledgements() {
    auto records = life_.disk->records();
    for (auto& [key, x] : life_.disk->acknowledged()) {
      if (!records.contains(key)) say("nothing acknowledged is lost: " + key + " is");
      if (x.fresh > 1) say("exactly once: " + key + " was counted " + std::to_string(x.fresh));
    }
  }

  void look_at_episodes() {
    for (auto name : run_names) {
      if (!life_.ended) break;
      if (episodes_[name] != groups_of_run * group_size)
        say("nothing is lost: " + std::string{name} + " has " + std::to_string(episodes_[name]) +
            " episodes");
      if (groups_[name] != groups_of_run)
        say("nothing is lost: " + std::string{name} + " has " + std::to_string(groups_[name]) +
            " groups");
      if (finished_[name] == 0)
        say("nothing is lost: no record says that " + std::string{name} + " has finished");
      auto told = life_.turns_told.at(name);
      if (told != turns_[name])
        say("exactly once: the head tells of " + std::to_string(told) + " turns of " + name + ", " +
            std::to_string(turns_[name]) + " are there");
    }
  }

  void look_at_the_end() {
    if (!life_.ended)
      say("progress: a run has not finished " +
          std::to_string(static_cast<int>(life_.seconds - life_.faults_end)) +
          " s after the last fault");
    if (life_.overtaken > overtaken_bound)
      say("fairness: " + std::to_string(life_.overtaken) + " jobs overtook one");
  }

  const life& life_;
  const truth& calm_;
  std::map<episode_key, std::vector<bool>> lost_;
  std::map<std::string, uint32_t> episodes_, groups_, finished_;
  std::map<std::string, uint64_t> turns_;
};

} // namespace

truth truth_of(const life& calm) {
  truth result;
  for (auto& [key, record] : calm.disk->records()) {
    auto view = record.open();
    if (!view->isTurn()) continue;
    result.turns[key] = essence_of(view->getTurn());
    result.candidates[view->getTurn().getCandidateSha256().cStr()] = verdict_of(view->getTurn());
  }
  return result;
}

std::vector<std::string> broken_promises(const life& x, const truth& calm) {
  return inspection{x, calm}.broken;
}

std::vector<fault> shrunk(std::vector<fault> faults,
                          const std::function<bool(const std::vector<fault>&)>& fails) {
  for (size_t part = std::max<size_t>(1, faults.size() / 2); part > 0; part /= 2)
    for (size_t i = 0; i < faults.size();) {
      auto fewer = faults;
      auto from = fewer.begin() + static_cast<std::ptrdiff_t>(i);
      fewer.erase(from, from + static_cast<std::ptrdiff_t>(std::min(part, faults.size() - i)));
      if (fails(fewer))
        faults = std::move(fewer);
      else
        i += part;
    }
  for (auto& x : faults)
    while (x.for_ms > 100) {
      auto before = x.for_ms;
      x.for_ms /= 2;
      if (fails(faults)) continue;
      x.for_ms = before;
      break;
    }
  return faults;
}

} // namespace kernelmill::sim
