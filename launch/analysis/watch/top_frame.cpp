#include "launch/analysis/watch/top_frame.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "launch/analysis/watch/filter.hpp"
#include "launch/analysis/watch/live.hpp"
#include "launch/cli/terminal.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill::watch {

namespace {

using cli::format_seconds;

std::string text_in_row(const json& x, const char* key) {
  auto i = x.find(key);
  if (i == x.end() || i->is_null()) return "-";
  auto result = cli::clean(i->is_string() ? i->get<std::string>() : i->dump());
  for (auto& c : result)
    if (c == '\n' || c == '\t') c = ' ';
  return result.empty() ? "-" : result;
}

/// Exactly `width` columns: cut, or filled with blanks.
std::string fit(const std::string& text, size_t width, bool right = false) {
  size_t bytes = 0, columns = 0;
  while (bytes < text.size()) {
    size_t next = bytes + 1;
    while (next < text.size() && continues_utf8(text[next])) ++next;
    if (columns + 1 > width) break;
    ++columns;
    bytes = next;
  }
  auto result = text.substr(0, bytes);
  std::string blanks(width - columns, ' ');
  return right ? blanks + result : result + blanks;
}

std::string bar(double share, size_t width) {
  auto n = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) + 0.5);
  return "[" + std::string(n, '|') + std::string(width - n, ' ') + "]";
}

void add_policy(std::vector<frame_line>& to, const json& policy) {
  auto words = text_in_row(policy, "health");
  to.push_back({fmt::format(" policy   {:.0f} in flight of {:.0f}, {:.0f} queued; {}",
                            number_in(policy, "in_flight"), number_in(policy, "window"),
                            number_in(policy, "queued"), words),
                policy.value("is_well", true) ? line_style::plain : line_style::warning});
  if (!policy.contains("servers")) return;
  for (const auto& x : policy["servers"])
    to.push_back(
        {fmt::format("   server {} {}", text_in_row(x, "server"), text_in_row(x, "health")),
         x.value("is_well", true) ? line_style::plain : line_style::bad});
}

void add_run(std::vector<frame_line>& to, const json& run) {
  auto total = number_in(run, "episodes");
  auto share = total > 0 ? number_in(run, "ended") / total : 0;
  auto state = text_in_row(run, "state");
  to.push_back(
      {fmt::format("{} {} {} {:.0f}/{:.0f} episodes, {:.0f} live, {:.0f} turns, {:.0f} accepted, "
                   "{:.0f} rejected, {:.0f} infrastructure",
                   text_in_row(run, "run"), state, bar(share, 20), number_in(run, "ended"), total,
                   number_in(run, "live"), number_in(run, "turns"), number_in(run, "accepted"),
                   number_in(run, "rejected"), number_in(run, "infrastructure")),
       state == "failed" || state == "stuck" ? line_style::bad : line_style::plain});
  std::string states;
  for (const auto& [name, count] : run["states"].items())
    states += fmt::format("  {} {:.0f}", cli::clean(name), count.get<double>());
  if (!states.empty()) to.push_back({" states" + states, line_style::plain});
  add_policy(to, run["policy"]);
}

// A worker is given a job ahead, so that more may be given than are at work.
std::string given_text(const json& queue) {
  auto workers = number_in(queue, "workers");
  bool builds = text_in_row(queue, "queue") == "build";
  return fmt::format("{:.0f} given to {:.0f} {}{}", number_in(queue, "leased"), workers,
                     builds ? "compiler" : "slot", workers == 1 ? "" : "s");
}

void add_queues(std::vector<frame_line>& to, const json& run) {
  for (const auto& q : run["queues"]) {
    bool starved = text_in_row(q, "state") == "starved";
    if (number_in(q, "waiting") == 0 && number_in(q, "leased") == 0 && number_in(q, "done") == 0)
      continue;
    to.push_back(
        {fmt::format(" {} {:>5.0f} waiting, {}, {:.0f} done, one takes {}{}",
                     fit(text_in_row(q, "queue"), 8), number_in(q, "waiting"), given_text(q),
                     number_in(q, "done"), format_seconds(number_in(q, "mean_seconds")),
                     starved ? "  STARVED: no worker takes them" : ""),
         starved ? line_style::bad : line_style::plain});
  }
}

void add_slots(std::vector<frame_line>& to, const json& run, size_t most) {
  std::map<std::string, std::string> letters; // one letter a slot: it is narrow
  std::vector<std::string> sick;
  for (const auto& x : run["slots"]) {
    auto state = text_in_row(x, "state");
    char letter = state == "idle"                                ? '.'
                  : state == "evaluating" || state == "building" ? '#'
                  : state == "working"                           ? '#'
                                                                 : '!';
    letters[text_in_row(x, "actor")] += letter;
    if (letter == '!') sick.push_back(text_in_row(x, "id") + " " + state);
  }
  for (const auto& [actor, text] : letters)
    to.push_back(
        {fmt::format(" {} {}", fit(actor == "gpu_runner" ? "slots" : "compilers", 9), text),
         text.find('!') == std::string::npos ? line_style::plain : line_style::bad});
  for (size_t i = 0; i < std::min(most, sick.size()); ++i)
    to.push_back({"   " + sick[i], line_style::bad});
}

void add_nodes(std::vector<frame_line>& to, const json& top, size_t most) {
  size_t shown = 0;
  for (const auto& x : top["nodes"]) {
    if (shown++ == most) {
      to.push_back(
          {fmt::format(" … {} nodes more", top["nodes"].size() - most), line_style::plain});
      return;
    }
    auto state = text_in_row(x, "state");
    to.push_back(
        {fmt::format(" node {} {} {:.0f} of {:.0f} slots busy, {:.0f} compilers, load {:.2f}  {}",
                     fit(text_in_row(x, "node"), 16), fit(state, 9), number_in(x, "busy"),
                     number_in(x, "slots"), number_in(x, "compilers"), number_in(x, "load"),
                     text_in_row(x, "hardware")),
         state == "serving" ? line_style::plain : line_style::bad});
  }
}

std::string change_text(const change_window::change& x) {
  auto delta = x.to - x.from;
  return fmt::format("{} {:.0f} -> {:.0f} ({}{:.1f}/s)", cli::clean(x.what), x.from, x.to,
                     delta < 0 ? "" : "+", delta / std::max(0.001, x.seconds));
}

std::vector<std::string> row_cells(const json& x, double age) {
  return {text_in_row(x, "run"),
          text_in_row(x, "id"),
          text_in_row(x, "state"),
          format_seconds(number_in(x, "age_seconds") + age),
          x.contains("position") ? ordinal_text(static_cast<uint64_t>(number_in(x, "position")))
                                 : "-",
          text_in_row(x, "detail")};
}

void add_episodes(std::vector<frame_line>& to, const json& top, size_t width, size_t height,
                  const frame_options& options) {
  auto rows = rows_of_episodes(top, options.sort);
  auto room = height > to.size() + 1 ? height - to.size() - 1 : 0;
  auto chosen = std::min(options.selected.value_or(0), rows.empty() ? 0 : rows.size() - 1);
  auto skip = room > 0 ? chosen / room * room : 0; // the page of the selected row
  auto count = std::min(room, rows.size() - skip);
  std::vector<std::vector<std::string>> cells{
      {"RUN", "EPISODE", "STATE", "FOR", "QUEUE", "DETAIL"}};
  for (size_t i = 0; i < count; ++i) cells.push_back(row_cells(*rows[skip + i], options.age));
  std::vector<size_t> widths(6, 0);
  const size_t most[] = {16, 12, 11, 13, 8, width};
  for (const auto& line : cells)
    for (size_t i = 0; i < 6; ++i)
      widths[i] = std::min(most[i], std::max(widths[i], cli::columns_of(line[i])));
  for (size_t n = 0; n < cells.size(); ++n) {
    std::string line;
    for (size_t i = 0; i < 6; ++i)
      line += fit(cells[n][i], widths[i], i == 3 || i == 4) + (i < 5 ? " " : "");
    bool selected = options.selected && n > 0 && skip + n - 1 == chosen;
    bool stuck = n > 0 && cells[n][2] == "stuck";
    to.push_back({line, n == 0     ? line_style::title
                        : selected ? line_style::selected
                        : stuck    ? line_style::bad
                                   : line_style::plain});
  }
}

std::string choice_text(const frame_options& options) {
  std::string result;
  if (!options.filter.empty()) result += "; filter: " + cli::clean(options.filter);
  if (!options.sort.empty()) result += "; sorted by " + options.sort;
  return result;
}

} // namespace

// -- what changed ---------------------------------------------------------------------------------

void change_window::add(const json& top) {
  seen x;
  x.at = number_in(top, "at");
  if (!seen_.empty() && seen_.back().at >= x.at) return; // the same look again
  for (const auto& run : top["runs"]) {
    auto name = text_in_row(run, "run");
    for (const char* key : {"turns", "ended", "accepted", "rejected", "infrastructure"})
      x.numbers.emplace_back(name + ": " + key, number_in(run, key));
    for (const auto& q : run["queues"]) {
      auto queue = name + ": " + text_in_row(q, "queue");
      x.numbers.emplace_back(queue + " waiting", number_in(q, "waiting"));
      x.numbers.emplace_back(queue + " done", number_in(q, "done"));
    }
    x.numbers.emplace_back(name + ": policy queued", number_in(run["policy"], "queued"));
    x.numbers.emplace_back(name + ": policy tried again", number_in(run["policy"], "tried_again"));
    for (const auto& slot : run["slots"])
      x.numbers.emplace_back(name + ": " + text_in_row(slot, "id") + " done",
                             number_in(slot, "done"));
  }
  seen_.push_back(std::move(x));
  while (seen_.size() > 2 && seen_.back().at - seen_.front().at > seconds_) seen_.pop_front();
}

std::vector<change_window::change> change_window::changes() const {
  std::vector<change> result;
  if (seen_.size() < 2) return result;
  std::map<std::string, double> before(seen_.front().numbers.begin(), seen_.front().numbers.end());
  for (const auto& [what, to] : seen_.back().numbers) {
    auto i = before.find(what);
    if (i == before.end() || i->second == to) continue;
    result.push_back({what, i->second, to, seen_.back().at - seen_.front().at});
  }
  auto weight = [](const change& x) {
    return std::abs(x.to - x.from) / std::max(1.0, std::min(std::abs(x.from), std::abs(x.to)));
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](const change& a, const change& b) { return weight(a) > weight(b); });
  return result;
}

std::vector<const json*> rows_of_episodes(const json& top, const std::string& sort) {
  std::vector<const json*> result;
  for (const auto& run : top["runs"])
    for (const auto& x : run["rows"]) result.push_back(&x);
  if (sort.empty() || top["runs"].size() < 2) return result; // the view has sorted each run's
  bool down = sort.starts_with("-");
  auto key = down ? sort.substr(1) : sort;
  std::stable_sort(result.begin(), result.end(),
                   [&](const json* a, const json* b) { return stands_before(*a, *b, key, down); });
  return result;
}

std::vector<frame_line> top_frame(const json& top, const change_window& window, size_t width,
                                  size_t height, const frame_options& options) {
  std::vector<frame_line> result;
  size_t live = 0;
  for (const auto& run : top["runs"]) live += static_cast<size_t>(number_in(run, "live"));
  result.push_back(
      {fmt::format("kernelmill top: {} run{}, {} live episodes, seen {} ago{}   ? help, q quits",
                   top["runs"].size(), top["runs"].size() == 1 ? "" : "s", live,
                   format_seconds(options.age), choice_text(options)),
       line_style::title});
  auto few = std::max<size_t>(1, height / 8);
  add_nodes(result, top, few);
  size_t shown = 0;
  for (const auto& run : top["runs"]) {
    if (shown++ == std::max<size_t>(1, height / 12)) {
      result.push_back(
          {fmt::format(" … {} runs more", top["runs"].size() - shown + 1), line_style::plain});
      break;
    }
    add_run(result, run);
    add_queues(result, run);
    add_slots(result, run, few);
  }
  auto changes = window.changes();
  if (!changes.empty()) {
    std::string text = " changed most in " + format_seconds(changes.front().seconds) + ":";
    for (size_t i = 0; i < std::min<size_t>(3, changes.size()); ++i)
      text += (i == 0 ? " " : "; ") + change_text(changes[i]);
    result.push_back({text, line_style::good});
  }
  if (top["runs"].empty()) result.push_back({" no run is in progress", line_style::plain});
  if (result.size() + 2 < height) result.push_back({"", line_style::plain});
  if (result.size() + 1 < height) add_episodes(result, top, width, height, options);
  if (result.size() > height) result.resize(height);
  for (auto& line : result) {
    line.text = fit(line.text, width);
    line.text.erase(line.text.find_last_not_of(' ') + 1);
  }
  return result;
}

} // namespace kernelmill::watch
