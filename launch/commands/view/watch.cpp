// `kernelmill watch` and `logs`: what happens, as it happens.

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/view/view_options.hpp"
#include "launch/commands/view/watch_text.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"
#include "messages/log/line.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
using namespace std::chrono_literals;

// A commit shows within 200 ms; a head is asked over a network.
constexpr auto look_here_every = 40ms;
constexpr auto look_there_every = 100ms;
constexpr uint64_t looks_a_glimpse = 5; ///< what streams in is asked of the run's actors

void print_ndjson(const json& x) {
  cli::print(x.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

void show_turns(const json& document, bool as_json, bool colour) {
  for (const auto& x : document["turns"]) {
    if (!as_json) {
      cli::print(committed_turn_text(document, x, colour) + "\n");
      continue;
    }
    json line = {{"kind", "turn"}, {"run", document["run"]}, {"episode", document["episode"]}};
    line.update(x);
    print_ndjson(line);
  }
}

void show_end(const json& document, bool as_json) {
  const auto& end = document["end"];
  if (as_json) {
    json line = {{"kind", "end"}, {"run", document["run"]}, {"episode", document["episode"]}};
    line.update(end);
    print_ndjson(line);
  } else {
    cli::print(ended_episode_text(document) + "\n");
  }
}

/// Waits a moment; false when a signal came.
bool wait_a_moment(const std::stop_token& stop, std::chrono::milliseconds time) {
  for (auto until = std::chrono::steady_clock::now() + time;
       !stop.stop_requested() && std::chrono::steady_clock::now() < until;)
    std::this_thread::sleep_for(std::min(time, std::chrono::milliseconds{20}));
  return !stop.stop_requested();
}

expected<int> watch(const invocation& in) {
  auto views = view_client::open(in);
  KM_TRY(views);
  interrupt signals;
  auto stop = signals.token();
  uint64_t next = 0;
  bool tells = !in.json && ::isatty(STDERR_FILENO) == 1;
  for (uint64_t look = 0;; ++look) {
    json query = {{"what", in.value("EPISODE")}, {"from", next}};
    if (tells && look % looks_a_glimpse == 0) query["streaming"] = true;
    auto document = views->ask("turns", query);
    KM_TRY(document);
    show_turns(*document, in.json, in.colour_out);
    if (query.contains("streaming"))
      cli::show_activity(streaming_text(*document, cli::terminal_width(STDERR_FILENO)));
    if (!(*document)["turns"].empty())
      next = (*document)["turns"].back()["turn"].get<uint64_t>() + 1;
    if (std::fflush(stdout) != 0) return cli::exit_ok; // dispatch says what became of stdout
    if (!(*document)["end"].is_null()) {
      show_end(*document, in.json);
      return cli::exit_ok;
    }
    if (!(*document)["live"].get<bool>()) {
      cli::talk("the run is not in progress: nothing more will come");
      return cli::exit_ok;
    }
    if (!wait_a_moment(stop, views->is_remote() ? look_there_every : look_here_every))
      return 128 + interrupt::signal();
  }
}

// -- logs -----------------------------------------------------------------------------------------

struct log_filter {
  std::string episode; ///< "g3.e1"; empty: all
  log_level least = log_level::trace;

  bool takes(const std::string& line) const {
    std::string level, of;
    if (line.starts_with("{")) {
      auto x = json::parse(line, nullptr, false);
      if (!x.is_object()) return false;
      level = x.value("level", "");
      of = x.value("episode", "");
    } else {
      auto blank = line.find(' ');
      if (blank == std::string::npos) return false;
      level = line.substr(blank + 1, line.find(' ', blank + 1) - blank - 1);
      auto head = line.substr(0, line.find(" | "));
      if (auto at = head.find(" episode="); at != std::string::npos)
        of = head.substr(at + 9, head.find(' ', at + 9) - at - 9);
    }
    if (!episode.empty() && of != episode) return false;
    auto known = parse_log_level(level);
    return !known || *known >= least;
  }
};

/// Prints the lines that are wanted; returns how many.
size_t print_lines(const std::string& text, const log_filter& wanted, const json& document,
                   bool as_json) {
  size_t shown = 0;
  for (size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\n', at), text.size());
    auto line = text.substr(at, end - at);
    at = end + 1;
    if (!wanted.takes(line)) continue;
    ++shown;
    if (!as_json) {
      cli::print(cli::clean(line) + "\n");
      continue;
    }
    auto x = json::parse(line, nullptr, false);
    print_ndjson(x.is_object() ? x : json{{"run", document["run"]}, {"line", line}});
  }
  return shown;
}

/// "first/g3.e1" is the run "first" and its episode "g3.e1", as in other commands.
std::pair<std::string, std::string> run_and_episode(const std::string& what) {
  auto slash = what.find_last_of('/');
  if (slash == std::string::npos || !parse_name(what.substr(slash + 1))) return {what, {}};
  return {what.substr(0, slash), what.substr(slash + 1)};
}

/// A misspelt episode has no lines: it is an error, not silence.
expected<void> check_episode(view_client& views, const std::string& run, const log_filter& wanted) {
  if (wanted.episode.empty()) return {};
  KM_TRY(views.ask("turns", {{"what", run + "/" + wanted.episode}, {"from", uint64_t{1} << 31}}));
  return {};
}

expected<int> logs(const invocation& in) {
  auto lines = in.integer("--lines", 0, 1'000'000);
  KM_TRY(lines);
  auto [run, episode] = run_and_episode(in.value("RUN"));
  if (!episode.empty() && in.has("--episode") && in.value("--episode") != episode)
    return configuration_error("usage", "failed to choose lines: two episodes are named",
                               "leave out --episode, or name the run alone");
  if (episode.empty()) episode = in.value("--episode");
  log_filter wanted{episode, parse_log_level(in.value("--level")).value_or(log_level::trace)};
  auto views = view_client::open(in);
  KM_TRY(views);
  KM_TRY(check_episode(*views, run, wanted));
  interrupt signals;
  auto stop = signals.token();
  size_t shown = 0;
  json query = {{"run", run}, {"tail", static_cast<uint64_t>(*lines)}};
  for (;;) {
    auto document = views->ask("logs", query);
    KM_TRY(document);
    shown += print_lines((*document)["text"].get<std::string>(), wanted, *document, in.json);
    if (std::fflush(stdout) != 0) return cli::exit_ok;
    query = {{"run", run}, {"offset", (*document)["next"]}, {"file", (*document)["file"]}};
    if ((*document)["more"].get<bool>() && !stop.stop_requested()) continue;
    bool live = document->value("live", true);
    if (!in.has("--follow") && shown == 0)
      cli::talk("none of the last " + in.value("--lines") + " lines; --lines N reads more of them");
    if (in.has("--follow") && !live)
      cli::talk("the run is not in progress: nothing more will come");
    if (!in.has("--follow") || !live) return cli::exit_ok;
    if (!wait_a_moment(stop, look_there_every)) return 128 + interrupt::signal();
  }
}

} // namespace

cli::command watch_row() {
  return without_tables(
      {"watch",
       "Shows an episode's turns as they are committed.",
       "kernelmill watch first/g3.e1\nkernelmill watch first/g3.e1 --json",
       "Ends when the episode has ended. With --json it prints one object per line. Where "
       "policy.stream is set, a terminal\nshows the end of an answer while it comes; of a server "
       "with a key only how long it is.",
       {{"EPISODE", "An episode as RUN/g3.e1.", true, false, completes::run, {}}},
       with_view_options({}),
       watch});
}

cli::command logs_row() {
  return without_tables(
      {"logs",
       "Shows a run's log.",
       "kernelmill logs first\nkernelmill logs first -f --level warn\n"
       "kernelmill logs first/g3.e1 --lines 1000",
       "",
       {{"RUN",
         "Name of a run, or its directory; or an episode as RUN/g3.e1.",
         true,
         false,
         completes::run,
         {}}},
       with_view_options(
           {{"--follow",
             "",
             "Waits for more lines until the run has ended. Ctrl-C ends it.",
             "",
             false,
             {},
             nothing,
             "-f"},
            {"--lines", "N", "Lines from the end to begin with.", "100", false, {}, nothing},
            {"--episode",
             "NAME",
             "Only lines of this episode, such as g3.e1.",
             "",
             false,
             {},
             nothing},
            {"--level",
             "LEVEL",
             "Lowest level that is shown.",
             "trace",
             false,
             {"trace", "debug", "info", "warn", "error"},
             nothing}}),
       logs});
}

} // namespace kernelmill::commands
