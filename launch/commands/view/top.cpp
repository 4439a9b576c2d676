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
#include "launch/commands/view/top_screen.hpp"
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
  auto document = views->ask("top", query_of(in, in.json ? top_screen::most_rows : 50));
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

/// Asks for what the screen shows, and less often where asking costs more.
class looker {
public:
  looker(view_client& views, const invocation& in) : views_(views), in_(in) {
    // nop
  }

  bool is_due(const top_screen& x) const {
    return x.wants_look() || (!x.is_paused() && clock::now() >= next_);
  }

  void look(top_screen& to, uint64_t rows) {
    auto before = processor_seconds();
    if (to.now() == top_screen::mode::episode)
      look_at_episode(to);
    else
      look_at_all(to, rows);
    auto cost = processor_seconds() - before;
    auto pause = std::clamp(looks_rarity * cost, frame_ms / 1000.0, rarest_look);
    next_ = clock::now() + std::chrono::duration_cast<clock::duration>(seconds{pause});
  }

private:
  void look_at_all(top_screen& to, uint64_t rows) {
    auto query = to.query(rows);
    if (in_.has("RUN")) query["run"] = in_.value("RUN");
    take(to, views_.ask("top", query), [&](json& x) { to.take(std::move(x)); });
  }

  void look_at_episode(top_screen& to) {
    if (to.has_ended()) return;
    // A name begins below --root or at the head, as everywhere.
    auto asked = views_.ask(
        "turns", {{"what", to.followed()}, {"from", to.next_turn()}, {"streaming", true}});
    take(to, std::move(asked), [&](json& x) { to.take_turns(x); });
  }

  template <class F>
  void take(top_screen& to, expected<json> answer, F use) {
    if (answer)
      use(*answer);
    else
      to.take_trouble(answer.error().message);
  }

  view_client& views_;
  const invocation& in_;
  clock::time_point next_;
};

expected<int> top(const invocation& in) {
  if (in.has("--once") || in.json) return once(in);
  auto views = view_client::open(in);
  KM_TRY(views);
  auto first = views->ask("top", query_of(in, 50)); // an error of the command line shows as text
  KM_TRY(first);
  top_screen state;
  state.take(std::move(*first));
  interrupt signals;
  auto drawing = screen::open(in.colour_out);
  KM_TRY(drawing);
  looker looks{*views, in};
  auto stop = signals.token();
  while (!stop.stop_requested()) {
    // What selecting can reach is asked for, and no more.
    if (looks.is_due(state)) looks.look(state, 2 * drawing->height());
    drawing->show(state.lines(drawing->width(), drawing->height()));
    auto page = std::max<size_t>(1, drawing->height() / 2);
    if (!state.press(drawing->wait(frame_ms), page)) return cli::exit_ok;
  }
  return 128 + interrupt::signal();
}

} // namespace

cli::command top_row() {
  return {"top",
          "Shows runs, queues, slots, nodes and episodes on one screen.",
          "kernelmill top\nkernelmill top first --once\nkernelmill top --head 10.0.0.1:7612",
          "Keys: ? lists them all, q quits, space pauses, arrows select an episode, Enter follows "
          "it, / filters, s sorts.\nEpisodes that are stuck or tried again stand first, then those "
          "longest in their state.",
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
