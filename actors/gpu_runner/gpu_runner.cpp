#include "actors/gpu_runner/gpu_runner.hpp"

#include <algorithm>
#include <optional>
#include <stop_token>

#include "actors/caf_error.hpp"
#include "actors/made_messages.hpp"
#include "actors/slot.hpp"

namespace kernelmill {

/// Ends an evaluation that its caller no longer waits for. The worker holds it while it has the
/// job.
using evaluation_stop = std::shared_ptr<std::stop_source>;

} // namespace kernelmill

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::evaluation_stop)

namespace kernelmill {

namespace {

using evaluate_worker_actor = caf::typed_actor<
    // Evaluates, blocking until the referee has answered or is told to stop.
    caf::replies_to<atom::evaluate, envelope, Message<wire::EvaluateRequest>,
                    evaluation_stop>::with<Message<wire::EvaluateResult>>>;

// The referee ends candidates at the deadline in the request; this much later it is itself ended.
constexpr std::chrono::seconds runner_patience{15};

std::chrono::milliseconds referee_deadline(const Message<wire::EvaluateRequest>& request) {
  return std::chrono::milliseconds{request.open()->getDeadlineMs()} + runner_patience;
}

constexpr int faults_before_probe = 3; // in a row
constexpr int probe_deadline_ms = 60'000;

struct worker_state {
  std::shared_ptr<referee_client> referee;
  std::string slot;
  quarantine_listener on_quarantine;
  int faults = 0; // of the infrastructure, in a row

  /// Why this slot is of no use any more, or nothing.
  std::optional<error> look_after(const Message<wire::EvaluateResult>& result) {
    bool ours = result.open()->getFault().getClass() == wire::FaultClass::INFRASTRUCTURE;
    faults = ours ? faults + 1 : 0;
    if (faults < faults_before_probe) return std::nullopt;
    faults = 0; // a task can be the cause as well
    auto alive = referee->probe(probe_deadline_ms);
    if (alive) return std::nullopt;
    return error{fault_class::infrastructure, "slot_quarantined",
                 "failed to keep slot " + slot +
                     ": no referee can work there: " + alive.error().message,
                 "`kernelmill doctor` and `nvidia-smi` show the GPU's state"};
  }
};

evaluate_worker_actor::behavior_type
evaluate_worker(evaluate_worker_actor::stateful_pointer<worker_state> self,
                std::shared_ptr<referee_client> referee, std::string slot,
                quarantine_listener on_quarantine) {
  self->state.referee = std::move(referee);
  self->state.slot = std::move(slot);
  self->state.on_quarantine = std::move(on_quarantine);
  return {
      [self](atom::evaluate, const envelope&, const Message<wire::EvaluateRequest>& request,
             const evaluation_stop& stop) {
        auto& x = self->state;
        auto deadline = static_cast<int>(referee_deadline(request).count());
        auto answer = x.referee->evaluate(request, deadline, stop->get_token());
        auto result =
            answer ? std::move(*answer) : fault_result<wire::EvaluateResult>(answer.error());
        if (stop->stop_requested()) return result; // what became of it says nothing of the slot
        if (auto sick = x.look_after(result)) {
          if (x.on_quarantine) x.on_quarantine(x.slot, *sick);
          self->quit(to_caf(*sick)); // and the runner, which is linked, with it
        }
        return result;
      },
  };
}

struct referee_runner_state : slot_state<evaluate_worker_actor> {
  struct job {
    envelope where;
    std::weak_ptr<std::stop_source> stop;
  };
  std::vector<job> jobs; // those that the worker has, and some that it has ended

  evaluation_stop note(const envelope& where) {
    auto result = std::make_shared<std::stop_source>();
    std::erase_if(jobs, [](const job& x) { return x.stop.expired(); });
    jobs.push_back({where, result});
    return result;
  }

  void cancel(const envelope& where) {
    for (const auto& x : jobs) {
      auto stop = x.stop.lock();
      if (stop && x.where.run == where.run && x.where.episode == where.episode &&
          x.where.trace == where.trace)
        stop->request_stop();
    }
  }

  static inline const char* name = "referee-runner";
};

gpu_runner_actor::behavior_type
referee_runner(gpu_runner_actor::stateful_pointer<referee_runner_state> self,
               std::shared_ptr<referee_client> referee, std::string slot,
               quarantine_listener on_quarantine) {
  self->state.slot = std::move(slot);
  self->state.worker = self->spawn<caf::detached + caf::linked>(
      evaluate_worker, std::move(referee), self->state.slot, std::move(on_quarantine));
  return {
      [self](atom::status) {
        return signed_by(self, self->state.snapshot("gpu_runner", "evaluating"));
      },
      [self](atom::evaluate, const envelope& where, const Message<wire::EvaluateRequest>& request) {
        auto what = request.open()->getCandidateSha256();
        return work<wire::EvaluateResult>(
            self, "candidate " + std::string{what.cStr()}.substr(0, 12), atom::evaluate_v, where,
            request, referee_deadline(request) + turn_patience + runner_patience,
            self->state.note(where));
      },
      [self](atom::cancel, const envelope& where) { self->state.cancel(where); },
  };
}

} // namespace

gpu_runner_actor spawn_referee_runner(caf::actor_system& system,
                                      std::shared_ptr<referee_client> referee, std::string slot,
                                      quarantine_listener on_quarantine) {
  return system.spawn(referee_runner, std::move(referee), std::move(slot),
                      std::move(on_quarantine));
}

} // namespace kernelmill
