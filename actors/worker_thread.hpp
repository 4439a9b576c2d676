#pragma once

// A worker thread does work that blocks: it reads a store, writes a file or asks a server. An actor
// sends such work to its worker thread and goes on. The result comes back as a message.

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/replies_to.hpp>
#include <caf/result.hpp>
#include <caf/spawn_options.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/caf_error.hpp"
#include "messages/actors.hpp"
#include "messages/without_stack.hpp"

namespace kernelmill {

/// Work with a place for its result; stays in this process.
using handed_work = std::shared_ptr<std::function<void()>>;

} // namespace kernelmill

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kernelmill::handed_work)

namespace kernelmill {

/// The actor interface of a worker thread.
using worker_thread_actor = caf::typed_actor<
    // Does the work, blocking; what throws is an error.
    caf::replies_to<atom::proceed, handed_work>::with<void>>;

inline worker_thread_actor::behavior_type blocking_worker(worker_thread_actor::pointer) {
  return {[](atom::proceed, const handed_work& work) -> caf::result<void> {
    try {
      (*work)();
      return caf::unit;
    } catch (const std::exception& why) {
      return to_caf({fault_class::infrastructure, "internal",
                     "failed to do what was asked: " + without_stack(why.what()),
                     "please report this as a defect"});
    }
  }};
}

/// Spawns a worker thread that ends with `self`. `own_thread` is false for the deterministic
/// scheduler alone: its work then blocks the other actors.
template <class Self>
worker_thread_actor spawn_worker_thread(Self* self, bool own_thread) {
  return own_thread ? self->template spawn<caf::detached + caf::linked>(blocking_worker)
                    : self->template spawn<caf::linked>(blocking_worker);
}

/// Calls `work`, which returns an expected<T>, on `thread`. Then calls `done` with the result on
/// the thread of `self`. After `deadline`, `done` gets an error, and `work` may still go on.
template <class Self, class Work, class Done>
void run_on_worker_thread(Self* self, const worker_thread_actor& thread,
                          std::chrono::milliseconds deadline, Work work, Done done) {
  using result = std::invoke_result_t<Work&>;
  auto place = std::make_shared<std::optional<result>>();
  auto job = std::make_shared<std::function<void()>>(
      [place, work = std::move(work)]() mutable { place->emplace(work()); });
  auto shared_done = std::make_shared<Done>(std::move(done));
  self->request(thread, deadline, atom::proceed_v, handed_work{std::move(job)})
      .then([place, shared_done] { (*shared_done)(std::move(**place)); },
            [shared_done](caf::error& why) {
              (*shared_done)(result{tl::unexpected<error>{from_caf(why)}});
            });
}

} // namespace kernelmill
