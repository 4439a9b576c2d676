// The commands that ask a head about its runs and nodes.

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/head_asking.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/run_name.hpp"
#include "launch/commands/sources.hpp"
#include "launch/config/keys.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

expected<int> ask_for_one(const invocation& in, const char* verb, const char* what,
                          const std::string& said) {
  auto answer = ask(in, verb, in.value(what));
  KM_TRY(answer);
  if (in.json)
    cli::print_json(*answer);
  else
    cli::talk(said + " " + in.value(what));
  return cli::exit_ok;
}

std::string status_text(const json& x) {
  std::vector<std::vector<std::string>> nodes, runs, lanes;
  for (const auto& n : x["nodes"])
    nodes.push_back({n["node"], n["state"], n["backend"], n["architecture"],
                     count_of(n, "compilers"), std::to_string(n["slots"].size()),
                     cli::clean(n["hardware"].get<std::string>())});
  for (const auto& n : x.value("lost", json::array()))
    nodes.push_back({n["node"], "lost", n["backend"], n["architecture"], "-", "-",
                     cli::clean(n["hardware"].get<std::string>())});
  for (const auto& l : x["lanes"])
    lanes.push_back({l["lane"], count_of(l, "builds_waiting"), count_of(l, "builds_done"),
                     count_of(l, "evaluations_waiting"), count_of(l, "evaluations_done"),
                     count_of(l, "leased_again"), count_of(l, "leased_twice")});
  for (const auto& r : x["runs"])
    runs.push_back({r["run"], r["state"], count_of(r, "priority"),
                    count_of(r, "ended") + "/" + count_of(r, "episodes"), count_of(r, "turns"),
                    count_of(r, "accepted"), count_of(r, "rejected"), count_of(r, "infrastructure"),
                    r.value("category", "")});
  auto result =
      fmt::format("head {} of build {}\n\n", x.value("address", ""), x.value("build", ""));
  result += cli::format_table(
      {"NODE", "STATE", "BACKEND", "ARCHITECTURE", "COMPILERS>", "SLOTS>", "HARDWARE"}, nodes);
  result += "\n" + cli::format_table({"LANE", "BUILDS WAITING>", "DONE>", "EVALUATIONS WAITING>",
                                      "DONE>", "LEASED AGAIN>", "TWICE>"},
                                     lanes);
  result += "\n" + cli::format_table({"RUN", "STATE", "PRIORITY>", "ENDED>", "TURNS>", "ACCEPTED>",
                                      "REJECTED>", "INFRA>", "WHY"},
                                     runs);
  return result;
}

// Until the run has ended one way or the other; the head may be away for a while.
expected<int> wait_for_run(const invocation& in, const std::string& name) {
  interrupt signals;
  int failures = 0, missing = 0;
  std::string told;
  constexpr int most_missing = 20;  // in a row, about ten seconds
  constexpr int most_failures = 60; // in a row, about half a minute and more
  while (!signals.token().stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds{500});
    auto answer = ask(in, "status");
    if (!answer) {
      if (++failures > most_failures) return tl::unexpected<error>{answer.error()};
      continue;
    }
    failures = 0;
    bool listed = false;
    for (const auto& r : (*answer)["runs"]) {
      if (r["run"] != name) continue;
      listed = true;
      std::string state = r["state"], why = r.value("message", "");
      bool waits = state == "running" && !why.empty();
      if (waits && why != told) cli::talk(cli::clean(why));
      if (state == "running") told = why;
      if (state == "running" || state == "paused" || state == "stopping" || state == "left") break;
      if (in.json)
        cli::print_json(r);
      else
        cli::print(fmt::format("{}: {}/{} episodes, {} turns, {} accepted, {} rejected, {} "
                               "infrastructure\nrun: {}\n",
                               state, count_of(r, "ended"), count_of(r, "episodes"),
                               count_of(r, "turns"), count_of(r, "accepted"),
                               count_of(r, "rejected"), count_of(r, "infrastructure"),
                               r["directory"].get<std::string>()));
      if (!why.empty()) cli::talk(why);
      if (state == "finished") return cli::exit_ok;
      return cli::exit_code({fault_class::infrastructure, r.value("category", ""), "", ""});
    }
    // A head that was started again lists the runs that it goes on with, not those that have ended.
    missing = listed ? 0 : missing + 1;
    if (missing > most_missing)
      return infrastructure_error("run_not_listed",
                                  "failed to learn how the run '" + name +
                                      "' ended: the head was started again and does not list it",
                                  "`kernelmill show " + name +
                                      "`, below the head's --root, says how it ended");
  }
  cli::talk("the run continues on the head; `kernelmill cancel " + name + "` ends it");
  return 128 + interrupt::signal();
}

// A user who starts a cluster and submits at once need not know how long nodes take to join.
expected<json> submit_when_there_is_a_node(const invocation& in, const run_config& config) {
  constexpr auto patience = std::chrono::minutes{10};
  auto document = kernelmill::to_json(config).dump();
  auto until = std::chrono::steady_clock::now() + patience;
  interrupt signals;
  for (bool told = false;; told = true) {
    auto answer = ask(in, "submit", config.run.name, document);
    // A head that has answered once is there, and may be slow for a moment.
    bool waits = !answer && (answer.error().category == "no_nodes" ||
                             (told && answer.error().category == "head_unreachable"));
    if (!waits || signals.token().stop_requested() || std::chrono::steady_clock::now() > until)
      return answer;
    if (!told)
      cli::talk("waiting for a node that can do this run (" + answer.error().message +
                "); press Ctrl-C to give up");
    std::this_thread::sleep_for(std::chrono::seconds{1});
  }
}

expected<int> submit(const invocation& in) {
  auto sources = sources_of(in.list("CONFIG"));
  auto loaded = load_config(sources);
  KM_TRY(loaded);
  auto& config = loaded->config;
  if (config.run.name.empty()) config.run.name = made_run_name(sources);
  if (!config.run.dir.empty())
    cli::talk("run.dir is ignored: a head stores its runs below its own --root");
  config.run.dir.clear();
  auto answer = submit_when_there_is_a_node(in, config);
  KM_TRY(answer);
  auto name = (*answer)["run"].get<std::string>();
  if (in.has("--wait")) {
    cli::talk("run " + name);
    return wait_for_run(in, name);
  }
  if (in.json)
    cli::print_json(*answer);
  else
    cli::print(name + "\n");
  return cli::exit_ok;
}

expected<int> drain(const invocation& in) {
  return ask_for_one(in, "drain", "NODE", "draining");
}

} // namespace

cli::command submit_row() {
  return without_tables(
      {"submit",
       "Submits a run to a head.",
       "kernelmill submit quickstart --head 10.0.0.1:7612 --wait\n"
       "kernelmill submit base.json run.name=first tasks.groups=8",
       "Configuration files are read on this machine. Paths in them must exist on the head's "
       "machine. With --wait the\n"
       "exit code is 0 when the run has finished.",
       {config_words()},
       with_head_options(
           {{"--wait", "", "Waits until the run has ended.", "", false, {}, nothing}}),
       submit});
}

cli::command drain_row() {
  return without_tables(
      {"drain",
       "Drains a node: it gets no new jobs, finishes the current ones, and ends.",
       "kernelmill drain gpu-host-3",
       "The node continues to drain when the link or the head is lost.",
       {{"NODE", "Name of a node, as `status` shows it.", true, false, nothing, {}}},
       with_head_options({}),
       drain});
}

expected<int> head_status(const invocation& in) {
  auto answer = ask(in, "status");
  KM_TRY(answer);
  if (in.json)
    cli::print_json(*answer);
  else
    cli::print(status_text(*answer));
  return cli::exit_ok;
}

expected<int> resume_at_head(const invocation& in) {
  if (auto more = in.list("OVERRIDE"); !more.empty())
    return configuration_error(
        "usage",
        "failed to use " + more.front() +
            ": a run of a head continues with the configuration that was submitted",
        "leave it out, or resume without --head where the run's directory is");
  return ask_for_one(in, "resume", "RUN", "continues:");
}

} // namespace kernelmill::commands
