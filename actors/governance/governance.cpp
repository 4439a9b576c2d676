#include "actors/governance/governance.hpp"

#include <caf/all.hpp>

#include "actors/snapshots.hpp"

namespace kernelmill {

namespace {

Message<wire::Verdict> judge_and_count(rule_governance_state& state,
                                       const Message<wire::TurnFacts>& facts) {
  auto verdict = judge(*facts.open(), state.config);
  auto view = verdict.open();
  switch (view->getOutcome()) {
    case wire::Outcome::ACCEPTED: ++state.accepted; break;
    case wire::Outcome::OPEN: break; // no verdict was asked for
    case wire::Outcome::REJECTED: ++state.rejected; break;
    case wire::Outcome::INFRASTRUCTURE: ++state.infrastructure; break;
  }
  for (auto finding : view->getFindings())
    if (finding.getSeverity() == wire::Severity::CRITICAL) ++state.critical_findings;
  return verdict;
}

} // namespace

governance_actor::behavior_type
rule_governance(governance_actor::stateful_pointer<rule_governance_state> self,
                governance_config config) {
  self->state.config = std::move(config);
  return {
      [self](atom::status) {
        auto& s = self->state;
        return signed_by(self, snapshot_of("governance", {}, "judging", s.config.preset,
                                           {{"accepted", s.accepted},
                                            {"rejected", s.rejected},
                                            {"infrastructure", s.infrastructure},
                                            {"critical_findings", s.critical_findings}}));
      },
      [self](atom::judge, const envelope&, const Message<wire::TurnFacts>& facts) {
        return judge_and_count(self->state, facts);
      },
  };
}

} // namespace kernelmill
