#include "launch/node/machine_watch.hpp"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include <unistd.h>

#include <caf/all.hpp>

#include "actors/snapshots.hpp"
#include "gpu/cuda/devices.hpp"

namespace kernelmill {

namespace {

struct machine_watch_state {
  std::string name;
  std::string hardware;
  bool tried = false;
  std::optional<cuda::gpu_monitor> gpus;

  void open() {
    if (tried) return;
    tried = true;
    if (auto opened = cuda::gpu_monitor::open()) gpus = std::move(*opened);
  }
};

double kilobytes_of(const std::string& wanted) {
  std::ifstream in{"/proc/meminfo"};
  std::string key;
  double value = 0;
  while (in >> key >> value) {
    if (key == wanted) return value;
    in.ignore(64, '\n');
  }
  return 0;
}

void put(wire::Snapshot::Builder to,
         std::initializer_list<std::pair<const char*, double>> numbers) {
  auto list = to.initNumbers(static_cast<unsigned>(numbers.size()));
  unsigned i = 0;
  for (const auto& [name, value] : numbers) {
    list[i].setName(name);
    list[i++].setValue(value);
  }
}

Message<wire::Snapshot> snapshot(machine_watch_state& x) {
  x.open();
  double load = 0;
  (void)!::getloadavg(&load, 1);
  return build<wire::Snapshot>([&](wire::Snapshot::Builder to) {
    to.setActor("machine");
    to.setId(x.name);
    to.setState("watching");
    to.setDetail(x.hardware);
    put(to, {{"cores", static_cast<double>(std::thread::hardware_concurrency())},
             {"load", load},
             {"memory_bytes", 1024 * kilobytes_of("MemTotal:")},
             {"memory_free_bytes", 1024 * kilobytes_of("MemAvailable:")}});
    if (!x.gpus) return;
    const auto& all = x.gpus->gpus();
    auto children = to.initChildren(static_cast<unsigned>(all.size()));
    for (unsigned i = 0; i < children.size(); ++i) {
      auto state = x.gpus->state(i);
      children[i].setActor("gpu");
      children[i].setId("gpu" + std::to_string(all[i].index));
      children[i].setState(state.slowed() ? "slowed" : "running");
      children[i].setDetail(all[i].name);
      put(children[i], {{"clock_mhz", state.clock_mhz},
                        {"memory_clock_mhz", state.memory_clock_mhz},
                        {"celsius", state.celsius},
                        {"watts", state.milliwatts / 1000.0},
                        {"slowed", state.slowed() ? 1.0 : 0.0},
                        {"memory_bytes", static_cast<double>(all[i].memory_bytes)}});
    }
  });
}

struct watch_holder {
  machine_watch_state machine;
  static inline const char* name = "machine-watch";
};

status_actor::behavior_type machine_watch(status_actor::stateful_pointer<watch_holder> self,
                                          std::string hardware) {
  char host[256] = "this machine";
  (void)!::gethostname(host, sizeof host - 1);
  self->state.machine.name = host;
  self->state.machine.hardware = std::move(hardware);
  return {[self](atom::status) { return signed_by(self, snapshot(self->state.machine)); }};
}

} // namespace

status_actor spawn_machine_watch(caf::actor_system& system, std::string hardware) {
  return system.spawn<caf::detached>(machine_watch, std::move(hardware));
}

} // namespace kernelmill
