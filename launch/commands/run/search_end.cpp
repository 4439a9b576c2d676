#include "launch/commands/run/search_end.hpp"

#include <fmt/format.h>

#include "launch/analysis/searching/story_text.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/judge/winner.hpp"
#include "launch/commands/run_view.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/search_end.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

/// What people call a file of the candidate.
std::string best_file(const measured_winner& x) {
  if (x.language == "python" || x.language == "py") return "best.py";
  return x.language == "cuda" || x.language == "hip" ? "best.cu" : "best.cpp";
}

json speedup_json(double estimate, std::optional<double> low, std::optional<double> high) {
  if (estimate <= 0) return nullptr;
  return {{"estimate", estimate},
          {"low", low ? json(*low) : json(nullptr)},
          {"high", high ? json(*high) : json(nullptr)}};
}

json winner_json(const measured_winner& x) {
  auto again = x.speedup ? speedup_json(x.speedup->estimate, x.speedup->low, x.speedup->high)
                         : json(nullptr);
  return {{"turn", x.turn},
          {"candidate_sha256", x.sha256},
          {"file", best_file(x)},
          {"speedup", again},
          {"evaluations", x.evaluations},
          {"speedup_in_search", speedup_json(x.found.estimate, x.found.low, x.found.high)},
          {"did_not_stand", x.fallen}};
}

/// What an earlier session has measured, of the same candidates.
std::optional<json> known_winner(const run_directory& run, const searching::search_story& story) {
  auto known = read_search_end(run, story.used.turns);
  if (!known || (*known)["winner"].is_null()) return std::nullopt;
  return (*known)["winner"];
}

std::string measured_text(const json& x) {
  if (!x.is_object()) return "not timed";
  auto text = fmt::format("{:.3g}x", x.value("estimate", 0.0));
  if (x["low"].is_number() && x["high"].is_number())
    text += fmt::format(" [{:.3g}, {:.3g}]", x["low"].get<double>(), x["high"].get<double>());
  return text;
}

std::string winner_text(const json& winner, const std::string& task, const std::string& directory) {
  if (winner.is_null())
    return "no winner: no candidate was verified twice; `kernelmill show " + directory +
           "` lists what each turn came to, and `kernelmill stats " + directory +
           "` counts the verdicts\n";
  auto turn = winner.value("turn", std::string{});
  auto file = directory + "/" + winner.value("file", std::string{});
  auto text = fmt::format("winner: {}, {} in {} in fresh processes; the search had "
                          "measured {}\n",
                          turn, measured_text(winner["speedup"]),
                          counted(winner.value("evaluations", 0u), "evaluation"),
                          measured_text(winner["speedup_in_search"]));
  for (const auto& x : winner["did_not_stand"])
    text += "did not stand: " + cli::clean(x.get<std::string>()) + "\n";
  return text +
         fmt::format("kernel: {}\nnext:\n"
                     "  kernelmill show {}/{}    its prompt, code and verdict\n"
                     "  kernelmill eval {} --task {}    judges it again\n"
                     "  kernelmill kernel export {}/{} --out DIR    files for your program\n",
                     file, directory, turn, file, task, directory, turn);
}

// Closes the store again: a process has it open once.
expected<searching::search_story> story_of(const run_directory& run) {
  auto from = open_for_reading(run);
  KM_TRY(from);
  return searching::read_story(*from, run.name);
}

expected<json> find_winner(const run_directory& run, const run_config& config,
                           const searching::search_story& story) {
  if (auto known = known_winner(run, story)) return std::move(*known);
  cli::talk("measuring the fastest candidates again, in fresh processes; this takes a few seconds");
  auto winner = measure_winner(run, config, story);
  KM_TRY(winner);
  if (!*winner) return json(nullptr);
  KM_TRY(write_file(run.path + "/" + best_file(**winner), (*winner)->source));
  return winner_json(**winner);
}

} // namespace

expected<search_end> end_search(const run_directory& run, const run_config& config,
                                const std::string& shown_directory) {
  auto story = story_of(run);
  KM_TRY(story);
  auto winner = find_winner(run, config, *story);
  KM_TRY(winner);
  search_end result;
  result.found = !winner->is_null();
  result.document = {{"strategy", config.search.strategy}, {"task", config.tasks.ids.front()}};
  result.document.update(searching::story_json(*story));
  result.document["winner"] = *winner;
  KM_TRY(write_search_end(run, result.document));
  result.text = searching::story_text(*story, config.search.strategy, cli::terminal_width(1));
  result.text += winner_text(*winner, config.tasks.ids.front(), shown_directory);
  return result;
}

} // namespace kernelmill::commands
