#pragma once

// An episode as an agent lives it: each answer of the policy calls tools on a graph of candidates,
// and one that is submitted decides the reward. All that the calls of one answer did is one turn,
// durable at once or not at all: a turn that is cut off has not happened, so no call has an effect
// twice, and what is left of the budgets is a sum over committed calls.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/episode/episode.hpp"
#include "actors/episode/episode_mode.hpp"
#include "actors/episode/tools/candidate_board.hpp"
#include "actors/episode/tools/shaping.hpp"
#include "actors/episode/tools/tool_budget.hpp"
#include "actors/episode/tools/tool_list.hpp"

namespace kernelmill {

class tools_mode final : public episode_mode {
public:
  explicit tools_mode(episode_state& episode)
      : episode_(episode), shaping_(episode.settings->rewards.shaping) {
    // nop
  }

  void begin() override;
  void add_to(wire::CompletionRequest::Builder x) const override;
  void take_answer() override;
  void end_trial(const Message<wire::Verdict>* verdict) override;
  void add_to(wire::TurnRecord::Builder x, artifact_batch& artifacts) const override;
  void add_to(wire::EpisodeRecord::Builder x, const std::string& stop_reason) const override;
  void committed(const std::shared_ptr<const std::string>& feedback) override;
  void restore(wire::TurnRecord::Reader record) override;

private:
  /// One call, from the answer to the record.
  struct act {
    tool_call call;
    const tool* what = nullptr; ///< null: there is no such tool
    tool_arguments arguments;
    tool_kind measure = tool_kind::build; ///< of a measurement: what it does
    std::string input, output;
    std::shared_ptr<const std::string> observation;
    std::string status = "ok";
    std::string transition = "inspect_only";
    uint32_t steps = 0;
    double gpu_seconds = 0;
    bool hidden = false;
    bool measured = false;
    std::vector<std::string> examples; ///< ids of what a query found
    episode_state::clock::time_point begun;
    double seconds = 0;
    Message<wire::TurnFacts> facts;
    Message<wire::Verdict> verdict;
  };

  static bool did_anything(const std::vector<act>& acts);

  // -- the order of a turn (tools_mode.cpp) ------------------------------------------------------

  void read_calls();
  void go_on();
  void begin_act(act x);
  void settle(std::string status, std::string words);
  void refuse(const std::string& why) { settle("refused", why); }
  void finish_turn(std::optional<Message<wire::Verdict>> verdict = std::nullopt);
  Message<wire::Verdict> with_acts(const std::optional<Message<wire::Verdict>>& submitted);
  void add_examples(wire::TurnRecord::Builder x) const;
  std::string stop_reason_after(bool submitted) const;
  tool_budget used_now() const; ///< with the calls of the turn in progress that are over
  uint32_t steps_left() const;
  std::string joined_observations() const;
  void note_shown(const std::vector<act>& acts);
  void remember(std::shared_ptr<const std::string> answer, const std::vector<act>& acts,
                const std::string& more);

  // -- what tools do (tool_acts.cpp) -------------------------------------------------------------

  void perform();
  void show_task();
  void query_knowledge();
  void write_candidate();
  void patch_candidate(bool measured);
  void branch(board_candidate& from);
  void revert(board_candidate& to);
  void promote(board_candidate& x);
  void inspect(const board_candidate& x);
  void compare();
  void replay(board_candidate& x);
  void submit(board_candidate& x);
  void measure(board_candidate& x, tool_kind how);
  void take_measurement(const Message<wire::Verdict>* verdict);
  void note_change(board_candidate& x, const board_candidate& parent) const;
  std::string why_not(tool_kind how, const board_candidate& x) const;
  board_candidate* candidate_of_act();
  size_t limit() const { return episode_.settings->tools.observation_bytes; }

  episode_state& episode_;
  candidate_board board_;
  shaping_ledger shaping_; // committed, as the next two
  tool_budget used_;
  uint32_t empty_turns_ = 0; // in a row, without a call that did something
  bool asked_ = false;       // whether a submission was to be confirmed

  // Of the turn in progress.
  std::vector<tool_call> calls_; // as they came
  size_t next_ = 0;
  std::vector<act> acts_;
  std::optional<act> current_;
  std::string problems_; // with the answer itself, and calls that were left out
  bool as_text_ = false; // results go back as text
  bool submitted_ = false;
  bool lost_ = false;
  uint32_t idle_steps_ = 0; // of an answer without a call
  shaping_ledger shaped_;   // with its calls
  bool ended_ = false;      // the turn is being committed
};

} // namespace kernelmill
