#include "launch/analysis/simulate/measured.hpp"

#include "storage/lineage/group_reader.hpp"

namespace kernelmill::simulating {

namespace {

double share(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 1;
}

void take_turn(measured_run& into, wire::TurnRecord::Reader turn) {
  if (turn.getVerdict().getOutcome() == wire::Outcome::INFRASTRUCTURE) return;
  auto seconds = turn.getSeconds();
  auto facts = turn.getFacts();
  ++into.answers;
  into.policy.push_back(seconds.getPolicy());
  if (!(seconds.getBuild() > 0)) return; // it was never asked for
  auto built = facts.getBuild();
  ++into.builds;
  if (built.getCached())
    ++into.cached;
  else
    into.build.push_back(built.getSeconds());
  if (!built.getCompiled()) return;
  ++into.compiled;
  into.evaluate.push_back(facts.getEvaluation().getSeconds() + facts.getProfile().getSeconds());
}

} // namespace

double measured_run::build_share() const {
  return share(builds, answers);
}

double measured_run::cached_share() const {
  return builds > 0 ? share(cached, builds) : 0;
}

double measured_run::compiled_share() const {
  return share(compiled, builds);
}

expected<measured_run> measure(const store& from, const std::string& run) {
  measured_run result;
  auto done = for_each_group(from, run, [&](const stored_group& group) -> expected<void> {
    for (const auto& episode : group.episodes) {
      for (const auto& record : episode.turns) {
        auto opened = record.open();
        take_turn(result, opened->getTurn());
      }
      if (episode.end) result.turns.push_back(static_cast<uint32_t>(episode.turns.size()));
    }
    return {};
  });
  KM_TRY(done);
  return result;
}

} // namespace kernelmill::simulating
