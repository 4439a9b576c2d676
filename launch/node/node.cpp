#include "launch/node/node.hpp"

#include <caf/all.hpp>

#include "actors/caf_error.hpp"
#include "actors/cluster/cluster.hpp"
#include "launch/machine/python.hpp"
#include "launch/machine/slots.hpp"
#include "launch/node/hosted_run.hpp"
#include "launch/node/machine_watch.hpp"
#include "launch/node/slot_actors.hpp"

namespace kernelmill {

namespace {

struct node_config : caf::actor_system_config {
  node_config() {
    add_message_types<caf::id_block::kernelmill>();
    add_message_types<caf::id_block::kernelmill_handles>();
    teach_errors(*this);
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-throughput", size_t{100});
  }
};

} // namespace

expected<Message<wire::RunSummary>> run_node(const run_options& options, std::stop_token stop) {
  const auto& config = options.config;
  if (config.policy.kind == "attached")
    return configuration_error(
        "config_inconsistent",
        "failed to start the run: policy.kind is attached, and only a head has attached servers",
        "`kernelmill submit` gives the run to a head; or give policy.kind=openai and "
        "policy.base_url=http://HOST:PORT/v1");
  auto backend = choose_backend(config.evaluation.backend);
  KM_TRY(backend);
  auto run = hosted_run::plan(options, *backend);
  KM_TRY(run);
  if ((*run)->wants_python()) {
    auto python = find_python(config.evaluation.python);
    KM_TRY(python);
    backend->python = python->path;
  }
  auto slots = start_slots(config, *backend, (*run)->task_directories());
  KM_TRY(slots);
  if (auto ok = (*run)->open({slots->toolchain->identity(), slots->referee_names, slots->layers,
                              slots->sandbox_complete()});
      !ok)
    return tl::unexpected<error>{ok.error()};
  if (options.on_start) options.on_start();

  if (auto fell = layers_that_fell(slots->layers); !fell.empty())
    (*run)->log().warn({"node", {}, {}, {}}, fell);

  node_config actors_config;
  caf::actor_system system{actors_config};
  auto leases = leases_of_own_slots(longest_lease(config));
  leases.log = (*run)->log();
  auto cluster = system.spawn(leasing_cluster, leases);
  auto workers = spawn_slot_actors(system, *slots, cluster, (*run)->log());
  workers.push_back(spawn_machine_watch(system, hardware_text(*backend)));
  (*run)->start(system, cluster, workers);
  if (options.on_hosted) options.on_hosted(run->get());
  auto result = (*run)->wait(stop);
  if (options.on_hosted) options.on_hosted(nullptr);
  run->reset();
  for (auto& worker : workers) caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(cluster, caf::exit_reason::user_shutdown);
  return result;
}

} // namespace kernelmill
