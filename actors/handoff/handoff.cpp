#include "actors/handoff/handoff.hpp"

#include <algorithm>

#include <caf/all.hpp>

#include "actors/handoff/handoff_state.hpp"
#include "actors/snapshots.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::handoff {

namespace {

int64_t system_ms() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

} // namespace

std::string group_name(const std::string& order, uint32_t group) {
  return order + "/g" + std::to_string(group);
}

expected<lease_table> read_lease_table(const handoff_ledger& from) {
  lease_table result;
  KM_TRY(from.scan(1, [&](uint64_t, wire::HandoffEvent::Reader x) { return result.apply(x); }));
  return result;
}

handoff_state::handoff_state(handoff_actor::pointer self) : self_(self) {
  // nop
}

void handoff_state::take(handoff_settings settings) {
  settings_ = std::move(settings);
  if (!settings_.now) settings_.now = system_ms;
  table_ = std::move(settings_.known);
  opener_ = spawn_worker_thread(self_, settings_.own_threads);
  reader_ = spawn_worker_thread(self_, settings_.own_threads);
  loader_ = spawn_worker_thread(self_, settings_.own_threads);
}

void handoff_state::start() {
  for (const auto& [id, of] : table_.orders())
    if (of.count(group_state::open) > 0) take_stock(id);
  changed_ = true;
  serve();
}

void handoff_state::tell(log_level level, const std::string& what, const std::string& run) const {
  settings_.log.write(level, {"handoff", run, {}, {}}, what);
}

// -- the log and the table ----------------------------------------------------------------------

// Writes events to disk first, then applies them: every answer is durable.
expected<void> handoff_state::keep(const expected<events>& caused) {
  KM_TRY(caused);
  if (caused->empty()) return {};
  KM_TRY(settings_.ledger->append(*caused));
  for (const auto& x : *caused)
    if (auto ok = table_.apply(*x.open()); !ok) {
      tell(log_level::error, render(ok.error()), {});
      self_->quit(to_caf(ok.error())); // the log says what is so: the next start reads it
      return ok;
    }
  changed_ = true;
  return {};
}

// Serves the trainers that wait, each time the table has changed. Serving one changes it again.
void handoff_state::serve() {
  auto time = now();
  bool late = std::any_of(waiting_.begin(), waiting_.end(),
                          [&](const auto& x) { return x.until_ms <= time; });
  while (std::exchange(changed_, false) || std::exchange(late, false)) {
    for (const auto& [id, of] : table_.orders()) look_at_fill(id, of);
    auto waiting = std::move(waiting_);
    waiting_.clear();
    for (auto& x : waiting) {
      if (try_batch(x.what, x.who)) continue;
      auto of = table_.find(x.what.what.order);
      if (!of || of->over() || x.until_ms <= time)
        answer_empty(x.what, x.who);
      else
        waiting_.push_back(std::move(x));
    }
  }
  arm();
}

// Sends a tick for the next due time. A tick too many does no harm.
void handoff_state::arm() {
  int64_t next = table_.next_expiry();
  auto earlier = [&](int64_t at) {
    if (at > 0 && (next == 0 || at < next)) next = at;
  };
  for (const auto& x : waiting_) earlier(x.until_ms);
  for (const auto& [id, of] : table_.orders())
    if (of.count(group_state::open) > 0) earlier(of.what.deadline_ms);
  for (const auto& [id, x] : courses_) earlier(x.again_at);
  auto time = now();
  if (next == 0 || (armed_ms_ > time && armed_ms_ <= next)) return;
  armed_ms_ = std::max(next, time + 1);
  self_->delayed_send(self_, std::chrono::milliseconds{armed_ms_ - time}, atom::tick_v);
}

void handoff_state::tick() {
  armed_ms_ = 0;
  auto time = now();
  if (auto ok = keep(table_.expire(time)); !ok) tell(log_level::error, render(ok.error()), {});
  look_at_deadlines();
  std::vector<std::string> due;
  for (auto& [id, x] : courses_)
    if (x.again_at > 0 && x.again_at <= time) due.push_back(id);
  for (const auto& id : due) {
    courses_[id].again_at = 0;
    courses_[id].rested = true;
    take_stock(id);
  }
  serve();
}

void handoff_state::leave(uint64_t waiter) {
  std::erase_if(waiting_, [&](const auto& x) { return x.who->waiter == waiter; });
}

Message<wire::Snapshot> handoff_state::snapshot() const {
  std::array<uint64_t, group_states> counts{};
  for (const auto& [id, of] : table_.orders())
    for (size_t i = 0; i < group_states; ++i) counts[i] += of.counts[i];
  auto count = [&](group_state x) { return counts[static_cast<size_t>(x)]; };
  return snapshot_of("handoff", {}, "serving", {},
                     {{"orders", table_.orders().size()},
                      {"open", count(group_state::open)},
                      {"ready", count(group_state::ready)},
                      {"leased", count(group_state::leased)},
                      {"acked", count(group_state::acked)},
                      {"committed", count(group_state::committed)},
                      {"dropped", count(group_state::dropped)},
                      {"waiting", waiting_.size()}});
}

void handoff_state::obey(const request_ptr& x) {
  if (auto ok = keep(table_.expire(now())); !ok) return x->answer(tl::unexpected(ok.error()));
  if (!may_see(owner_of(*x), x->client))
    return x->answer(configuration_error("not_found", "there is no such order or lease of yours"));
  std::visit([&](const auto& what) { do_it(what, x); }, x->what);
  serve();
}

std::string handoff_state::owner_of(const request& x) const {
  struct {
    const lease_table& known;
    std::string of(const std::string& order) const {
      auto entry = known.find(order);
      return entry ? entry->what.client : std::string{};
    }
    std::string operator()(const look_request& what) const { return of(what.order); }
    std::string operator()(const cancel_request& what) const { return of(what.order); }
    std::string operator()(const batch_request& what) const { return of(what.what.order); }
    std::string operator()(const ack_request& what) const {
      auto lease = known.find_lease(what.lease);
      return lease ? of(lease->order) : std::string{};
    }
    // The table checks the names of orders. Names of consumers begin with their client's name.
    std::string operator()(const order_request&) const { return {}; }
    std::string operator()(const commit_command&) const { return {}; }
    std::string operator()(const rollback_command&) const { return {}; }
    std::string operator()(const weights_request&) const { return {}; }
  } owner{table_};
  return std::visit(owner, x.what);
}

// -- behavior -----------------------------------------------------------------------------------

namespace {

struct durable_handoff_state : handoff_state {
  using handoff_state::handoff_state;
  static inline const char* name = "durable-handoff";
};

handoff_actor::behavior_type
durable_handoff(handoff_actor::stateful_pointer<durable_handoff_state> self,
                handoff_settings settings) {
  self->state.take(std::move(settings));
  return {
      [self](atom::status) { return signed_by(self, self->state.snapshot()); },
      [self](atom::start) { self->state.start(); },
      [self](atom::query, const request_ptr& x) { self->state.obey(x); },
      [self](atom::drop, uint64_t waiter) { self->state.leave(waiter); },
      [self](atom::finished, const std::string& run, uint32_t group) {
        self->state.on_group(run, group);
      },
      [self](atom::finished, const std::string& run) { self->state.on_end(run); },
      [self](atom::tick) { self->state.tick(); },
  };
}

} // namespace

handoff_actor spawn_handoff(caf::actor_system& system, handoff_settings settings) {
  return settings.own_threads ? system.spawn<caf::detached>(durable_handoff, std::move(settings))
                              : system.spawn(durable_handoff, std::move(settings));
}

} // namespace kernelmill::handoff
