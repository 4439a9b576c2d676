#pragma once

// INTERNAL to gpu/profiler: how sure a rule is by its metrics. Each returns the confidence, 0 for
// "no", and adds the numbers that it rests on.

#include <string>
#include <vector>

#include "gpu/profiler/cards.hpp"

namespace kernelmill::weigh {

using evidence_list = std::vector<std::string>;

double memory(const declared_metrics& x, evidence_list& evidence);
double compute(const declared_metrics& x, evidence_list& evidence);
double latency(const declared_metrics& x, evidence_list& evidence);
double occupancy(const declared_metrics& x, evidence_list& evidence);
double launches(const declared_metrics& x, evidence_list& evidence);
double tail(const declared_metrics& x, evidence_list& evidence);
double uncoalesced(const declared_metrics& x, evidence_list& evidence);
double bank_conflicts(const declared_metrics& x, evidence_list& evidence);
double spills(const declared_metrics& x, evidence_list& evidence);
double atomics(const declared_metrics& x, evidence_list& evidence);
double divergence(const declared_metrics& x, evidence_list& evidence);
double fp64(const declared_metrics& x, evidence_list& evidence);
double tensor(const declared_metrics& x, evidence_list& evidence);
double overlap(const declared_metrics& x, evidence_list& evidence);

} // namespace kernelmill::weigh
