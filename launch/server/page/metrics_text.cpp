#include "launch/server/page/metrics_text.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "launch/analysis/watch/live.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::page {

namespace {

using labels = std::vector<std::pair<const char*, std::string>>;

class writer {
public:
  void family(const char* name, const char* type, const char* help) {
    name_ = name;
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }

  void add(double value, const labels& x = {}) {
    text += name_;
    for (size_t i = 0; i < x.size(); ++i)
      text += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", x[i].first, escaped(x[i].second));
    if (!x.empty()) text += "}";
    text += std::isfinite(value) ? fmt::format(" {}\n", value) : std::string{" NaN\n"};
  }

  void gauge(const char* name, const char* help, const std::map<std::string, double>& values,
             const char* label) {
    family(name, "gauge", help);
    for (const auto& [key, value] : values) add(value, {{label, key}});
  }

  void counter(const char* name, const char* help, const std::map<std::string, double>& values,
               const char* label) {
    family(name, "counter", help);
    for (const auto& [key, value] : values) add(value, {{label, key}});
  }

  void histogram(const char* name, const char* help,
                 const std::map<std::string, watch::stage_durations>& values, const char* label) {
    family(name, "histogram", help);
    auto line = [&](const char* suffix, const std::string& key, const std::string& more,
                    double value) {
      text +=
          fmt::format("{}{}{{{}=\"{}\"{}}} {}\n", name, suffix, label, escaped(key), more, value);
    };
    for (const auto& [key, x] : values) {
      uint64_t below = 0;
      for (size_t i = 0; i < x.limits.size(); ++i) {
        below += x.counts[i];
        line("_bucket", key, fmt::format(",le=\"{}\"", x.limits[i]), static_cast<double>(below));
      }
      below += x.counts.back();
      line("_bucket", key, ",le=\"+Inf\"", static_cast<double>(below));
      line("_sum", key, {}, x.sum);
      line("_count", key, {}, static_cast<double>(below));
    }
  }

  std::string text;

private:
  const char* name_ = "";
};

// Rules come from our own referee; a store that was written by another version may hold others.
constexpr size_t most_rules = 64;

using sums = std::map<std::string, double>;

void add_totals(writer& to, const std::map<std::string, watch::stored_summary>& seen) {
  sums outcomes{{"accepted", 0}, {"rejected", 0}, {"infrastructure", 0}};
  sums gates, verdicts, findings, stages, work, tokens{{"prompt", 0}, {"completion", 0}};
  std::map<std::string, watch::stage_durations> durations;
  double turns = 0, best = 0;
  for (const auto& [path, x] : seen) {
    outcomes["accepted"] += static_cast<double>(x.accepted);
    outcomes["rejected"] += static_cast<double>(x.rejected);
    outcomes["infrastructure"] += static_cast<double>(x.closed_as_lost);
    gates["format"] += static_cast<double>(x.format);
    gates["built"] += static_cast<double>(x.built);
    gates["correct"] += static_cast<double>(x.correct);
    gates["timed"] += static_cast<double>(x.timed);
    gates["faster"] += static_cast<double>(x.faster);
    for (const auto& [category, count] : x.categories)
      verdicts[category] += static_cast<double>(count);
    for (const auto& [rule, count] : x.findings)
      findings[findings.contains(rule) || findings.size() < most_rules ? rule : "other"] +=
          static_cast<double>(count);
    for (const auto& [stage, sum] : x.stages) {
      stages[stage] += sum.seconds;
      work[stage] += sum.work;
    }
    for (const auto& [stage, spent] : x.durations) {
      auto& sum = durations[stage];
      for (size_t i = 0; i < sum.counts.size(); ++i) sum.counts[i] += spent.counts[i];
      sum.sum += spent.sum;
    }
    tokens["prompt"] += static_cast<double>(x.prompt_tokens);
    tokens["completion"] += static_cast<double>(x.completion_tokens);
    turns += static_cast<double>(x.turns);
    if (auto found = x.speedups.best()) best = std::max(best, found->low);
  }
  to.counter("kernelmill_episodes_total", "Episodes that have ended.", outcomes, "outcome");
  to.family("kernelmill_turns_total", "counter", "Turns that are committed.");
  to.add(turns);
  to.counter("kernelmill_turns_passed_total", "Turns that passed each stage of the funnel.", gates,
             "step");
  to.counter("kernelmill_verdicts_total", "Turns by the category of their verdict.", verdicts,
             "category");
  to.counter("kernelmill_findings_total", "Findings of integrity, by rule.", findings, "rule");
  to.histogram("kernelmill_stage_duration_seconds",
               "Time of a turn in a stage that it had, waiting included.", durations, "stage");
  to.counter("kernelmill_stage_seconds_total", "Time of turns by stage, waiting included.", stages,
             "stage");
  to.counter("kernelmill_stage_work_seconds_total", "Time of turns by stage, without waiting.",
             work, "stage");
  to.counter("kernelmill_policy_tokens_total", "Tokens of committed turns.", tokens, "direction");
  to.family("kernelmill_best_speedup_lower_ratio", "gauge",
            "Highest lower bound of the runs' best speedups; 0: none.");
  to.add(best);
}

struct live_sums {
  sums runs, episodes, slots,
      policy{{"in_flight", 0}, {"window", 0}, {"queued", 0}, {"backing_off", 0}};
  std::map<std::string, watch::queue_row> queues;
  double stuck = 0;
};

void note(live_sums& to, const watch::live_view& x) {
  ++to.runs[x.state];
  for (const auto& e : x.episodes) ++to.episodes[e.state];
  for (const auto& q : x.queues) {
    auto& sum = to.queues[q.name];
    sum.waiting += q.waiting;
    sum.leased += q.leased;
    sum.credits += q.credits;
    sum.workers += q.workers;
    sum.done += q.done;
    sum.oldest_wait_seconds = std::max(sum.oldest_wait_seconds, q.oldest_wait_seconds);
  }
  for (const auto& a : x.actors) {
    to.stuck += a.state == "stuck";
    if (a.role == "gpu_runner") ++to.slots[a.state];
  }
  to.policy["in_flight"] += static_cast<double>(x.policy_in_flight);
  to.policy["window"] += static_cast<double>(x.policy_window);
  to.policy["queued"] += static_cast<double>(x.policy_queued);
  to.policy["backing_off"] += static_cast<double>(x.policy_backing_off);
}

void add_live(writer& to, const live_sums& x) {
  to.gauge("kernelmill_runs", "Runs in progress.", x.runs, "state");
  to.gauge("kernelmill_episodes_active", "Episodes in progress.", x.episodes, "state");
  to.gauge("kernelmill_slots", "Slots that evaluate.", x.slots, "state");
  to.gauge("kernelmill_policy_requests", "Requests to policy servers, and the window for them.",
           x.policy, "state");
  sums waiting, leased, places, workers, oldest;
  for (const auto& [name, q] : x.queues) {
    waiting[name] = static_cast<double>(q.waiting);
    leased[name] = static_cast<double>(q.leased);
    places[name] = static_cast<double>(q.credits);
    workers[name] = static_cast<double>(q.workers);
    oldest[name] = q.oldest_wait_seconds;
  }
  to.gauge("kernelmill_queue_waiting", "Jobs that wait.", waiting, "queue");
  to.gauge("kernelmill_queue_running", "Jobs that workers have.", leased, "queue");
  to.gauge("kernelmill_queue_places", "Jobs that workers take at once.", places, "queue");
  to.gauge("kernelmill_queue_workers", "Workers of a queue.", workers, "queue");
  to.gauge("kernelmill_queue_oldest_wait_seconds", "Wait of the job that waits longest.", oldest,
           "queue");
  to.family("kernelmill_actors_stuck", "gauge", "Actors that do not answer.");
  to.add(x.stuck);
}

void add_nodes(writer& to, const watch::world& in) {
  auto nodes = watch::nodes_view(in, watch::json::object());
  sums states;
  if (nodes)
    for (const auto& x : (*nodes)["nodes"]) {
      auto state = x.value("state", "");
      ++states[state.starts_with("serving") ? "serving" : state];
    }
  to.gauge("kernelmill_nodes", "Machines by state.", states, "state");
  auto gpus = watch::gpus_view(in, watch::json::object());
  struct gpu_family {
    const char* name;
    const char* help;
    const char* key;
    double factor;
  };
  const gpu_family families[] = {
      {"kernelmill_gpu_temperature_celsius", "Of GPUs that evaluate.", "celsius", 1},
      {"kernelmill_gpu_power_watts", "Of GPUs that evaluate.", "watts", 1},
      {"kernelmill_gpu_clock_hertz", "Of GPUs that evaluate.", "clock_mhz", 1e6}};
  for (const auto& f : families) {
    to.family(f.name, "gauge", f.help);
    if (!gpus) continue;
    for (const auto& x : (*gpus)["gpus"])
      if (x.contains(f.key) && x[f.key].is_number())
        to.add(x[f.key].get<double>() * f.factor,
               {{"node", x.value("node", "")}, {"slot", x.value("slot", "")}});
  }
}

} // namespace

std::string metrics_table::text(const watch::world& in, const own_numbers& own) {
  live_sums live;
  if (auto found = watch::live_runs(in, {})) {
    for (const auto& one : *found) {
      note(live, watch::read_live(one));
      seen_[one.run.path]; // from now on it counts
    }
  }
  // The slots of a head's runs are its nodes'.
  if (in.ask_nodes)
    if (auto slots = watch::gpus_view(in, watch::json::object()))
      for (const auto& x : (*slots)["gpus"]) ++live.slots[x.value("state", "")];
  for (auto& [path, counted] : seen_) {
    auto run = open_run(path);
    if (!run) continue;
    if (auto now = watch::summarize(in, *run)) counted = std::move(*now);
  }
  writer to;
  to.family("kernelmill_build_info", "gauge", "Always 1.");
  to.add(1, {{"build", own.build}});
  add_live(to, live);
  add_totals(to, seen_);
  add_nodes(to, in);
  to.family("kernelmill_http_requests_total", "counter", "Requests that this page was asked.");
  to.add(static_cast<double>(own.requests));
  to.family("kernelmill_event_readers", "gauge", "Readers of the event stream.");
  to.add(static_cast<double>(own.event_readers));
  to.family("kernelmill_events_dropped_total", "counter", "Events left out for slow readers.");
  to.add(static_cast<double>(own.events_dropped));
  return std::move(to.text);
}

} // namespace kernelmill::page
