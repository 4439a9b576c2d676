// What an episode leaves behind for its run, and for the episode that resumes it.

#include "actors/episode/episode_records.hpp"
#include "actors/governance/judge.hpp"
#include "messages/base/digest.hpp"
#include "messages/fault.hpp"
#include "messages/judged.hpp"

namespace kernelmill {

// -- to the run -----------------------------------------------------------------------------------

namespace {

void set_stage_seconds(wire::EpisodeOutcome::Builder x, const episode_state& state) {
  const std::pair<const char*, double> stages[] = {
      {"retrieve", state.retrieve_seconds}, {"policy", state.total.policy},
      {"build", state.total.build},         {"evaluate", state.total.evaluate},
      {"profile", state.total.profile},     {"judge", state.total.judge},
      {"commit", state.total.commit},
  };
  auto list = x.initSeconds(static_cast<unsigned>(std::size(stages) + state.slot_seconds.size()));
  unsigned next = 0;
  auto add = [&](const std::string& name, double seconds) {
    list[next].setName(name);
    list[next].setValue(seconds);
    list[next++].setUnit("s");
  };
  for (const auto& [name, seconds] : stages) add(name, seconds);
  for (const auto& [name, seconds] : state.slot_seconds) add("slot." + name, seconds);
}

} // namespace

Message<wire::EpisodeOutcome> outcome_message(const episode_state& state,
                                              wire::EpisodeRecord::Reader record) {
  return build<wire::EpisodeOutcome>([&](wire::EpisodeOutcome::Builder x) {
    set_episode(x.initEpisode(), state.where);
    x.setTurns(record.getTurns());
    x.setOutcome(record.getOutcome());
    auto returns = record.getReturns();
    if (returns.size() > 0) x.setReturn(returns[0]);
    auto rewards = record.getRewards();
    if (rewards.size() > 0) x.setBestReward(rewards[record.getBestTurn()]);
    x.setBestSpeedup(record.getBestSpeedup());
    x.setStopReason(record.getStopReason());
    x.setClosed(true);
    x.setReadiness(record.getReadiness().getKind());
    x.setNotTimed(record.getNotTimed());
    auto sketches = x.initSketches(static_cast<unsigned>(state.turns.size()));
    for (unsigned i = 0; i < sketches.size(); ++i) {
      sketches[i].setLanguage(state.turns[i].language);
      sketches[i].setLength(state.turns[i].length);
      sketches[i].setLost(state.turns[i].infrastructure);
    }
    set_stage_seconds(x, state);
  });
}

Message<wire::EpisodeOutcome> departure_message(const episode_state& state, wire::Outcome outcome,
                                                const error& why, const std::string& reason) {
  return build<wire::EpisodeOutcome>([&](wire::EpisodeOutcome::Builder x) {
    set_episode(x.initEpisode(), state.where);
    x.setTurns(static_cast<uint32_t>(state.turns.size()));
    x.setOutcome(outcome);
    x.setStopReason(reason);
    set_fault(x.initFault(), why);
    set_stage_seconds(x, state);
  });
}

// -- back from records ---------------------------------------------------------------------------

episode_state::turn_digest digest_of(wire::TurnRecord::Reader record) {
  episode_state::turn_digest result;
  auto verdict = record.getVerdict();
  result.candidate_sha256 = record.getCandidateSha256().cStr();
  result.reward = verdict.getReward();
  result.accepted = verdict.getOutcome() == wire::Outcome::ACCEPTED;
  result.infrastructure = verdict.getOutcome() == wire::Outcome::INFRASTRUCTURE;
  result.paid = is_paid(verdict);
  result.speedup_low = record.getFacts().getEvaluation().getTiming().getSpeedup().getLow();
  result.language = record.getFacts().getParsed().getLanguage().cStr();
  auto text = record.getCompletion().getText();
  result.length = static_cast<uint32_t>(text.isArtifact() ? text.getArtifact().getSize()
                                                          : text.getInline().size());
  result.evidence = evidence_of(record);
  return result;
}

std::shared_ptr<const std::string> text_of(wire::Content::Reader content) {
  auto text = content.isInline() ? content.getInline() : capnp::Text::Reader("");
  return std::make_shared<const std::string>(text.begin(), text.size());
}

token_thread thread_of(wire::Completion::Reader completion) {
  return keep_thread(values_of(completion.getPromptTokenIds()),
                     values_of(completion.getTokenIds()));
}

std::shared_ptr<const prompt_text> prompt_of(wire::TurnRecord::Reader record) {
  auto result = std::make_shared<prompt_text>();
  for (auto part : record.getPrompt()) {
    auto text = text_of(part.getContent());
    (part.getRole() == "system" ? result->system : result->user) = *text;
  }
  result->system_sha256 = sha256_hex(result->system);
  result->user_sha256 = sha256_hex(result->user);
  result->durable = true;
  return result;
}

} // namespace kernelmill
