#include "actors/governance/calls_verdict.hpp"

#include <string_view>

#include "messages/judged.hpp"

namespace kernelmill {

namespace {

constexpr std::string_view integrity_part = "integrity";

void set_part(wire::RewardComponent::Builder out, const reward_part& x) {
  out.setName(x.name);
  out.setValue(x.value);
  out.setWeight(x.weight);
}

// The reward is the sum of its parts.
void set_reward(wire::Verdict::Builder out) {
  double total = 0;
  for (auto x : out.getComponents().asReader()) total += x.getValue() * x.getWeight();
  out.setReward(total);
}

} // namespace

void add_critical(calls_effect& to, wire::Verdict::Reader measured) {
  for (auto found : measured.getFindings())
    if (found.getSeverity() == wire::Severity::CRITICAL) to.critical.push_back(found);
}

Message<wire::Verdict> open_verdict(const calls_effect& calls, const reward_config& config) {
  auto parts = calls.shaping;
  if (!calls.critical.empty() && config.integrity_penalty != 0)
    parts.push_back({integrity_part.data(), 1, -config.integrity_penalty});
  return build<wire::Verdict>([&](wire::Verdict::Builder out) {
    out.setOutcome(wire::Outcome::OPEN);
    out.setCategory("open");
    auto findings = out.initFindings(static_cast<unsigned>(calls.critical.size()));
    for (unsigned i = 0; i < findings.size(); ++i) findings.setWithCaveats(i, calls.critical[i]);
    if (parts.empty()) return;
    auto list = out.initComponents(static_cast<unsigned>(parts.size()));
    for (unsigned i = 0; i < list.size(); ++i) set_part(list[i], parts[i]);
    set_reward(out);
  });
}

Message<wire::Verdict> with_calls(const Message<wire::Verdict>& judged, const calls_effect& calls,
                                  const reward_config& config) {
  auto before = judged.open();
  if (!is_paid(*before) || (calls.critical.empty() && calls.shaping.empty())) return judged;
  auto known = before->getComponents();
  auto parts = calls.shaping;
  bool listed = false; // a verdict lists the penalty even where it is not due
  for (auto x : known) listed |= x.getName() == integrity_part.data();
  if (!calls.critical.empty() && !listed)
    parts.push_back({integrity_part.data(), 1, -config.integrity_penalty});
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*before);
  auto out = builder.getRoot<wire::Verdict>();
  auto list = out.initComponents(static_cast<unsigned>(known.size() + parts.size()));
  for (unsigned i = 0; i < known.size(); ++i) {
    list.setWithCaveats(i, known[i]);
    if (!calls.critical.empty() && known[i].getName() == integrity_part.data()) list[i].setValue(1);
  }
  for (unsigned i = 0; i < parts.size(); ++i) set_part(list[known.size() + i], parts[i]);
  set_reward(out);
  auto found = before->getFindings();
  auto findings = out.initFindings(static_cast<unsigned>(found.size() + calls.critical.size()));
  for (unsigned i = 0; i < found.size(); ++i) findings.setWithCaveats(i, found[i]);
  for (unsigned i = 0; i < calls.critical.size(); ++i)
    findings.setWithCaveats(found.size() + i, calls.critical[i]);
  return Message<wire::Verdict>{builder};
}

} // namespace kernelmill
