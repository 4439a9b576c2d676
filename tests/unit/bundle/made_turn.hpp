#pragma once

// A turn whose tools left something, and its documents by path.

#include <map>
#include <string>

#include "launch/analysis/bundle/documents.hpp"
#include "messages/message.hpp"

namespace kernelmill::bundle_documents_test {

using bundles::json;

struct turn_with {
  bool measured = true;
  int pairs = 0;
  bool memory = false;
  std::vector<std::pair<std::string, std::string>> reports = {}; ///< tool and name
};

inline Message<wire::Record> made_turn(const turn_with& x) {
  return build<wire::Record>([&](wire::Record::Builder out) {
    auto turn = out.initTurn();
    turn.initEpisode().setRun("demo");
    turn.getEpisode().setTask("native/row_sum");
    turn.setTurnId(std::string(64, 'a'));
    turn.initCompletion().initText().setInline("");
    turn.initCandidate().setInline("int x;");
    turn.setCandidateSha256(std::string(64, 'b'));
    turn.initFeedback().setInline("");
    auto evaluation = turn.initFacts().initEvaluation();
    auto timing = evaluation.initTiming();
    timing.setMeasured(x.measured);
    timing.setClock("outside");
    auto pairs = timing.initPairs(static_cast<unsigned>(x.pairs));
    for (unsigned i = 0; i < pairs.size(); ++i) {
      pairs[i].setCandidateMs(0.1F);
      pairs[i].setReferenceMs(0.25F);
    }
    if (x.memory) {
      auto memory = evaluation.initMemory();
      auto finding = memory.initFindings(1)[0];
      finding.setRule("memory_race");
      finding.setSeverity(wire::Severity::WARNING);
      finding.setEvidence("racecheck in f: a race");
      memory.initProblems(1).set(0, "memcheck: no time is left");
    }
    auto reports = turn.initReports(static_cast<unsigned>(x.reports.size()));
    for (unsigned i = 0; i < reports.size(); ++i) {
      reports[i].setTool(x.reports[i].first);
      reports[i].setName(x.reports[i].second);
      reports[i].initText().setInline("report " + std::to_string(i));
    }
  });
}

/// All files of the turn's folder.
inline std::map<std::string, std::string> files_of(const Message<wire::Record>& record,
                                                   const bundles::tool_words& tools = {}) {
  std::map<std::string, std::string> result;
  auto opened = record.open();
  auto material = bundles::material_of(opened->getTurn(), artifact_store{{}});
  if (!material) return result;
  material->tools = tools;
  (void)bundles::put_turn(*material, {"demo", json::object(), json::object(), "0.1.0"}, "",
                          [&](const std::string& path, const std::string& bytes) {
                            result[path] = bytes;
                            return expected<void>{};
                          });
  return result;
}

inline json document_in(const std::map<std::string, std::string>& files, const std::string& path) {
  auto found = files.find(path);
  return found == files.end() ? json{} : json::parse(found->second, nullptr, false);
}

} // namespace kernelmill::bundle_documents_test
