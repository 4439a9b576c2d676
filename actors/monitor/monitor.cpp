#include "actors/monitor/monitor.hpp"

#include <algorithm>
#include <functional>

#include <caf/all.hpp>

#include "actors/gather.hpp"
#include "messages/base/clock.hpp"

namespace kernelmill {

namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A round takes at most a fiftieth of the time for which it is shown: watching ten thousand
// episodes takes 2 % of a core, for any number of viewers.
constexpr int rounds_rarity = 50;
constexpr milliseconds shortest_keeping{100};
constexpr milliseconds longest_keeping{1000};

constexpr seconds sampling_after_viewer{60};
constexpr milliseconds sampling_interval{1000};

// A round waits for those that gather themselves, which take two seconds at most.
constexpr milliseconds round_patience{2500};

// Sampling an actor with many children costs as much as a round.
constexpr unsigned most_children_sampled = 64;

constexpr size_t most_gone = 100;

bool is_own_number(std::string_view name) {
  return name == "mailbox" || name == "actor" || name == "oldest_seconds";
}

// An actor got on when its numbers changed between two snapshots.
uint64_t mark_of(wire::Snapshot::Reader x) {
  uint64_t result = std::hash<std::string_view>{}({x.getState().begin(), x.getState().size()});
  for (auto number : x.getNumbers())
    if (!is_own_number(number.getName().cStr()))
      result = result * 1099511628211ull ^ std::hash<double>{}(number.getValue());
  return result;
}

Message<wire::Snapshot> gone_snapshot(wire::Snapshot::Reader known, const std::string& why) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    x.setActor(known.getActor());
    x.setId(known.getId());
    x.setState("gone");
    x.setSince(seconds_since_1970());
    x.setDetail(why);
    x.setNumbers(known.getNumbers());
  });
}

} // namespace

gathering_monitor_state::clock::time_point gathering_monitor_state::now() const {
  return clock::time_point{self->clock().now().time_since_epoch()};
}

void gathering_monitor_state::add(const status_actor& who) {
  self->monitor(who);
  watched x;
  x.who = who;
  x.progress_at = now();
  observed.emplace(next_key++, std::move(x));
}

// -- a round --------------------------------------------------------------------------------------

caf::result<Message<wire::Snapshot>> gathering_monitor_state::look() {
  ++views;
  last_viewer = now();
  tick_later();
  if (!latest.empty() && now() - latest_at < keeps) return latest;
  auto answer = self->make_response_promise<Message<wire::Snapshot>>();
  viewers.push_back(answer);
  if (rounding) return answer;
  rounding = true;
  round_began = now();
  ++rounds;
  open = 1;
  for (auto& [key, x] : observed) {
    // An actor that is stuck already is shown so. This round does not ask it again, so its mailbox
    // does not fill with our questions.
    bool stuck = x.asked && now() - x.asked_at >= answer_patience_of_monitors;
    if (stuck) continue;
    ++open;
    ask(key, true);
  }
  close_one();
  return answer;
}

void gathering_monitor_state::ask(uint64_t key, bool for_viewer) {
  auto& x = observed.at(key);
  if (!x.asked) {
    x.asked = true;
    x.asked_at = now();
    x.asked_at_wall = seconds_since_1970();
  }
  auto round = rounds;
  self->request(x.who, caf::infinite, atom::status_v)
      .then(
          [this, key, for_viewer, round](const Message<wire::Snapshot>& says) {
            hear(key, says, for_viewer && round == rounds);
          },
          [this, for_viewer, round](caf::error&) { // its DOWN says why
            if (for_viewer && round == rounds) close_one();
          });
}

void gathering_monitor_state::hear(uint64_t key, const Message<wire::Snapshot>& says,
                                   bool for_viewer) {
  if (auto i = observed.find(key); i != observed.end()) {
    auto& x = i->second;
    x.waited = duration<double>(now() - x.asked_at).count();
    x.asked = false;
    x.last = says;
    auto mark = mark_of(*says.open());
    if (mark != x.mark) {
      x.mark = mark;
      x.progress_at = now();
    }
  }
  if (for_viewer) close_one();
}

void gathering_monitor_state::close_one() {
  if (!rounding || open == 0 || --open > 0) return;
  rounding = false;
  std::vector<Message<wire::Snapshot>> children;
  for (auto& [key, x] : observed) children.push_back(show(x));
  children.insert(children.end(), gone.begin(), gone.end());
  latest = with_children(own(), children);
  latest_at = now();
  keeps = std::clamp<clock::duration>(rounds_rarity * (latest_at - round_began), shortest_keeping,
                                      longest_keeping);
  for (auto& one : std::exchange(viewers, {})) one.deliver(latest);
}

Message<wire::Snapshot> gathering_monitor_state::show(const watched& x) const {
  if (x.asked) return stuck_snapshot(*x.last.open(), x.asked_at_wall);
  auto small = x.last.open()->getChildren().size() <= most_children_sampled;
  if (!small) return x.last; // the run says more of itself
  return with_numbers(x.last,
                      {{"oldest_seconds", x.waited},
                       {"progress_seconds", duration<double>(now() - x.progress_at).count()}});
}

Message<wire::Snapshot> gathering_monitor_state::own() const {
  return with_mailbox(snapshot_of("monitor", {}, "answering", {},
                                  {{"observed", observed.size()},
                                   {"views", views},
                                   {"rounds", rounds},
                                   {"samples", samples}}),
                      self->id(), self->mailbox().size());
}

// -- between looks --------------------------------------------------------------------------------

void gathering_monitor_state::tick_later() {
  if (ticking) return;
  ticking = true;
  // No part of the interface: no other actor may send it.
  caf::delayed_anon_send(caf::actor_cast<caf::actor>(self), sampling_interval, atom::tick_v);
}

void gathering_monitor_state::tick() {
  ticking = false;
  if (rounding && now() - round_began >= round_patience) {
    open = 1; // an actor that has not answered is stuck
    ++rounds; // an answer that comes now belongs to no round
    close_one();
  }
  if (now() - last_viewer < sampling_after_viewer) {
    sample();
    tick_later();
  }
}

void gathering_monitor_state::sample() {
  ++samples;
  for (auto& [key, x] : observed)
    if (!x.asked && x.last.open()->getChildren().size() <= most_children_sampled) ask(key, false);
}

void gathering_monitor_state::on_down(const caf::down_msg& down) {
  auto i = std::find_if(observed.begin(), observed.end(),
                        [&](auto& x) { return x.second.who.address() == down.source; });
  if (i == observed.end()) return;
  auto known = i->second.last;
  // An orderly end is nothing to look at; a slot that was taken out of service is.
  if (!known.empty() && down.reason != caf::exit_reason::normal &&
      down.reason != caf::exit_reason::user_shutdown) {
    gone.push_back(gone_snapshot(*known.open(), self->system().render(down.reason)));
    if (gone.size() > most_gone) gone.pop_front();
  }
  observed.erase(i);
}

// -- behavior -------------------------------------------------------------------------------------

monitor_actor::behavior_type
gathering_monitor(monitor_actor::stateful_pointer<gathering_monitor_state> self) {
  self->set_down_handler([self](caf::down_msg& down) { self->state.on_down(down); });
  self->set_default_handler(
      [self](caf::scheduled_actor* ptr, caf::message_view& x) -> caf::result<caf::message> {
        if (!x.content().match_elements<atom::tick>()) return caf::print_and_drop(ptr, x);
        self->state.tick();
        return caf::message{};
      });
  return {
      [self](atom::status) { return self->state.look(); },
      [self](atom::observe, const status_actor& who) { self->state.add(who); },
  };
}

} // namespace kernelmill
