// `kernelmill top`: everything on one screen, drawn ten times a second. It looks at the run less
// often when looking costs more, so that it stays within a hundredth of a core.

#include <algorithm>
#include <chrono>
#include <ctime>

#include "launch/analysis/watch/top_frame.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/interrupt.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/view/screen.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr int frame_ms = 100;
constexpr double looks_rarity = 100; // a look that takes 5 ms of the processor comes twice a second
constexpr double rarest_look = 2;
constexpr uint64_t most_rows = 500;

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

json query_of(const invocation& in, uint64_t rows) {
  json result = {{"limit", rows}};
  if (in.has("RUN")) result["run"] = in.value("RUN");
  return result;
}

expected<int> once(const invocation& in) {
  auto views = view_client::open(in);
  KM_TRY(views);
  auto document = views->ask("top", query_of(in, in.json ? most_rows : 50));
  KM_TRY(document);
  if (in.json) {
    cli::print_json(*document);
    return cli::exit_ok;
  }
  auto width = cli::terminal_width(1);
  for (const auto& line :
       watch::top_frame(*document, watch::change_window{}, width == 0 ? 160 : width, 60))
    cli::print(line.text + "\n");
  return cli::exit_ok;
}

/// What is on the screen, and when to look again.
struct top_state {
  json seen;
  watch::change_window window;
  clock::time_point seen_at;
  clock::time_point next_look;
  size_t scroll = 0;
  bool paused = false;
  std::string trouble; ///< of the latest look

  void look(view_client& views, const json& query) {
    auto before = processor_seconds();
    auto document = views.ask("top", query);
    auto cost = processor_seconds() - before;
    auto pause = std::clamp(looks_rarity * cost, frame_ms / 1000.0, rarest_look);
    next_look = clock::now() + std::chrono::duration_cast<clock::duration>(seconds{pause});
    if (!document) {
      trouble = document.error().message;
      return;
    }
    trouble.clear();
    seen = std::move(*document);
    seen_at = clock::now();
    window.add(seen);
  }

  void press(key x, size_t page) {
    auto back = [&](size_t n) { scroll -= std::min(n, scroll); };
    switch (x) {
      case key::pause: paused = !paused; break;
      case key::up: back(1); break;
      case key::down: ++scroll; break;
      case key::page_up: back(page); break;
      case key::page_down: scroll += page; break;
      case key::home: scroll = 0; break;
      default: break;
    }
    scroll = std::min<size_t>(scroll, most_rows);
  }
};

expected<int> top(const invocation& in) {
  if (in.has("--once") || in.json) return once(in);
  auto views = view_client::open(in);
  KM_TRY(views);
  auto query = query_of(in, most_rows);
  top_state state;
  auto first = views->ask("top", query); // an error of the command line shows as text
  KM_TRY(first);
  state.seen = std::move(*first);
  state.seen_at = clock::now();
  state.window.add(state.seen);
  interrupt signals;
  auto drawing = screen::open(in.colour_out);
  KM_TRY(drawing);
  // What scrolling can reach is asked for, and no more.
  auto stop = signals.token();
  while (!stop.stop_requested()) {
    if (!state.paused && clock::now() >= state.next_look) {
      query["limit"] = std::min<uint64_t>(most_rows, drawing->height() + state.scroll);
      state.look(*views, query);
    }
    auto age = seconds{clock::now() - state.seen_at}.count();
    auto lines = watch::top_frame(state.seen, state.window, drawing->width(), drawing->height(),
                                  age, state.scroll);
    if (!state.trouble.empty() && !lines.empty())
      lines.front() = {one_line(state.trouble, drawing->width()), watch::line_style::bad};
    if (state.paused && !lines.empty()) lines.front().text = "PAUSED  " + lines.front().text;
    drawing->show(lines);
    auto pressed = drawing->wait(frame_ms);
    if (pressed == key::quit) return cli::exit_ok;
    state.press(pressed, std::max<size_t>(1, drawing->height() / 2));
  }
  return 128 + interrupt::signal();
}

} // namespace

cli::command top_row() {
  return {"top",
          "Shows runs, queues, slots, nodes and episodes on one screen.",
          "kernelmill top\nkernelmill top first --once\nkernelmill top --head 10.0.0.1:7612",
          "Keys: q quits, space pauses, arrows and page keys scroll. Episodes that are stuck or "
          "tried again stand first,\nthen those longest in their state.",
          {{"RUN",
            "Name of a run, or its directory. Default: all runs below --root.",
            false,
            false,
            completes::run,
            {}}},
          with_view_options({flag("--once", "Prints one frame and ends.")}),
          top};
}

} // namespace kernelmill::commands
