#include "actors/episode/tools/tool_words.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/episode/clean_text.hpp"
#include "actors/episode/patch/make_diff.hpp"
#include "actors/episode/prompt.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view how_tools_work =
    "\nYou work with tools. Candidates are source files in a graph: write_candidate, "
    "patch_candidate, test_patch and branch add one, and the newest is the active one. build, run, "
    "eval and bench measure; their timing is coarse. Only submit decides your reward: it judges "
    "one "
    "candidate in full and ends the episode, so submit before the steps are used up. Each answer "
    "of yours calls at least one tool; several are done in order.\n";

constexpr std::string_view how_text_calls_look =
    "Call a tool with a JSON object between these tags, one pair for each call:\n"
    "<tool_call>\n"
    "{\"name\": \"build\", \"arguments\": {}}\n"
    "</tool_call>\n"
    "Its result comes back between <tool_response> tags. The tools:\n"
    "<tools>\n";

bool needs_a_candidate(tool_kind x) {
  switch (x) {
    case tool_kind::task_show:
    case tool_kind::knowledge_query:
    case tool_kind::note_strategy:
    case tool_kind::write_candidate: return false;
    default: return true;
  }
}

bool uses_gpu(tool_kind x) {
  return tells_hidden(x) || x == tool_kind::run || x == tool_kind::replay;
}

} // namespace

std::string tools_system_prompt(const task& what, const tool_settings& settings, bool calls_cost) {
  auto out = judging_prompt(what);
  out += how_tools_work;
  out += fmt::format("There are {} steps, {:.0f} seconds of the machine that runs kernels, and {} "
                     "measurements on hidden cases.\n",
                     settings.steps, settings.gpu_seconds, settings.hidden_evaluations);
  if (calls_cost) out += "Each call costs a little of the reward.\n";
  if (settings.calls != call_form::text) return out;
  out += how_text_calls_look;
  for (const auto& x : all_tools()) {
    nlohmann::ordered_json function{{"name", x.name},
                                    {"description", x.description},
                                    {"parameters", nlohmann::ordered_json::parse(schema_of(x))}};
    out += nlohmann::ordered_json{{"type", "function"}, {"function", std::move(function)}}.dump();
    out += '\n';
  }
  return out += "</tools>\n";
}

std::shared_ptr<prompt_cache> prompts_of(const episode_settings& settings) {
  if (settings.mode == mode_kind::refine && settings.patches)
    return std::make_shared<prompt_cache>(
        [](const task& what) { return system_prompt(what) + patch_prompt(); });
  if (settings.mode == mode_kind::refine) return std::make_shared<prompt_cache>();
  return std::make_shared<prompt_cache>(
      [tools = settings.tools, costs = settings.rewards.shaping != shaping_kind::none](
          const task& what) { return tools_system_prompt(what, tools, costs); });
}

std::vector<tool_kind> legal_tools(const candidate_board& board, const tool_budget& used,
                                   const tool_settings& settings) {
  std::vector<tool_kind> result;
  auto left = used.steps < settings.steps ? settings.steps - used.steps : 0;
  bool any_right = std::any_of(board.all().begin(), board.all().end(),
                               [](const board_candidate& x) { return x.right == true; });
  for (const auto& x : all_tools()) {
    if (x.kind != tool_kind::submit && (left == 0 || x.steps > left)) continue;
    if (needs_a_candidate(x.kind) && board.all().empty()) continue;
    if (uses_gpu(x.kind) && used.gpu_seconds >= settings.gpu_seconds) continue;
    if (tells_hidden(x.kind) && used.hidden >= settings.hidden_evaluations) continue;
    bool of_right = x.kind == tool_kind::profile || x.kind == tool_kind::sanitize;
    if (of_right && !any_right) continue;
    if (x.kind == tool_kind::promote && board.best() == nullptr) continue;
    result.push_back(x.kind);
  }
  return result;
}

std::string budget_line(const candidate_board& board, const tool_budget& used,
                        const tool_settings& settings) {
  std::vector<std::string_view> names;
  for (auto kind : legal_tools(board, used, settings)) names.push_back(tool_of(kind).name);
  auto left = used.steps < settings.steps ? settings.steps - used.steps : 0;
  const auto* active = board.active();
  return fmt::format(
      "[steps left {} of {}, seconds {:.0f} of {:.0f}, hidden measurements {} of {}; "
      "active {}; next: {}]\n",
      left, settings.steps, std::max(0.0, settings.gpu_seconds - used.gpu_seconds),
      settings.gpu_seconds,
      used.hidden < settings.hidden_evaluations ? settings.hidden_evaluations - used.hidden : 0,
      settings.hidden_evaluations, active == nullptr ? "none" : active->id, fmt::join(names, ", "));
}

std::string window(std::string_view text, int64_t first, int64_t count, size_t limit) {
  std::string out;
  int64_t line = 0, shown = 0;
  bool full = false;
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    auto one = text.substr(0, end);
    text.remove_prefix(end);
    ++line;
    if (line < first || shown >= count || full) continue;
    if (out.size() + one.size() + 8 > limit) {
      full = true;
      if (shown > 0) continue;
      one = one.substr(0, limit - std::min(limit, size_t{8})); // a line that is longer than all
    }
    out += fmt::format("{:>4}  ", line);
    append_clean(out, one, one.size());
    if (out.back() != '\n') out += '\n';
    ++shown;
  }
  if (shown < line) out += fmt::format("[lines {} to {} of {}]\n", first, first + shown - 1, line);
  return out;
}

std::string history_text(const candidate_board& board) {
  std::string out;
  for (const auto& x : board.all()) {
    out += fmt::format("{:{}}{} {}", "", 2 * std::min<uint32_t>(x.depth, 20), x.id, x.role);
    if (!x.patch_kind.empty()) out += " " + x.patch_kind;
    out += ": " + state_line(x);
    if (board.active() == &x) out += " (active)";
    if (board.best() == &x) out += " (best)";
    if (!x.summary.empty()) {
      out += " - ";
      append_clean(out, x.summary, 160);
    }
    out += '\n';
  }
  for (const auto& x : board.strategies()) {
    out += "strategy ";
    append_clean(out, x.name, 80);
    out += ": " + x.state;
    if (!x.note.empty()) {
      out += ", ";
      append_clean(out, x.note, 160);
    }
    out += '\n';
  }
  return out.empty() ? "there is no candidate yet\n" : out;
}

std::string comparison_text(const board_candidate& left, const board_candidate& right,
                            size_t limit) {
  auto out =
      fmt::format("{}: {}\n{}: {}\n", left.id, state_line(left), right.id, state_line(right));
  auto diff = unified_diff(*left.source, *right.source, "candidate");
  if (diff.empty()) return out + "their sources are the same\n";
  out += "from " + left.id + " to " + right.id + ":\n";
  append_clean(out, diff, limit > out.size() ? limit - out.size() : 0);
  if (out.back() != '\n') out += '\n';
  return out;
}

std::string text_response(std::string_view name, std::string_view observation) {
  return fmt::format("<tool_response>\n{}: {}</tool_response>\n", name, observation);
}

} // namespace kernelmill
