#pragma once

#include <filesystem>
#include <string>

#include <unistd.h>

#include "messages/base/digest.hpp"
#include "messages/identity.hpp"
#include "messages/lineage.capnp.h"
#include "messages/message.hpp"

namespace kernelmill::fixtures {

/// A folder of its own, gone with the test.
class temporary_folder {
public:
  temporary_folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "kernelmill-storage-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

struct turn_options {
  std::string run = "demo";
  std::string task = "native/row_sum";
  std::string text = "<KERNEL>int x;</KERNEL>";
  std::string prompt = "make it fast";
  std::string feedback = "compiled: yes\nspeedup 1.25x";
  double reward = 0.3;
  double speedup = 1.25;
  double started = 1000;
  bool compiled = true;
  bool correct = true;
  wire::NotTimed not_timed = wire::NotTimed::NO;
  wire::Outcome outcome = wire::Outcome::ACCEPTED;
  bool terminal = false;
  std::vector<std::string> examples = {}; ///< ids
};

inline void fill_verdict(wire::TurnRecord::Builder turn, const turn_options& with) {
  auto facts = turn.initFacts();
  facts.setTask(with.task);
  facts.setBackend("cpu");
  facts.initParsed().setOk(true);
  facts.initBuild().setCompiled(with.compiled);
  auto evaluation = facts.initEvaluation();
  evaluation.setCorrect(with.correct);
  evaluation.setSeconds(with.started / 1e4);
  auto spans = evaluation.initSpans(2);
  spans[0].setName("task");
  spans[1].setName("correctness");
  for (auto span : spans) span.setValue(with.started / 1e5);
  auto conditions = evaluation.initConditions(with.started > 1500 ? 2 : 1); // one GPU says more
  for (auto condition : conditions) condition.setName("sm_clock");
  conditions[0].setValue(with.started);
  auto timing = evaluation.initTiming();
  timing.setMeasured(true);
  timing.setCandidateMs(2.0 / with.speedup);
  timing.initSpeedup().setLow(with.speedup);
  if (with.not_timed != wire::NotTimed::NO) {
    timing = evaluation.initTiming();
    timing.setNotTimed(with.not_timed);
    timing.setNote("the machine is too busy");
  }
  auto verdict = turn.initVerdict();
  verdict.setOutcome(with.outcome);
  verdict.setReward(with.reward);
  verdict.setCategory(with.outcome == wire::Outcome::ACCEPTED ? "success" : "wrong_result");
  if (with.not_timed != wire::NotTimed::NO) verdict.setCategory("not_timed");
  verdict.setUnpaid(with.not_timed == wire::NotTimed::MACHINE);
  auto components = verdict.initComponents(2);
  components[0].setName("correct");
  components[0].setValue(1);
  components[1].setName("speed");
  components[1].setValue(with.speedup - 1);
}

inline Message<wire::Record> make_turn(uint32_t group, uint32_t member, uint32_t number,
                                       const turn_options& with = {}) {
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto turn = record.initTurn();
    episode_id id{with.run, with.task, group, member};
    turn.setTurnId(turn_id(id, number));
    auto episode = turn.initEpisode();
    episode.setRun(with.run);
    episode.setTask(with.task);
    episode.setGroup(group);
    episode.setMember(member);
    turn.setTurn(number);
    auto prompt = turn.initPrompt(1);
    prompt[0].setRole("user");
    prompt[0].initContent().setInline(with.prompt);
    auto completion = turn.initCompletion();
    completion.initText().setInline(with.text);
    completion.setModel("scripted");
    turn.initCandidate().setInline("int x;");
    fill_verdict(turn, with);
    turn.initFeedback().setInline(with.feedback);
    turn.setTerminal(with.terminal);
    auto examples = turn.initExamples(static_cast<unsigned>(with.examples.size()));
    for (unsigned i = 0; i < examples.size(); ++i) examples.set(i, with.examples[i]);
    turn.setStartedAt(with.started);
    turn.setCommittedAt(with.started + 1);
  });
}

/// A turn of mode `tools`: a look, and a patch that makes the candidate `made` of `parent`. Long
/// texts are inline; the caller makes artifacts of them.
inline Message<wire::Record> make_tool_turn(uint32_t group, uint32_t member, uint32_t number,
                                            const std::string& made, const std::string& parent,
                                            const std::string& source, turn_options with = {}) {
  with.outcome = wire::Outcome::OPEN;
  auto plain = make_turn(group, member, number, with);
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*plain.open());
  auto turn = builder.getRoot<wire::Record>().getTurn();
  turn.initCandidate();
  turn.getVerdict().setCategory("open");
  auto calls = turn.initCalls(2);
  calls[0].setId("call-1");
  calls[0].setTool("inspect");
  calls[0].initArguments().setInline("{\"section\":\"build\"}");
  calls[0].initObservation().setInline("nothing was built");
  calls[0].setStatus("ok");
  calls[0].setTransition("inspect_only");
  calls[0].setInput(parent);
  calls[0].setOutput(parent);
  calls[0].setSteps(1);
  calls[1].setId("call-2");
  calls[1].setTool("patch_candidate");
  calls[1].initArguments().setInline("{\"patch\":\"...\"}");
  calls[1].initObservation().setInline(made + " is active\nnext: build");
  calls[1].setStatus("ok");
  calls[1].setTransition("patch_applied");
  calls[1].setInput(parent);
  calls[1].setOutput(made);
  calls[1].setSteps(2);
  calls[1].setGpuSeconds(0.5);
  auto node = turn.initCandidates(1)[0];
  node.setId(made);
  node.setParent(parent);
  node.setSha256(sha256_hex(source));
  node.initSource().setInline(source);
  node.setRole("patched");
  node.setOrigin("patch");
  node.setDepth(parent.empty() ? 0 : 1);
  node.initPatch().setInline("--- a/x\n+++ b/x\n");
  node.setPatchKind("perf_transform");
  node.setSummary("wider loads");
  auto mark = turn.initMarks(1)[0];
  mark.setId(made);
  mark.setStatus("build_passed");
  auto strategy = turn.initStrategies(1)[0];
  strategy.setName("vectorize");
  strategy.setState("exploring");
  strategy.setNote("float4");
  turn.setActive(made);
  return Message<wire::Record>{builder};
}

inline Message<wire::Record>
make_episode(uint32_t group, uint32_t member, const std::vector<double>& rewards,
             const turn_options& with = {},
             wire::EpisodeKind kind = wire::EpisodeKind::USABLE_POSITIVE_SFT) {
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto episode = record.initEpisode();
    auto where = episode.initEpisode();
    where.setRun(with.run);
    where.setTask(with.task);
    where.setGroup(group);
    where.setMember(member);
    episode.setTurns(static_cast<uint32_t>(rewards.size()));
    episode.setStopReason("max_turns");
    episode.setOutcome(with.outcome);
    auto kept = episode.initRewards(static_cast<uint32_t>(rewards.size()));
    auto returns = episode.initReturns(static_cast<uint32_t>(rewards.size()));
    uint32_t best = 0;
    for (uint32_t i = 0; i < rewards.size(); ++i) {
      kept.set(i, rewards[i]);
      returns.set(i, rewards[i]);
      if (rewards[i] > rewards[best]) best = i;
    }
    episode.setBestTurn(best);
    episode.setBestSpeedup(with.speedup);
    episode.initReadiness().setKind(kind);
    episode.setSeconds(with.started / 1e3);
    episode.setCommittedAt(with.started + 1);
  });
}

inline Message<wire::Record> make_group(uint32_t group, const std::vector<double>& advantages,
                                        const turn_options& with = {}) {
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto x = record.initGroup();
    x.setRun(with.run);
    x.setTask(with.task);
    x.setGroup(group);
    auto values = x.initAdvantages(static_cast<uint32_t>(advantages.size()));
    for (uint32_t i = 0; i < advantages.size(); ++i) values.set(i, advantages[i]);
    x.setMean(with.reward);
    x.setCommittedAt(with.started + 1);
  });
}

inline Message<wire::Record> make_run(const std::string& run, const std::string& state,
                                      uint32_t opening = 0) {
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto x = record.initRun();
    x.setRun(run);
    x.setState(state);
    x.setOpening(opening);
  });
}

/// Names a record in the order of a scan: "g0.e1.t2", "g0.e1", "g0", "running".
inline std::string name_of(wire::Record::Reader record) {
  auto episode_name = [](wire::EpisodeRef::Reader x) {
    return "g" + std::to_string(x.getGroup()) + ".e" + std::to_string(x.getMember());
  };
  switch (record.which()) {
    case wire::Record::TURN:
      return episode_name(record.getTurn().getEpisode()) + ".t" +
             std::to_string(record.getTurn().getTurn());
    case wire::Record::EPISODE: return episode_name(record.getEpisode().getEpisode());
    case wire::Record::GROUP: return "g" + std::to_string(record.getGroup().getGroup());
    case wire::Record::RUN: return record.getRun().getState().cStr();
  }
  return "?";
}

} // namespace kernelmill::fixtures
