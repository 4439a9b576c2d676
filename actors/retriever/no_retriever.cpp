#include "actors/retriever/no_retriever.hpp"
#include "actors/snapshots.hpp"

#include <chrono>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace kernelmill {

namespace {

Message<wire::Snapshot> snapshot_of(const no_retriever_state& x) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder to) {
    to.setActor("retriever");
    to.setState("off");
    to.setSince(x.since);
    to.setDetail("this run has no index");
    auto numbers = to.initNumbers(1);
    numbers[0].setName("queries");
    numbers[0].setValue(static_cast<double>(x.queries));
  });
}

} // namespace

retriever_actor::behavior_type
no_retriever(retriever_actor::stateful_pointer<no_retriever_state> self) {
  using namespace std::chrono;
  self->state.since = duration<double>(system_clock::now().time_since_epoch()).count();
  return {
      [self](atom::status) { return signed_by(self, snapshot_of(self->state)); },
      [self](atom::query, const envelope&, const Message<wire::RetrieveRequest>&) {
        ++self->state.queries;
        return Message<wire::RetrieveResult>{};
      },
  };
}

} // namespace kernelmill
