#pragma once

// What an episode does with the answers of its policy. The engine (episode.hpp) asks the policy,
// tries candidates, makes turns durable and ends; a mode says which candidates are tried, and what
// the policy is told of them.

#include <memory>
#include <string>

#include "messages/lineage.capnp.h"
#include "messages/message.hpp"
#include "messages/policy.capnp.h"
#include "messages/verdict.capnp.h"

namespace kernelmill {

class artifact_batch;
struct episode_state;

class episode_mode {
public:
  virtual ~episode_mode() = default;

  /// The first prompt is there, of an episode that has no turn yet.
  virtual void begin() {}

  /// Adds to a request what the mode's conversation has beside texts.
  virtual void add_to(wire::CompletionRequest::Builder) const {}

  /// The policy has answered: `current` has its completion, its text and, where they cannot be
  /// read, a fault of the policy. Ends in begin_trial(), commit_turn() or fail_turn().
  virtual void take_answer() = 0;

  /// The trial that the mode has begun has ended. `verdict` is governance's; null: none was asked
  /// for. Ends as take_answer() does.
  virtual void end_trial(const Message<wire::Verdict>* verdict) = 0;

  /// Adds to the record of the turn in progress. Texts must live until it is committed.
  virtual void add_to(wire::TurnRecord::Builder, artifact_batch&) const {}

  /// Adds to the record of the episode.
  virtual void add_to(wire::EpisodeRecord::Builder, const std::string& /*stop_reason*/) const {}

  /// The turn in progress is durable: what the policy is told of it becomes a part of the
  /// conversation.
  virtual void committed(const std::shared_ptr<const std::string>& feedback) = 0;

  /// The same for a turn that was committed before, by another process.
  virtual void restore(wire::TurnRecord::Reader record) = 0;
};

/// The policy writes whole programs; it is shown what became of its last one and asked for a
/// better one.
std::unique_ptr<episode_mode> make_refine_mode(episode_state& episode);

/// The policy calls tools on a graph of candidates until it submits one.
std::unique_ptr<episode_mode> make_tools_mode(episode_state& episode);

} // namespace kernelmill
