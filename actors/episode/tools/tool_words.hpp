#pragma once

// What a policy is told in mode `tools`: its tools, and what became of its calls. Plain functions;
// every text of others is cleaned, and every observation has a limit in bytes.

#include <string>
#include <string_view>
#include <vector>

#include "actors/episode/episode.hpp"
#include "actors/episode/prompt_cache.hpp"
#include "actors/episode/tools/candidate_board.hpp"
#include "actors/episode/tools/tool_budget.hpp"
#include "actors/episode/tools/tool_list.hpp"

namespace kernelmill {

/// The system message: the role, how candidates are judged, how tools are called and, for the text
/// form, the tools themselves.
std::string tools_system_prompt(const task& what, const tool_settings& settings, bool calls_cost);

/// First prompts in the words of the mode that `settings` name.
std::shared_ptr<prompt_cache> prompts_of(const episode_settings& settings);

/// Which tools may be called now, in the table's order.
std::vector<tool_kind> legal_tools(const candidate_board& board, const tool_budget& used,
                                   const tool_settings& settings);

/// "steps 5 of 24 left, ...; active c2; next: build, run, ...": the last line of an observation.
std::string budget_line(const candidate_board& board, const tool_budget& used,
                        const tool_settings& settings);

/// Lines `first` to `first + count - 1` of a text, numbered, with how many there are; at most
/// `limit` bytes.
std::string window(std::string_view text, int64_t first, int64_t count, size_t limit);

/// The candidates as a tree, one a line, with the strategies below.
std::string history_text(const candidate_board& board);

/// The difference between two candidates and what is known of each.
std::string comparison_text(const board_candidate& left, const board_candidate& right,
                            size_t limit);

/// One tool's answer in the text form.
std::string text_response(std::string_view name, std::string_view observation);

} // namespace kernelmill
