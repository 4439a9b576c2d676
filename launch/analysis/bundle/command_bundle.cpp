#include "launch/analysis/bundle/command_bundle.hpp"

namespace kernelmill::bundles {

namespace {

Message<wire::Record> record_of(const command_material& x) {
  return build<wire::Record>([&](wire::Record::Builder out) {
    auto facts = x.facts.open();
    auto turn = out.initTurn();
    episode_id place{x.command, facts->getTask().cStr(), 0, 0};
    auto e = turn.initEpisode();
    e.setRun(place.run);
    e.setTask(place.task);
    turn.setTurnId(turn_id(place, 0));
    turn.setTransition(x.source.empty() ? "none" : "synthesized");
    turn.setCandidateSha256(facts->getCandidateSha256());
    turn.initCompletion().initText().setInline("");
    turn.initCandidate().setInline(x.source);
    turn.initFeedback().setInline("");
    turn.setFacts(*facts);
    turn.setVerdict(*x.verdict.open());
    auto seconds = turn.initSeconds();
    seconds.setBuild(facts->getBuild().getSeconds());
    seconds.setEvaluate(facts->getEvaluation().getSeconds());
    seconds.setProfile(facts->getProfile().getSeconds());
    turn.setTerminal(true);
    turn.setStopReason("completed");
    turn.setStartedAt(x.started_at);
    turn.setCommittedAt(x.ended_at);
  });
}

} // namespace

expected<made_bundle> leave_command_bundle(const command_material& x, const std::string& folder) {
  auto to = bundle_writer::create_folder(folder);
  KM_TRY(to);
  auto record = record_of(x);
  auto opened = record.open();
  auto material = material_of(opened->getTurn(), artifact_store{{}}); // all texts are inline
  KM_TRY(material);
  material->task_prompt = x.task_prompt;
  material->tools = x.tools;
  material->reports = x.reports;
  KM_TRY(put_turn(*material, x.of, "", [&](const std::string& path, const std::string& bytes) {
    return to->add(path, bytes);
  }));
  auto what = run_id(opened->getTurn());
  made_bundle result{what, {}, to->files().size(), to->bytes(), 0, 1};
  auto digest = to->finish({{"schema_version", bundle_schema_version},
                            {"kind", "kernelmill bundle"},
                            {"form", "command"},
                            {"of", what},
                            {"run", x.command},
                            {"made_by", "kernelmill " + x.of.program},
                            {"signed", false},
                            {"episodes", 0},
                            {"turns", 1}},
                           nullptr);
  KM_TRY(digest);
  result.list_sha256 = std::move(*digest);
  return result;
}

} // namespace kernelmill::bundles
