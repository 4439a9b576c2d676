#include "launch/cluster/head_runs.hpp"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <caf/all.hpp>
#include <nlohmann/json.hpp>

#include "launch/config/keys.hpp"
#include "launch/config/load.hpp"
#include "messages/fault.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

// In the run's directory while a head works on it: what a head that starts looks for.
constexpr const char* marker_name = "head.json";

std::string marker_of(const std::string& directory) {
  return directory + "/" + marker_name;
}

// A resolved configuration goes through the same door as a file of the user's.
expected<run_config> read_config(const std::string& text, const std::string& root) {
  static std::atomic<unsigned> count{0};
  auto file =
      root + "/.submitted-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".json";
  std::error_code code;
  fs::create_directories(root, code);
  {
    std::ofstream out{file};
    out << text;
    if (!out.flush())
      return infrastructure_error("io_error", "failed to write " + file,
                                  "look at the file system's space and rights");
  }
  config_sources sources;
  sources.files = {file};
  auto loaded = load_config(sources);
  fs::remove(file, code);
  KM_TRY(loaded);
  return std::move(loaded->config);
}

} // namespace

bool is_marked_by_head(const std::string& directory) {
  std::error_code code;
  return fs::exists(marker_of(directory), code);
}

struct head_runs::entry {
  std::string name;
  std::string directory;
  std::string lane;
  int64_t priority = 0;
  std::string state = "running"; // paused, stopping, finished, failed, cancelled, left
  bool cancelled = false;        // by a user, not by the end of the head
  error fault;
  progress last;
  std::unique_ptr<hosted_run> run; // while it lives
  std::jthread thread;

  bool live() const { return run != nullptr; }
};

head_runs::head_runs(caf::actor_system& system, std::shared_ptr<cluster_roster> roster,
                     std::string root, policy_client_actor attached, logger log)
    : system_(system), roster_(std::move(roster)), root_(std::move(root)),
      attached_(std::move(attached)), log_(std::move(log)) {
  // nop
}

head_runs::~head_runs() {
  std::vector<std::shared_ptr<entry>> all;
  {
    std::lock_guard guard{mutex_};
    all = all_;
  }
  for (auto& x : all) x->thread.request_stop();
  for (auto& x : all)
    if (x->thread.joinable()) x->thread.join();
}

// An entry outlives its thread, also when a later one takes its name; threads that have ended go.
void head_runs::keep(const std::shared_ptr<entry>& x) {
  std::erase_if(all_, [](const std::shared_ptr<entry>& known) {
    if (known->live()) return false;
    if (known->thread.joinable()) known->thread.join();
    return true;
  });
  all_.push_back(x);
  runs_[x->name] = x;
}

// -- lanes
// ------------------------------------------------------------------------------------------

expected<std::string> head_runs::choose_lane(const run_config& config) const {
  const auto& wanted = config.evaluation.backend;
  std::map<std::string, size_t> slots;
  for (const auto& x : roster_->members())
    if (!x.draining && (wanted == "auto" || x.backend == wanted)) slots[x.lane()] += x.slots.size();
  std::string best;
  for (const auto& [lane, count] : slots) {
    bool better = best.empty() || count > slots[best];
    // "auto" is a GPU where there is one, as on a single machine.
    if (wanted == "auto" && !best.empty() && best.starts_with("cuda/") != lane.starts_with("cuda/"))
      better = lane.starts_with("cuda/");
    if (count > 0 && better) best = lane;
  }
  if (!best.empty()) return best;
  return infrastructure_error("no_nodes",
                              "failed to start the run: no node offers " +
                                  (wanted == "auto" ? std::string{"slots"} : "backend " + wanted),
                              "start one with `kernelmill node --head ...`");
}

// -- starting
// ---------------------------------------------------------------------------------------

expected<void> head_runs::start(const std::shared_ptr<entry>& x, run_options options,
                                std::string lane) {
  chosen_backend backend;
  auto slash = lane.find('/');
  backend.name = lane.substr(0, slash);
  backend.architecture = slash == lane.npos ? "" : lane.substr(slash + 1);
  execution_facts facts{"lane " + lane, {}, {}, true};
  for (const auto& node : roster_->members()) {
    if (node.lane() != lane) continue;
    backend.hardware = node.hardware;
    facts.toolchain = node.toolchain;
    facts.sandbox_complete = facts.sandbox_complete && node.sandbox_complete;
    for (const auto& slot : node.slots) facts.slots.push_back(node.name + " " + slot);
  }
  x->name = options.config.run.name;
  x->directory = options.directory;
  x->lane = lane;
  x->priority = options.config.run.priority;
  options.log = log_;
  auto run = hosted_run::plan(std::move(options), backend);
  KM_TRY(run);
  if (auto ok = (*run)->open(facts); !ok) return ok;
  if (auto ok = write_json(marker_of(x->directory), {{"lane", lane}}); !ok) return ok;
  (*run)->start(system_, roster_->queues(lane), {}, attached_);
  x->run = std::move(*run);
  x->state = "running";
  log_.info({"head", x->name, {}, {}}, "runs on lane " + lane + " in " + x->directory);
  x->thread = std::jthread{[this, raw = x.get()](std::stop_token stop) { attend(*raw, stop); }};
  return {};
}

void head_runs::attend(entry& x, std::stop_token stop) {
  auto summary = x.run->wait(stop);
  std::unique_ptr<hosted_run> over;
  std::lock_guard guard{mutex_};
  x.last = x.run->now();
  over = std::move(x.run);
  if (!summary) {
    x.state = "failed";
    x.fault = summary.error();
  } else {
    auto view = summary->open();
    x.state = view->getOutcome().cStr();
    x.fault = fault_of(view->getFault());
  }
  bool left = x.state == "cancelled" && !x.cancelled; // the head ends: the next one goes on
  if (left) x.state = "left";
  log_.info({"head", x.name, {}, {}}, "the run is over: " + x.state);
  std::error_code code;
  if (!left) fs::remove(marker_of(x.directory), code);
}

expected<std::string> head_runs::submit(const std::string& config_json) {
  auto config = read_config(config_json, root_);
  KM_TRY(config);
  auto lane = choose_lane(*config);
  KM_TRY(lane);
  run_options options;
  options.config = std::move(*config);
  auto name = options.config.run.name;
  if (name.empty() || name.find('/') != name.npos)
    return configuration_error("invalid_value", "failed to submit: run.name is missing or no name",
                               "give run.name=NAME");
  options.config.run.dir = root_ + "/" + name;
  options.directory = options.config.run.dir;
  options.config_json = to_json(options.config).dump(2);
  auto x = std::make_shared<entry>();
  std::lock_guard guard{mutex_};
  if (live_run(name))
    return configuration_error("run_exists",
                               "failed to submit: a run '" + name + "' is in progress",
                               "give another run.name");
  KM_TRY(start(x, std::move(options), *lane));
  keep(x);
  return name;
}

expected<void> head_runs::take_up(const std::string& name) {
  auto found = find_run(name, root_);
  KM_TRY(found);
  config_sources sources;
  sources.files = {found->config_file()};
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  std::string lane;
  if (auto marker = read_json(marker_of(found->path))) lane = marker->value("lane", "");
  if (lane.empty()) {
    auto chosen = choose_lane(loaded->config);
    KM_TRY(chosen);
    lane = *chosen;
  }
  run_options options;
  options.config = std::move(loaded->config);
  options.config.run.name = found->name;
  options.config.run.dir = found->path;
  options.resume = true;
  options.directory = found->path;
  options.config_json = to_json(options.config).dump(2);
  auto x = std::make_shared<entry>();
  std::lock_guard guard{mutex_};
  if (auto ok = start(x, std::move(options), lane); !ok) return ok;
  keep(x);
  return {};
}

std::vector<std::string> head_runs::recover() {
  std::vector<std::string> problems;
  for (const auto& name : list_runs(root_)) {
    if (!is_marked_by_head(root_ + "/" + name)) continue;
    if (auto ok = take_up(name); !ok) problems.push_back(name + ": " + render(ok.error()));
  }
  return problems;
}

// -- control
// ----------------------------------------------------------------------------------------

expected<head_runs::entry*> head_runs::live_run(const std::string& name) const {
  auto i = runs_.find(name);
  if (i == runs_.end())
    return configuration_error("not_found", "failed to find the run '" + name + "'",
                               "`kernelmill status` lists the runs of the head");
  if (i->second->live()) return i->second.get();
  const auto& state = i->second->state;
  return configuration_error("not_live", "failed to change the run '" + name + "': it is " + state,
                             state == "finished"
                                 ? "it has finished"
                                 : "`kernelmill resume " + name + " --head ...` continues it");
}

expected<void> head_runs::cancel(const std::string& name) {
  std::lock_guard guard{mutex_};
  auto x = live_run(name);
  KM_TRY(x);
  (*x)->cancelled = true;
  (*x)->state = "stopping";
  (*x)->thread.request_stop();
  return {};
}

expected<void> head_runs::pause(const std::string& name) {
  std::lock_guard guard{mutex_};
  auto x = live_run(name);
  KM_TRY(x);
  (*x)->state = "paused";
  (*x)->run->pause(true);
  return {};
}

expected<void> head_runs::resume(const std::string& name) {
  {
    std::lock_guard guard{mutex_};
    if (auto x = live_run(name)) {
      if ((*x)->state == "paused") (*x)->state = "running";
      (*x)->run->pause(false);
      return {};
    }
  }
  return take_up(name);
}

std::shared_ptr<const store> head_runs::records(const std::string& name) const {
  std::lock_guard guard{mutex_};
  auto i = runs_.find(name);
  return i == runs_.end() || !i->second->live() ? nullptr : i->second->run->records();
}

json head_runs::status() const {
  auto result = json::array();
  std::lock_guard guard{mutex_};
  for (const auto& [name, x] : runs_) {
    auto p = x->live() ? x->run->now() : x->last;
    json one = {{"run", name},
                {"state", x->state},
                {"lane", x->lane},
                {"priority", x->priority},
                {"directory", x->directory},
                {"episodes", p.episodes_total},
                {"ended", p.episodes_done},
                {"live", p.episodes_live},
                {"turns", p.turns},
                {"accepted", p.accepted},
                {"rejected", p.rejected},
                {"infrastructure", p.infrastructure},
                {"seconds", p.seconds}};
    // Flat, so that a shell script can read it.
    one["category"] = x->fault.category;
    one["message"] = x->fault.message;
    result.push_back(std::move(one));
  }
  return result;
}

} // namespace kernelmill
