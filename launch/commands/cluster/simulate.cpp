// `kernelmill simulate`: how long a run would take on machines that need not be there.

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "launch/analysis/simulate/measured.hpp"
#include "launch/analysis/simulate/simulation.hpp"
#include "launch/cli/output.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/sources.hpp"
#include "launch/node/task_choice.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace sim = simulating;

constexpr uint64_t most_turns = 5'000'000; // ten times over they take half a minute
// One durable transaction, whatever it holds; docs/how-to/size-a-cluster.md says where it is from.
constexpr double commit_seconds = 0.002;

/// What is simulated, and where its numbers are from.
struct plan {
  sim::workload work;
  sim::cluster_size cluster;
  std::string measured_in; ///< a run; empty: none
};

expected<uint64_t> groups_of(const run_config& config) {
  auto chosen = tasks_of(config.tasks);
  KM_TRY(chosen);
  return uint64_t{chosen->size()} * config.tasks.groups;
}

expected<void> take_seconds(const invocation& in, const char* name, sim::distribution& into) {
  if (!in.has(name)) return {};
  auto x = sim::distribution::parse(in.value(name));
  if (!x) {
    x.error().message += std::string{" of "} + name;
    return tl::unexpected<error>{x.error()};
  }
  into = *x;
  return {};
}

expected<void> take_count(const invocation& in, const char* name, uint32_t& into) {
  if (!in.has(name)) return {};
  auto x = in.integer(name, 1, 1'000'000);
  KM_TRY(x);
  into = static_cast<uint32_t>(*x);
  return {};
}

expected<void> take_run(const invocation& in, plan& into) {
  auto run = find_run(in.value("--from"), in.value("--root"));
  KM_TRY(run);
  auto store = open_for_reading(*run);
  KM_TRY(store);
  auto x = sim::measure(*store, run->name);
  KM_TRY(x);
  if (x->answers == 0)
    return configuration_error("nothing_measured",
                               "failed to measure " + run->name + ": it has no turns",
                               "name a run that has ended, or leave --from out");
  auto& work = into.work;
  work.policy = sim::distribution::measured(x->policy);
  // A run that took every build from the cache does not tell how long one takes.
  if (!x->build.empty()) work.build = sim::distribution::measured(x->build);
  if (!x->evaluate.empty()) work.evaluate = sim::distribution::measured(x->evaluate);
  work.turns = x->turns;
  work.builds = x->build_share();
  work.cached = x->cached_share();
  work.evaluations = x->compiled_share();
  into.measured_in = run->name;
  return {};
}

expected<void> take_options(const invocation& in, plan& into) {
  const std::pair<const char*, sim::distribution*> times[] = {
      {"--policy-seconds", &into.work.policy},
      {"--build-seconds", &into.work.build},
      {"--evaluate-seconds", &into.work.evaluate}};
  for (auto [name, where] : times)
    if (auto ok = take_seconds(in, name, *where); !ok) return ok;
  const std::pair<const char*, uint32_t*> counts[] = {{"--nodes", &into.cluster.nodes},
                                                      {"--slots", &into.cluster.slots},
                                                      {"--compilers", &into.cluster.compilers},
                                                      {"--servers", &into.cluster.servers},
                                                      {"--in-flight", &into.cluster.in_flight}};
  for (auto [name, where] : counts)
    if (auto ok = take_count(in, name, *where); !ok) return ok;
  return {};
}

expected<plan> plan_of(const invocation& in) {
  auto sources = sources_of(in.list("CONFIG"));
  // No server is asked, so none has to be named.
  sources.overrides.insert(sources.overrides.end(),
                           {"policy.kind=attached", "policy.stream=false"});
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  auto& config = loaded->config;
  auto groups = groups_of(config);
  KM_TRY(groups);
  plan result;
  result.work.episodes = *groups * config.tasks.group_size;
  result.work.max_turns = config.tasks.max_turns;
  result.work.seed = config.run.seed;
  result.work.policy = sim::distribution::lognormal(20, 60);
  result.work.build = sim::distribution::lognormal(5, 15);
  result.work.evaluate = sim::distribution::constant(0.15);
  result.work.commit = sim::distribution::constant(commit_seconds);
  result.cluster.max_live = config.episode.max_live;
  result.cluster.in_flight = config.policy.max_in_flight;
  result.cluster.slots = std::max(1u, config.evaluation.slots);
  result.cluster.compilers = config.compile.slots > 0
                                 ? config.compile.slots
                                 : std::max(1u, std::thread::hardware_concurrency());
  if (in.has("--from")) KM_TRY(take_run(in, result));
  KM_TRY(take_options(in, result));
  if (result.work.episodes * result.work.max_turns > most_turns)
    return configuration_error("usage",
                               fmt::format("failed to simulate {} episodes of {} turns: more than "
                                           "{} turns take too long",
                                           result.work.episodes, result.work.max_turns, most_turns),
                               "simulate fewer groups: rates do not change (tasks.groups=N)");
  return result;
}

// -- output -------------------------------------------------------------------------------------

json stage_json(const sim::stage_figures& x) {
  return {{"stage", x.name},
          {"servers", x.servers},
          {"jobs", x.jobs},
          {"busy", x.busy},
          {"busy_while_full", x.busy_full},
          {"wait_seconds", {{"mean", x.wait_mean}, {"p50", x.wait_p50}, {"p90", x.wait_p90}}},
          {"queue", {{"mean", x.queue_mean}, {"most", x.queue_most}}}};
}

json result_json(const sim::simulation_result& x) {
  json stages = json::array();
  for (const auto& one : x.stages) stages.push_back(stage_json(one));
  return {{"seconds", x.seconds},
          {"episodes", x.episodes},
          {"turns", x.turns},
          {"episodes_per_hour", x.episodes_per_hour()},
          {"turns_per_hour", x.turns_per_hour()},
          {"live_mean", x.live_mean},
          {"episode_seconds_mean", x.episode_mean},
          {"limit", x.limit},
          {"stages", stages}};
}

json document_of(const plan& x, const std::vector<sim::alternative>& all) {
  json result;
  const auto& w = x.work;
  const auto& c = x.cluster;
  result["from"] = x.measured_in.empty() ? json(nullptr) : json(x.measured_in);
  result["workload"] = {{"episodes", w.episodes},
                        {"max_turns", w.max_turns},
                        {"seed", w.seed},
                        {"build_share", w.builds},
                        {"cached_share", w.cached},
                        {"compiled_share", w.evaluations},
                        {"policy_seconds", w.policy.text()},
                        {"build_seconds", w.build.text()},
                        {"evaluate_seconds", w.evaluate.text()},
                        {"commit_seconds", w.commit.text()}};
  result["cluster"] = {{"max_live", c.max_live},   {"servers", c.servers},
                       {"in_flight", c.in_flight}, {"nodes", c.nodes},
                       {"compilers", c.compilers}, {"slots", c.slots}};
  result.update(result_json(all.front().result));
  result["alternatives"] = json::array();
  for (const auto& one : all) {
    json row = {{"nodes", one.nodes * c.nodes}, {"servers", one.servers * c.servers}};
    row.update(result_json(one.result));
    result["alternatives"].push_back(row);
  }
  return result;
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string percent_cell(double share) {
  return cli::plain_cells() ? cli::percent_or_plain(share) : percent(share);
}

std::string given_text(const plan& x) {
  const auto& w = x.work;
  const auto& c = x.cluster;
  auto turns = w.turns.empty()
                   ? fmt::format("{} turns", w.max_turns)
                   : fmt::format("up to {} turns as in {}", w.max_turns, cli::clean(x.measured_in));
  return fmt::format("{} episodes of {}, at most {} at once\n"
                     "policy    {} x {} in flight, {} s\n"
                     "build     {} x {} compilers, {} s; {} of answers, {} of them cached\n"
                     "evaluate  {} x {} slots, {} s; {} of builds\n",
                     w.episodes, turns, c.max_live, c.servers, c.in_flight, w.policy.text(),
                     c.nodes, c.compilers, w.build.text(), percent(w.builds), percent(w.cached),
                     c.nodes, c.slots, w.evaluate.text(), percent(w.evaluations));
}

std::string text_of(const plan& x, const std::vector<sim::alternative>& all) {
  const auto& r = all.front().result;
  auto result = given_text(x) + "\n";
  std::vector<std::vector<std::string>> stages, rows;
  for (const auto& s : r.stages)
    stages.push_back({s.name, std::to_string(s.servers), std::to_string(s.jobs),
                      percent_cell(s.busy), percent_cell(s.busy_full),
                      cli::seconds_or_plain(s.wait_p50), cli::seconds_or_plain(s.wait_p90),
                      fmt::format("{:.1f}", s.queue_mean), std::to_string(s.queue_most)});
  result +=
      cli::format_table({"STAGE", "SERVERS>", "JOBS>", "BUSY [percent]>", "WHILE FULL [percent]>",
                         "WAIT P50 [s]>", "WAIT P90 [s]>", "QUEUE MEAN>", "MOST>"},
                        stages);
  result += fmt::format("\nthe run takes {}: {:.0f} episodes and {:.0f} turns an hour\n"
                        "what limits it: {}\n"
                        "left out: the start of the program, its prompts and records, and what "
                        "compilers and slots on the same\ncores take from each other: a real run "
                        "takes longer\n\n",
                        cli::format_seconds(r.seconds), r.episodes_per_hour(), r.turns_per_hour(),
                        r.limit);
  for (const auto& one : all)
    rows.push_back(
        {std::to_string(one.nodes * x.cluster.nodes),
         std::to_string(one.servers * x.cluster.servers), cli::seconds_or_plain(one.result.seconds),
         fmt::format("{:.0f}", one.result.turns_per_hour()),
         fmt::format("{:.2f}{}", r.seconds / std::max(one.result.seconds, 1e-9),
                     cli::plain_cells() ? "" : "x"),
         percent_cell(one.result.stages[0].busy_full), percent_cell(one.result.stages[1].busy_full),
         percent_cell(one.result.stages[2].busy_full), one.result.limit});
  return result + cli::format_table({"NODES>", "SERVERS>", "TIME [s]>", "TURNS/H>", "FASTER>",
                                     "POLICY [percent]>", "BUILD [percent]>", "EVALUATE [percent]>",
                                     "LIMIT"},
                                    rows);
}

expected<int> simulate(const invocation& in) {
  auto x = plan_of(in);
  KM_TRY(x);
  auto all = sim::alternatives(x->work, x->cluster);
  if (in.json)
    cli::print_json(document_of(*x, all));
  else
    cli::print(text_of(*x, all));
  return 0;
}

} // namespace

cli::command simulate_row() {
  return {
      "simulate",
      "Estimates a run's duration on hardware that you do not have yet, and names the bottleneck.",
      "kernelmill simulate quickstart --nodes 2 --slots 8 --compilers 64\n"
      "kernelmill simulate base.json tasks.groups=64 --servers 4 --policy-seconds 20:60\n"
      "kernelmill simulate base.json --from runs/first --nodes 4 --slots 8",
      "DIST is a number of seconds (0.15), a uniform range (1..3), or a median and a 90th "
      "percentile (20:60). Without\n"
      "--from, guesses are used: policy 20:60, build 5:15, evaluation 0.15. The same seed "
      "(run.seed) gives the same\n"
      "result.",
      {config_words()},
      {{"--from",
        "RUN",
        "Takes durations, numbers of turns and rates of builds from this run.",
        "",
        false,
        {},
        completes::run},
       {"--root", "DIR", "Folder that holds the runs.", "runs", false, {}, completes::directory},
       {"--nodes", "N", "Number of nodes.", "1", false, {}, nothing},
       {"--slots",
        "S",
        "Concurrent evaluations per node. Default: evaluation.slots, else 1.",
        "",
        false,
        {},
        nothing},
       {"--compilers",
        "C",
        "Concurrent builds per node. Default: compile.slots, else this machine's cores.",
        "",
        false,
        {},
        nothing},
       {"--servers", "N", "Number of policy servers.", "1", false, {}, nothing},
       {"--in-flight",
        "W",
        "Concurrent requests per policy server. Default: policy.max_in_flight.",
        "",
        false,
        {},
        nothing},
       {"--policy-seconds", "DIST", "Duration of a completion.", "", false, {}, nothing},
       {"--build-seconds",
        "DIST",
        "Duration of a build that is not cached.",
        "",
        false,
        {},
        nothing},
       {"--evaluate-seconds",
        "DIST",
        "Time that an evaluation, with its profile, occupies a slot.",
        "",
        false,
        {},
        nothing}},
      simulate};
}

} // namespace kernelmill::commands
