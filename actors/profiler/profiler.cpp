#include "actors/profiler/profiler.hpp"

#include <caf/all.hpp>

#include "actors/profiler/bottleneck.hpp"
#include "actors/snapshots.hpp"

namespace kernelmill {

namespace {

caf::result<Message<wire::ProfileResult>>
profile(profiler_actor::stateful_pointer<counting_profiler_state> self, const envelope& where,
        const Message<wire::ProfileRequest>& request) {
  auto view = request.open();
  auto evaluation = copy_of<wire::EvaluateRequest>(view->getEvaluation());
  auto timeout = std::chrono::milliseconds{view->getEvaluation().getDeadlineMs()} +
                 std::chrono::minutes{5}; // the slot may be busy with other candidates first
  auto answer = self->make_response_promise<Message<wire::ProfileResult>>();
  ++self->state.busy;
  self->request(self->state.runner, timeout, atom::evaluate_v, where, evaluation)
      .then(
          [self, answer, bytes = view->getBytes(), flops = view->getFlops(),
           reports = view->getEvaluation().getReports()](
              const Message<wire::EvaluateResult>& counted) mutable {
            --self->state.busy;
            ++self->state.done;
            auto view = counted.open();
            answer.deliver(read_bottleneck(*view, bytes, flops, view->getSeconds(), reports));
          },
          [self, answer](caf::error& why) mutable {
            --self->state.busy;
            ++self->state.faults;
            answer.deliver(std::move(why));
          });
  return answer;
}

} // namespace

profiler_actor::behavior_type
counting_profiler(profiler_actor::stateful_pointer<counting_profiler_state> self,
                  gpu_runner_actor runner) {
  self->state.runner = std::move(runner);
  return {
      [self](atom::status) {
        auto& s = self->state;
        return signed_by(self,
                         snapshot_of("profiler", {}, s.busy > 0 ? "profiling" : "idle", {},
                                     {{"done", s.done}, {"infrastructure_faults", s.faults}}));
      },
      [self](atom::profile, const envelope& where, const Message<wire::ProfileRequest>& request) {
        return profile(self, where, request);
      },
      [self](atom::cancel, const envelope& where) {
        self->send(self->state.runner, atom::cancel_v, where);
      },
  };
}

} // namespace kernelmill
