#include "launch/cluster/head_runs.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "launch/config/keys.hpp"
#include "launch/config/load.hpp"
#include "launch/node/hosted_run.hpp"
#include "messages/base/json_value.hpp"
#include "storage/head_mark.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

// "cuda/sm_90" as a machine that evaluates; what it is made of stands in `facts`.
chosen_backend backend_of(const lane_facts& facts) {
  chosen_backend result;
  auto slash = facts.lane.find('/');
  result.name = facts.lane.substr(0, slash);
  result.architecture = slash == std::string::npos ? "" : facts.lane.substr(slash + 1);
  result.hardware = facts.hardware;
  return result;
}

class stored_run final : public head_run {
public:
  stored_run(run_options options, std::string lane, std::shared_ptr<open_stores> stores)
      : options_(std::move(options)), stores_(std::move(stores)) {
    const auto& config = options_.config;
    options_.directory = config.run.dir;
    options_.config_json = to_json(config).dump(2);
    facts_ = {config.run.name, config.run.dir,      config.evaluation.backend,
              std::move(lane), config.run.priority, config.evaluation.required_layers};
  }

  const head_run_facts& facts() const override { return facts_; }

  expected<void> open(const lane_facts& where) override {
    auto run = hosted_run::plan(options_, backend_of(where));
    KM_TRY(run);
    auto toolchain = where.toolchain.empty() ? "lane " + where.lane : where.toolchain;
    KM_TRY((*run)->open({toolchain, where.slots, {}, where.sandbox_complete}));
    KM_TRY(write_json(head_mark_of(facts_.directory), {{"lane", where.lane}}));
    run_ = std::move(*run);
    stores_->put(facts_.name, run_->records());
    return {};
  }

  run_actor start(caf::actor_system& system, const cluster_actor& queues,
                  const policy_client_actor& attached, const status_actor& head) override {
    std::vector<status_actor> others;
    if (head) others.push_back(head);
    return run_->start(system, queues, others, attached);
  }

  void hold(bool on) override { run_->hold(on); }

  void close(bool over) override {
    run_.reset();
    std::error_code code;
    if (over) fs::remove(head_mark_of(facts_.directory), code);
  }

private:
  run_options options_;
  head_run_facts facts_;
  std::unique_ptr<hosted_run> run_;
  std::shared_ptr<open_stores> stores_;
};

class stored_runs final : public run_host {
public:
  stored_runs(std::string root, logger log, std::shared_ptr<open_stores> stores,
              group_listener on_group)
      : root_(std::move(root)), log_(std::move(log)), stores_(std::move(stores)),
        on_group_(std::move(on_group)) {
    // nop
  }

  expected<head_run_ptr> read(const std::string& config_json) override {
    auto config = read_submitted(config_json, root_);
    KM_TRY(config);
    const auto& name = config->run.name;
    if (name.empty() || name.find('/') != name.npos)
      return configuration_error("invalid_value",
                                 "failed to submit: run.name is missing or no name",
                                 "give run.name=NAME");
    config->run.dir = root_ + "/" + name;
    return std::make_shared<stored_run>(options_of(std::move(*config)), "", stores_);
  }

  expected<head_run_ptr> find(const std::string& name) override {
    auto found = find_run(name, root_);
    KM_TRY(found);
    config_sources sources;
    sources.files = {found->config_file()};
    auto loaded = load_config(sources);
    KM_TRY(loaded);
    std::string lane;
    if (auto marker = read_json(head_mark_of(found->path))) lane = marker->value("lane", "");
    auto options = options_of(std::move(loaded->config));
    options.config.run.name = found->name;
    options.config.run.dir = found->path;
    options.resume = true;
    return std::make_shared<stored_run>(std::move(options), std::move(lane), stores_);
  }

  std::vector<std::string> left_over() override {
    std::vector<std::string> result;
    for (auto& name : list_runs(root_))
      if (is_of_head({root_ + "/" + name, {}, {}, {}})) result.push_back(std::move(name));
    return result;
  }

private:
  run_options options_of(run_config config) const {
    run_options result;
    result.config = std::move(config);
    result.log = log_;
    if (on_group_)
      result.on_group = [tell = on_group_, run = result.config.run.name](uint32_t group) {
        tell(run, group);
      };
    return result;
  }

  std::string root_;
  logger log_;
  std::shared_ptr<open_stores> stores_;
  group_listener on_group_;
};

} // namespace

// A resolved configuration goes through the same door as a file of the user's.
expected<run_config> read_submitted(const std::string& text, const std::string& root) {
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

void open_stores::put(const std::string& run, const std::shared_ptr<const store>& x) {
  std::lock_guard guard{mutex_};
  std::erase_if(all_, [](const auto& known) { return known.second.expired(); });
  all_[run] = x;
}

std::shared_ptr<const store> open_stores::of(const std::string& run) const {
  std::lock_guard guard{mutex_};
  auto i = all_.find(run);
  return i == all_.end() ? nullptr : i->second.lock();
}

std::shared_ptr<run_host> make_head_runs(std::string root, logger log,
                                         std::shared_ptr<open_stores> stores,
                                         group_listener on_group) {
  return std::make_shared<stored_runs>(std::move(root), std::move(log), std::move(stores),
                                       std::move(on_group));
}

} // namespace kernelmill
