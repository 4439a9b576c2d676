#include "launch/learning/training/training.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>

#include "actors/episode/returns.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/text.hpp"
#include "storage/files.hpp"
#include "storage/journal/projections.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::training {

namespace {

using document = nlohmann::json;
using step_line = training_record::line;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using steady = std::chrono::steady_clock;

constexpr const char* consumer = "trainer";
constexpr int request_version = 1;
constexpr uint32_t most_loads = 1800; ///< a second apart: servers that start read weights first
constexpr uint64_t first_contact = 1800 * 1000;
constexpr auto journal_patience = 20s;

double seconds_since(steady::time_point begun) {
  auto s = std::chrono::duration<double>(steady::now() - begun).count();
  return std::round(s * 1000) / 1000;
}

double seconds_of_day() {
  return static_cast<double>(std::time(nullptr));
}

/// Deviation of the returns of all turns that have one; none where fewer than two do.
double deviation_of(const document& row) {
  std::vector<std::optional<double>> returns;
  for (const auto& episode : row.at("episodes"))
    for (const auto& turn : episode.at("turns"))
      if (turn.value("mask", 0) == 1 && turn["return"].is_number())
        returns.push_back(turn["return"].get<double>());
  if (returns.size() < 2) return -1;
  return group_advantages(returns, advantage_kind::mean_centered).deviation;
}

/// Turns that thought are rewarded for it, in the batch alone: records and findings stay.
void pay_thinking(document& row, double reward) {
  for (auto& episode : row["episodes"])
    for (auto& turn : episode["turns"])
      if (turn.value("mask", 0) == 1 && turn["return"].is_number() &&
          !trimmed(thought_in(text_in(turn, "response"))).empty())
        turn["return"] = turn["return"].get<double>() + reward;
}

} // namespace

std::string runs_of(const std::string& dir) {
  return dir + "/runs";
}

expected<std::unique_ptr<training>> training::open(training_options options) {
  for (const char* folder : {"/steps", "/checkpoints", "/logs"})
    KM_TRY(make_directories(options.config.dir + folder));
  auto record = training_record::open(options.config.dir, options.config.steps);
  KM_TRY(record);
  KM_TRY(record->write_events()); // the one before may have been killed before it did
  return std::unique_ptr<training>{new training{std::move(options), std::move(*record)}};
}

training::training(training_options options, training_record record)
    : options_(std::move(options)), record_(std::move(record)),
      children_(options_.processes, options_.config.directory, options_.config.dir + "/logs"),
      policy_(options_.config.run.at("policy").dump()) {
  children_.set("dir", options_.config.dir);
}

std::string training::version() const {
  return step() == 0 ? options_.config.initial_version
                     : record_.steps().back()["version"].get<std::string>();
}

std::string training::weights() const {
  return step() == 0 ? options_.config.initial
                     : record_.steps().back()["weights"].get<std::string>();
}

expected<void> training::check() const {
  KM_TRY(options_.check());
  return children_.check();
}

// A batch that is made ahead knows one step less.
size_t training::stage_at(uint64_t at) const {
  std::vector<double> correct;
  auto known = std::min<uint64_t>(step(), options_.config.ahead && at > 0 ? at - 1 : at);
  for (uint64_t i = 0; i < known; ++i)
    correct.push_back(record_.steps()[i].value("kernel/correct_rate", 0.0));
  return stage_of(options_.config.stages, at, correct);
}

// -- weights ------------------------------------------------------------------------------------

expected<void> training::serve_weights() {
  children_.set("weights", weights());
  children_.set("version", version());
  auto kind = options_.config.run.at("policy").at("kind").get<std::string>();
  if (kind != "vllm" && kind != "sglang") {
    if (has_served_) children_.restart("policy");
    has_served_ = true; // it was started with them
    return options_.to.declare(version(), "", "");
  }
  for (uint32_t left = most_loads;; --left) {
    auto ok = options_.to.declare(version(), weights(), policy_);
    if (ok || ok.error().category != "weights_not_loaded" || left == 0) return ok;
    KM_TRY(check());
    std::this_thread::sleep_for(1s);
  }
}

void training::remove_old() const {
  const auto& steps = record_.steps();
  auto keep = options_.config.keep;
  if (keep == 0 || steps.size() <= keep) return;
  auto home = options_.config.dir + "/checkpoints/";
  auto path = steps[steps.size() - keep - 1]["weights"].get<std::string>();
  for (auto i = steps.size() - keep; i < steps.size(); ++i)
    if (steps[i]["weights"] == path) return;
  std::error_code code;
  if (path.starts_with(home) && path.find("..") == path.npos) fs::remove_all(path, code);
}

// -- groups -------------------------------------------------------------------------------------

expected<void> training::order(const std::string& name, const std::vector<std::string>& tasks,
                               uint64_t groups, uint64_t group_size, const document& more) {
  auto config = options_.config.run;
  if (!config["policy"].contains("first_contact_ms"))
    config["policy"]["first_contact_ms"] = first_contact; // servers start beside us
  config.merge_patch(more);
  config["tasks"]["ids"] = tasks;
  config["tasks"]["groups"] = groups;
  config["tasks"]["group_size"] = group_size;
  if (!config["tasks"].contains("max_turns")) config["tasks"]["max_turns"] = 1;
  if (!options_.config.tasks_root.empty()) config["tasks"]["root"] = options_.config.tasks_root;
  return options_.to.order(name, config);
}

expected<std::string> training::order_step(uint64_t at, uint64_t round) {
  auto name = "step-" + std::to_string(at) + (round == 0 ? "" : "-more-" + std::to_string(round));
  auto stage = stage_at(at);
  const auto& config = options_.config;
  auto from = tasks_of(config, options_.tasks, stage);
  KM_TRY(from);
  auto each = std::max<uint64_t>(1, config.groups / from->size());
  auto chosen = draw_tasks(std::move(*from), config.groups, config.seed, at, round);
  KM_TRY(order(name, chosen, each, config.group_size,
               stage < config.stages.size() ? config.stages[stage].run : document::object()));
  return name;
}

expected<std::vector<document>> training::take(const std::string& name, const std::string& reader,
                                               uint64_t generation, uint64_t at) {
  std::vector<document> result;
  while (true) {
    KM_TRY(check());
    auto some = options_.to.next(name, reader, generation);
    KM_TRY(some);
    if (some->lease != 0) {
      KM_TRY(options_.to.ack(some->lease, static_cast<int64_t>(at)));
      for (auto& x : some->groups) result.push_back(std::move(x));
    } else if (some->over) {
      return result;
    }
  }
}

// The journal is written just after the records that the HANDOFF heard of.
expected<journal_summary> training::summary_of(const std::string& name, uint64_t groups) const {
  auto end = steady::now() + journal_patience;
  while (true) {
    auto summary = summarize_journal(runs_of(options_.config.dir) + "/" + name);
    if ((summary && summary->groups >= groups) || steady::now() > end) return summary;
    std::this_thread::sleep_for(50ms);
  }
}

void training::add_rows(collected& to, std::vector<document> groups) const {
  for (auto& group : groups) {
    to.groups.push_back(group.at("id").get<std::string>());
    for (const char* key : {"min_version", "max_version"})
      if (group.contains(key) && group[key].is_string())
        to.versions.insert(group[key].get<std::string>());
    for (auto& row : group.at("rows")) {
      if (options_.config.thinking != 0) pay_thinking(row, options_.config.thinking);
      if (deviation_of(row) > options_.config.least_deviation)
        to.rows.push_back(std::move(row));
      else
        ++to.alike;
    }
  }
}

expected<training::collected> training::collect(uint64_t at) {
  collected result;
  for (uint64_t round = 0; round <= options_.config.rounds; ++round) {
    auto name = order_step(at, round);
    KM_TRY(name);
    auto groups = take(*name, consumer, generation_, at);
    KM_TRY(groups);
    auto summary = summary_of(*name, groups->size());
    KM_TRY(summary);
    result.summary.add(*summary);
    add_rows(result, std::move(*groups));
    result.rounds = round;
    if (result.rows.size() >= options_.config.groups) break;
  }
  for (const auto& x : result.groups)
    if (record_.has_learned(x))
      return infrastructure_error(
          "learned_twice", "failed to make a batch: the group " + x + " was learned from before",
          "checkpoints.jsonl and the runs' hand-off log are of different trainings");
  return result;
}

// -- a step -------------------------------------------------------------------------------------

expected<learned_step> training::learn(uint64_t at, const collected& from) {
  if (from.rows.empty()) return learned_step{weights(), document::object()};
  const auto& config = options_.config;
  auto name = "step-" + std::to_string(at);
  auto folder = config.dir + "/steps/" + name;
  KM_TRY(make_directories(folder));
  auto file = atomic_file::create(folder + "/batch.jsonl");
  KM_TRY(file);
  for (const auto& row : from.rows)
    KM_TRY(file->append(row.dump(-1, ' ', false, document::error_handler_t::replace) + "\n"));
  KM_TRY(file->commit());
  document request{{"schema_version", request_version},
                   {"step", at},
                   {"version", name},
                   {"seed", config.seed},
                   {"batch", folder + "/batch.jsonl"},
                   {"form", "rl"},
                   {"rows", from.rows.size()},
                   {"previous", {{"version", version()}, {"weights", weights()}}},
                   {"checkpoint", config.dir + "/checkpoints/" + name},
                   {"result", folder + "/result.json"},
                   {"settings", config.settings}};
  auto learned = have_learned(config, children_, request, folder, [this] { return check(); });
  KM_TRY(learned);
  std::error_code code;
  fs::remove(folder + "/batch.jsonl", code); // the runs have it
  return learned;
}

expected<void> training::take_step() {
  auto at = step();
  auto begun = steady::now();
  auto batch = collect(at);
  KM_TRY(batch);
  auto rollouts = seconds_since(begun);
  if (options_.config.ahead && at + 1 < options_.config.steps) KM_TRY(order_step(at + 1, 0));
  auto taken = steady::now();
  auto learned = learn(at, *batch);
  KM_TRY(learned);
  step_line x{{"step", at},
              {"version", batch->rows.empty() ? version() : "step-" + std::to_string(at)},
              {"weights", learned->weights},
              {"stage", stage_at(at)},
              {"groups", batch->groups},
              {"alike", batch->alike},
              {"rounds", batch->rounds},
              {"turns", batch->summary.turns},
              {"infrastructure_turns", batch->summary.lost},
              {"versions", batch->versions},
              {"findings", batch->summary.findings}};
  uint64_t episodes = 0;
  for (const auto& [task, all] : batch->summary.samples) episodes += all.size();
  x["episodes"] = episodes;
  for (const auto& [key, value] : batch->summary.metrics) x[key] = value;
  for (const auto& [key, value] : learned->metrics.items())
    x[key.find('/') == key.npos ? "trainer/" + key : key] = value;
  x["Timing/Rollout"] = rollouts;
  x["Timing/Train"] = seconds_since(taken);
  x["Timing/Total"] = seconds_since(begun);
  x["timestamp"] = seconds_of_day();
  KM_TRY(record_.add_step(std::move(x)));
  KM_TRY(options_.to.commit(consumer, generation_, static_cast<int64_t>(at)));
  options_.tell(record_.steps().back());
  remove_old();
  return serve_weights();
}

// -- what is held out ---------------------------------------------------------------------------

expected<void> training::evaluate() {
  auto after = step();
  if (record_.is_evaluated(after)) return {};
  const auto& config = options_.config;
  auto begun = steady::now();
  auto name = "held-out-" + std::to_string(after);
  KM_TRY(order(name, options_.tasks.held_out, 1, config.samples, document::object()));
  auto reader = "evaluator-" + std::to_string(after);
  auto generation = options_.to.roll_back(reader, -1);
  KM_TRY(generation);
  auto groups = take(name, reader, *generation, after);
  KM_TRY(groups);
  auto summary = summary_of(name, options_.tasks.held_out.size());
  KM_TRY(summary);
  uint64_t samples = 0;
  step_line rewards = step_line::object(), best = step_line::object();
  for (const auto& [task, all] : summary->samples) {
    samples += all.size();
    const rewarded_sample* fastest = nullptr;
    for (const auto& one : all) {
      rewards[task].push_back(one.reward);
      if (one.score.correct && one.score.speedup &&
          (!fastest || *one.score.speedup > *fastest->score.speedup))
        fastest = &one;
    }
    if (fastest) best[task] = {{"turn", fastest->turn}, {"speedup", *fastest->score.speedup}};
  }
  step_line x{{"after", after}, {"version", version()}, {"samples", samples}};
  auto pass = config.pass;
  pass.push_back(config.samples);
  std::sort(pass.begin(), pass.end());
  pass.erase(std::unique(pass.begin(), pass.end()), pass.end());
  for (const auto& [key, value] : measures_of(summary->samples, config.fast, pass))
    x[key] = {value.value, value.low, value.high};
  x["findings"] = summary->findings;
  x["best"] = best;
  x["rewards"] = rewards;
  x["seconds"] = seconds_since(begun);
  x["timestamp"] = seconds_of_day();
  KM_TRY(record_.add_evaluation(std::move(x)));
  KM_TRY(options_.to.commit(reader, *generation, static_cast<int64_t>(after)));
  options_.tell(record_.evaluations().back());
  return {};
}

expected<void> training::run() {
  const auto& config = options_.config;
  children_.set("weights", weights());
  children_.set("version", version());
  if (!config.policy_command.empty()) KM_TRY(children_.add({"policy", config.policy_command}));
  if (!config.trainer_url.empty() && !config.trainer_command.empty())
    KM_TRY(children_.add({"trainer", config.trainer_command}));
  auto generation = options_.to.roll_back(consumer, static_cast<int64_t>(step()) - 1);
  KM_TRY(generation);
  generation_ = *generation;
  KM_TRY(serve_weights());
  while (true) {
    bool last = step() >= config.steps;
    if (config.evaluate_every > 0 && (last || step() % config.evaluate_every == 0))
      KM_TRY(evaluate());
    if (last) return {};
    KM_TRY(take_step());
  }
}

} // namespace kernelmill::training
