#include "launch/analysis/watch/explain.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/analysis/watch/policy_health.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "storage/head_mark.hpp"

namespace kernelmill::watch {

namespace {

// Less than this and the next commit or artifact may not fit.
constexpr double little_disk = 64.0 * 1024 * 1024;
constexpr double little_share = 0.01;

using cli::format_bytes;
using cli::format_seconds;

std::string lost_nodes(const json& status) {
  std::string result;
  if (!status.is_object() || !status.contains("lost")) return result;
  for (const auto& x : status["lost"]) {
    auto since = x.value("since", 0.0);
    result += fmt::format("{}node {} was lost {} ago", result.empty() ? "" : ", ",
                          x.value("node", ""), format_seconds(seconds_since_1970() - since));
  }
  return result;
}

std::string gone_workers(const live_view& of, const std::string& role) {
  for (const auto& x : of.actors)
    if (x.state == "gone" && x.role == role) return x.id + " is out of service: " + x.detail;
  return {};
}

const char* resource_name(const std::string& queue) {
  if (queue == "policy") return "policy server";
  if (queue == "build") return "compiler";
  if (queue == "profile") return "profiler";
  return "slot";
}

const char* role_of(const std::string& queue) {
  return queue == "build" ? "compiler" : queue == "profile" ? "profiler" : "gpu_runner";
}

std::string waiting_text(uint64_t jobs, double oldest_seconds) {
  return counted(jobs, "job waits", "jobs wait") + ", the oldest for " +
         format_seconds(oldest_seconds) + ".";
}

bool no_worker_takes(const queue_row& x) {
  return x.waiting > 0 && x.credits == 0 && x.name != "policy";
}

/// "a compiler, a slot or a profiler".
std::string joined_by_or(const std::vector<std::string>& words) {
  std::string result;
  for (size_t i = 0; i < words.size(); ++i)
    result += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i];
  return result;
}

// On a cluster compilers, slots and profilers come with nodes, so a node is what all of them lack.
finding no_node(const live_view& of, const std::vector<const queue_row*>& queues,
                const surroundings& around) {
  std::vector<std::string> resources;
  uint64_t jobs = 0;
  double oldest = 0;
  for (const auto* x : queues) {
    resources.push_back(resource_of(x->name));
    jobs += x->waiting;
    oldest = std::max(oldest, x->oldest_wait_seconds);
  }
  finding result{"node", true, {}, {}};
  result.text =
      fmt::format("No node offers {}: {}", joined_by_or(resources), waiting_text(jobs, oldest));
  if (auto lost = lost_nodes(around.status); !lost.empty()) {
    result.text += " The " + lost + ".";
    result.next = "start the node again, or another one: `kernelmill node --head ...`";
  } else {
    result.next = "start one with `kernelmill node --head ...`";
  }
  if (!around.status.is_object())
    result.next += "; `kernelmill explain " + of.run + " --head ADDR:PORT` says which was lost";
  return result;
}

// No worker takes jobs of these queues.
std::vector<finding> no_worker(const live_view& of, const std::vector<const queue_row*>& queues,
                               const surroundings& around) {
  if (queues.empty()) return {};
  if (around.of_head) return {no_node(of, queues, around)};
  std::vector<finding> result;
  for (const auto* x : queues) {
    finding one{resource_name(x->name), true, {}, {}};
    one.text =
        "There is no " + one.resource + ": " + waiting_text(x->waiting, x->oldest_wait_seconds);
    if (auto gone = gone_workers(of, role_of(x->name)); !gone.empty()) {
      one.text += " The worker " + gone + ".";
      one.next = "repair the machine, then resume the run";
    } else {
      one.next = "`kernelmill doctor` says what this machine can do";
    }
    result.push_back(std::move(one));
  }
  return result;
}

finding of_policy(const live_view& of, const tried_row& x) {
  finding result{"policy server", true, {}, x.hint};
  result.text = answers_nonsense(x.category) ? "The policy server answers nonsense."
                                             : "The policy server is down or does not answer.";
  result.text += fmt::format(" Attempt {} failed: {}.", x.attempts, x.last_error);
  if (x.due_seconds > 0)
    result.text += fmt::format(" The next attempt is in {}.", format_seconds(x.due_seconds));
  else if (x.state == "in_flight")
    result.text += " The next attempt is under way.";
  result.text += " It is " + of.policy_detail + ".";
  if (result.next.empty()) result.next = "look at the policy server's log";
  return result;
}

std::string infrastructure_resource(const std::string& category) {
  auto has = [&](const char* x) { return category.find(x) != std::string::npos; };
  if (has("no_nodes") || has("worker_lost") || has("stale_epoch") || has("parcel_")) return "node";
  if (has("disk") || has("io_error") || has("read_only")) return "disk";
  if (has("policy")) return "policy server";
  if (has("compile") || has("toolchain") || has("build") || has("linker")) return "compiler";
  if (has("lineage") || has("store") || has("commit")) return "store";
  return "slot";
}

std::optional<finding> of_disk(const run_directory& run, const surroundings& around) {
  if (around.free_bytes < 0) return std::nullopt;
  bool little = around.free_bytes < std::min(little_disk, little_share * around.disk_bytes * 10) ||
                around.free_bytes < little_share * around.disk_bytes;
  if (!little) return std::nullopt;
  return finding{"disk", around.free_bytes < 1024 * 1024,
                 fmt::format("The disk of {} is full: {} of {} are left.", run.path,
                             format_bytes(around.free_bytes), format_bytes(around.disk_bytes)),
                 "free some space; `kernelmill resume " + run.path + "` continues the run"};
}

std::vector<finding> of_troubles(const stored_summary& stored, bool live) {
  std::vector<finding> result;
  for (const auto& [category, x] : stored.troubles) {
    finding one{infrastructure_resource(category), live && stored.turns == x.turns, {}, x.hint};
    one.text = fmt::format(
        "{} of {} turns {} lost to a fault of the {} ({}): {}; the latest is {}.", x.turns,
        stored.turns, x.turns == 1 ? "was" : "were", one.resource, category, x.message, x.turn);
    result.push_back(std::move(one));
  }
  return result;
}

std::vector<finding> of_actors(const live_view& of) {
  std::vector<finding> result;
  for (const auto& x : of.actors) {
    if (x.state != "stuck") continue;
    result.push_back({"actor", true,
                      fmt::format("The actor {}{}{} is stuck: it {}.", x.role,
                                  x.id.empty() ? "" : " ", x.id, x.detail),
                      "`kernelmill actor show " + x.role + "` shows it; report it as a defect"});
  }
  auto stuck = std::count_if(of.episodes.begin(), of.episodes.end(),
                             [](const auto& x) { return x.phase == "stuck"; });
  if (stuck > 0)
    result.push_back({"actor", true, counted(stuck, "episode is", "episodes are") + " stuck.",
                      "`kernelmill ps --where state=stuck` lists them"});
  for (const auto& x : of.actors)
    if (x.state == "gone")
      result.push_back({x.role == "compiler" ? "compiler" : "slot", false,
                        x.id + " is out of service: " + x.detail + ".",
                        "the others continue; repair the machine before the next run"});
  return result;
}

// Of requests that were tried again, the one with the most attempts tells the most.
std::optional<finding> of_tried(const live_view& of) {
  const tried_row* worst = nullptr;
  for (const auto& [id, x] : of.tried)
    if (worst == nullptr || x.attempts > worst->attempts) worst = &x;
  if (worst == nullptr) {
    if (of.policy_state != "without_servers") return std::nullopt;
    return finding{"policy server", true, "No policy server is attached.",
                   "`kernelmill policy attach URL --head ...` attaches one"};
  }
  auto result = of_policy(of, *worst);
  result.starved = of.tried.size() + of.policy_queued >= of.live;
  result.text =
      fmt::format("{} of {} live episodes ask it again. ", of.tried.size(), of.live) + result.text;
  return result;
}

std::optional<finding> of_jobs(const live_view& of) {
  const job_row* worst = nullptr;
  size_t count = 0;
  for (const auto& x : of.episodes) {
    if (!x.job || x.job->last_error.empty()) continue;
    ++count;
    if (worst == nullptr || x.job->attempt > worst->attempt) worst = &*x.job;
  }
  if (worst == nullptr) return std::nullopt;
  auto resource = std::string{resource_name(worst->queue)};
  return finding{resource, false,
                 fmt::format("{} job{} failed by no fault of the candidate and {} given out again; "
                             "attempt {} of {} after: {}.",
                             count, count == 1 ? "" : "s", count == 1 ? "was" : "were",
                             worst->attempt, worst->attempts_allowed, worst->last_error),
                 "`kernelmill logs` shows each; `kernelmill doctor` checks the machine"};
}

// Jobs go past nodes where a layer of the sandbox is missing that the run requires.
std::optional<finding> of_layers(const live_view& of, const surroundings& around) {
  if (!around.status.is_object()) return std::nullopt;
  for (const auto& row : around.status.value("runs", json::array())) {
    auto unfit = row.value("unfit_nodes", std::vector<std::string>{});
    if (row.value("run", "") != of.run || unfit.empty()) continue;
    return finding{"node", row.value("slots", 0) == 0,
                   fmt::format("{} of the layers of the sandbox that the run requires, and get{} "
                               "none of its jobs.",
                               fmt::join(unfit, "; "), unfit.size() == 1 ? "s" : ""),
                   "`kernelmill doctor` says on the node what the layer takes"};
  }
  return std::nullopt;
}

// Nothing is wrong: where the time goes.
finding of_bottleneck(const live_view& of) {
  const queue_row* longest = nullptr;
  for (const auto& x : of.queues)
    if (x.waiting > 0 && (longest == nullptr || x.waiting > longest->waiting)) longest = &x;
  if (of.policy_queued > 0 && (longest == nullptr || of.policy_queued > longest->waiting))
    return {"policy server", false,
            fmt::format("{} requests wait for the policy server; {} are in flight, and its window "
                        "is {}.",
                        of.policy_queued, of.policy_in_flight, of.policy_window),
            ""};
  if (longest == nullptr)
    return {"policy server", false,
            of.policy_in_flight > 0
                ? fmt::format("Nothing is starved: {} requests are at the policy server, and "
                              "nothing waits in a queue.",
                              of.policy_in_flight)
                : "Nothing is starved: nothing waits in a queue.",
            ""};
  auto text =
      counted(longest->waiting, "job waits", "jobs wait") + " for " + resource_of(longest->name);
  if (longest->credits > 0)
    text += "; up to " + counted(longest->credits, "is", "are") + " given out at once";
  if (longest->mean_seconds > 0)
    text += ", and one takes " + format_seconds(longest->mean_seconds) + " from there";
  if (auto wait = longest->wait(longest->waiting); wait > 0)
    text += ", so the last of them begins in about " + format_seconds(wait);
  return {resource_name(longest->name), false, text + ".", ""};
}

} // namespace

surroundings look_around(const world& in, const run_directory& run) {
  surroundings result;
  std::error_code code;
  auto space = std::filesystem::space(run.path, code);
  if (!code && space.capacity > 0) {
    result.free_bytes = static_cast<double>(space.available);
    result.disk_bytes = static_cast<double>(space.capacity);
  }
  if (in.status) result.status = in.status();
  result.of_head = result.status.is_object() || is_of_head(run);
  return result;
}

std::vector<finding> findings_of(const live_view& of, const stored_summary& stored,
                                 const surroundings& around) {
  std::vector<finding> result;
  run_directory where;
  where.path = of.directory;
  if (auto disk = of_disk(where, around)) result.push_back(*disk);
  std::vector<const queue_row*> starved;
  for (const auto& queue : of.queues)
    if (no_worker_takes(queue)) starved.push_back(&queue);
  for (auto& x : no_worker(of, starved, around)) result.push_back(std::move(x));
  if (auto layers = of_layers(of, around)) result.push_back(*layers);
  if (auto tried = of_tried(of)) result.push_back(*tried);
  for (auto& x : of_actors(of)) result.push_back(std::move(x));
  if (auto jobs = of_jobs(of)) result.push_back(*jobs);
  for (auto& x : of_troubles(stored, true)) result.push_back(std::move(x));
  if (of.state == "paused")
    result.push_back({"a user's `resume`", true, "It is paused: no new episodes start.",
                      "`kernelmill resume " + of.run +
                          "` ends the pause; of a head's run with --head ADDR:PORT"});
  std::stable_sort(result.begin(), result.end(),
                   [](const finding& a, const finding& b) { return a.starved && !b.starved; });
  if (result.empty()) result.push_back(of_bottleneck(of));
  return result;
}

std::vector<finding> findings_of_ended(const run_directory& run, const stored_summary& stored,
                                       const surroundings& around) {
  std::vector<finding> result;
  auto resume = "`kernelmill resume " + run.path + "` continues it";
  if (stored.fault.cls != fault_class::none) {
    auto resource = stored.fault.cls == fault_class::configuration &&
                            !stored.fault.category.starts_with("policy")
                        ? std::string{"configuration"}
                        : infrastructure_resource(stored.fault.category);
    auto hint = stored.fault.hint.empty() ? std::string{} : stored.fault.hint + "; then ";
    result.push_back({resource, true, stored.fault.message + ".", hint + resume});
  } else if (stored.state == "open") {
    result.push_back({"the end of its process", true,
                      "It was cut off: it has not ended, and no process works on it.", resume});
  } else if (stored.state == "cancelled") {
    result.push_back({"a user", false, "A user cancelled it.", resume});
  } else if (stored.state == "incomplete") {
    result.push_back({"the end of its process", true, "It ended with episodes left open.", resume});
  }
  if (auto disk = of_disk(run, around)) result.insert(result.begin(), *disk);
  for (auto& x : of_troubles(stored, false)) result.push_back(std::move(x));
  if (result.empty()) result.push_back({"none", false, "It has finished: nothing waits.", ""});
  return result;
}

finding finding_of(const live_view& of, const episode_row& x, const surroundings& around) {
  auto age = format_seconds(std::max(0.0, seconds_since_1970() - x.since));
  if (x.phase == "stuck")
    return {"actor", true, "Its actor is stuck: it " + x.detail + ".",
            "report it as a defect; `kernelmill resume` takes the episode up again"};
  if (x.tried) return of_policy(of, *x.tried);
  if (x.queued) {
    const auto* queue = of.queue(x.queued->queue);
    if (queue && no_worker_takes(*queue)) return no_worker(of, {queue}, around).front();
    auto wait = queue ? queue->wait(x.queued->position) : 0;
    bool too_late = x.left_seconds > 0 && wait > x.left_seconds;
    if (x.queued->queue == "policy" && of.policy_window > 0)
      wait = static_cast<double>(x.queued->position) * of.policy_mean_seconds /
             static_cast<double>(of.policy_window);
    return {resource_name(x.queued->queue), false,
            fmt::format("It is {} in the queue for {}{}.{}", ordinal_text(x.queued->position),
                        resource_of(x.queued->queue),
                        wait > 0 ? ", and begins in about " + format_seconds(wait) : "",
                        too_late ? " The episode's own deadline comes first, in " +
                                       format_seconds(x.left_seconds) +
                                       ": it would end without this turn."
                                 : ""),
            too_late ? "raise episode.deadline_ms, or run fewer episodes at once "
                       "(episode.max_live)"
                     : ""};
  }
  if (x.job && x.job->worker > 0) {
    auto worker = of.workers.find(x.job->worker);
    auto text = fmt::format("{} has it for {}, attempt {} of {}.",
                            worker == of.workers.end() ? "A worker" : worker->second, age,
                            x.job->attempt, x.job->attempts_allowed);
    if (!x.job->last_error.empty()) text += " The attempt before: " + x.job->last_error + ".";
    return {resource_name(x.job->queue), false, text, ""};
  }
  if (x.phase == "thinking")
    return {"policy server", false,
            fmt::format("The policy server has its request for {}{}.", age,
                        of.policy_mean_seconds > 0
                            ? "; an answer takes " + format_seconds(of.policy_mean_seconds) +
                                  " on average"
                            : ""),
            ""};
  if (x.phase == "committing" || x.phase == "closing" || x.phase == "recalling")
    return {"store", false, "It waits for the lineage store for " + age + ".", ""};
  return {"none", false, "It is " + x.phase + " for " + age + ".", ""};
}

} // namespace kernelmill::watch
