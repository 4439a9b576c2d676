#include "actors/compiler/compiler.hpp"

#include "actors/slot.hpp"

namespace kernelmill {

namespace {

using build_worker_actor = caf::typed_actor<
    // Builds, blocking until the compiler has ended.
    caf::replies_to<atom::build, envelope,
                    Message<wire::BuildRequest>>::with<Message<wire::BuildResult>>>;

build_worker_actor::behavior_type build_worker(build_worker_actor::pointer,
                                               std::shared_ptr<native_toolchain> toolchain) {
  return {
      [toolchain](atom::build, const envelope&, const Message<wire::BuildRequest>& request) {
        return toolchain->build(*request.open());
      },
  };
}

struct sandboxed_compiler_state : slot_state<build_worker_actor> {
  static inline const char* name = "sandboxed-compiler";
};

compiler_actor::behavior_type
sandboxed_compiler(compiler_actor::stateful_pointer<sandboxed_compiler_state> self,
                   std::shared_ptr<native_toolchain> toolchain, std::string slot) {
  self->state.slot = std::move(slot);
  self->state.worker = self->spawn<caf::detached + caf::linked>(build_worker, std::move(toolchain));
  return {
      [self](atom::status) {
        return signed_by(self, self->state.snapshot("compiler", "building"));
      },
      [self](atom::build, const envelope& where, const Message<wire::BuildRequest>& request) {
        // No limit here. The first build waits for headers, which take minutes on a busy machine,
        // and the request's deadline counts the compiler's own time alone. The lease ends what must
        // end.
        return work<wire::BuildResult>(self, request.open()->getTask(), atom::build_v, where,
                                       request, caf::infinite);
      },
  };
}

} // namespace

compiler_actor spawn_sandboxed_compiler(caf::actor_system& system,
                                        std::shared_ptr<native_toolchain> toolchain,
                                        std::string slot) {
  return system.spawn(sandboxed_compiler, std::move(toolchain), std::move(slot));
}

} // namespace kernelmill
