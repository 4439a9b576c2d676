#include "launch/analysis/watch/live.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "messages/base/clock.hpp"
#include "messages/identity.hpp"

namespace kernelmill::watch {

namespace {

std::string text(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

/// The numbers of a snapshot, read once: Cap'n Proto counts what is read of a message, and refuses
/// to read one many times over. The names lie in the message.
class number_list {
public:
  explicit number_list(wire::Snapshot::Reader x) {
    auto numbers = x.getNumbers();
    all_.reserve(numbers.size());
    for (auto number : numbers) {
      auto name = number.getName();
      all_.emplace_back(std::string_view{name.begin(), name.size()}, number.getValue());
    }
  }

  double at(std::string_view name, double otherwise = 0) const {
    for (const auto& [known, value] : all_)
      if (known == name) return value;
    return otherwise;
  }

  uint64_t count(std::string_view name) const {
    auto value = at(name);
    return value > 0 ? static_cast<uint64_t>(value) : 0;
  }

  const std::vector<std::pair<std::string_view, double>>& all() const noexcept { return all_; }

private:
  std::vector<std::pair<std::string_view, double>> all_;
};

/// A job's name: "1f3a:12" is the run's number and the episode's ordinal.
struct job_key {
  uint64_t run = 0, ordinal = 0;
};

/// Reads what append_waiting() writes.
template <class F>
void for_each_waiting(std::string_view line, F f) {
  job_key key;
  const auto* at = line.data();
  const auto* end = at + line.size();
  while (at < end) {
    const auto* blank = std::find(at, end, ' ');
    if (const auto* colon = std::find(at, blank, ':'); colon != blank) {
      std::from_chars(at, colon, key.run, 16);
      at = colon + 1;
    }
    std::from_chars(at, blank, key.ordinal);
    f(key);
    at = blank + 1;
  }
}

/// Reads one monitor's tree for one run.
struct reading {
  live_view& to;
  uint64_t run_number;
  std::unordered_map<uint64_t, queue_place> queued; // by ordinal
  std::unordered_map<uint64_t, job_row> jobs;
  std::unordered_map<uint64_t, double> begun; // seconds since 1970, of jobs that a slot works on

  void read(wire::Snapshot::Reader x, bool top) {
    auto role = std::string_view{x.getActor().begin(), x.getActor().size()};
    if (role == "queue") return read_queue(x);
    if (role == "lease" || role == "waiting_again") return read_job(x);
    if (role == "slot_line") return read_slot(x);
    if (role == "policy_request") return read_tried(x);
    if (role == "policy_stream") return read_stream(x);
    if (role == "episode") return read_episode(x);
    if (role == "run") read_run(x);
    if (role == "policy_client" || role == "policy_pool") read_policy(x);
    if (!top) read_actor(x);
    for (auto child : x.getChildren()) read(child, false);
  }

  void read_run(wire::Snapshot::Reader x) {
    number_list numbers{x};
    to.state = text(x.getState());
    to.planned = numbers.count("planned");
    to.live = numbers.count("live");
    to.ended = numbers.count("ended");
    to.turns = numbers.count("turns");
    to.accepted = numbers.count("accepted");
    to.rejected = numbers.count("rejected");
    to.infrastructure = numbers.count("infrastructure");
    to.left_open = numbers.count("left_open");
    to.lost_open = numbers.count("lost_open");
    to.episodes.reserve(x.getChildren().size());
  }

  void read_policy(wire::Snapshot::Reader x) {
    number_list numbers{x};
    to.policy_state = text(x.getState());
    to.policy_detail = text(x.getDetail());
    to.policy_mean_seconds = numbers.at("mean_seconds");
    to.policy_in_flight = numbers.count("in_flight");
    to.policy_window = numbers.count("window");
    to.policy_queued = numbers.count("queued") + numbers.count("waiting");
    to.policy_backing_off = numbers.count("backing_off");
    if (x.getActor() == "policy_pool") // what its servers say stands in their details
      for (auto server : x.getChildren())
        to.policy_detail += "; " + text(server.getId()) + " (" + text(server.getState()) +
                            "): " + text(server.getDetail());
  }

  void read_queue(wire::Snapshot::Reader x) {
    number_list numbers{x};
    queue_row row;
    row.name = text(x.getId());
    row.state = text(x.getState());
    row.workers = numbers.count("workers");
    row.credits = numbers.count("credits");
    row.leased = numbers.count("leased");
    row.waiting = numbers.count("waiting");
    row.done = numbers.count("done");
    row.mean_seconds = numbers.at("mean_seconds");
    row.oldest_wait_seconds = numbers.at("oldest_wait_seconds");
    row.waiting = std::max(row.waiting, read_line(x, row.name));
    for (auto child : x.getChildren())
      if (child.getActor() == "lease" && child.getSince() > 0)
        row.given_seconds.push_back(std::max(0.0, seconds_since_1970() - child.getSince()));
    to.queues.push_back(std::move(row));
    for (auto child : x.getChildren()) read(child, false);
  }

  void read_slot(wire::Snapshot::Reader x) {
    read_line(x, "slot");
    for_each_waiting({x.getId().begin(), x.getId().size()}, [&](job_key key) {
      if (key.run == run_number) begun.insert_or_assign(key.ordinal, x.getSince());
    });
  }

  /// How many jobs wait there.
  uint64_t read_line(wire::Snapshot::Reader x, const std::string& name) {
    uint64_t position = 0;
    for_each_waiting({x.getDetail().begin(), x.getDetail().size()}, [&](job_key key) {
      ++position;
      if (key.run == run_number) queued.insert_or_assign(key.ordinal, queue_place{name, position});
    });
    return position;
  }

  void read_job(wire::Snapshot::Reader x) {
    number_list numbers{x};
    job_row row;
    row.queue = text(x.getState());
    row.worker = numbers.count("worker");
    row.attempt = static_cast<uint32_t>(numbers.count("attempt"));
    row.attempts_allowed = static_cast<uint32_t>(numbers.count("attempts_allowed"));
    row.since = x.getSince();
    row.last_error = text(x.getDetail());
    for_each_waiting({x.getId().begin(), x.getId().size()}, [&](job_key key) {
      if (key.run == run_number) jobs.insert_or_assign(key.ordinal, row);
    });
  }

  void read_tried(wire::Snapshot::Reader x) {
    number_list numbers{x};
    auto session = text(x.getId());
    if (!session.starts_with(to.run + "/")) return;
    tried_row row{text(x.getState()),
                  static_cast<uint32_t>(numbers.count("attempts")),
                  numbers.at("due_seconds"),
                  text(x.getDetail()),
                  {},
                  {}};
    for (auto child : x.getChildren()) {
      row.category = text(child.getId());
      row.hint = text(child.getDetail());
    }
    to.tried.insert_or_assign(session.substr(to.run.size() + 1), std::move(row));
  }

  void read_stream(wire::Snapshot::Reader x) {
    auto session = text(x.getId());
    if (!session.starts_with(to.run + "/")) return;
    to.streams.insert_or_assign(
        session.substr(to.run.size() + 1),
        stream_row{number_list{x}.count("bytes"), cli::clean(text(x.getDetail()))});
  }

  void read_episode(wire::Snapshot::Reader x) {
    episode_row row;
    row.id = text(x.getId());
    row.detail = text(x.getDetail());
    row.task = row.detail.substr(0, row.detail.find(", turn "));
    row.phase = text(x.getState());
    row.state = row.phase;
    row.since = x.getSince();
    row.best_reward = std::numeric_limits<double>::quiet_NaN();
    // One pass: there may be ten thousand of them.
    for (auto number : x.getNumbers()) {
      std::string_view name{number.getName().begin(), number.getName().size()};
      auto value = number.getValue();
      if (name == "ordinal")
        row.ordinal = static_cast<uint64_t>(value);
      else if (name == "turn")
        row.turn = static_cast<uint32_t>(value);
      else if (name == "max_turns")
        row.max_turns = static_cast<uint32_t>(value);
      else if (name == "deadline_seconds")
        row.deadline_seconds = value;
      else if (name == "episode_seconds")
        row.left_seconds -= value;
      else if (name == "episode_deadline_seconds")
        row.left_seconds += value;
      else if (name == "best_reward")
        row.best_reward = value;
      else if (name == "best_speedup_low")
        row.best_speedup_lower = value;
      else if (name == "mailbox")
        row.mailbox = static_cast<uint64_t>(value);
    }
    to.episodes.push_back(std::move(row));
  }

  void read_actor(wire::Snapshot::Reader x) {
    number_list numbers{x};
    actor_row row;
    row.role = text(x.getActor());
    row.id = text(x.getId());
    row.state = text(x.getState());
    row.detail = text(x.getDetail());
    row.since = x.getSince();
    row.number = numbers.count("actor");
    row.mailbox = numbers.count("mailbox");
    row.oldest_seconds = numbers.at("oldest_seconds");
    row.progress_seconds = numbers.at("progress_seconds", -1);
    row.numbers = json::object();
    for (const auto& [name, value] : numbers.all()) row.numbers[std::string{name}] = value;
    if (row.number > 0 &&
        (row.role == "gpu_runner" || row.role == "compiler" || row.role == "profiler"))
      to.workers.insert_or_assign(row.number, row.id.empty() ? row.role : row.id);
    to.actors.push_back(std::move(row));
  }

  // An episode that builds or is evaluated waits in a queue, or a worker has it.
  void settle() {
    for (auto& x : to.episodes) {
      bool works = x.phase == "building" || x.phase == "evaluating" || x.phase == "profiling";
      bool thinks = x.phase == "thinking";
      if (!works && !thinks) continue;
      if (auto i = queued.find(x.ordinal);
          i != queued.end() && thinks == (i->second.queue == "policy")) {
        x.queued = i->second;
        x.state = "queued";
      }
      if (auto i = jobs.find(x.ordinal); works && i != jobs.end()) x.job = i->second;
      if (auto i = to.tried.find(x.id); thinks && i != to.tried.end()) x.tried = i->second;
      // What it has waited for a worker is no part of the work.
      if (!works || x.queued) continue;
      if (x.job && x.job->worker > 0) x.since = std::max(x.since, x.job->since);
      if (auto i = begun.find(x.ordinal); i != begun.end()) x.since = std::max(x.since, i->second);
    }
  }
};

} // namespace

double queue_row::wait(uint64_t position) const {
  if (credits == 0 || mean_seconds <= 0 || position == 0 || done < least_done) return 0;
  constexpr uint64_t most_remembered = 64; // jobs in the mean, about
  auto known = static_cast<double>(std::min(done, most_remembered));
  auto sum = known * mean_seconds;
  auto first = std::numeric_limits<double>::infinity();
  for (auto x : given_seconds) {
    sum += std::max(x, mean_seconds);
    first = std::min(first, x);
  }
  auto mean = sum / (known + static_cast<double>(given_seconds.size()));
  auto places = static_cast<double>(credits), before = static_cast<double>(position);
  bool all_take_long = given_seconds.size() >= credits && first > mean_seconds;
  return all_take_long ? first + (before - 1) * mean / places : before * mean / places;
}

const queue_row* live_view::queue(std::string_view name) const {
  auto i = std::find_if(queues.begin(), queues.end(), [&](auto& x) { return x.name == name; });
  return i == queues.end() ? nullptr : &*i;
}

const episode_row* live_view::episode(std::string_view id) const {
  auto i = std::find_if(episodes.begin(), episodes.end(), [&](auto& x) { return x.id == id; });
  return i == episodes.end() ? nullptr : &*i;
}

live_view read_live(const live_run& x, const std::map<uint64_t, std::string>& more_workers) {
  live_view result;
  result.run = x.run.name;
  result.directory = x.run.path;
  result.state = "unknown";
  auto view = x.says.open();
  reading all{result, run_number(x.run.name), {}, {}, {}};
  all.read(*view, true);
  all.read_actor(*view); // the monitor itself
  all.settle();
  std::sort(result.episodes.begin(), result.episodes.end(),
            [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
  result.workers.insert(more_workers.begin(), more_workers.end());
  return result;
}

std::map<uint64_t, std::string> workers_of_nodes(const world& in) {
  std::map<uint64_t, std::string> result;
  if (!in.ask_nodes) return result;
  auto says = in.ask_nodes();
  if (!says) return result;
  auto view = says->open();
  for (auto child : view->getChildren())
    if (child.getActor() != "node")
      result.insert_or_assign(number_list{child}.count("actor"), "node " + text(child.getId()));
  return result;
}

std::string ordinal_text(uint64_t x) {
  auto tens = x % 100;
  const char* end = tens >= 11 && tens <= 13 ? "th"
                    : x % 10 == 1            ? "st"
                    : x % 10 == 2            ? "nd"
                    : x % 10 == 3            ? "rd"
                                             : "th";
  return std::to_string(x) + end;
}

std::string resource_of(std::string_view queue) {
  if (queue == "policy") return "the policy server";
  if (queue == "build") return "a compiler";
  if (queue == "profile") return "a profiler";
  return "a slot";
}

std::string detail_text(const live_view& of, const episode_row& x) {
  auto result = x.detail;
  if (x.queued) {
    const auto* queue = of.queue(x.queued->queue);
    result += fmt::format("; queued for {}, {}", resource_of(x.queued->queue),
                          ordinal_text(x.queued->position));
    if (queue) result += fmt::format(" of {}", queue->waiting);
  }
  if (x.job && x.job->worker > 0) {
    auto worker = of.workers.find(x.job->worker);
    if (worker != of.workers.end()) result += "; at " + worker->second;
  }
  if (x.job && !x.job->last_error.empty())
    result += fmt::format("; attempt {}, last error: {}", x.job->attempt, x.job->last_error);
  if (x.tried)
    result +=
        fmt::format("; policy attempt {}, last error: {}", x.tried->attempts, x.tried->last_error);
  return result;
}

json to_json(const live_view& of, const episode_row& x) {
  auto now = seconds_since_1970();
  json result;
  result["run"] = of.run;
  result["id"] = x.id;
  result["state"] = x.state;
  result["phase"] = x.phase;
  result["age_seconds"] = x.since > 0 ? std::max(0.0, now - x.since) : 0.0;
  result["task"] = x.task;
  result["turn"] = x.turn;
  result["max_turns"] = x.max_turns;
  result["best_reward"] = x.best_reward; // NaN prints as null
  result["best_speedup_lower"] =
      x.best_speedup_lower > 0 ? json(x.best_speedup_lower) : json(nullptr);
  if (x.queued) {
    result["queue"] = x.queued->queue;
    result["position"] = x.queued->position;
    if (const auto* queue = of.queue(x.queued->queue))
      if (auto wait = queue->wait(x.queued->position); wait > 0) result["wait_seconds"] = wait;
  }
  if (x.job) {
    if (auto worker = of.workers.find(x.job->worker); worker != of.workers.end())
      result["worker"] = worker->second;
    result["attempt"] = x.job->attempt;
    if (!x.job->last_error.empty()) result["last_error"] = x.job->last_error;
  }
  if (x.tried)
    result["policy"] = {{"state", x.tried->state},
                        {"attempts", x.tried->attempts},
                        {"last_error", x.tried->last_error}};
  result["detail"] = detail_text(of, x);
  return result;
}

} // namespace kernelmill::watch
