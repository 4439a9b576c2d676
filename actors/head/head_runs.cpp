#include "actors/head/head_state.hpp"
#include "messages/base/json_value.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

using namespace std::chrono_literals;

// Loading tasks and an index, and catching up with a long journal, takes minutes at worst.
constexpr auto opening_deadline = 30min;
constexpr auto closing_deadline = 5min;
// The run has its own deadlines, and this request has none to add.
constexpr auto no_deadline = std::chrono::minutes{60 * 24 * 365};

} // namespace

// -- taking in ----------------------------------------------------------------------------------

void head_state::submit(const std::string& document, const answer& to) {
  run_on_worker_thread(
      self_, opener_, opening_deadline,
      [runs = settings_.runs, document] { return runs->read(document); },
      guarded(to, [this, to](expected<head_run_ptr> run) {
        if (!run) return to(tl::unexpected<error>{run.error()});
        take_on(*run, to);
      }));
}

void head_state::resume(const std::string& name, const answer& to) {
  if (auto x = live_run(name)) {
    if ((*x)->state == "paused") (*x)->state = "running";
    self_->send((*x)->actor, atom::pause_v, false);
    return to(json{{"run", name}});
  }
  take_up(name, to);
}

void head_state::take_up(const std::string& name, const answer& to) {
  run_on_worker_thread(
      self_, opener_, opening_deadline, [runs = settings_.runs, name] { return runs->find(name); },
      guarded(to, [this, to](expected<head_run_ptr> run) {
        if (!run) return to(tl::unexpected<error>{run.error()});
        take_on(*run, to);
      }));
}

// Chooses a lane and opens the run on a worker thread. Its name is taken from here on.
void head_state::take_on(const head_run_ptr& run, const answer& to) {
  const auto& facts = run->facts();
  if (live_run(facts.name) || opening_.contains(facts.name))
    return to(configuration_error("run_exists",
                                  "failed to start: a run '" + facts.name + "' is in progress",
                                  "give another run.name"));
  auto lane =
      facts.lane.empty() ? roster_.choose_lane(facts.backend, facts.required_layers) : facts.lane;
  if (!lane) return to(tl::unexpected<error>{lane.error()});
  opening_.insert(facts.name);
  auto work = [run, where = roster_.facts_of(*lane, facts.required_layers), here = queues(*lane),
               pool = settings_.pool, head = caf::actor_cast<status_actor>(self_),
               system = &self_->system()]() -> expected<run_actor> {
    KM_TRY(run->open(where));
    return run->start(*system, here, pool, head);
  };
  run_on_worker_thread(self_, opener_, opening_deadline, std::move(work),
                       guarded(to, [this, run, lane = *lane, to](expected<run_actor> actor) {
                         const auto& name = run->facts().name;
                         opening_.erase(name);
                         if (actor) launch(run, lane, *actor);
                         quit_if_over();
                         if (!actor) return to(tl::unexpected<error>{actor.error()});
                         to(json{{"run", name}});
                       }));
}

void head_state::launch(const head_run_ptr& run, const std::string& lane, const run_actor& actor) {
  auto x = std::make_shared<run_entry>();
  x->facts = run->facts();
  x->facts.lane = lane;
  x->hold = run;
  x->started = self_->clock().now();
  x->actor = actor;
  self_->monitor(actor);
  self_->request(actor, no_deadline, atom::start_v)
      .then([this, x](const Message<wire::RunSummary>& summary) { end(x, summary); },
            [this, x](caf::error& why) { end(x, tl::unexpected<error>{from_caf(why)}); });
  // Its summary does not say how many episodes were planned.
  self_->request(actor, 10s, atom::observe_v)
      .then(
          [x](const Message<wire::Snapshot>& says) {
            if (!x->ending) x->last = numbers_of_run(*says.open());
          },
          [](caf::error&) {});
  runs_[x->facts.name] = x;
  tell(log_level::info, "runs on lane " + lane + " in " + x->facts.directory, x->facts.name);
  for (const auto& [name, layers] : roster_.unfit_nodes(lane, x->facts.required_layers))
    tell_unfit(*x, name, layers);
  if (!closing_) return;
  x->state = "stopping"; // the head was told to end while a worker thread opened it
  self_->send(actor, atom::cancel_v);
}

// Nodes without a layer that the run requires get none of its jobs.
void head_state::tell_unfit(const run_entry& run, const std::string& name,
                            const std::vector<std::string>& layers) const {
  tell(log_level::warn,
       lack_text(name, layers) +
           " of the layers that evaluation.required_layers names, and gets no job of this run",
       run.facts.name);
}

// -- ending -------------------------------------------------------------------------------------

// The run has ended for other callers once its files are free again.
void head_state::end(const run_entry_ptr& x, expected<Message<wire::RunSummary>> summary) {
  if (x->ending) return;
  x->seconds = seconds_of(*x); // before it is `ending`: then they stand still
  x->ending = true;
  std::string state = "failed";
  if (summary) {
    auto view = summary->open();
    state = view->getOutcome().cStr();
    x->fault = fault_of(view->getFault());
    x->last = numbers_of_run(view->getTotals(), x->last.planned);
  } else {
    x->fault = summary.error();
  }
  bool left = state == "cancelled" && !x->cancelled; // the head ends: the next one goes on
  if (left) state = "left";
  run_on_worker_thread(
      self_, clerk_, closing_deadline,
      [hold = x->hold, left]() -> expected<void> {
        hold->close(!left);
        return {};
      },
      [this, x, state](expected<void> ok) {
        if (!ok) tell(log_level::warn, render(ok.error()), x->facts.name);
        settle(x, state);
      });
}

void head_state::settle(const run_entry_ptr& x, const std::string& state) {
  x->state = state;
  x->hold.reset();
  x->actor = nullptr;
  tell(log_level::info, "the run is over: " + state, x->facts.name);
  quit_if_over();
}

double head_state::seconds_of(const run_entry& x) const {
  if (!x.live() || x.ending) return x.seconds;
  return std::chrono::duration<double>(self_->clock().now() - x.started).count();
}

// Waits for the jobs of runs that end. The other runs end meanwhile.
void head_state::close(const caf::error& why) {
  if (closing_) return;
  closing_ = true;
  why_closed_ = why;
  for (auto& [name, x] : runs_)
    if (x->live()) self_->send(x->actor, atom::cancel_v);
  quit_if_over();
}

void head_state::quit_if_over() {
  if (!closing_ || !opening_.empty()) return;
  for (auto& [name, x] : runs_)
    if (x->live()) return;
  self_->quit(why_closed_);
}

// -- control ------------------------------------------------------------------------------------

expected<head_state::run_entry_ptr> head_state::live_run(const std::string& name) const {
  auto i = runs_.find(name);
  if (i == runs_.end())
    return configuration_error("not_found", "failed to find the run '" + name + "'",
                               "`kernelmill status --head ADDR:PORT` lists the runs of the head");
  if (i->second->live()) return i->second;
  const auto& state = i->second->state;
  return configuration_error("not_live", "failed to change the run '" + name + "': it is " + state,
                             state == "finished"
                                 ? "nothing of it is left to do; `kernelmill show " + name +
                                       " --head ...` reads it"
                                 : "`kernelmill resume " + name + " --head ...` continues it");
}

expected<json> head_state::cancel(const std::string& name) {
  auto x = live_run(name);
  KM_TRY(x);
  (*x)->cancelled = true;
  (*x)->state = "stopping";
  self_->send((*x)->actor, atom::cancel_v);
  return json{{"run", name}};
}

expected<json> head_state::pause(const std::string& name) {
  auto x = live_run(name);
  KM_TRY(x);
  (*x)->state = "paused";
  self_->send((*x)->actor, atom::pause_v, true);
  return json{{"run", name}};
}

void head_state::recover_runs(std::shared_ptr<std::vector<std::string>> left, size_t next,
                              std::function<void()> done) {
  if (next == left->size()) return done();
  const auto& name = (*left)[next];
  take_up(name, [this, left, next, done](const expected<json>& x) {
    if (!x) tell(log_level::warn, "failed to continue " + (*left)[next] + ": " + render(x.error()));
    recover_runs(left, next + 1, done);
  });
}

} // namespace kernelmill
