#include "actors/run/run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/caf_error.hpp"
#include "actors/gather.hpp"
#include "actors/run/run_records.hpp"
#include "messages/base/counted.hpp"
#include "messages/fault.hpp"
#include "messages/identity.hpp"

namespace kernelmill {

namespace {

// How often episodes look at the clock: often enough for the shortest of their deadlines.
std::chrono::milliseconds watch_interval(const episode_settings& x) {
  using std::chrono::milliseconds;
  auto shortest = std::min({x.policy_deadline, x.build_deadline, x.evaluate_deadline,
                            x.commit_deadline, x.episode_deadline});
  return std::clamp(shortest / 16, milliseconds{50}, milliseconds{10'000});
}

} // namespace

batch_run_state::~batch_run_state() {
  for (auto& [ordinal, episode] : live) caf::anon_send_exit(episode.handle, caf::exit_reason::kill);
}

// -- admission ------------------------------------------------------------------------------------

bool batch_run_state::may_admit() const {
  if (stopped || paused || next >= counters.planned || live.size() >= plan.max_live) return false;
  return next % plan.group_size != 0 || may_begin_group();
}

bool batch_run_state::may_begin_group() const {
  if (services->search && next / plan.group_size >= generations) return false;
  return !listener || listener->lets_groups_begin();
}

// One a message, so that other actors get their turns in between: the first requests of 100,000
// episodes do not pile up in the policy's mailbox.
void batch_run_state::admit() {
  if (waits_for_generation()) ask_search();
  if (admitting || !may_admit()) return;
  start_episode(next++, settings, 0);
  if (!may_admit()) return;
  admitting = true;
  self->send(self, atom::proceed_v);
}

// `turns` of it are committed already, and counted.
void batch_run_state::start_episode(uint64_t ordinal, std::shared_ptr<const episode_settings> how,
                                    uint32_t turns) {
  episode_assignment where;
  where.run = name_text;
  where.group = static_cast<uint32_t>(ordinal / plan.group_size);
  where.member = static_cast<uint32_t>(ordinal % plan.group_size);
  where.what = plan.groups[where.group];
  where.ordinal = ordinal;
  auto episode = self->spawn<caf::monitored>(agent_episode, std::move(how), services, where,
                                             caf::actor_cast<run_actor>(self));
  ordinals.emplace(episode.address(), ordinal);
  if (has_quorum(where.group)) self->send(episode, atom::drop_v);
  live.emplace(ordinal, live_episode{episode, std::move(where), turns});
  counters.live = static_cast<uint32_t>(live.size());
  watch();
}

// One timer for the run instead of one for every request: CAF's clock takes a lock and wakes a
// thread for each, and keeps it until it is due.
void batch_run_state::watch() {
  if (watching || live.empty()) return;
  watching = true;
  self->delayed_send(self, watch_interval(*settings), atom::tick_v);
}

// -- what the log says --------------------------------------------------------------------------

void batch_run_state::tell(log_level level, const std::string& what) const {
  services->log.write(level, {"run", plan.name, {}, {}}, what);
}

void batch_run_state::tell_ending(wire::EpisodeOutcome::Reader outcome) const {
  auto why = fault_of(outcome.getFault());
  bool left = !outcome.getClosed() && why.cls != fault_class::none;
  // Logs the fault that ended the run for one episode, and again at the end.
  bool known = stopped && fault && fault->category == why.category;
  auto level = left && !known ? log_level::warn : log_level::info;
  if (!services->log.takes(level)) return;
  auto ref = outcome.getEpisode();
  episode_id id{plan.name, ref.getTask(), ref.getGroup(), ref.getMember()};
  static constexpr const char* outcomes[] = {"accepted", "rejected", "infrastructure", "open"};
  auto text = std::string{outcome.getClosed() ? "ended" : "left open"} + ": " + id.task;
  // A cancelled episode has no outcome.
  if (outcome.getClosed() || is_lost(why, std::nullopt))
    text += std::string{", "} + outcomes[static_cast<size_t>(outcome.getOutcome())];
  text += " after " + counted(outcome.getTurns(), "turn") + ", " + outcome.getStopReason().cStr();
  if (!why.message.empty()) text += ": " + why.message;
  services->log.write(level, {"run", plan.name, short_name(id), {}}, text);
}

void batch_run_state::tell_outcome(const std::string& state, double seconds) const {
  auto text = state + ": " + std::to_string(counters.ended) + " of " +
              counted(counters.planned, "episode") + ", " + counted(counters.turns, "turn") + ", " +
              std::to_string(counters.accepted) + " accepted, " +
              std::to_string(counters.rejected) + " rejected, " +
              std::to_string(counters.infrastructure()) + " infrastructure, in " +
              std::to_string(static_cast<long long>(std::ceil(seconds))) + " s of this session";
  if (fault) text += ": " + render(*fault);
  tell(state == "failed" ? log_level::error : log_level::info, text);
}

// -- endings ------------------------------------------------------------------------------------

void batch_run_state::on_turns(const caf::actor_addr& who, uint32_t committed, bool fresh) {
  auto known = ordinals.find(who);
  if (known == ordinals.end()) return;
  auto& episode = live.at(known->second);
  counters.turns += committed - episode.turns;
  counters.fresh_turns += fresh ? 1 : 0;
  episode.turns = committed;
  if (listener) listener->on_progress(counters);
}

void batch_run_state::on_finished(wire::EpisodeOutcome::Reader outcome) {
  auto ref = outcome.getEpisode();
  auto ordinal = uint64_t{ref.getGroup()} * plan.group_size + ref.getMember();
  auto ended = live.find(ordinal);
  if (ended == live.end()) return;
  // An episode that was lost with its actor says 0 turns.
  auto committed = std::max(outcome.getTurns(), ended->second.turns);
  counters.turns += committed - ended->second.turns;
  ordinals.erase(ended->second.handle.address());
  live.erase(ended);
  counters.live = static_cast<uint32_t>(live.size());
  tell_ending(outcome);
  for (auto stage : outcome.getSeconds()) stage_seconds[stage.getName().cStr()] += stage.getValue();
  auto& group = groups[ref.getGroup()];
  if (outcome.getClosed()) {
    departures_in_a_row = 0;
    ++counters.ended;
    counters.ended_turns += outcome.getTurns();
    ++group.ended;
    count_outcome(counters, kinds, outcome);
    for (auto turn : outcome.getSketches())
      losses.note(ref.getTask().cStr(), turn.getLanguage().cStr(), turn.getLength(),
                  turn.getLost());
    look_at_lost_turns(outcome);
    if (is_comparable(outcome)) {
      group.returns[ref.getMember()] = outcome.getReturn();
      ++group.usable;
      if (has_quorum(ref.getGroup())) drop_rest(ref.getGroup());
    }
    if (group.ended == plan.group_size) commit_group(ref.getGroup());
  } else {
    ++counters.left_open;
    note_departure(outcome, committed);
  }
  drop_departed();
  if (listener) listener->on_progress(counters);
  admit();
  finish_if_done();
}

void batch_run_state::on_lost(const caf::actor_addr& who, const std::string& why) {
  auto known = ordinals.find(who);
  if (known == ordinals.end()) return; // it had said goodbye
  auto message = lost_episode(live.at(known->second).where, why);
  on_finished(*message.open());
}

void batch_run_state::stop(const char* why, std::optional<error> cause) {
  if (stopped) return;
  stopped = why;
  if (cause) fault = std::move(cause);
  for (auto& [ordinal, episode] : live) self->send(episode.handle, atom::cancel_v);
  finish_if_done();
}

bool batch_run_state::has_quorum(uint32_t group) const {
  return plan.quorum > 0 && groups[group].usable >= plan.quorum;
}

// Each episode closes with a record of its own, so a resumed run does not take it up again.
void batch_run_state::drop_rest(uint32_t group) {
  for (auto& [ordinal, episode] : live)
    if (episode.where.group == group) self->send(episode.handle, atom::drop_v);
}

// -- records ------------------------------------------------------------------------------------

void batch_run_state::commit_group(uint32_t index) {
  commit(group_record(plan, index, groups[index].returns));
}

// The run does not end before the record is there; without it, it has failed.
void batch_run_state::commit(const Message<wire::Record>& record) {
  ++pending_commits;
  self->request(services->lineage, settings->commit_deadline, atom::commit_v, envelope{}, record,
                Message<wire::ArtifactBatch>{})
      .then(
          [this](bool) {
            --pending_commits;
            finish_if_done();
          },
          [this](caf::error& why) {
            --pending_commits;
            stop("failed", from_caf(why));
            finish_if_done();
          });
}

void batch_run_state::finish_if_done() {
  if (!answer.pending() || ending || !live.empty() || pending_commits > 0) return;
  if (!stopped && next < counters.planned) {
    if (services->search && !asking_search) end_broken_generation();
    return;
  }
  if (drop_departed(true); !live.empty()) return;
  ending = true;
  commit_ending();
}

// A run that is cancelled when all of it has ended has finished.
std::string batch_run_state::outcome() const {
  if (stopped == "failed") return *stopped;
  if (counters.ended == counters.planned) return "finished";
  return stopped.value_or("incomplete");
}

void batch_run_state::commit_opening() {
  commit(run_record(plan, "running", nullptr, std::nullopt));
}

void batch_run_state::commit_ending() {
  kinds.episodes = counters.ended;
  kinds.turns = counters.turns;
  kinds.complete = true;
  kinds.sandbox_complete = plan.sandbox_complete;
  kinds.alarms = losses.alarms();
  for (const auto& alarm : kinds.alarms) tell(log_level::warn, alarm);
  auto state = outcome();
  bool finished = state == "finished";
  if (finished) fault.reset();
  self->request(services->lineage, settings->commit_deadline, atom::commit_v, envelope{},
                run_record(plan, state, finished ? &kinds : nullptr, fault, counters.lost_open),
                Message<wire::ArtifactBatch>{})
      .then([this](bool) { deliver_summary(); },
            [this](caf::error& why) {
              if (!fault) fault = from_caf(why); // what ended it before says more
              stopped = "failed";
              deliver_summary();
            });
}

void batch_run_state::deliver_summary() {
  std::chrono::duration<double> seconds = self->clock().now() - started;
  auto ended = outcome();
  tell_outcome(ended, seconds.count());
  answer.deliver(
      run_summary(plan, counters, ended, seconds.count(), stage_seconds, kinds.alarms, fault));
}

status_actor batch_run_state::gatherer() const {
  std::vector<status_actor> episodes;
  auto ordinals_asked = std::make_shared<std::vector<uint64_t>>();
  episodes.reserve(live.size());
  ordinals_asked->reserve(live.size());
  for (auto& [ordinal, episode] : live) {
    episodes.emplace_back(episode.handle);
    ordinals_asked->push_back(ordinal);
  }
  auto unheard = [ordinals_asked, size = plan.group_size](size_t i) {
    auto ordinal = (*ordinals_asked)[i];
    episode_id id{
        {}, {}, static_cast<uint32_t>(ordinal / size), static_cast<uint32_t>(ordinal % size)};
    return snapshot_of("episode", short_name(id), {}, {}, {{"ordinal", ordinal}});
  };
  return spawn_gatherer(self->system(), std::move(episodes),
                        signed_by(static_cast<run_actor::pointer>(self), head()), unheard);
}

Message<wire::Snapshot> batch_run_state::head() const {
  return snapshot_of("run", plan.name,
                     stopped  ? "ending"
                     : paused ? "paused"
                              : "running",
                     plan.directory,
                     {{"planned", counters.planned},
                      {"live", live.size()},
                      {"ended", counters.ended},
                      {"turns", counters.turns},
                      {"fresh_turns", counters.fresh_turns},
                      {"left_open", counters.left_open},
                      {"group_size", plan.group_size},
                      {"max_live", plan.max_live},
                      {"accepted", counters.accepted},
                      {"rejected", counters.rejected},
                      {"infrastructure", counters.infrastructure()},
                      {"lost_open", counters.lost_open}});
}

// -- behavior -----------------------------------------------------------------------------------

run_actor::behavior_type batch_run(run_actor::stateful_pointer<batch_run_state> self, run_plan plan,
                                   std::shared_ptr<const episode_settings> settings,
                                   std::shared_ptr<const episode_services> services,
                                   std::shared_ptr<run_listener> listener) {
  auto& state = self->state;
  state.name_text = std::make_shared<const std::string>(plan.name);
  state.counters.planned = static_cast<uint32_t>(plan.groups.size()) * plan.group_size;
  state.groups.resize(plan.groups.size());
  for (auto& group : state.groups) group.returns.resize(plan.group_size);
  state.plan = std::move(plan);
  state.settings = std::move(settings);
  state.services = std::move(services);
  state.listener = std::move(listener);
  self->set_down_handler([self](caf::down_msg& down) {
    self->state.on_lost(down.source, self->system().render(down.reason));
  });
  return {
      [self](atom::status) { return self->delegate(self->state.gatherer(), atom::status_v); },
      [self](atom::start) -> caf::result<Message<wire::RunSummary>> {
        auto& s = self->state;
        s.started = std::chrono::steady_clock::time_point{self->clock().now().time_since_epoch()};
        s.answer = self->make_response_promise<Message<wire::RunSummary>>();
        auto answer = s.answer;
        s.tell(log_level::info, (s.settings->resume ? "opened again: " : "opened: ") +
                                    counted(s.counters.planned, "episode") + " in " +
                                    counted(s.groups.size(), "group"));
        s.commit_opening();
        s.admit();
        s.finish_if_done();
        return answer;
      },
      [self](atom::commit, uint32_t turns, bool fresh) {
        self->state.on_turns(caf::actor_cast<caf::actor_addr>(self->current_sender()), turns,
                             fresh);
      },
      [self](atom::finished, const Message<wire::EpisodeOutcome>& outcome) {
        self->state.on_finished(*outcome.open());
      },
      [self](atom::observe) { return self->state.head(); },
      [self](atom::pause, bool on) {
        self->state.paused = on;
        self->state.admit();
      },
      [self](atom::cancel) { self->state.stop("cancelled", std::nullopt); },
      [self](atom::proceed) {
        self->state.admitting = false;
        self->state.admit();
      },
      [self](atom::tick) {
        auto& s = self->state;
        s.watching = false;
        for (auto& [ordinal, episode] : s.live) self->send(episode.handle, atom::tick_v);
        s.watch();
      },
  };
}

} // namespace kernelmill
