#include "launch/commands/run/hosting_system.hpp"

#include <caf/all.hpp>

#include "launch/server/api/evaluation_service.hpp"

namespace kernelmill::commands {

hosting_system_config::hosting_system_config() {
  add_message_types<caf::id_block::kernelmill>();
  add_message_types<caf::id_block::kernelmill_handles>();
  add_message_types<caf::id_block::kernelmill_services>();
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-throughput", size_t{100});
}

} // namespace kernelmill::commands
