#include "launch/server/rollouts/hosting.hpp"

#include <filesystem>

#include <caf/all.hpp>

#include "storage/lineage/handoff_ledger.hpp"

namespace kernelmill::rollouts {

lane_facts lane_of(const chosen_backend& backend, const node_slots& slots) {
  return {backend.name + (backend.architecture.empty() ? "" : "/" + backend.architecture),
          hardware_text(backend), slots.toolchain->identity(), slots.referee_names,
          slots.sandbox_complete()};
}

expected<handoff::handoff_actor> start_handoff(caf::actor_system& system, local_options options) {
  std::error_code code;
  std::filesystem::create_directories(options.root, code);
  auto root = std::filesystem::canonical(options.root, code).string();
  if (code)
    return configuration_error("io_error", "failed to use " + options.root + ": " + code.message(),
                               "name a folder for the runs");
  options.root = root;
  auto opened = handoff_ledger::open({.directory = root + "/handoff"});
  KM_TRY(opened);
  handoff::handoff_settings settings;
  settings.ledger = std::make_shared<handoff_ledger>(std::move(*opened));
  auto known = handoff::read_lease_table(*settings.ledger);
  KM_TRY(known);
  settings.known = std::move(*known);
  settings.log = options.log;
  auto host = make_local_rollouts(system, std::move(options));
  settings.host = host;
  auto result = handoff::spawn_handoff(system, std::move(settings));
  host->tell_to(result);
  caf::anon_send(result, atom::start_v);
  return result;
}

} // namespace kernelmill::rollouts
