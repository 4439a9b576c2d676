#include "launch/cluster/member.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <random>
#include <set>

#include <unistd.h>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include "actors/caf_error.hpp"
#include "actors/cluster/cluster.hpp"
#include "actors/cluster/node_gate.hpp"
#include "actors/monitor/monitor.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/config/paths.hpp"
#include "launch/machine/backend.hpp"
#include "launch/machine/python.hpp"
#include "launch/machine/slots.hpp"
#include "launch/node/hosted_run.hpp"
#include "launch/node/machine_watch.hpp"
#include "launch/node/slot_actors.hpp"
#include "messages/base/digest.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

using namespace std::chrono_literals;

namespace {

constexpr auto first_pause = 100ms; // between attempts to reach the head
constexpr auto longest_pause = 2000ms;
constexpr auto join_deadline = 10s;

std::string host_name() {
  char text[256] = {};
  ::gethostname(text, sizeof text - 1);
  return text;
}

// Code for "this machine" runs on machines that have the same instructions.
std::string processor_kind() {
  std::ifstream facts{"/proc/cpuinfo"};
  std::string seen;
  for (std::string line; std::getline(facts, line) && !line.empty();)
    if (line.starts_with("flags") || line.starts_with("Features") ||
        line.starts_with("model name") || line.starts_with("CPU part"))
      seen += line + "\n";
  return "cpu-" + sha256_hex(seen).substr(0, 8);
}

expected<std::set<unsigned>> numbers_of(const std::string& text) {
  std::set<unsigned> result;
  for (size_t at = 0; at <= text.size();) {
    auto end = std::min(text.find(',', at), text.size());
    unsigned number = 0;
    auto [stop, code] = std::from_chars(text.data() + at, text.data() + end, number);
    if (code != std::errc{} || stop != text.data() + end)
      return configuration_error("usage", "failed to read --gpus: \"" + text + "\"",
                                 "use all, none, or numbers like 0,2");
    result.insert(number);
    at = end + 1;
  }
  return result;
}

expected<chosen_backend> choose(const member_options& options) {
  const auto& wanted = options.config.evaluation.backend;
  if (!options.architecture.empty()) return choose_compiler(wanted, options.architecture);
  if (options.gpus == "none") return choose_backend("cpu");
  auto result = choose_backend(wanted);
  if (!result || options.gpus == "all") return result;
  auto only = numbers_of(options.gpus);
  KM_TRY(only);
  std::string visible;
  for (const auto& x : result->gpus)
    visible += (visible.empty() ? "" : ",") + std::to_string(x.index);
  std::erase_if(result->gpus, [&](const auto& x) { return !only->contains(x.index); });
  if (result->gpus.size() != only->size())
    return configuration_error("usage",
                               "failed to use GPUs " + options.gpus + ": there are " + visible,
                               "`kernelmill doctor` lists them; CUDA_VISIBLE_DEVICES hides others");
  return result;
}

/// What joins: the slots of this machine behind one gate.
struct station {
  chosen_backend backend;
  node_slots slots;
  std::string name;
  uint64_t epoch = 0;
  cluster_actor local;
  node_gate_actor gate;
  std::vector<status_actor> workers;
  monitor_actor monitor; ///< of this node: what a head is told of it

  Message<wire::NodeOffer> offer() const {
    return build<wire::NodeOffer>([&](wire::NodeOffer::Builder x) {
      x.setName(name);
      x.setBuild(build_id());
      x.setEpoch(epoch);
      x.setBackend(backend.name);
      x.setArchitecture(architecture());
      x.setHardware(hardware_text(backend));
      x.setToolchain(slots.toolchain->identity());
      x.setCompilers(slots.compile_slots);
      auto list = x.initSlots(static_cast<unsigned>(slots.referee_names.size()));
      for (unsigned i = 0; i < list.size(); ++i) list.set(i, slots.referee_names[i]);
      x.setSandboxComplete(slots.sandbox_complete());
      auto stand = layers_that_stood(slots.layers);
      auto layers = x.initLayers(static_cast<unsigned>(stand.size()));
      for (unsigned i = 0; i < layers.size(); ++i) layers.set(i, stand[i]);
    });
  }

  std::string architecture() const {
    if (backend.name == "cpu") return processor_kind();
    return backend.gpus.empty() ? backend.architecture : backend.gpus.front().architecture;
  }
};

expected<void> open(station& x, const member_options& options) {
  auto backend = choose(options);
  KM_TRY(backend);
  x.backend = std::move(*backend);
  // Tasks that need Python come later; without one they are given to other nodes.
  if (auto python = find_python(options.config.evaluation.python)) x.backend.python = python->path;
  x.backend.python_at_once = false;
  auto slots = start_slots(options.config, x.backend, {}, options.architecture.empty());
  KM_TRY(slots);
  x.slots = std::move(*slots);
  x.name = options.name.empty() ? host_name() : options.name;
  x.epoch = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  return {};
}

void tell(const member_options& options, log_level level, const std::string& what) {
  options.log.write(level, {"node", {}, {}, {}}, what);
}

// -- joining
// ----------------------------------------------------------------------------------------

/// Where the gate stands, seen by the thread that dials.
struct dialer {
  caf::actor_system& system;
  const member_options& options;
  station& here;
  shared_tls tls;
  std::stop_token stop;
  caf::scoped_actor self{system};
  bool drained = false;
  std::string known_as{}; // by the head

  bool gate_is_draining() {
    bool result = false;
    self->request(here.gate, join_deadline, atom::status_v)
        .receive(
            [&](const Message<wire::Snapshot>& x) { result = x.open()->getState() == "draining"; },
            [](caf::error&) {}); // it has ended: attend() hears of it
    return result;
  }

  // Waits for DOWN of the head or of the gate; asks for the end when told to stop.
  void attend(const head_actor& head) {
    self->monitor(head);
    // `kernelmill drain` is for good: a head that we have just joined knows nothing of it.
    bool draining = gate_is_draining();
    bool joined = true, asked = false;
    while (joined && !drained) {
      if ((draining || stop.stop_requested()) && !asked) {
        asked = true;
        tell(options, log_level::info, "draining: takes no new jobs and ends when it has answered");
        self->send(head, atom::drain_v, known_as);
      }
      self->receive(
          [&](const caf::down_msg& down) {
            if (down.source == here.gate.address())
              drained = true;
            else
              joined = down.source != head.address();
          },
          caf::after(200ms) >> [] {});
    }
  }

  expected<void> join() {
    auto head = reach_head(system, options.head, tls);
    KM_TRY(head);
    expected<void> result;
    self->request(*head, join_deadline, atom::join_v, here.offer(), here.gate)
        .receive(
            [&](const Message<wire::Welcome>& welcome) {
              auto x = welcome.open();
              known_as = x->getName().cStr();
              auto fault = fault_of(x->getFault());
              if (fault.cls != fault_class::none)
                result = tl::unexpected<error>{fault};
              else
                self->send(here.gate, atom::join_v, x->getEpoch());
            },
            [&](caf::error& why) { result = tl::unexpected<error>{from_caf(why)}; });
    if (!result) return result;
    tell(options, log_level::info, "joined the head at " + options.head.text() + " as " + known_as);
    attend(*head);
    if (!drained) tell(options, log_level::warn, "lost the head at " + options.head.text());
    return {};
  }

  // What will not change by waiting ends the node; everything else is tried again.
  expected<void> serve() {
    auto pause = std::chrono::milliseconds{first_pause};
    std::string said;
    self->monitor(here.gate);
    while (!drained) {
      auto ok = join();
      if (drained) break;
      if (ok) {
        pause = first_pause;
        said.clear();
      } else if (ok.error().cls == fault_class::configuration) {
        return ok;
      } else if (ok.error().message != said) {
        said = ok.error().message;
        tell(options, log_level::warn, render(ok.error()) + "; trying again");
      }
      if (stop.stop_requested()) break; // there is no head to say good-bye to
      // A gate that was told to drain ends when it has answered, head or no head.
      self->receive(
          [&](const caf::down_msg& down) { drained = down.source == here.gate.address(); },
          caf::after(pause) >> [] {});
      pause = std::min<std::chrono::milliseconds>(pause * 2, longest_pause);
    }
    return {};
  }
};

} // namespace

expected<void> run_member(const member_options& options, std::stop_token stop) {
  auto tls = choose_link(options.link, options.head);
  KM_TRY(tls);
  auto& here = *new station; // its actors last as long
  if (auto ok = open(here, options); !ok) return ok;
  if (auto fell = layers_that_fell(here.slots.layers); !fell.empty())
    tell(options, log_level::warn, fell);
  auto& system = lasting_system();
  lease_policy policy;
  policy.lease = longest_lease(options.config);
  policy.attempts = 1; // the head leases again, elsewhere
  policy.workers_return = false;
  policy.log = options.log;
  here.local = system.spawn(leasing_cluster, policy);
  here.workers = spawn_slot_actors(system, here.slots, here.local, options.log);
  here.workers.push_back(spawn_machine_watch(system, hardware_text(here.backend)));
  here.monitor = system.spawn(gathering_monitor);
  caf::anon_send(here.monitor, atom::observe_v, status_actor{here.local});
  for (const auto& worker : here.workers) caf::anon_send(here.monitor, atom::observe_v, worker);
  here.gate = spawn_node_gate(system, here.name, here.local,
                              std::make_shared<parcel_shelf>(default_build_cache() + "/cluster"),
                              here.monitor);
  expected<void> result;
  {
    dialer dial{system, options, here, *tls, stop};
    result = dial.serve();
  }
  return result;
}

} // namespace kernelmill
