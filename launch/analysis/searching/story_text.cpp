#include "launch/analysis/searching/story_text.hpp"

#include <fmt/format.h>

#include "launch/cli/terminal.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::searching {

namespace {

using json = nlohmann::ordered_json;

uint64_t tokens_of(const search::search_cost& x) {
  return x.prompt_tokens + x.completion_tokens;
}

std::string interval_text(const search::node& x) {
  return x.low > 0 ? fmt::format("{:.3g}x [{:.3g}, {:.3g}]", x.estimate, x.low, x.high)
                   : std::string{"not timed"};
}

std::string cost_text(const search::search_cost& x) {
  return fmt::format("{}, {}, {} of slots", counted(x.turns, "turn"),
                     counted(tokens_of(x), "token"), cli::format_seconds(x.slot_seconds));
}

std::string improvements_text(const search_story& x, size_t width) {
  if (x.improvements.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const auto& at : x.improvements) {
    const auto& one = x.episodes[at.episode];
    rows.push_back({fmt::to_string(at.used.turns), fmt::to_string(tokens_of(at.used)),
                    cli::format_seconds(at.used.slot_seconds), interval_text(one.what), one.name,
                    one.parent.empty() ? "the task" : one.parent});
  }
  return cli::format_table({"TURNS>", "TOKENS>", "SLOT TIME>", "BEST SO FAR", "EPISODE", "FROM"},
                           rows, width);
}

json cost_json(const search::search_cost& x) {
  return {{"turns", x.turns},
          {"prompt_tokens", x.prompt_tokens},
          {"completion_tokens", x.completion_tokens},
          {"slot_seconds", x.slot_seconds}};
}

json episode_json(const search::searched_episode& x) {
  static constexpr const char* states[] = {"verified", "failed", "lost"};
  return {{"turn", turn_name(x)},
          {"parent", x.parent.empty() ? json(nullptr) : json(x.parent)},
          {"state", states[static_cast<size_t>(x.what.state)]},
          {"category", x.category},
          {"candidate_sha256", x.what.sha256},
          {"speedup",
           x.what.low > 0
               ? json{{"estimate", x.what.estimate}, {"low", x.what.low}, {"high", x.what.high}}
               : json(nullptr)}};
}

} // namespace

std::string story_text(const search_story& x, const std::string& strategy, size_t width) {
  // A copy is accepted as an answer, and no candidate of the search's own.
  auto copies = x.unchanged > 0 ? fmt::format("{} accepted but unchanged, ", x.unchanged) : "";
  auto result =
      fmt::format("search ({}): {}, {}: {} verified, {}{} failed, {} lost\nused: {}\n", strategy,
                  counted(x.generations, "generation"), counted(x.episodes.size(), "candidate"),
                  x.verified, copies, x.failed - x.unchanged, x.lost, cost_text(x.used));
  auto table = improvements_text(x, width);
  return table.empty() ? result : result + "\n" + table + "\n";
}

json story_json(const search_story& x) {
  auto improvements = json::array();
  for (const auto& at : x.improvements) {
    auto row = cost_json(at.used);
    row.update(episode_json(x.episodes[at.episode]));
    improvements.push_back(std::move(row));
  }
  auto tree = json::array();
  for (const auto& one : x.episodes) tree.push_back(episode_json(one));
  return {{"generations", x.generations}, {"candidates", x.episodes.size()},
          {"verified", x.verified},       {"failed", x.failed},
          {"unchanged", x.unchanged},     {"lost", x.lost},
          {"used", cost_json(x.used)},    {"best_so_far", std::move(improvements)},
          {"tree", std::move(tree)}};
}

} // namespace kernelmill::searching
