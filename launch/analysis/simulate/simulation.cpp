#include "launch/analysis/simulate/simulation.hpp"

#include <algorithm>
#include <deque>
#include <queue>

namespace kernelmill::simulating {

namespace {

enum stage : uint8_t { policy, build, evaluate, commit, stage_count };

constexpr const char* names[] = {"policy", "build", "evaluate", "commit"};
// A stage this busy is taken for what limits: waiting grows without bound above it.
constexpr double taken = 0.85;
// The last episodes of a run never wait and keep nothing busy; the bottleneck shows before them.
constexpr double full_share = 0.75; // of the turns

struct event {
  double at;
  uint64_t number; // of two at the same time the older one goes first
  uint64_t episode_id;
  stage where;

  bool operator>(const event& x) const { return at != x.at ? at > x.at : number > x.number; }
};

struct waiting {
  uint64_t episode_id;
  double since;
};

/// Servers in front of one line.
struct station {
  uint64_t servers = 1;
  uint64_t taken = 0;
  std::deque<waiting> line;
  std::vector<double> waits;
  double busy = 0;      // seconds of servers
  double busy_full = 0; // the same while the run was full
  double queued = 0;    // jobs in the line, over time
  double waited = 0;    // seconds of those that have left it
  uint64_t most = 0;

  stage_figures figures(const char* name, double seconds, double full_seconds) const {
    stage_figures result;
    result.name = name;
    result.servers = servers;
    result.jobs = waits.size();
    if (seconds > 0) {
      result.busy = busy / (static_cast<double>(servers) * seconds);
      result.queue_mean = queued / seconds;
    }
    if (full_seconds > 0)
      result.busy_full = busy_full / (static_cast<double>(servers) * full_seconds);
    if (!waits.empty()) result.wait_mean = waited / static_cast<double>(waits.size());
    auto sorted = waits;
    result.wait_p50 = percentile(sorted, 0.5);
    result.wait_p90 = percentile(sorted, 0.9);
    result.queue_most = most;
    return result;
  }
};

class simulation {
public:
  simulation(const workload& what, const cluster_size& on) : what_(what), on_(on) {
    stations_[policy].servers = uint64_t{on.servers} * on.in_flight;
    stations_[build].servers = uint64_t{on.nodes} * on.compilers;
    stations_[evaluate].servers = uint64_t{on.nodes} * on.slots;
    episodes_.resize(what.episodes);
    uint64_t all = 0;
    for (uint64_t episode_id = 0; episode_id < what.episodes; ++episode_id)
      all += turns_of(episode_id);
    full_until_ = static_cast<uint64_t>(full_share * static_cast<double>(all));
  }

  simulation_result run() {
    admit();
    while (!events_.empty()) {
      auto next = events_.top();
      events_.pop();
      pass_time(next.at);
      finish(next);
    }
    return result();
  }

private:
  struct episode {
    uint32_t turn = 0;
    double admitted = 0;
  };

  void pass_time(double until) {
    auto elapsed = until - now_;
    now_ = until;
    for (auto& x : stations_) {
      x.busy += elapsed * static_cast<double>(x.taken);
      x.queued += elapsed * static_cast<double>(x.line.size());
    }
    lived_ += elapsed * static_cast<double>(live_);
    if (turns_ >= full_until_ && full_seconds_ > 0) return;
    full_seconds_ = now_;
    lived_full_ = lived_;
    for (auto& x : stations_) x.busy_full = x.busy;
  }

  // -- randomness -----------------------------------------------------------------------------

  // One source for each question about each turn, so that the order of events changes no answer.
  random_source source(uint64_t episode_id, uint32_t turn, uint32_t question) const {
    random_source mix{what_.seed};
    random_source second{mix.next() ^ episode_id};
    return random_source{second.next() ^ (uint64_t{turn} << 8 | question)};
  }

  bool chance(double share, uint64_t episode_id, uint32_t question) const {
    if (share >= 1) return true;
    return source(episode_id, episodes_[episode_id].turn, question).unit() < share;
  }

  uint32_t turns_of(uint64_t episode_id) const {
    if (what_.turns.empty()) return what_.max_turns;
    auto at = source(episode_id, 0, 20).unit() * static_cast<double>(what_.turns.size());
    return std::clamp(what_.turns[static_cast<size_t>(at)], 1u, what_.max_turns);
  }

  double time_at(stage where, uint64_t episode_id) const {
    if (where == build && what_.cached > 0 && chance(what_.cached, episode_id, 10)) return 0;
    const distribution* all[] = {&what_.policy, &what_.build, &what_.evaluate, &what_.commit};
    auto from = source(episode_id, episodes_[episode_id].turn, where);
    return all[where]->draw(from);
  }

  // -- the path of an episode -----------------------------------------------------------------

  void admit() {
    while (next_ < episodes_.size() && live_ < on_.max_live) {
      ++live_;
      episodes_[next_].admitted = now_;
      arrive(policy, next_++);
    }
  }

  void arrive(stage where, uint64_t episode_id) {
    auto& x = stations_[where];
    x.line.push_back({episode_id, now_});
    serve(where);
    x.most = std::max<uint64_t>(x.most, x.line.size());
  }

  void serve(stage where) {
    auto& x = stations_[where];
    if (where == commit) return serve_all(x);
    while (x.taken < x.servers && !x.line.empty()) {
      auto episode_id = leave_line(x);
      ++x.taken;
      events_.push({now_ + time_at(where, episode_id), count_++, episode_id, where});
    }
  }

  // One transaction for all waiting turns; it takes as long as the first of them would.
  void serve_all(station& x) {
    if (!batch_.empty() || x.line.empty()) return;
    auto time = time_at(commit, x.line.front().episode_id);
    x.taken = 1;
    while (!x.line.empty()) batch_.push_back(leave_line(x));
    events_.push({now_ + time, count_++, 0, commit});
  }

  uint64_t leave_line(station& x) {
    auto first = x.line.front();
    x.line.pop_front();
    x.waits.push_back(now_ - first.since);
    x.waited += now_ - first.since;
    return first.episode_id;
  }

  void finish(const event& e) {
    if (e.where == commit) {
      auto done = std::move(batch_);
      batch_.clear();
      stations_[commit].taken = 0;
      for (auto episode_id : done) end_turn(episode_id);
      return serve(commit);
    }
    --stations_[e.where].taken;
    arrive(after(e.where, e.episode_id), e.episode_id);
    serve(e.where);
  }

  stage after(stage where, uint64_t episode_id) const {
    if (where == policy && chance(what_.builds, episode_id, 11)) return build;
    if (where == build && chance(what_.evaluations, episode_id, 12)) return evaluate;
    return commit;
  }

  void end_turn(uint64_t episode_id) {
    ++turns_;
    auto& x = episodes_[episode_id];
    if (++x.turn < turns_of(episode_id)) return arrive(policy, episode_id);
    --live_;
    life_ += now_ - x.admitted;
    admit();
  }

  // -- figures --------------------------------------------------------------------------------

  simulation_result result() const {
    simulation_result x;
    x.seconds = now_;
    x.episodes = episodes_.size();
    x.turns = turns_;
    for (int i = 0; i < stage_count; ++i)
      x.stages.push_back(stations_[i].figures(names[i], now_, full_seconds_));
    if (now_ > 0) x.live_mean = lived_ / now_;
    if (x.episodes > 0) x.episode_mean = life_ / static_cast<double>(x.episodes);
    x.limit = limit_of(x);
    return x;
  }

  std::string limit_of(const simulation_result& x) const {
    auto most = std::max_element(x.stages.begin(), x.stages.end(),
                                 [](auto& a, auto& b) { return a.busy_full < b.busy_full; });
    if (most->busy_full >= taken) return most->name;
    if (lived_full_ >= taken * on_.max_live * full_seconds_) return "episode.max_live";
    return "the run's length";
  }

  const workload& what_;
  const cluster_size& on_;
  station stations_[stage_count];
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::vector<episode> episodes_;
  std::vector<uint64_t> batch_; // on its way to the disk
  double now_ = 0;
  uint64_t count_ = 0;
  uint64_t next_ = 0; // episode to admit
  uint64_t live_ = 0;
  uint64_t turns_ = 0;
  double lived_ = 0;        // episodes that live, over time
  double life_ = 0;         // seconds of those that have ended
  uint64_t full_until_ = 0; // turns
  double full_seconds_ = 0, lived_full_ = 0;
};

} // namespace

simulation_result simulate(const workload& what, const cluster_size& on) {
  return simulation{what, on}.run();
}

std::vector<alternative> alternatives(const workload& what, const cluster_size& on) {
  static constexpr std::pair<uint32_t, uint32_t> factors[] = {
      {1, 1}, {2, 1}, {4, 1}, {8, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}, {4, 4}, {8, 8}};
  std::vector<alternative> result;
  for (auto [nodes, servers] : factors) {
    auto larger = on;
    larger.nodes *= nodes;
    larger.servers *= servers;
    result.push_back({nodes, servers, simulate(what, larger)});
  }
  return result;
}

} // namespace kernelmill::simulating
