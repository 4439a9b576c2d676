// `kernelmill explain`: why a run or an episode is where it is.

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/view/view_options.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

std::string facts_text(const json& x) {
  std::string result = one_line(x["subject"].get<std::string>()) + ": " + cell(x, "state");
  if (x["kind"] == "run")
    return result + fmt::format(", {} of {} ended, {} live\n", count_cell(x, "ended"),
                                counted_cell(x, "episodes", "episode"), count_cell(x, "live"));
  if (x.contains("task")) result += ", " + cell(x, "task");
  if (x.contains("max_turns"))
    result += fmt::format(", turn {} of {}", x.value("turn", 0) + 1, x.value("max_turns", 0));
  result += "\n";
  if (x.contains("held_by")) result += "held by: " + cell(x, "held_by") + "\n";
  if (x.contains("position"))
    result +=
        fmt::format("queue: {}, {}{}\n", cell(x, "queue"), position_cell(x),
                    x.contains("wait_seconds") ? ", about " + seconds_cell(x, "wait_seconds") : "");
  if (x.contains("attempt"))
    result += "attempt: " + count_cell(x, "attempt") +
              (x.contains("attempts_allowed") ? " of " + count_cell(x, "attempts_allowed") : "") +
              "\n";
  if (!x.value("last_error", "").empty()) result += "last error: " + cell(x, "last_error") + "\n";
  if (x.contains("deadline_seconds"))
    result += "deadline: in " + seconds_cell(x, "deadline_seconds") +
              (x.value("deadline_waits", false) ? " and later while it is queued" : "") +
              ", of the episode in " + seconds_cell(x, "episode_deadline_seconds") + "\n";
  return result;
}

bool is_live(const json& x) {
  auto i = x.find("live");
  return i != x.end() &&
         (i->is_boolean() ? i->get<bool>() : i->is_number() && i->get<double>() > 0);
}

expected<int> explain(const invocation& in) {
  auto document = look(in, "explain", {{"what", in.value("WHAT")}});
  KM_TRY(document);
  if (in.json) {
    cli::print_json(*document);
    return 0;
  }
  auto text = facts_text(*document);
  if ((*document)["resource"] != "none")
    text += (!is_live(*document)                  ? "because of: "
             : (*document)["starved"].get<bool>() ? "lacks: "
                                                  : "waits for: ") +
            cell(*document, "resource") + "\n";
  cli::print(text);
  for (const auto& x : (*document)["findings"]) {
    cli::print("\n" + cli::hanging("", 0, one_line(x["text"].get<std::string>(), 4000)));
    if (auto next = x.value("next", ""); !next.empty())
      cli::print(cli::hanging("next: ", 6, one_line(next, 4000)));
  }
  return 0;
}

} // namespace

cli::command explain_row() {
  return without_tables(
      {"explain",
       "Explains why a run or an episode waits: what holds it, what it lacks, the last error.",
       "kernelmill explain first\nkernelmill explain first/g3.e1\n"
       "kernelmill explain first --head 10.0.0.1:7612",
       "The first finding names the resource that is lacking. Works for runs in progress and "
       "for those that\nhave ended.",
       {{"WHAT", "A run, or an episode as RUN/g3.e1.", true, false, completes::run, {}}},
       with_view_options({}),
       explain});
}

} // namespace kernelmill::commands
