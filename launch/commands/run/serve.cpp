// `kernelmill serve`: candidates come over HTTP, verdicts go back. The actors that build and
// evaluate are those of a run; the evaluation service stands before them.

#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include <unistd.h>

#include <caf/all.hpp>

#include "actors/cluster/cluster.hpp"
#include "actors/policy_client/policy_keys.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/cluster/link.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run/hosting_system.hpp"
#include "launch/commands/tasks_root.hpp"
#include "launch/config/address.hpp"
#include "launch/judging/conditions.hpp"
#include "launch/machine/python.hpp"
#include "launch/machine/slots.hpp"
#include "launch/node/hosted_run.hpp"
#include "launch/node/run_rights.hpp"
#include "launch/node/slot_actors.hpp"
#include "launch/server/api/evaluation_api.hpp"
#include "launch/server/http/server.hpp"
#include "launch/server/rollouts/hosting.hpp"
#include "messages/base/json_value.hpp"
#include "messages/torch_words.hpp"

namespace kernelmill::commands {

namespace {

/// Takes the limits that were given over.
expected<void> read_limits(const invocation& in, http::limits& bounds,
                           services::evaluation_table::limits& evaluations) {
  auto connections = in.integer("--connections", 1, 65536);
  KM_TRY(connections);
  auto queue = in.integer("--queue", 1, 1'000'000);
  KM_TRY(queue);
  bounds.connections = static_cast<uint32_t>(*connections);
  evaluations.waiting = static_cast<size_t>(*queue);
  return {};
}

/// Clients with tokens and bounds of their own.
expected<void> read_clients(const invocation& in, http::server_options& web,
                            services::evaluation_table::limits& evaluations) {
  if (!in.has("--clients")) return {};
  if (in.has("--token-file"))
    return configuration_error("usage", "both --clients and --token-file are given",
                               "each client has its token in the file of --clients");
  auto clients = http::load_clients(in.value("--clients"));
  KM_TRY(clients);
  for (const auto& one : *clients) evaluations.clients[one.name] = {one.evaluations, one.share};
  web.clients = std::move(*clients);
  return {};
}

/// Tasks of the contract `torch` need an interpreter. Without --python there may be none: then
/// they are left out.
expected<bool> find_torch(const invocation& in, const task_roots& roots, chosen_backend& backend) {
  auto ids = list_tasks(roots);
  KM_TRY(ids);
  bool wanted = false;
  for (const auto& id : *ids)
    if (auto x = load_task(roots, id);
        x && (*x)->contract == contract_kind::torch && (*x)->names(backend.name))
      wanted = true;
  if (!wanted) return false;
  auto python = find_python(in.value("--python"));
  if (!python && in.has("--python")) return tl::unexpected<error>{python.error()};
  if (!python) {
    cli::talk("warning: tasks of the contract torch are left out: " + python.error().message);
    return false;
  }
  backend.python = python->path;
  return true;
}

/// Rewards are what trainers ask a server for, so it says of which tasks they must not be used.
expected<void> say_rights(const services::task_shelf& tasks) {
  auto licences = installed_licences();
  KM_TRY(licences);
  std::vector<origin_facts> origins;
  for (const auto& one : tasks.all()) origins.push_back(origin_of(*one));
  for (const auto& one : rights_of(*licences, origins, {}).tasks)
    if (!one.train.allowed)
      cli::talk("note: " + one.what.id + " is for evaluation, not for training: " +
                one.train.reason + "; to train on it, " + one.train.hint);
  return {};
}

/// What else than task and candidate a verdict depends on.
std::string rules_text(const invocation& in, const chosen_backend& backend) {
  return build_id() + " " + backend.name + " " + hardware_text(backend) + " " +
         in.value("--preset") + " " + in.value("--clock") + " " +
         (in.has("--no-timing") ? "untimed" : "timed") + " " + in.value("--torch-mode") + " " +
         in.value("--language") + " " + in.value("--float32") + " " + in.value("--baseline");
}

/// For a program that starts a server: when it is gone, however it went, its end of the pipe is.
void end_with_stdin() {
  std::thread{[] {
    char byte = 0;
    ssize_t n = 0;
    while ((n = ::read(0, &byte, 1)) > 0 || (n < 0 && errno == EINTR)) {
      // nop: what it says does not matter
    }
    ::kill(::getpid(), SIGTERM);
  }}.detach();
}

/// The HANDOFF of the runs below --runs; null without it.
expected<handoff::handoff_actor> start_rollouts(const invocation& in, caf::actor_system& system,
                                                const cluster_actor& queues,
                                                const chosen_backend& backend,
                                                const node_slots& slots, const policy_keys& keys,
                                                const logger& log) {
  if (!in.has("--runs")) return handoff::handoff_actor{};
  rollouts::local_options options;
  options.root = in.value("--runs");
  options.queues = queues;
  options.lane = rollouts::lane_of(backend, slots);
  options.backend = backend;
  std::error_code code;
  if (in.has("--root")) options.tasks_root = std::filesystem::absolute(in.value("--root"), code);
  options.keys = keys;
  options.log = log;
  return rollouts::start_handoff(system, std::move(options));
}

/// The folder whose verified kernels are answered: --kernels, else --runs; null without either.
std::shared_ptr<services::kernel_answers> start_kernels(const invocation& in,
                                                        const services::task_shelf& tasks,
                                                        const chosen_backend& backend,
                                                        const node_slots& slots) {
  auto root = in.has("--kernels") ? in.value("--kernels")
              : in.has("--runs")  ? in.value("--runs")
                                  : std::string{};
  if (root.empty()) return nullptr;
  std::map<std::string, std::string> digests;
  for (const auto& x : tasks.all()) digests.emplace(x->id, x->digest);
  auto today = conditions_of(backend, slots.toolchain->identity(), backend.python, build_id(),
                             std::move(digests));
  return std::make_shared<services::kernel_answers>(std::move(root), std::move(today));
}

void announce(const invocation& in, const http::server& server) {
  if (in.json)
    cli::print_json({{"url", server.url()}});
  else
    cli::print(server.url() + "\n");
  cli::finish_output();
}

expected<int> serve(const invocation& in) {
  auto roots = tasks_roots(in);
  KM_TRY(roots);
  auto listen = parse_listen_address("--listen", in.value("--listen"));
  KM_TRY(listen);
  http::server_options web{listen->host, listen->port, {}, {}};
  services::evaluation_service_options service_settings;
  KM_TRY(read_limits(in, web.bounds, service_settings.limits));
  if (in.has("--token-file")) {
    auto token = http::load_token(in.value("--token-file"));
    KM_TRY(token);
    web.token = *token;
  }
  KM_TRY(read_clients(in, web, service_settings.limits));
  web.certificate_file = in.value("--tls-certificate");
  web.key_file = in.value("--tls-key");
  if (web.certificate_file.empty() != web.key_file.empty())
    return configuration_error("usage", "a certificate without its key, or a key without one",
                               "give both --tls-certificate and --tls-key");
  policy_keys keys;
  if (in.has("--policy-keys")) {
    auto listed = load_policy_keys(in.value("--policy-keys"));
    KM_TRY(listed);
    keys = std::move(*listed);
  }
  auto rules = governance_rules(in.value("--preset"));
  KM_TRY(rules);
  auto backend = choose_backend(in.value("--backend"));
  KM_TRY(backend);
  auto torch = find_torch(in, *roots, *backend);
  KM_TRY(torch);
  auto baseline = in.value("--baseline");
  if (!is_baseline_word(baseline) || baseline == "best")
    return configuration_error("usage",
                               "failed to serve with --baseline " + baseline +
                                   ": a solution is of one task, and all are served",
                               "use eager, compile or compile_max_autotune");
  std::vector<std::string> problems;
  auto tasks = services::task_shelf::open(*roots, *backend, torch_choice_of(in), *torch, problems);
  KM_TRY(tasks);
  for (const auto& x : problems) cli::talk("warning: a task is left out: " + x);
  KM_TRY(say_rights(*tasks));

  interrupt stop;
  run_config config;
  config.evaluation.clock = in.value("--clock");
  auto slots = start_slots(config, *backend, tasks->directories());
  KM_TRY(slots);
  if (auto fell = layers_that_fell(slots->layers); !fell.empty()) cli::talk("warning: " + fell);
  hosting_system_config actors_config;
  caf::actor_system system{actors_config};
  auto lease = longest_lease(config);
  auto cluster = system.spawn(leasing_cluster, leases_of_own_slots(lease));
  auto workers = spawn_slot_actors(system, *slots, cluster, {});

  // A build for each compiler, and two for each slot: the next is there when one is done.
  service_settings.limits.running = slots->compile_slots + 2 * slots->referees.size();
  service_settings.judging = {!in.has("--no-timing"), {}, {}, in.value("--clock")};
  service_settings.rules = std::move(*rules);
  service_settings.patience = 4 * lease * static_cast<int>(service_settings.limits.running);
  service_settings.load = std::make_shared<services::evaluation_load>();
  auto shared = std::make_shared<services::api>();
  shared->tasks = std::make_shared<const services::task_shelf>(std::move(*tasks));
  shared->rules = rules_text(in, *backend);
  shared->load = service_settings.load;
  shared->service =
      system.spawn(services::evaluation_service, std::move(service_settings), cluster);
  shared->seats = system.spawn(services::seat_keeper);
  shared->secure = !web.key_file.empty();
  shared->keys = keys;
  shared->kernels = start_kernels(in, *shared->tasks, *backend, *slots);
  auto rollouts = start_rollouts(in, system, cluster, *backend, *slots, keys, {});
  if (rollouts) shared->handoff = *rollouts;
  auto server = rollouts ? http::server::start(services::evaluation_routes(shared), std::move(web))
                         : tl::unexpected<error>{rollouts.error()};
  if (!server) {
    caf::anon_send_exit(shared->service, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(shared->seats, caf::exit_reason::user_shutdown);
    if (shared->handoff) caf::anon_send_exit(shared->handoff, caf::exit_reason::user_shutdown);
    for (auto& worker : workers) caf::anon_send_exit(worker, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(cluster, caf::exit_reason::user_shutdown);
    return tl::unexpected<error>{server.error()};
  }
  announce(in, **server);
  if (in.has("--end-with-stdin")) end_with_stdin();
  stop.wait();
  server->reset();
  // What is to be kept is durable, and a candidate may run for minutes yet: it ends with its
  // parent.
  leave(cli::exit_ok);
}

} // namespace

cli::command serve_row() {
  return without_tables(
      {"serve",
       "Serves evaluations over HTTP, for trainers and other programs.",
       "kernelmill serve --backend cpu\n"
       "kernelmill serve --listen 0.0.0.0:8080 --token-file token",
       "Prints its URL once it answers, and ends with Ctrl-C. docs/reference/openapi.json is the "
       "API,\n"
       "docs/how-to/evaluate-over-http.md shows it at work. Tasks are read once, at the start. "
       "`kernelmill page DIR` serves\nthe page of a folder of runs.",
       {},
       with_torch_options(
           {{"--listen",
             "ADDR:PORT",
             "Address to listen on; port 0 takes a free one. Beyond 127.0.0.1 a token is required.",
             "127.0.0.1:0",
             false,
             {},
             nothing},
            {"--token-file",
             "FILE",
             "Clients must send the token in it as a bearer token; others must not be able to read "
             "it.",
             "",
             false,
             {},
             completes::file},
            {"--clients",
             "FILE",
             "Clients with a token, bounds and a share of the slots each (JSON); others must not "
             "be "
             "able to read it.",
             "",
             false,
             {},
             completes::file},
            {"--policy-keys",
             "FILE",
             "Keys that clients may have sent to policy servers, by name, each with the address "
             "that it is for (JSON).",
             "",
             false,
             {},
             completes::file},
            {"--tls-certificate",
             "FILE",
             "Certificate (PEM): HTTPS in place of HTTP.",
             "",
             false,
             {},
             completes::file},
            {"--tls-key", "FILE", "Its key (PEM).", "", false, {}, completes::file},
            {"--backend",
             "NAME",
             "Where candidates run.",
             "auto",
             false,
             {"auto", "cpu", "cuda", "hip"},
             nothing},
            {"--preset", "NAME", "Weights of the reward.", "kevin", false, reward_presets(),
             nothing},
            {"--runs",
             "DIR",
             "Folder of the runs that make rollouts. Default: no rollouts.",
             "",
             false,
             {},
             completes::directory},
            {"--kernels",
             "DIR",
             "Folder of runs whose verified kernels GET /v1/kernels answers. Default: that of "
             "--runs.",
             "",
             false,
             {},
             completes::directory},
            {"--queue",
             "N",
             "Evaluations that may wait; more are answered 429.",
             "1024",
             false,
             {},
             nothing},
            {"--connections",
             "N",
             "Connections at once; more are answered 429, with TLS they are closed.",
             "4096",
             false,
             {},
             nothing},
            clock_option(),
            flag("--no-timing", "Checks without timing."),
            flag("--end-with-stdin", "Ends when stdin closes, for a program that starts it."),
            tasks_root()}),
       serve});
}

} // namespace kernelmill::commands
