#include "launch/import/foreign_run.hpp"

#include <limits>
#include <set>

#include <fmt/format.h>

#include "messages/base/clock.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"
#include "messages/message.hpp"
#include "storage/artifacts.hpp"
#include "storage/journal/run_journal.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// Where an imported turn stands.
struct turn_place {
  std::string run;
  uint32_t group = 0, member = 0;
};

class foreign_writer {
public:
  foreign_writer(const run_directory& run, store& to, const foreign_origin& origin)
      : run_(run), to_(to), artifacts_(run.artifacts), origin_(origin), now_(seconds_since_1970()) {
  }

  expected<void> write(const std::vector<foreign_group>& groups) {
    KM_TRY(commit({run_record("running")}));
    for (uint32_t g = 0; g < groups.size(); ++g)
      for (uint32_t m = 0; m < groups[g].episodes.size(); ++m)
        KM_TRY(write_episode({run_.name, g, m}, groups[g].episodes[m]));
    return commit({run_record("finished")});
  }

  const artifact_store& artifacts() const { return artifacts_; }

private:
  expected<void> commit(const std::vector<Message<wire::Record>>& batch) {
    auto done = to_.commit(batch);
    KM_TRY(done);
    return {};
  }

  Message<wire::Record> run_record(const char* state) const {
    return build<wire::Record>([&](wire::Record::Builder b) {
      auto x = b.initRun();
      x.setRun(run_.name);
      x.setState(state);
      x.setAt(now_);
    });
  }

  expected<void> write_episode(const turn_place& at, const foreign_episode& x) {
    std::vector<Message<wire::Record>> batch;
    for (const auto& turn : x.turns) {
      expected<void> put;
      batch.push_back(build<wire::Record>([&](wire::Record::Builder b) {
        put = fill_turn(b.initTurn(), at, turn, &turn == &x.turns.back());
      }));
      KM_TRY(put);
    }
    batch.push_back(episode_record(at, x));
    return commit(batch);
  }

  expected<void> put_text(wire::Content::Builder to, const std::string& text) {
    if (text.size() <= inline_content_bytes) {
      to.setInline(kj::StringPtr{text.c_str(), text.size()});
      return {};
    }
    auto sha256 = sha256_hex(text);
    auto ref = to.initArtifact();
    ref.setSha256(sha256);
    ref.setSize(text.size());
    return artifacts_.put(sha256, text);
  }

  static void name(wire::EpisodeRef::Builder to, const turn_place& at, const std::string& task) {
    to.setRun(at.run);
    to.setTask(task);
    to.setGroup(at.group);
    to.setMember(at.member);
  }

  expected<void> fill_turn(wire::TurnRecord::Builder to, const turn_place& at,
                           const foreign_turn& x, bool last) {
    to.setTurnId(turn_id({at.run, x.task, at.group, at.member}, x.number));
    name(to.initEpisode(), at, x.task);
    to.setTurn(x.number);
    if (x.number > 0)
      to.setParentTurnId(turn_id({at.run, x.task, at.group, at.member}, x.number - 1));
    to.setTransition(x.code.empty() ? "none" : x.number == 0 ? "synthesized" : "rewritten");
    auto prompt = to.initPrompt(static_cast<uint32_t>(x.prompt.size()));
    for (uint32_t i = 0; i < x.prompt.size(); ++i) {
      prompt[i].setRole(x.prompt[i].first);
      KM_TRY(put_text(prompt[i].initContent(), x.prompt[i].second));
    }
    KM_TRY(put_text(to.initCompletion().initText(), x.answer));
    to.getCompletion().setModel(x.model);
    if (!x.code.empty()) to.setCandidateSha256(sha256_hex(x.code));
    KM_TRY(put_text(to.initCandidate(), x.code));
    KM_TRY(put_text(to.initFeedback(), x.feedback));
    auto shown = to.initExamples(x.examples);
    for (uint32_t i = 0; i < x.examples; ++i)
      shown.set(i, origin_.system + ":example" + std::to_string(i));
    to.initSeconds().setEvaluate(x.eval_seconds.value_or(0));
    fill_facts(to.initFacts(), x);
    fill_verdict(to.initVerdict(), x);
    to.setTerminal(last);
    if (last) to.setStopReason(x.stop.empty() ? "imported" : x.stop);
    to.setStartedAt(x.at);
    to.setCommittedAt(now_);
    return {};
  }

  // No cases and no timing: nothing was run here.
  static void fill_facts(wire::TurnFacts::Builder to, const foreign_turn& x) {
    to.setTask(x.task);
    to.setVerb(x.verb);
    to.setOperatorFamily(x.operator_family);
    to.setBackend(x.backend);
    to.setContract(x.contract);
    to.setTurn(x.number);
    to.setMaxTurns(x.max_turns);
    to.initParsed().setOk(x.format_ok);
    auto build = to.initBuild();
    build.setCompiled(x.compiled);
    build.setToolchain(x.toolchain);
    if (!x.compiled) build.setLog(x.error_text);
    auto evaluation = to.initEvaluation();
    evaluation.setCorrect(x.correct);
    evaluation.setCaseCount(x.cases_total);
    evaluation.initTiming().setNote("imported: nothing was timed here");
  }

  void fill_verdict(wire::Verdict::Builder to, const foreign_turn& x) const {
    bool accepted = x.correct && !x.cheated;
    to.setOutcome(accepted ? wire::Outcome::ACCEPTED : wire::Outcome::REJECTED);
    to.setCategory(x.cheated      ? "integrity"
                   : accepted     ? "success"
                   : !x.format_ok ? "format_error"
                   : !x.compiled  ? "compile_error"
                                  : "wrong_result");
    to.setReward(x.reward.value_or(unknown));
    to.setUnpaid(!x.reward.has_value());
    auto parts = to.initComponents(static_cast<uint32_t>(x.components.size()));
    for (uint32_t i = 0; i < x.components.size(); ++i) {
      parts[i].setName("imported." + x.components[i].first);
      parts[i].setValue(x.components[i].second);
      parts[i].setWeight(1);
    }
    auto gates = to.initGates(static_cast<uint32_t>(x.gates.size()));
    for (uint32_t i = 0; i < x.gates.size(); ++i) {
      gates[i].setName(x.gates[i].name);
      gates[i].setStatus(x.gates[i].status == "pass"      ? wire::GateStatus::PASS
                         : x.gates[i].status == "fail"    ? wire::GateStatus::FAIL
                         : x.gates[i].status == "blocked" ? wire::GateStatus::BLOCKED
                                                          : wire::GateStatus::NOT_RUN);
      gates[i].setReason(origin_.system + " said so");
    }
    auto mark = to.initFindings(1)[0];
    mark.setRule("imported");
    mark.setSeverity(wire::Severity::INFO);
    mark.setEvidence(evidence_of(x));
  }

  std::string evidence_of(const foreign_turn& x) const {
    auto text = origin_.system + " said: ";
    text += x.reward ? fmt::format("reward {:.6g}", *x.reward) : std::string{"no reward"};
    if (x.speedup) text += fmt::format(", speedup {:.6g}", *x.speedup);
    if (x.runtime_ms && x.baseline_ms)
      text += fmt::format(", {:.6g} ms against {:.6g} ms", *x.runtime_ms, *x.baseline_ms);
    if (x.cases_total > 0) text += fmt::format(", {} of {} cases", x.cases_passed, x.cases_total);
    if (!x.error_text.empty()) text += "; " + x.error_text.substr(0, 400);
    return text + ". Nothing of it was measured here";
  }

  Message<wire::Record> episode_record(const turn_place& at, const foreign_episode& x) const {
    return build<wire::Record>([&](wire::Record::Builder b) {
      auto to = b.initEpisode();
      name(to.initEpisode(), at, x.turns.front().task);
      auto count = static_cast<uint32_t>(x.turns.size());
      to.setTurns(count);
      to.setStopReason(x.turns.back().stop.empty() ? "imported" : x.turns.back().stop);
      auto rewards = to.initRewards(count), returns = to.initReturns(count);
      bool accepted = false;
      uint32_t best = 0;
      for (uint32_t i = 0; i < count; ++i) {
        const auto& turn = x.turns[i];
        rewards.set(i, turn.reward.value_or(unknown));
        returns.set(i, unknown); // how its origin discounted it does not say
        accepted = accepted || (turn.correct && !turn.cheated);
        if (turn.reward.value_or(-1e300) > x.turns[best].reward.value_or(-1e300)) best = i;
      }
      to.setBestTurn(best);
      to.setOutcome(accepted ? wire::Outcome::ACCEPTED : wire::Outcome::REJECTED);
      auto readiness = to.initReadiness();
      readiness.setKind(wire::EpisodeKind::UNUSABLE);
      auto reasons = readiness.initReasons(2);
      reasons.set(0, "imported from " + origin_.system + ": its rewards were not measured here");
      reasons.set(1, origin_.source.empty()
                         ? "the licence of its tasks and answers is unknown"
                         : "its tasks and answers are of " + origin_.source + ", as was said");
      to.setCommittedAt(now_);
    });
  }

  const run_directory& run_;
  store& to_;
  artifact_store artifacts_;
  const foreign_origin& origin_;
  double now_;
};

nlohmann::ordered_json manifest_of(const foreign_origin& origin,
                                   const std::vector<foreign_group>& groups) {
  auto tasks = nlohmann::ordered_json::array();
  std::set<std::string> seen;
  for (const auto& group : groups)
    if (seen.insert(group.task).second) {
      tasks.push_back({{"id", group.task}});
      if (!origin.source.empty()) tasks.back()["source"] = origin.source;
    }
  nlohmann::ordered_json said = {{"system", origin.system},
                                 {"file", origin.file},
                                 {"sha256", origin.sha256},
                                 {"measured_here", false},
                                 {"licence", origin.source.empty() ? "unknown" : origin.source}};
  if (!origin.settings.empty()) said["settings"] = origin.settings;
  return {{"imported", std::move(said)},
          {"tasks", std::move(tasks)},
          {"policy", {{"model", ""}, {"licence", origin.source}}}};
}

} // namespace

expected<foreign_counts> write_foreign_run(const std::string& directory,
                                           const foreign_origin& origin,
                                           const std::vector<foreign_group>& groups) {
  foreign_counts counts;
  counts.groups = groups.size();
  for (const auto& group : groups)
    for (const auto& episode : group.episodes) {
      ++counts.episodes;
      counts.turns += episode.turns.size();
      for (const auto& turn : episode.turns) counts.accepted += turn.correct && !turn.cheated;
    }
  if (counts.turns == 0)
    return configuration_error("bad_import", "failed to import " + origin.file + ": it has no turn",
                               "name a file or folder that " + origin.system + " wrote");
  // The key keeps `resume` from taking it for a run of ours: no configuration has it.
  auto run =
      create_run({directory, {}, {}}, {{"imported", origin.system}}, manifest_of(origin, groups));
  KM_TRY(run);
  store_options options;
  options.directory = run->store;
  auto to = store::open(options);
  KM_TRY(to);
  foreign_writer writer{*run, *to, origin};
  KM_TRY(writer.write(groups));
  auto journal = run_journal::open(*run);
  KM_TRY(journal);
  KM_TRY(journal->catch_up(*to, writer.artifacts(), run->name));
  return counts;
}

} // namespace kernelmill
