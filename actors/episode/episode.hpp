#pragma once

// One agent's attempt at one task. An episode asks: the retriever for examples, the policy for a
// completion, the cluster for a build and an evaluation, governance for a verdict, lineage to make
// the turn durable. Other actors call back into it only by answering. A turn counts once lineage
// has acknowledged it. A turn that is cut off before that has not happened, and resume takes it
// again.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/episode/completion_parser.hpp"
#include "actors/episode/episode_mode.hpp"
#include "actors/episode/episode_score.hpp"
#include "actors/episode/prompt.hpp"
#include "actors/episode/prompt_cache.hpp"
#include "actors/episode/unchanged.hpp"
#include "actors/governance/reward.hpp"
#include "actors/policy_client/protocol/token_thread.hpp"
#include "actors/policy_client/protocol/tool_call.hpp"
#include "gpu/task/task.hpp"
#include "messages/actors.hpp"
#include "messages/defaults.hpp"
#include "messages/identity.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

enum class mode_kind : unsigned char { refine, tools };
enum class call_form : unsigned char { native, text };

/// What an episode of mode `tools` may use up, and how it is told of its tools.
struct tool_settings {
  call_form calls = call_form::native;
  uint32_t steps = defaults::tool_steps;
  double gpu_seconds = defaults::tool_gpu_seconds;
  uint32_t hidden_evaluations = defaults::tool_hidden_evaluations;
  size_t observation_bytes = defaults::tool_observation_bytes;
};

/// What all episodes of a run share; immutable once the run has started.
struct episode_settings {
  mode_kind mode = mode_kind::refine;
  tool_settings tools;
  reward_config rewards;        ///< governance's own, for what no trial decides
  uint64_t run_seed = 1;        ///< of what the run draws
  int32_t priority = 0;         ///< among runs that share nodes and policy servers
  uint32_t required_layers = 0; ///< layer_bits() of the sandbox's, where jobs may go
  uint32_t max_turns = defaults::max_turns;
  double gamma = defaults::gamma;
  bool patches = false; ///< answers may be changes to the last kernel
  bool stop_on_correct = false;
  double stop_speedup = 0; ///< 0: speed never ends an episode
  size_t feedback_bytes = defaults::feedback_bytes;
  uint32_t example_count = 0; ///< of retrieved examples in the first prompt
  bool profile_accepted = false;
  profile_words profile_feedback = profile_words::card;
  double report_share = 0; ///< of the accepted turns, that keep reports of tools
  bool resume = false;     ///< look for committed turns first
  bool drop = false;       ///< only to close an episode that was lost, with the turns that it has
  std::string backend = "cpu";
  std::chrono::milliseconds episode_deadline{defaults::episode_deadline_ms};
  std::chrono::milliseconds policy_deadline{defaults::policy_timeout_ms};
  std::chrono::milliseconds build_deadline{defaults::build_deadline_ms};
  std::chrono::milliseconds evaluate_deadline{defaults::evaluate_deadline_ms};
  std::chrono::milliseconds torch_build_deadline{defaults::torch_build_deadline_ms};
  std::chrono::milliseconds torch_evaluate_deadline{defaults::torch_evaluate_deadline_ms};
  std::string sanitize;                        ///< "on_accept" or "always"; empty: never
  std::chrono::milliseconds sanitize_limit{0}; ///< comes on top of evaluate_deadline
  /// For queueing in the cluster.
  std::chrono::milliseconds lease_slack{defaults::turn_deadline_ms};
  std::chrono::milliseconds commit_deadline = std::chrono::minutes{2};
  Message<wire::CompletionRequest> sampling;  ///< its `sampling` is copied into every request
  Message<wire::TimingPolicy> timing;         ///< is copied into every request
  Message<wire::TimingPolicy> coarse_timing;  ///< of tool calls that decide no reward
  std::optional<std::string> evaluation_seed; ///< replay: makes inputs a function of the turn
};

struct episode_services {
  policy_client_actor policy;
  retriever_actor retriever;
  compiler_actor compiler;
  gpu_runner_actor runner;
  profiler_actor profiler;
  governance_actor governance;
  lineage_actor lineage;
  search_actor search; ///< null: the run is none
  std::shared_ptr<prompt_cache> prompts;
  logger log;
};

struct episode_assignment {
  std::shared_ptr<const std::string> run;
  std::shared_ptr<const task> what;
  uint32_t group = 0;
  uint32_t member = 0;
  uint64_t ordinal = 0; ///< within the plan
};

enum class episode_phase : unsigned char {
  admitted,
  recalling, // reads its committed turns
  retrieving,
  thinking, // the policy has the word
  building,
  evaluating,
  profiling,
  judging,
  committing,
  closing, // commits the episode's own record
  ended,
};

const char* to_string(episode_phase x) noexcept;

enum class chat_role : unsigned char { user, assistant, tool };

/// One message of a conversation.
struct chat_part {
  chat_role role = chat_role::user;
  std::shared_ptr<const std::string> text;
  std::vector<tool_call> calls; ///< of an assistant
  std::string call_id;          ///< of a tool: what it answers
};

/// How far one candidate is tried.
struct trial_plan {
  bool evaluate = true; ///< else no verdict is asked for when it is built
  bool profile = false; ///< where the evaluation leaves nothing to reject it for
  bool visible_only = false;
  bool timed = true;
  bool coarse = false;  ///< settings.coarse_timing in place of settings.timing
  std::string sanitize; ///< as episode_settings has it
  bool reports = false; ///< tools leave what they wrote
  uint32_t number = 0;  ///< of the trial within its turn
};

struct episode_state {
  using clock = std::chrono::steady_clock;

  explicit episode_state(episode_actor::pointer owner) : self(owner) {
    // nop
  }

  // -- the steps, in the order of a turn -----------------------------------------------------

  void open(); // not `begin`: CAF takes a state that has one for a container
  void recall();
  void restore(wire::EpisodeHistory::Reader history);
  void retrieve(uint32_t count);
  void open_with(const Message<wire::RetrieveResult>& found);
  void set_out(const Message<wire::RetrieveResult>& found); ///< of a search
  void begin_with(std::shared_ptr<const prompt_text> prompt);
  void ask_policy();
  void take_completion(const Message<wire::CompletionResult>& result);
  void begin_trial(trial_plan plan); ///< of the candidate in `current`
  void ask_build();
  void ask_evaluation();
  void ask_profile();
  void ask_verdict();
  void commit_turn(const Message<wire::Verdict>& verdict, std::string feedback,
                   std::string stop_reason);
  void after_commit();
  void end_unsampled(const char* reason);
  void close(std::string reason);
  void leave(wire::Outcome outcome, error why, std::string reason = {});

  // -- helpers -------------------------------------------------------------------------------

  void enter(episode_phase next);
  void fail_turn(error why);
  bool over_deadline() const;
  std::chrono::milliseconds within_deadline(std::chrono::milliseconds wanted) const;
  envelope make_envelope() const;
  Message<wire::ReadQuery> own_records() const;
  episode_id id() const;
  void tell(log_level level, const std::string& what) const;
  void tell_verdict(wire::Verdict::Reader verdict) const;
  double seconds_since(clock::time_point start) const;
  clock::time_point now() const;
  Message<wire::Snapshot> snapshot() const;
  bool waits_for_answer() const;
  double best_reward() const;
  double best_speedup_low() const;
  trial_plan full_trial() const; ///< of what decides a reward

  using loss_handler = std::function<void(const caf::error&)>;

  /// Sends a request. Calls `on_answer` or, when its deadline passes or its receiver is gone,
  /// `on_loss`; never both, and neither once the episode has moved on.
  template <class Answer, class Handle, class F, class... Ts>
  void ask(const Handle& dest, std::chrono::milliseconds timeout, loss_handler on_loss, F on_answer,
           const Ts&... request);

  void give_up_waiting(const caf::error& why);
  void look_at_clock();
  void ask_about_line();
  bool waits_for_work() const; // of a compiler, a GPU or a profiler
  loss_handler turn_lost_to(const char* whom);
  loss_handler commit_lost();

  // -- member variables ----------------------------------------------------------------------

  /// Facts of the turn in progress; gone when it is committed. Of several trials in a turn the last
  /// one's.
  struct turn_scratch {
    clock::time_point started;
    clock::time_point stage_started;
    double started_at = 0;
    Message<wire::CompletionResult> completion;
    std::shared_ptr<const std::string> text;
    trial_plan plan;
    parsed_completion parsed;
    std::string candidate_sha256;
    Message<wire::BuildResult> build;
    Message<wire::EvaluateRequest> evaluation_request;
    Message<wire::EvaluateResult> evaluation;
    Message<wire::ProfileResult> profile;
    Message<wire::TurnFacts> facts;
    error fault{fault_class::none, {}, {}, {}};

    void forget_trial() {
      parsed = {};
      candidate_sha256.clear();
      build = {};
      evaluation = {};
      profile = {};
      facts = {};
    }

    struct {
      double retrieve = 0, policy = 0, build = 0, evaluate = 0, profile = 0, judge = 0;
    } seconds;
  };

  /// What the closed turns leave behind for the episode's own record.
  struct turn_digest {
    std::string candidate_sha256;
    double reward = 0;
    double speedup_low = 0;
    bool accepted = false;
    bool infrastructure = false;
    bool paid = false;
    std::string language; ///< of the answer's fence
    uint32_t length = 0;  ///< of the completion, in bytes
    readiness_evidence evidence;
  };

  episode_actor::pointer self;
  std::shared_ptr<const episode_settings> settings;
  std::shared_ptr<const episode_services> services;
  episode_assignment where;
  uint64_t run_hash = 0; ///< of its name, for envelopes
  run_actor run;
  episode_phase phase = episode_phase::admitted;
  clock::time_point phase_since;
  clock::time_point started;
  bool cancelled = false;
  clock::time_point cancelled_at;
  bool dropped = false; // its group has its quorum
  uint32_t turn = 0;
  std::shared_ptr<const prompt_text> first_prompt;
  std::vector<std::string> example_ids;
  std::vector<std::string> parents; // of a search: the episodes that the first prompt shows
  std::string base;                 // of a search: the program that the first answer may change
  std::shared_ptr<const shown_code> shown; // where tools showed more than the first prompt
  std::vector<chat_part> conversation;     // after the first prompt
  std::unique_ptr<episode_mode> mode;
  token_thread thread; // of the last committed turn; empty: its ids are not known
  std::vector<turn_digest> turns;
  std::unique_ptr<turn_scratch> current;
  double retrieve_seconds = 0;
  std::map<std::string, double> slot_seconds; // parts of evaluations
  uint32_t question = 0;                      // number of the request that is being waited for
  clock::time_point answer_due;
  bool line_asked = false; // whether a worker serves the queue in which the job waits
  loss_handler on_loss;
  struct {
    double policy = 0, build = 0, evaluate = 0, profile = 0, judge = 0, commit = 0;
  } total;

  static inline const char* name = "agent-episode";
};

/// An episode of the mode that its settings name.
episode_actor::behavior_type agent_episode(episode_actor::stateful_pointer<episode_state> self,
                                           std::shared_ptr<const episode_settings> settings,
                                           std::shared_ptr<const episode_services> services,
                                           episode_assignment where, run_actor run);

} // namespace kernelmill
