#include "actors/head/head_state.hpp"
#include "messages/base/json_value.hpp"

#include "actors/gather.hpp"
#include "actors/snapshots.hpp"
#include "messages/base/json_fields.hpp"

namespace kernelmill {

namespace {

using namespace std::chrono_literals;

constexpr auto status_deadline = 2s;
constexpr auto nodes_deadline = 3s; // their gates wait for their monitors
constexpr auto looking_deadline = 1min;

} // namespace

error defect(const std::exception& why) {
  return {fault_class::infrastructure, "internal", "failed to obey: " + without_stack(why.what()),
          "please report this as a defect"};
}

head_state::head_state(head_actor::pointer self) : self_(self) {
  // nop
}

head_state::~head_state() {
  using caf::exit_reason;
  for (auto& [name, x] : nodes_)
    for (auto& who : x.workers) caf::anon_send_exit(who, exit_reason::remote_link_unreachable);
  for (auto& [lane, who] : settings_.lanes) caf::anon_send_exit(who, exit_reason::user_shutdown);
  caf::anon_send_exit(settings_.pool, exit_reason::user_shutdown);
}

void head_state::take(head_settings settings) {
  settings_ = std::move(settings);
  opener_ = spawn_worker_thread(self_, settings_.own_threads);
  clerk_ = spawn_worker_thread(self_, settings_.own_threads);
  looker_ = spawn_worker_thread(self_, settings_.own_threads);
}

void head_state::tell(log_level level, const std::string& what, const std::string& run) const {
  settings_.log.write(level, {"head", run, {}, {}}, what);
}

void head_state::recover(std::function<void()> done) {
  recover_servers([this, done = std::move(done)] { // servers before the runs that ask them
    run_on_worker_thread(
        self_, opener_, 10min,
        [runs = settings_.runs]() -> expected<std::vector<std::string>> {
          return runs->left_over();
        },
        [this, done](expected<std::vector<std::string>> left) {
          if (!left) tell(log_level::warn, render(left.error()));
          recover_runs(std::make_shared<std::vector<std::string>>(
                           left ? std::move(*left) : std::vector<std::string>{}),
                       0, done);
        });
  });
}

void head_state::on_down(const caf::down_msg& down) {
  if (on_node_down(down)) return;
  for (auto& [name, x] : runs_)
    if (x->live() && x->actor.address() == down.source)
      return end(x, tl::unexpected<error>{{fault_class::infrastructure, "actor_lost",
                                           "failed to finish the run: its actor ended with " +
                                               self_->system().render(down.reason),
                                           "please report this as a defect"}});
}

// -- commands -----------------------------------------------------------------------------------

void head_state::obey(const Message<wire::ControlRequest>& request, const answer& to) {
  if (closing_) return to(infrastructure_error("head_unreachable", "the head is ending", ""));
  auto protocol = request.open()->getProtocol();
  if (protocol != protocol_version)
    return to(configuration_error("protocol_differs",
                                  "failed to obey: the command speaks protocol " +
                                      std::to_string(protocol) + ", the head " +
                                      std::to_string(protocol_version),
                                  "use the kernelmill that the head is of"));
  guarded(to, [this, &to](const auto& x) { dispatch(x, to); })(request);
}

void head_state::dispatch(const Message<wire::ControlRequest>& request, const answer& to) {
  auto x = request.open();
  std::string verb = x->getVerb(), subject = x->getSubject(), document = x->getDocument();
  if (verb == "status") return status(to);
  if (verb == "look") return look(subject, document, to);
  if (verb == "submit") return submit(document, to);
  if (verb == "cancel") return to(cancel(subject));
  if (verb == "pause") return to(pause(subject));
  if (verb == "resume") return resume(subject, to);
  if (verb == "policy_attach") return attach(document, to);
  if (verb == "policy_detach") return detach(subject, document, to);
  if (verb == "policy_weights") return weights(subject, document, to);
  if (verb == "policy_list") return list(to);
  if (verb != "drain")
    return to(configuration_error("usage", "failed to understand the command '" + verb + "'",
                                  "is the head of another version?"));
  if (!roster_.find(subject))
    return to(configuration_error("not_found", "failed to find the node '" + subject + "'",
                                  "`kernelmill status --head ADDR:PORT` lists the nodes"));
  drain(subject);
  to(json{{"node", subject}});
}

// Queues and runs report their progress. A silent one has no numbers, or its last ones.
void head_state::status(const answer& to) {
  std::vector<cluster_actor> lanes;
  for (auto& [lane, who] : settings_.lanes) lanes.push_back(who);
  auto live = std::make_shared<std::vector<run_entry_ptr>>();
  std::vector<run_actor> actors;
  for (auto& [name, x] : runs_)
    if (x->live()) {
      live->push_back(x);
      actors.push_back(x->actor);
    }
  auto view = std::make_shared<head_view>();
  for (auto& [lane, who] : settings_.lanes) view->lanes.emplace_back(lane, std::nullopt);
  ask_each(
      self_, lanes, atom::status_v, status_deadline,
      [view](size_t i, auto says) {
        if (says) view->lanes[i].second = *says;
      },
      [this, view, live, actors, to] {
        ask_each(
            self_, actors, atom::observe_v, status_deadline,
            [live](size_t i, auto says) {
              if (says && !(*live)[i]->ending) (*live)[i]->last = numbers_of_run(*says->open());
            },
            guarded(to, [this, view, to] {
              view->address = address_;
              view->build = settings_.build;
              view->epoch = settings_.epoch;
              view->nodes = roster_;
              for (auto& [name, x] : runs_)
                view->runs.push_back({name, x->state, x->facts.lane, x->facts.directory,
                                      x->facts.priority, x->last, seconds_of(*x), x->fault,
                                      x->facts.required_layers});
              to(status_document(*view));
            }));
      });
}

// Asks each node's monitor, and the workers that stand for nodes in the queues. A lease names a
// worker by its "actor".
void head_state::ask_nodes(std::function<void(Message<wire::Snapshot>)> done) {
  auto names = std::make_shared<std::vector<std::string>>();
  std::vector<status_actor> actors;
  for (auto& [name, x] : nodes_) {
    actors.emplace_back(x.gate);
    names->push_back(name);
    for (auto& worker : x.workers) {
      actors.push_back(caf::actor_cast<status_actor>(worker));
      names->push_back(name);
    }
  }
  auto answers = std::make_shared<std::vector<Message<wire::Snapshot>>>(actors.size());
  ask_each(
      self_, actors, atom::status_v, nodes_deadline,
      [names, answers](size_t i, auto says) {
        (*answers)[i] = says ? *says : snapshot_of("node", (*names)[i], "stuck", {}, {});
      },
      [answers, done] { done(with_children(snapshot_of("head", {}, {}, {}, {}), *answers)); });
}

// What users see of the runs below the root. Reading stores blocks, so a worker thread does it.
void head_state::look(const std::string& view, const std::string& query, const answer& to) {
  if (!settings_.look)
    return to(configuration_error("usage", "failed to show '" + view + "': this head has no views",
                                  "is the head of another version?"));
  status([this, view, query, to](expected<json> says) {
    if (!says) return to(std::move(says));
    auto document = std::make_shared<const json>(std::move(*says));
    ask_nodes(guarded(to, [this, view, query, to, document](Message<wire::Snapshot> nodes) {
      run_on_worker_thread(
          self_, looker_, looking_deadline,
          [look = settings_.look, view, query, document, nodes] {
            return look(view, query, *document, nodes);
          },
          [to](expected<json> shown) { to(std::move(shown)); });
    }));
  });
}

// Of what it knows itself; queues, pool and runs answer STATUS too.
Message<wire::Snapshot> head_state::snapshot() const {
  size_t live = 0;
  std::vector<Message<wire::Snapshot>> children;
  for (const auto& [name, x] : roster_.members())
    children.push_back(snapshot_of("node", name, x.draining ? "draining" : "serving",
                                   x.lane() + ", " + x.hardware,
                                   {{"compilers", x.compilers}, {"slots", x.slots.size()}}));
  for (const auto& [name, x] : runs_) {
    live += x->live();
    children.push_back(snapshot_of("head_run", name, x->state, x->facts.lane, {}));
  }
  for (const auto& [name, facts] : servers_)
    children.push_back(snapshot_of("policy_server", name,
                                   facts.contains("draining") ? "draining" : "attached",
                                   text_in(facts, "url"), {}));
  return with_children(snapshot_of("head", {}, closing_ ? "ending" : "serving", address_,
                                   {{"nodes", roster_.members().size()},
                                    {"lost", roster_.lost()},
                                    {"lanes", settings_.lanes.size()},
                                    {"runs", live},
                                    {"opening", opening_.size()},
                                    {"servers", servers_.size()}}),
                       children);
}

// -- behavior -----------------------------------------------------------------------------------

namespace {

struct owning_head_state : head_state {
  using head_state::head_state;
  static inline const char* name = "owning-head";
};

head_actor::behavior_type owning_head(head_actor::stateful_pointer<owning_head_state> self,
                                      head_settings settings) {
  self->state.take(std::move(settings));
  self->set_down_handler([self](caf::down_msg& down) { self->state.on_down(down); });
  self->set_exit_handler([self](caf::exit_msg& x) { self->state.close(x.reason); });
  return {
      [self](atom::status) { return self->state.snapshot(); },
      [self](atom::start) -> caf::result<atom::start> {
        auto answer = self->make_response_promise<atom::start>();
        self->state.recover([answer]() mutable { answer.deliver(atom::start_v); });
        return answer;
      },
      [self](atom::start, const std::string& address) { self->state.listens_at(address); },
      [self](atom::join, const Message<wire::NodeOffer>& offered, const node_gate_actor& who) {
        return self->state.admit(offered, who);
      },
      [self](atom::drain, const std::string& name) { self->state.drain(name); },
      [self](atom::control, const Message<wire::ControlRequest>& request)
          -> caf::result<Message<wire::ControlReply>> {
        auto answer = self->make_response_promise<Message<wire::ControlReply>>();
        self->state.obey(
            request, [answer](const expected<json>& x) mutable { answer.deliver(reply_of(x)); });
        return answer;
      },
  };
}

} // namespace

head_actor spawn_head(caf::actor_system& system, head_settings settings) {
  return system.spawn(owning_head, std::move(settings));
}

} // namespace kernelmill
