#pragma once

#include "actors/governance/judge.hpp"
#include "messages/actors.hpp"

namespace kernelmill {

struct rule_governance_state {
  governance_config config;
  uint64_t accepted = 0, rejected = 0, infrastructure = 0, critical_findings = 0;

  static inline const char* name = "rule-governance";
};

/// Judges by the plain functions of judge.hpp, and counts.
governance_actor::behavior_type
rule_governance(governance_actor::stateful_pointer<rule_governance_state> self,
                governance_config config);

} // namespace kernelmill
