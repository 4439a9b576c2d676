#include "launch/server/rollouts/local_rollouts.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <caf/all.hpp>

#include "launch/cluster/head_runs.hpp"
#include "launch/config/keys.hpp"
#include "launch/node/node_plan.hpp"
#include "launch/node/run_permits.hpp"
#include "launch/node/run_rights.hpp"
#include "launch/server/rollouts/group_rows.hpp"
#include "launch/server/rollouts/order_config.hpp"
#include "launch/server/rollouts/weight_loading.hpp"
#include "messages/base/json_value.hpp"
#include "storage/lineage/group_reader.hpp"
#include "storage/lineage/page_check.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::rollouts {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// The run has its own deadlines, and this request has none to add.
constexpr auto no_deadline = std::chrono::minutes{60 * 24 * 365};

constexpr std::chrono::seconds longest_close{10}; ///< of a store, on a slow disk
constexpr std::chrono::milliseconds one_look{5};

/// Tells when a run is over, however it ends.
caf::behavior run_watcher(caf::event_based_actor* self, const run_actor& run,
                          const std::function<void()>& over) {
  auto once = std::make_shared<bool>(false);
  auto end = [self, once, over] {
    if (std::exchange(*once, true)) return;
    over();
    self->quit();
  };
  self->monitor(run);
  self->set_down_handler([end](caf::down_msg&) { end(); });
  self->request(run, no_deadline, atom::start_v)
      .then([end](const Message<wire::RunSummary>&) { end(); }, [end](caf::error&) { end(); });
  return {[](atom::tick) {
    // nop: a behavior keeps it alive
  }};
}

/// The store of a run: the one that is open here, or the file.
struct opened_store {
  std::shared_ptr<const store> shared;
  std::optional<store> own;
  const store& operator*() const { return shared ? *shared : *own; }
};

struct ended_run {
  std::string state;
  fault_class fault = fault_class::none;
  std::string category, why;
  bool server_away() const { return category == "policy_unreachable"; }
};

expected<ended_run> latest_ending(const store& from, const std::string& run) {
  ended_run result;
  uint32_t opening = 0;
  KM_TRY(from.scan_openings(run, [&](wire::Record::Reader record) {
    auto x = record.getRun();
    if (x.getOpening() < opening) return true;
    opening = x.getOpening();
    std::string state = x.getState();
    auto fault = x.getFault();
    result = {state == "running" ? "" : state, static_cast<fault_class>(fault.getClass()),
              fault.getCategory().cStr(), fault.getMessage().cStr()};
    return true;
  }));
  return result;
}

/// Whether the process that made the store was killed before it wrote anything.
bool is_unborn_store(const std::string& directory) {
  auto file = directory + "/data.mdb";
  std::error_code code;
  return (fs::file_size(file, code) == 0 && !code) || is_unborn(file);
}

/// A client that takes batches trains on them. Errors: "licence_forbids", "unknown_terms".
expected<void> may_train(const std::vector<std::shared_ptr<const task>>& tasks,
                         const policy_section& policy, const std::vector<std::string>& terms) {
  auto licences = installed_licences();
  KM_TRY(licences);
  std::set<std::string> accepted{terms.begin(), terms.end()};
  KM_TRY(licences->check_terms(accepted));
  std::vector<origin_facts> origins;
  for (const auto& x : tasks) origins.push_back(origin_of(*x));
  if (auto x = rights_of_answers(*licences, policy.model, policy.licence, accepted);
      x && !x->train.allowed)
    return configuration_error("licence_forbids", "failed to plan the rollouts: " + x->train.reason,
                               x->train.hint);
  for (const auto& x : rights_of(*licences, origins, std::move(accepted)).tasks)
    if (!x.train.allowed)
      return configuration_error("licence_forbids",
                                 "failed to plan the rollouts: " + x.train.reason, x.train.hint);
  return {};
}

/// Of a run's turns, with the terms that its order accepted.
expected<exports::permits> may_be_trained_on(const run_directory& run, const json& config) {
  auto licences = installed_licences();
  KM_TRY(licences);
  auto terms = config.value(json::json_pointer{"/run/accepted_terms"}, std::vector<std::string>{});
  return permits_of(run, *licences, purpose::train, {terms.begin(), terms.end()});
}

class local_host final : public local_rollouts, public std::enable_shared_from_this<local_host> {
public:
  local_host(caf::actor_system& system, local_options options)
      : system_(system), options_(std::move(options)), stores_(std::make_shared<open_stores>()) {
    // nop
  }

  void tell_to(const handoff::handoff_actor& listener) override {
    told_ = listener;
    runs_ = make_head_runs(options_.root, options_.log, stores_,
                           [listener](const std::string& run, uint32_t group) {
                             caf::anon_send(listener, atom::finished_v, run, group);
                           });
  }

  expected<handoff::rollout_plan> plan(const std::string& run, const std::string& config) override {
    auto asked = options_.own_orders ? own_config(config) : order_config(config, options_.keys);
    KM_TRY(asked);
    auto loaded = read_submitted(with_place(run, std::move(*asked)), options_.root);
    KM_TRY(loaded);
    if (loaded->policy.kind == "attached")
      return configuration_error("config_inconsistent",
                                 "failed to plan the rollouts: policy.kind is attached, and only a "
                                 "head has attached servers",
                                 "name a server with `policy`: its kind, base_url and model");
    KM_TRY(policy_of(*loaded));
    KM_TRY(governance_of(*loaded));
    KM_TRY(advantage_of(loaded->advantage));
    auto tasks = load_tasks(*loaded, options_.backend);
    KM_TRY(tasks);
    KM_TRY(may_train(*tasks, loaded->policy, loaded->run.accepted_terms));
    auto planned = plan_of(*loaded, *tasks);
    return handoff::rollout_plan{to_json(*loaded).dump(),
                                 static_cast<uint32_t>(planned.groups.size()), planned.group_size};
  }

  expected<void> submit(const std::string& run, const std::string& config) override {
    {
      std::lock_guard guard{mutex_};
      if (live_.contains(run)) return {};
    }
    if (!options_.own_orders) { // the operator may have taken one away
      KM_TRY(check_stored_keys(config, options_.keys));
    }
    auto found = here(run) ? continued(run, config) : runs_->read(config);
    KM_TRY(found);
    auto entry = *found;
    {
      std::lock_guard guard{files_};
      if (auto ok = entry->open(options_.lane); !ok) return later(std::move(ok.error()));
    }
    auto actor = entry->start(system_, options_.queues, {}, {});
    {
      std::lock_guard guard{mutex_};
      live_[run] = {entry, actor};
    }
    system_.spawn<caf::detached>(
        [self = shared_from_this(), run, actor](caf::event_based_actor* watcher) {
          return run_watcher(watcher, actor, [self, run] { self->end(run); });
        });
    return {};
  }

  expected<void> cancel(const std::string& run) override {
    std::lock_guard guard{mutex_};
    if (auto i = live_.find(run); i != live_.end()) caf::anon_send(i->second.actor, atom::cancel_v);
    return {};
  }

  void hold(const std::string& run, bool on) override {
    std::lock_guard guard{mutex_};
    if (auto i = live_.find(run); i != live_.end() && i->second.hold) i->second.hold->hold(on);
  }

  expected<handoff::run_standing> look(const std::string& run,
                                       const std::vector<uint32_t>& open) override {
    handoff::run_standing result;
    {
      std::lock_guard guard{mutex_};
      result.live = live_.contains(run);
    }
    result.there = here(run);
    if (!result.there) return result;
    std::lock_guard guard{files_};
    auto directory = open_run(folder(run));
    KM_TRY(directory);
    auto from = records(*directory);
    if (!from && (from.error().category == "not_found" || is_unborn_store(directory->store)))
      return result; // killed before it had one
    KM_TRY(from);
    auto ending = latest_ending(**from, run);
    KM_TRY(ending);
    result.ended = ending->state;
    result.why = ending->why;
    result.server_away = ending->server_away();
    result.may_go_on = result.server_away || ending->fault != fault_class::configuration;
    for (auto group : open) {
      bool ended = false;
      KM_TRY((**from).scan_group(run, group, [&](wire::Record::Reader record) {
        ended = ended || record.isGroup();
        return true;
      }));
      if (ended) result.groups.push_back(group);
    }
    return result;
  }

  expected<handoff::group_rows> read(const std::string& run, uint32_t group,
                                     const std::string& form) override {
    std::lock_guard guard{files_};
    auto directory = open_run(folder(run));
    KM_TRY(directory);
    auto as = trainer_form(form);
    KM_TRY(as);
    auto config = read_json(directory->config_file());
    KM_TRY(config);
    auto from = records(*directory);
    KM_TRY(from);
    row_options options{*as, 1};
    options.temperature = config->value(json::json_pointer{"/policy/sampling/temperature"}, 1.0);
    auto may = may_be_trained_on(*directory, *config);
    KM_TRY(may);
    KM_TRY(check_store_of(*directory, **from));
    return read_rows(**from, artifact_store{directory->artifacts}, *may, run, group, options);
  }

  expected<std::vector<handoff::loaded_server>>
  load_weights(const handoff::weights_wish& x) override {
    return load_weights_at_all(x, options_.keys);
  }

private:
  struct live_run {
    head_run_ptr hold; ///< null: it is being closed
    run_actor actor;
  };

  std::string folder(const std::string& run) const { return options_.root + "/" + run; }

  bool here(const std::string& run) const {
    std::error_code code;
    return fs::exists(folder(run) + "/manifest.json", code);
  }

  // Name, place and tasks are ours.
  std::string with_place(const std::string& run, json x) const {
    x["run"]["name"] = run;
    x["run"]["dir"] = folder(run);
    if (!options_.tasks_root.empty()) x["tasks"]["root"] = options_.tasks_root;
    return x.dump();
  }

  // What is in the way now is not so for ever.
  static tl::unexpected<error> later(error why) {
    if (why.category == "store_locked") why.cls = fault_class::infrastructure;
    return tl::unexpected<error>{std::move(why)};
  }

  // A run of that name that the order did not make is not the order's.
  expected<head_run_ptr> continued(const std::string& run, const std::string& config) {
    auto there = read_json(folder(run) + "/config.json");
    KM_TRY(there);
    auto wanted = json::parse(config, nullptr, false);
    for (auto* x : {&*there, &wanted})
      if (x->contains("run") && (*x)["run"].is_object()) (*x)["run"].erase("dir");
    if (*there != wanted)
      return configuration_error("run_exists",
                                 "failed to begin the rollouts: there is another run '" + run + "'",
                                 "give the order another `id`");
    return runs_->find(run);
  }

  // The last holder of an ended run's store, such as an actor of it, may close it right now, on a
  // thread of its own.
  expected<opened_store> records(const run_directory& directory) const {
    for (auto until = std::chrono::steady_clock::now() + longest_close;;) {
      opened_store result;
      result.shared = stores_->of(directory.name);
      if (result.shared) return result;
      auto own = store::open({.directory = directory.store, .read_only = true});
      if (own) {
        result.own.emplace(std::move(*own));
        return result;
      }
      if (own.error().category != "store_locked" || std::chrono::steady_clock::now() > until)
        return later(std::move(own.error()));
      std::this_thread::sleep_for(one_look);
    }
  }

  void end(const std::string& run) {
    head_run_ptr hold;
    {
      std::lock_guard guard{mutex_};
      hold = std::move(live_[run].hold); // no call holds it back or lets it go while it is closed
    }
    {
      std::lock_guard guard{files_};
      hold->close(true);
    }
    {
      std::lock_guard guard{mutex_};
      live_.erase(run);
    }
    caf::anon_send(told_, atom::finished_v, run);
  }

  caf::actor_system& system_;
  local_options options_;
  std::shared_ptr<open_stores> stores_;
  std::shared_ptr<run_host> runs_;
  handoff::handoff_actor told_;
  std::mutex files_; ///< one process must not open a store twice
  std::mutex mutex_; ///< of what follows
  std::map<std::string, live_run> live_;
};

} // namespace

std::shared_ptr<local_rollouts> make_local_rollouts(caf::actor_system& system,
                                                    local_options options) {
  return std::make_shared<local_host>(system, std::move(options));
}

} // namespace kernelmill::rollouts
