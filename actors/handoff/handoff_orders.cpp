// Orders: begins their runs, holds them back, reads their groups, and begins them again after a
// fault of the machine.

#include <algorithm>

#include <caf/all.hpp>

#include "actors/handoff/handoff_state.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::handoff {

namespace {

using namespace std::chrono_literals;

// Loading tasks and an index takes minutes at worst, and so does reading a long run.
constexpr auto opening_deadline = 30min;
constexpr auto reading_deadline = 30min;
constexpr uint32_t most_tries = 10; ///< to go on with a run that brings no group: five minutes
constexpr int64_t first_pause_ms = 1'000, longest_pause_ms = 60'000;

} // namespace

bool is_lost(const error& x) {
  return x.cls == fault_class::configuration || x.category == "store_damaged" ||
         x.category == "invalid_artifact" || x.category == "invalid_record";
}

void handoff_state::do_it(const order_request& x, const request_ptr& who) {
  const auto& id = x.what.id;
  if (table_.find(id)) { // before the plan: its tasks may have changed since
    if (auto same = table_.check(x.what, now()); !same)
      return who->answer(tl::unexpected(same.error()));
    return who->answer(document_of(id).dump());
  }
  run_on_worker_thread(
      self_, opener_, opening_deadline,
      [host = settings_.host, id, config = x.config] { return host->plan(id, config); },
      [this, x, who](expected<rollout_plan> plan) {
        if (!plan) return who->answer(tl::unexpected(plan.error()));
        auto order = x.what;
        order.config = std::move(plan->config);
        order.groups = plan->groups;
        order.group_size = plan->group_size;
        if (x.seconds > 0) order.deadline_ms = now() + 1000 * x.seconds;
        if (auto ok = keep(table_.check(order, now())); !ok)
          return who->answer(tl::unexpected(ok.error()));
        begin(order.id, who);
        serve();
      });
}

void handoff_state::begin(const std::string& run, const request_ptr& who) {
  auto of = table_.find(run);
  auto& x = courses_[run];
  if (!of || x.begun || x.busy) {
    if (who) who->answer(document_of(run).dump());
    return;
  }
  x.busy = true;
  run_on_worker_thread(
      self_, opener_, opening_deadline,
      [host = settings_.host, run, config = of->what.config] { return host->submit(run, config); },
      [this, run, who](expected<void> ok) {
        on_begun(run, ok, who);
        serve();
      });
}

void handoff_state::on_begun(const std::string& run, const expected<void>& ok,
                             const request_ptr& who) {
  auto& x = courses_[run];
  x.busy = false;
  if (ok) {
    x.begun = true;
    x.rested = false;
    if (!x.away) x.trouble.clear();
    x.held = false;
    changed_ = true; // serve() decides again whether to hold the run
    if (std::exchange(x.again, false)) take_stock(run);
    if (who) who->answer(document_of(run).dump());
    return;
  }
  tell(log_level::warn, "failed to begin the run of an order: " + render(ok.error()), run);
  if (ok.error().cls == fault_class::configuration) {
    // The order never began, so another order may take its name.
    auto undone = keep(table_.withdraw(run, now()));
    if (undone && !table_.find(run)) {
      courses_.erase(run);
      if (who) who->answer(tl::unexpected(ok.error()));
      return;
    }
    auto closed = keep(table_.check(close_command{run, incomplete}, now()));
    x.trouble = render(closed ? ok.error() : closed.error());
  } else if (x.tries >= most_tries && is_lost(ok.error())) {
    close(run, unreadable);
    x.trouble = render(ok.error());
  } else {
    try_later(run, render(ok.error()));
  }
  if (who) who->answer(document_of(run).dump());
}

// No more groups will come of it.
void handoff_state::close(const std::string& run, const char* reason) {
  if (auto ok = keep(table_.check(close_command{run, reason}, now())); !ok)
    try_later(run, render(ok.error()));
}

void handoff_state::try_later(const std::string& run, const std::string& why) {
  auto& x = courses_[run];
  x.trouble = why;
  auto pause = first_pause_ms << std::min<uint32_t>(x.tries, 10);
  x.again_at = now() + std::min(pause, longest_pause_ms);
  ++x.tries;
}

// -- groups -------------------------------------------------------------------------------------

namespace {

expected<settle_command> settled(rollout_host& host, const std::string& run, uint32_t group,
                                 const std::string& form) {
  auto x = host.read(run, group, form);
  KM_TRY(x);
  return settle_command{run, group, x->delivered, std::move(x->versions), std::move(x->flaw)};
}

} // namespace

void handoff_state::on_group(const std::string& run, uint32_t group) {
  auto of = table_.find(run);
  if (!of || group >= of->groups.size() || of->groups[group].state != group_state::open) return;
  run_on_worker_thread(
      self_, reader_, reading_deadline,
      [host = settings_.host, run, group, form = of->what.form] {
        return settled(*host, run, group, form);
      },
      [this, run](expected<settle_command> x) {
        if (x) {
          settle(*x);
        } else {
          tell(log_level::warn, "failed to read a group: " + render(x.error()), run);
          try_later(run, render(x.error()));
        }
        serve();
      });
}

void handoff_state::settle(const settle_command& x) {
  if (auto ok = keep(table_.check(x, now())); !ok) {
    tell(log_level::warn, render(ok.error()), x.order);
    return try_later(x.order, render(ok.error()));
  }
  auto& of = courses_[x.order];
  of.tries = 0;
  if (std::exchange(of.away, false)) of.trouble.clear();
}

void handoff_state::on_end(const std::string& run) {
  if (!table_.find(run)) return;
  courses_[run].begun = false;
  take_stock(run);
}

// Compares the store with the table: after a start, after the end of a run, after a failure.
void handoff_state::take_stock(const std::string& run) {
  auto of = table_.find(run);
  if (!of) return;
  auto& x = courses_[run];
  if (x.busy) {
    x.again = true;
    return;
  }
  x.busy = true;
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < of->groups.size(); ++i)
    if (of->groups[i].state == group_state::open) open.push_back(i);
  run_on_worker_thread(
      self_, reader_, reading_deadline,
      [host = settings_.host, run, open, form = of->what.form,
       last = x.tries >= most_tries]() -> expected<stock> {
        stock result;
        auto standing = host->look(run, open);
        KM_TRY(standing);
        result.standing = std::move(*standing);
        for (auto group : result.standing.groups) {
          auto one = settled(*host, run, group, form);
          if (!one && last && is_lost(one.error()))
            one = settle_command{run, group, 0, {}, unreadable};
          if (one)
            result.settled.push_back(std::move(*one));
          else
            result.unread = one.error(); // the others do not wait for it
        }
        return result;
      },
      [this, run](expected<stock> found) {
        on_stock(run, std::move(found));
        serve();
      });
}

void handoff_state::on_stock(const std::string& run, expected<stock> found) {
  auto& x = courses_[run];
  x.busy = false;
  if (!found) {
    tell(log_level::warn, "failed to look at the run of an order: " + render(found.error()), run);
    if (x.tries < most_tries || !is_lost(found.error()))
      return try_later(run, render(found.error()));
    x.trouble = render(found.error());
    return close(run, unreadable);
  }
  for (const auto& one : found->settled) settle(one);
  auto of = table_.find(run);
  if (!of) return;
  if (found->unread) {
    tell(log_level::warn, "failed to read a group: " + render(*found->unread), run);
    return try_later(run, render(*found->unread));
  }
  const auto& standing = found->standing;
  if (of->cancelled) return close(run, cancelled);
  if (of->count(group_state::open) == 0) return;
  if (standing.live) {
    x.begun = true;
    changed_ = true;
    if (std::exchange(x.again, false)) take_stock(run);
    return;
  }
  if (!standing.there || standing.ended.empty()) return begin(run, nullptr);
  if (standing.ended == "cancelled") return close(run, cancelled);
  if (standing.ended == "finished" || !standing.may_go_on) return close(run, incomplete);
  // An order survives an outage of the policy server.
  x.away = standing.server_away;
  if (x.tries >= most_tries && !x.away) {
    tell(log_level::warn, "the run of an order is given up: " + x.trouble, run);
    return close(run, incomplete);
  }
  if (!x.rested)
    return try_later(run, "its run ended: " + standing.ended +
                              (standing.why.empty() ? "" : ": " + standing.why));
  begin(run, nullptr);
}

void handoff_state::look_at_deadlines() {
  std::vector<std::string> over;
  for (const auto& [id, of] : table_.orders())
    if (of.what.deadline_ms > 0 && of.what.deadline_ms <= now() && of.count(group_state::open) > 0)
      over.push_back(id);
  for (const auto& id : over) {
    if (auto ok = keep(table_.check(close_command{id, deadline_passed}, now())); !ok) {
      tell(log_level::error, render(ok.error()), id);
      continue;
    }
    run_on_worker_thread(
        self_, opener_, opening_deadline, [host = settings_.host, id] { return host->cancel(id); },
        [this, id](expected<void> ok) {
          if (!ok) tell(log_level::warn, render(ok.error()), id);
        });
  }
}

// Holds a run at max_ready groups and lets it go on below half of them, so trainers find groups
// when they come again.
void handoff_state::look_at_fill(const std::string& run, const order_entry& of) {
  auto most = of.what.max_ready;
  auto i = courses_.find(run);
  if (most == 0 || i == courses_.end() || !i->second.begun) return;
  auto ready = of.count(group_state::ready);
  bool wanted = i->second.held ? ready * 2 > most : ready >= most;
  if (wanted == i->second.held) return;
  i->second.held = wanted;
  settings_.host->hold(run, wanted);
}

} // namespace kernelmill::handoff
