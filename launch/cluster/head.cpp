#include "launch/cluster/head.hpp"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <random>

#include <fcntl.h>
#include <sys/file.h>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <nlohmann/json.hpp>

#include "actors/cluster/head_gate.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/cluster/head_policies.hpp"
#include "launch/cluster/head_runs.hpp"
#include "launch/config/paths.hpp"
#include "launch/watch/views.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/fault.hpp"
#include "messages/without_stack.hpp"
#include "storage/files.hpp"

namespace kernelmill {

using json = nlohmann::ordered_json;
using namespace std::chrono_literals;

namespace {

// No job may take longer, whatever a run's configuration says; a node that is lost is noticed long
// before.
constexpr auto longest_lease_of_all = 30min;
constexpr double straggler_factor = 3;
// A job may be on nodes that are killed one after the other; one that kills them all must end.
constexpr uint32_t losses_of_nodes = 8;

/// What users' commands do. Called on one thread, after the roster and the runs are there.
class control_desk {
public:
  control_desk(const network_address& address, uint64_t epoch, std::shared_ptr<cluster_roster> who,
               head_runs& runs, head_policies& policies, caf::actor_system& system)
      : address_(address), epoch_(epoch), roster_(std::move(who)), runs_(runs), policies_(policies),
        system_(system) {
    // nop
  }

  head_gate_actor gate;
  std::atomic<uint16_t> port{0}; ///< once it listens

  /// What throws ends with the command: the head must go on.
  expected<json> handle(wire::ControlRequest::Reader x) {
    std::lock_guard guard{mutex_};
    if (closed_) return infrastructure_error("head_unreachable", "the head is ending", "");
    try {
      return obey(x);
    } catch (const std::exception& why) {
      return infrastructure_error("internal", "failed to obey: " + without_stack(why.what()),
                                  "please report this as a defect");
    }
  }

  /// Returns when no command is at work any more; none will be again.
  void close() {
    std::lock_guard guard{mutex_};
    closed_ = true;
    gate = nullptr;
  }

private:
  expected<json> obey(wire::ControlRequest::Reader x) {
    if (x.getProtocol() != protocol_version)
      return configuration_error("protocol_differs",
                                 "failed to obey: the command speaks protocol " +
                                     std::to_string(x.getProtocol()) + ", the head " +
                                     std::to_string(protocol_version),
                                 "use the kernelmill that the head is of");
    std::string verb = x.getVerb(), subject = x.getSubject();
    if (verb == "status") return status();
    if (verb == "look") return look(subject, x.getDocument().cStr());
    if (verb == "submit") {
      auto name = runs_.submit(x.getDocument());
      KM_TRY(name);
      return json{{"run", *name}};
    }
    if (verb == "drain") return drain(subject);
    if (verb == "cancel") return done(runs_.cancel(subject), subject);
    if (verb == "pause") return done(runs_.pause(subject), subject);
    if (verb == "resume") return done(runs_.resume(subject), subject);
    if (verb == "policy_attach") return policies_.attach(x.getDocument());
    if (verb == "policy_detach") return policies_.detach(subject, x.getDocument());
    if (verb == "policy_weights") return policies_.weights(subject, x.getDocument());
    if (verb == "policy_list") return policies_.list();
    return configuration_error("usage", "failed to understand the command '" + verb + "'",
                               "is the head of another version?");
  }

  static expected<json> done(expected<void> x, const std::string& run) {
    KM_TRY(x);
    return json{{"run", run}};
  }

  expected<json> drain(const std::string& name) {
    for (const auto& x : roster_->members())
      if (x.name == name) {
        caf::anon_send(gate, atom::drain_v, name);
        return json{{"node", name}};
      }
    return configuration_error("not_found", "failed to find the node '" + name + "'",
                               "`kernelmill status` lists the nodes");
  }

  /// A view of the runs below the root, as `kernelmill ps` and others show it.
  expected<json> look(const std::string& view, const char* query_text) {
    auto query = json::parse(query_text, nullptr, false);
    if (query.is_discarded())
      return configuration_error("usage", "failed to read the query: it is no JSON", "");
    auto world = watch::local_world(runs_.root());
    world.shared_store = [this](const run_directory& run) { return runs_.records(run.name); };
    world.status = [this] { return status(); };
    world.ask_nodes = [this]() -> expected<Message<wire::Snapshot>> {
      expected<Message<wire::Snapshot>> result;
      caf::scoped_actor self{system_};
      self->request(gate, 5s, atom::status_v)
          .receive([&](const Message<wire::Snapshot>& says) { result = says; },
                   [&](caf::error& why) {
                     result = infrastructure_error(
                         "head_unreachable", "failed to ask the nodes: " + system_.render(why),
                         "ask again");
                   });
      return result;
    };
    return watch::answer(world, view, query);
  }

  json queues(const std::string& lane) {
    json result = {{"lane", lane}};
    caf::scoped_actor self{system_};
    self->request(roster_->queues(lane), 2s, atom::status_v)
        .receive(
            [&](const Message<wire::Snapshot>& snapshot) {
              auto view = snapshot.open();
              for (auto number : view->getNumbers())
                result[number.getName().cStr()] = static_cast<uint64_t>(number.getValue());
            },
            [](caf::error&) {});
    return result;
  }

  json status() {
    json nodes = json::array(), lost = json::array(), lanes = json::array();
    for (const auto& x : roster_->lost_members())
      lost.push_back({{"node", x.name},
                      {"backend", x.backend},
                      {"architecture", x.architecture},
                      {"hardware", x.hardware},
                      {"since", x.since}});
    for (const auto& x : roster_->members())
      nodes.push_back({{"node", x.name},
                       {"state", x.draining ? "draining" : "serving"},
                       {"backend", x.backend},
                       {"architecture", x.architecture},
                       {"hardware", x.hardware},
                       {"toolchain", x.toolchain},
                       {"compilers", x.compilers},
                       {"slots", x.slots},
                       {"since", x.since}});
    for (const auto& lane : roster_->lanes()) lanes.push_back(queues(lane));
    return {{"address", network_address{address_.host, port}.text()},
            {"build", build_id()},
            {"epoch", std::to_string(epoch_)},
            {"nodes_lost", roster_->lost()},
            {"nodes", nodes},
            {"lost", lost},
            {"lanes", lanes},
            {"runs", runs_.status()}};
  }

  std::mutex mutex_;
  bool closed_ = false;
  network_address address_;
  uint64_t epoch_;
  std::shared_ptr<cluster_roster> roster_;
  head_runs& runs_;
  head_policies& policies_;
  caf::actor_system& system_;
};

Message<wire::ControlReply> reply_of(const expected<json>& x) {
  return build<wire::ControlReply>([&](wire::ControlReply::Builder b) {
    if (x)
      b.setDocument(x->dump(-1, ' ', false, json::error_handler_t::replace));
    else
      set_fault(b.initFault(), x.error());
  });
}

/// Waits for a user's wish or for the end of the gate; true when it was the wish.
bool wait_for(std::stop_token stop, const head_gate_actor& gate) {
  struct state {
    std::mutex mutex;
    std::condition_variable_any wake;
    bool over = false;
  };
  auto x = std::make_shared<state>(); // the gate may end after us
  gate->attach_functor([x] {
    std::lock_guard guard{x->mutex};
    x->over = true;
    x->wake.notify_all();
  });
  std::unique_lock lock{x->mutex};
  return !x->wake.wait(lock, stop, [&] { return x->over; });
}

} // namespace

expected<void> run_head(const head_options& options, std::stop_token stop) {
  auto tls = choose_link(options.link, options.listen);
  KM_TRY(tls);
  std::error_code code;
  std::filesystem::create_directories(options.root, code);
  auto root = std::filesystem::canonical(options.root, code).string();
  if (code)
    return configuration_error("io_error", "failed to use " + options.root + ": " + code.message(),
                               "name a folder for the runs with --root");
  // flock() goes with the process, also on kill -9.
  descriptor lock{::open((root + "/.head.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (!lock) return tl::unexpected<error>{file_error(errno, "lock", root + "/.head.lock")};
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return configuration_error("head_exists", "failed to use " + root + ": another head serves it",
                               "end that one, or name another folder with --root");
  auto& system = lasting_system();
  lease_policy policy;
  policy.lease = longest_lease_of_all;
  policy.losses = losses_of_nodes;
  policy.hedge_factor = straggler_factor;
  policy.log = options.log;
  auto roster = std::make_shared<cluster_roster>(system, policy);
  auto epoch = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  auto policies = std::make_unique<head_policies>(system, root, options.log);
  auto runs = std::make_unique<head_runs>(system, roster, root, policies->pool(), options.log);
  auto desk =
      std::make_shared<control_desk>(options.listen, epoch, roster, *runs, *policies, system);
  head_gate_settings settings;
  settings.build = build_id();
  settings.epoch = epoch;
  settings.roster = roster;
  settings.log = options.log;
  settings.shelf = std::make_shared<parcel_shelf>(default_build_cache() + "/cluster");
  settings.control = [desk](const Message<wire::ControlRequest>& x) {
    return reply_of(desk->handle(*x.open()));
  };
  auto gate = spawn_head_gate(system, std::move(settings));
  desk->gate = gate;
  auto warn = [&](const std::string& text) { options.log.warn({"head", {}, {}, {}}, text); };
  // Servers before the runs that ask them, and both before anybody can ask for them.
  for (const auto& problem : policies->recover()) warn("failed to attach again: " + problem);
  for (const auto& problem : runs->recover()) warn("failed to continue " + problem);
  auto port = publish_head(system, gate, options.listen, *tls);
  KM_TRY(port);
  desk->port = *port;
  options.log.info({"head", {}, {}, {}},
                   "listens at " + network_address{options.listen.host, *port}.text());
  if (options.on_listening) options.on_listening({options.listen.host, *port});
  bool wanted = wait_for(stop, gate);
  desk->close();
  runs.reset();
  caf::anon_send_exit(gate, caf::exit_reason::user_shutdown);
  gate = nullptr;
  roster.reset();
  if (wanted) return {};
  return infrastructure_error("internal", "the head has lost the actor that nodes talk to",
                              "please report this as a defect; its runs stay resumable");
}

} // namespace kernelmill
