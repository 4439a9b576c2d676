#include "actors/monitor/monitor.hpp"

#include "actors/gather.hpp"

namespace kernelmill {

monitor_actor::behavior_type
gathering_monitor(monitor_actor::stateful_pointer<gathering_monitor_state> self) {
  self->set_down_handler([self](caf::down_msg& down) {
    std::erase_if(self->state.observed, [&](auto& x) { return x.address() == down.source; });
  });
  return {
      [self](atom::status) {
        return gather(self, self->state.observed, snapshot_of("monitor", {}, "answering", {}, {}));
      },
      [self](atom::observe, const status_actor& who) {
        self->monitor(who);
        self->state.observed.push_back(who);
      },
  };
}

} // namespace kernelmill
