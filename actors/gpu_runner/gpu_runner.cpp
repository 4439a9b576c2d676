#include "actors/gpu_runner/gpu_runner.hpp"

#include "actors/slot.hpp"
#include "messages/fault.hpp"

namespace kernelmill {

namespace {

using evaluate_worker_actor = caf::typed_actor<
    // Evaluates, blocking until the referee has answered.
    caf::replies_to<atom::evaluate, envelope,
                    Message<wire::EvaluateRequest>>::with<Message<wire::EvaluateResult>>>;

Message<wire::EvaluateResult> fault_result(const error& why) {
  return build<wire::EvaluateResult>([&](wire::EvaluateResult::Builder x) {
    set_fault(x.initFault(), why);
  });
}

// The referee ends candidates at the deadline in the request; this much later it is itself ended.
constexpr std::chrono::seconds patience{15};

std::chrono::milliseconds referee_deadline(const Message<wire::EvaluateRequest>& request) {
  return std::chrono::milliseconds{request.open()->getDeadlineMs()} + patience;
}

evaluate_worker_actor::behavior_type evaluate_worker(evaluate_worker_actor::pointer,
                                                     std::shared_ptr<referee_client> referee) {
  return {
      [referee](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>& request) {
        auto result =
            referee->evaluate(request, static_cast<int>(referee_deadline(request).count()));
        return result ? std::move(*result) : fault_result(result.error());
      },
  };
}

struct referee_runner_state : slot_state<evaluate_worker_actor> {
  static inline const char* name = "referee-runner";
};

gpu_runner_actor::behavior_type
referee_runner(gpu_runner_actor::stateful_pointer<referee_runner_state> self,
               std::shared_ptr<referee_client> referee, std::string slot) {
  self->state.slot = std::move(slot);
  self->state.worker =
      self->spawn<caf::detached + caf::linked>(evaluate_worker, std::move(referee));
  return {
      [self](atom::status) { return self->state.snapshot("gpu_runner", "evaluating"); },
      [self](atom::evaluate, const envelope& where, const Message<wire::EvaluateRequest>& request) {
        auto what = request.open()->getCandidateSha256();
        return work<wire::EvaluateResult>(self, std::string{what.cStr()}.substr(0, 12),
                                          atom::evaluate_v, where, request,
                                          referee_deadline(request) + patience);
      },
  };
}

} // namespace

gpu_runner_actor spawn_referee_runner(caf::actor_system& system,
                                      std::shared_ptr<referee_client> referee, std::string slot) {
  return system.spawn(referee_runner, std::move(referee), std::move(slot));
}

} // namespace kernelmill
