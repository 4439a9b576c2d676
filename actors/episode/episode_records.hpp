#pragma once

// What an episode sends and stores, built from its state. Plain functions: the state machine
// stays readable, and each message has one place where it is filled.

#include <deque>
#include <vector>

#include "actors/episode/episode.hpp"
#include "actors/episode/turn_facts.hpp"

namespace kernelmill {

/// Collects texts that are too long for a record; they become artifacts of the store.
class artifact_batch {
public:
  /// Puts `text` into `into`, inline when short.
  void put(wire::Content::Builder into, const std::string& text);

  /// The same of a text that nothing else holds until message() is called.
  void put_copy(wire::Content::Builder into, std::string text);

  /// Puts a text whose hash is known; its bytes go along only when `durable` is false.
  void put(wire::Content::Builder into, const std::string& text, const std::string& sha256,
           bool durable);

  Message<wire::ArtifactBatch> message() const;

private:
  struct entry {
    std::string sha256;
    std::string_view bytes; // lives in the episode's state until the commit is acknowledged
  };
  std::vector<entry> entries_;
  std::deque<std::string> copies_;
};

void set_episode(wire::EpisodeRef::Builder x, const episode_assignment& where);
std::vector<int32_t> values_of(capnp::List<int32_t>::Reader xs);
double wall_seconds(std::chrono::steady_clock::time_point x);
error cancellation();
error commit_fault(const caf::error& why);

Message<wire::CompletionRequest> completion_request(const episode_state& state,
                                                    std::chrono::milliseconds deadline);
/// What cut an answer off whose finish reason is "length": "max_tokens = 4096".
std::string limit_reached(const episode_state& state, wire::CompletionResult::Reader answer);
std::chrono::milliseconds build_deadline(const episode_state& state);
std::chrono::milliseconds evaluate_deadline(const episode_state& state);
candidate_view candidate_of(const episode_state& state); ///< of the turn in progress
Message<wire::EvaluateRequest> evaluation_request(const episode_state& state);
Message<wire::ProfileResult> no_profile(std::string_view why);
Message<wire::ProfileRequest> profile_request(const episode_state& state);
/// Whether a turn is of the share that keeps reports of tools: the same after a resume.
bool keeps_reports(const std::string& turn_id, double share);
Message<wire::TurnFacts> turn_facts(const episode_state& state);
/// Writes the reports of an accepted turn of the share: they are asked for before it is judged.
void set_reports(wire::TurnRecord::Builder x, const episode_state::turn_scratch& current,
                 wire::Verdict::Reader verdict, artifact_batch& artifacts);
Message<wire::Record> turn_record(const episode_state& state, wire::Verdict::Reader verdict,
                                  const std::string& feedback, const std::string& stop_reason,
                                  artifact_batch& artifacts);
Message<wire::Record> episode_record(const episode_state& state, const std::string& reason);

Message<wire::EpisodeOutcome> outcome_message(const episode_state& state,
                                              wire::EpisodeRecord::Reader record);
Message<wire::EpisodeOutcome> departure_message(const episode_state& state, wire::Outcome outcome,
                                                const error& why, const std::string& reason);

/// Restores an episode's state from committed records.
episode_state::turn_digest digest_of(wire::TurnRecord::Reader record);
std::shared_ptr<const prompt_text> prompt_of(wire::TurnRecord::Reader record);
std::shared_ptr<const std::string> text_of(wire::Content::Reader content);
/// The ids that the next turn's prompt continues; empty when ids are missing.
token_thread thread_of(wire::Completion::Reader completion);

} // namespace kernelmill
