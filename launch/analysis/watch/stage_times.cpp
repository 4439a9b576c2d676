#include "launch/analysis/watch/stage_times.hpp"

#include <algorithm>

#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

namespace {

struct work_seconds {
  double build = 0, evaluate = 0, profile = 0;

  void add(wire::TurnFacts::Reader x) {
    if (!x.getBuild().getCached()) build += x.getBuild().getSeconds();
    evaluate += x.getEvaluation().getSeconds();
    profile += x.getProfile().getSeconds();
  }
};

} // namespace

std::array<stage_time, 6> stage_times(wire::TurnRecord::Reader turn) {
  work_seconds work;
  auto calls = turn.getCalls();
  if (calls.size() == 0) work.add(turn.getFacts());
  for (auto call : calls)
    work.add(call.getFacts()); // of mode `tools`: a turn builds more than once
  auto s = turn.getSeconds();
  // The two clocks are of different processes.
  auto part = [](double seconds, double of_it) { return std::clamp(of_it, 0.0, seconds); };
  return {stage_time{"retrieve", s.getRetrieve(), s.getRetrieve()},
          stage_time{"policy", s.getPolicy(), s.getPolicy()},
          stage_time{"build", s.getBuild(), part(s.getBuild(), work.build)},
          stage_time{"evaluate", s.getEvaluate(), part(s.getEvaluate(), work.evaluate)},
          stage_time{"profile", s.getProfile(), part(s.getProfile(), work.profile)},
          stage_time{"judge", s.getJudge(), s.getJudge()}};
}

void add_slot_seconds(std::map<std::string, double>& to, wire::TurnRecord::Reader turn) {
  auto add = [&](wire::TurnFacts::Reader x) {
    for (auto span : x.getEvaluation().getSpans()) to[span.getName().cStr()] += span.getValue();
  };
  auto calls = turn.getCalls();
  if (calls.size() == 0) add(turn.getFacts());
  for (auto call : calls) add(call.getFacts());
}

nlohmann::ordered_json times_json(wire::TurnRecord::Reader turn) {
  nlohmann::ordered_json work, waited;
  for (const auto& x : stage_times(turn)) {
    work[x.stage] = x.work;
    waited[x.stage] = x.waited();
  }
  return {{"seconds", std::move(work)}, {"waited", std::move(waited)}};
}

} // namespace kernelmill::watch
