#include "launch/commands/view/top_screen.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/view/view_options.hpp"
#include "launch/commands/view/watch_text.hpp"

namespace kernelmill::commands {

namespace {

using watch::frame_line;
using watch::line_style;

constexpr size_t most_lines = 2000; ///< of an episode that is followed

struct order_of_rows {
  const char* key; ///< of --sort
  const char* words;
};
constexpr std::array<order_of_rows, 6> orders{{{"", "stuck and tried again, then longest in state"},
                                               {"-age_seconds", "longest in state"},
                                               {"state", "state"},
                                               {"task", "task"},
                                               {"-turn", "turn"},
                                               {"-best_reward", "best reward"}}};

constexpr std::array<const char*, 17> help_lines{
    "kernelmill top: keys   any key goes back",
    "",
    " ?            this help",
    " q            quits; in an episode or here it goes back",
    " space        pauses the screen, not the runs, and goes on",
    " up, down     select an episode (also k and j); page keys, Home and End go further",
    " Enter, f     follows the selected episode: its turns as they are committed",
    " /            filters episodes: Enter applies, Esc leaves it, an empty one shows all",
    "              a word is looked for in names, tasks and states; or as --where of `ps`:",
    "              state=queued and age>60, task~softmax, best_reward>1",
    " s            sorts by the next of: longest in state, state, task, turn, best reward",
    "",
    " FOR          how long the episode has been in its state",
    " QUEUE        its place in the queue that it waits in",
    " slots        one character a slot: . idle, # at work, ! out of order",
    " policy       requests at the policy server, those that wait here, and how it does",
    " `kernelmill explain RUN` says why a run waits and what to do"};

std::string name_of(const nlohmann::ordered_json& row) {
  return row.value("run", "") + "/" + row.value("id", "");
}

frame_line fitted(const std::string& text, size_t width, line_style style) {
  return {cli::shorten(text, width), style};
}

} // namespace

std::string condition_of(const std::string& typed) {
  auto first = typed.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  auto word = typed.substr(first, typed.find_last_not_of(' ') - first + 1);
  if (word.find_first_of("=<>~!()\"'") != std::string::npos) return word;
  std::string result;
  for (const char* key : {"run", "id", "task", "state", "detail"})
    result += fmt::format("{}{} ~ \"{}\"", result.empty() ? "" : " or ", key, word);
  return result;
}

nlohmann::ordered_json top_screen::query(uint64_t rows) const {
  json result = {{"limit", std::min<uint64_t>(most_rows, rows + row())}};
  if (auto where = condition_of(filter_); !where.empty()) result["where"] = where;
  if (sort_ > 0) result["sort"] = orders[sort_].key;
  return result;
}

// A filter that cannot be read would leave the list as it was for ever.
void top_screen::take_trouble(std::string why) {
  trouble_ = std::move(why);
  if (!std::exchange(tries_filter_, false)) return;
  refused_ = trouble_;
  filter_ = before_;
  wants_look_ = true;
}

void top_screen::take(json seen) {
  trouble_.clear();
  tries_filter_ = false;
  seen_ = std::move(seen);
  seen_at_ = clock::now();
  window_.add(seen_);
  wants_look_ = false;
}

size_t top_screen::row() const {
  auto rows = watch::rows_of_episodes(seen_, orders[sort_].key);
  if (rows.empty()) return 0;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!selected_.empty() && name_of(*rows[i]) == selected_) return i;
  return std::min(row_, rows.size() - 1);
}

void top_screen::select(size_t row) {
  auto rows = watch::rows_of_episodes(seen_, orders[sort_].key);
  selects_ = !rows.empty();
  row_ = rows.empty() ? 0 : std::min(row, rows.size() - 1);
  selected_ = rows.empty() ? "" : name_of(*rows[row_]);
  wants_look_ = true; // further rows come into reach
}

void top_screen::follow() {
  auto rows = watch::rows_of_episodes(seen_, orders[sort_].key);
  if (rows.empty()) return;
  mode_ = mode::episode;
  followed_ = name_of(*rows[row()]);
  turns_.clear();
  latest_ = json::object();
  next_turn_ = 0;
  ended_ = false;
  back_ = 0;
  trouble_.clear();
  wants_look_ = true;
}

void top_screen::take_turns(const json& document) {
  trouble_.clear();
  latest_ = document;
  wants_look_ = false;
  auto add = [&](const std::string& text, line_style style) {
    for (size_t at = 0; at <= text.size();) {
      auto end = std::min(text.find('\n', at), text.size());
      turns_.push_back({text.substr(at, end - at), style});
      at = end + 1;
      style = line_style::plain; // its message
    }
  };
  for (const auto& x : document["turns"]) {
    auto outcome = x.value("outcome", "");
    add(committed_turn_text(document, x, false), outcome == "accepted"   ? line_style::good
                                                 : outcome == "rejected" ? line_style::bad
                                                                         : line_style::warning);
    next_turn_ = x["turn"].get<uint64_t>() + 1;
  }
  if (!document["end"].is_null()) {
    add(ended_episode_text(document), line_style::title);
    ended_ = true;
  } else if (!document["live"].get<bool>()) {
    add("the run is not in progress: nothing more will come", line_style::title);
    ended_ = true;
  }
  if (turns_.size() > most_lines)
    turns_.erase(turns_.begin(), turns_.end() - static_cast<ptrdiff_t>(most_lines));
}

// -- keys -----------------------------------------------------------------------------------------

bool top_screen::press(const keystroke& x, size_t page) {
  if (x.name == key::none) return true;
  refused_.clear();
  switch (mode_) {
    case mode::list:
      if (x.name == key::letter && (x.letter == 'q' || x.letter == 'Q')) return false;
      press_in_list(x, page);
      break;
    case mode::filter: press_in_filter(x); break;
    case mode::help: mode_ = mode::list; break;
    case mode::episode: press_in_episode(x, page); break;
  }
  return true;
}

void top_screen::press_in_list(const keystroke& x, size_t page) {
  auto here = row();
  auto up = [&](size_t n) { select(here - std::min(n, here)); };
  // The first press selects the row where the eye is: the first.
  auto down = [&](size_t n) { select(selects_ ? here + n : here); };
  switch (x.name) {
    case key::up: return up(1);
    case key::down: return down(1);
    case key::page_up: return up(page);
    case key::page_down: return down(page);
    case key::home: return select(0);
    case key::end: return select(most_rows);
    case key::enter: return follow();
    case key::escape:
      selects_ = false;
      selected_.clear();
      row_ = 0;
      return;
    case key::letter: break;
    default: return;
  }
  switch (x.letter) {
    case ' ': paused_ = !paused_; break;
    case '?':
    case 'h': mode_ = mode::help; break;
    case 'k': up(1); break;
    case 'j': down(1); break;
    case 'g': select(0); break;
    case 'G': select(most_rows); break;
    case 'f': follow(); break;
    case '/':
      typed_.clear();
      mode_ = mode::filter;
      break;
    case 's':
      sort_ = (sort_ + 1) % orders.size();
      wants_look_ = true;
      break;
    default: break;
  }
}

void top_screen::press_in_filter(const keystroke& x) {
  switch (x.name) {
    case key::letter: typed_ += x.letter; break;
    case key::backspace:
      while (!typed_.empty() && (static_cast<unsigned char>(typed_.back()) & 0xc0) == 0x80)
        typed_.pop_back(); // the rest of a character
      if (!typed_.empty()) typed_.pop_back();
      break;
    case key::escape: mode_ = mode::list; break;
    case key::enter:
      before_ = std::exchange(filter_, condition_of(typed_).empty() ? "" : typed_);
      tries_filter_ = !filter_.empty();
      mode_ = mode::list;
      wants_look_ = true;
      break;
    default: break;
  }
}

void top_screen::press_in_episode(const keystroke& x, size_t page) {
  auto back = [&](size_t n) { back_ = std::min(back_ + n, turns_.size()); };
  auto forth = [&](size_t n) { back_ -= std::min(n, back_); };
  switch (x.name) {
    case key::up: return back(1);
    case key::down: return forth(1);
    case key::page_up: return back(page);
    case key::page_down: return forth(page);
    case key::home: return back(turns_.size());
    case key::end: return forth(back_);
    case key::letter:
      if (x.letter != 'q' && x.letter != 'Q' && x.letter != 'f') return;
      break;
    case key::enter:
    case key::escape:
    case key::backspace: break;
    default: return;
  }
  mode_ = mode::list;
  trouble_.clear();
  wants_look_ = true;
}

// -- lines ----------------------------------------------------------------------------------------

std::vector<frame_line> top_screen::list_lines(size_t width, size_t height) const {
  watch::frame_options options;
  options.age = std::chrono::duration<double>(clock::now() - seen_at_).count();
  if (selects_) options.selected = row();
  options.filter = filter_;
  options.sort = orders[sort_].key;
  auto result = watch::top_frame(seen_, window_, width, height, options);
  if (result.empty()) return result;
  if (paused_)
    result.front().text = cli::shorten(
        "SCREEN PAUSED, the runs go on (space ends it)  " + result.front().text, width);
  const auto& bad = refused_.empty() ? trouble_ : refused_;
  if (!bad.empty()) result.front() = fitted(one_line(bad), width, line_style::bad);
  if (mode_ == mode::filter) {
    // The end of what is typed stays on the screen.
    auto text = "filter (Enter applies, Esc leaves it): " + cli::clean(typed_) + "_";
    auto over = cli::columns_of(text) > width ? cli::columns_of(text) - width : 0;
    result.front() = {over > 0 ? text.substr(std::min(over, text.size())) : text,
                      line_style::title};
  }
  return result;
}

std::vector<frame_line> top_screen::episode_lines(size_t width, size_t height) const {
  std::vector<frame_line> folded;
  for (const auto& line : turns_)
    for (const auto& part : cli::fold(line.text, width)) folded.push_back({part, line.style});
  if (auto streams = streaming_text(latest_, width); !streams.empty())
    folded.push_back({cli::shorten(streams, width), line_style::plain});
  else if (turns_.empty())
    folded.push_back({"no turn is committed yet", line_style::plain});
  auto room = height > 1 ? height - 1 : 0;
  auto back = std::min(back_, folded.size() > room ? folded.size() - room : 0);
  auto end = folded.size() - back;
  auto begin = end > room ? end - room : 0;
  std::vector<frame_line> result{
      trouble_.empty()
          ? fitted(followed_ + ": turns as they are committed   q goes back, arrows scroll", width,
                   line_style::title)
          : fitted(one_line(trouble_), width, line_style::bad)};
  result.insert(result.end(), folded.begin() + static_cast<ptrdiff_t>(begin),
                folded.begin() + static_cast<ptrdiff_t>(end));
  return result;
}

std::vector<frame_line> top_screen::lines(size_t width, size_t height) const {
  if (mode_ == mode::episode) return episode_lines(width, height);
  if (mode_ != mode::help) return list_lines(width, height);
  std::vector<frame_line> result;
  for (const char* line : help_lines)
    if (result.size() < height)
      result.push_back(fitted(line, width, result.empty() ? line_style::title : line_style::plain));
  return result;
}

} // namespace kernelmill::commands
