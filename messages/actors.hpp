#pragma once

// Every actor interface of Kernelmill. An interface is a role; implementations are named by an
// adjective and the role (`sandboxed_compiler`, `scripted_policy_client`) and live in actors/.
// Every role answers STATUS, and that is all the introspection there is.
//
// Payloads are Message<T>, decoded by the actor that uses them. No float and no container
// travels as a CAF value: CAF 0.17.6 never returns from serializing an infinity.

#include <caf/deserializer.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/serializer.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>

#include "messages/build.capnp.h"
#include "messages/cluster.capnp.h"
#include "messages/envelope.hpp"
#include "messages/evaluate.capnp.h"
#include "messages/lineage.capnp.h"
#include "messages/message.hpp"
#include "messages/policy.capnp.h"
#include "messages/profile.capnp.h"
#include "messages/retrieve.capnp.h"
#include "messages/run.capnp.h"
#include "messages/search.capnp.h"
#include "messages/verdict.capnp.h"

namespace kernelmill {

// -- how CAF carries our values ---------------------------------------------------------------

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, envelope& x) {
  return f(caf::meta::type_name("envelope"), x.protocol, x.epoch, x.run, x.episode, x.trace,
           x.priority, x.layers);
}

template <class T>
caf::error inspect(caf::serializer& sink, Message<T>& x) {
  auto size = x.size();
  return caf::error::eval(
      [&] { return sink.begin_sequence(size); },
      [&] { return size > 0 ? sink.apply_raw(size, const_cast<char*>(x.data())) : caf::error{}; },
      [&] { return sink.end_sequence(); });
}

template <class T>
caf::error inspect(caf::deserializer& source, Message<T>& x) {
  size_t size = 0;
  if (auto err = source.begin_sequence(size)) return err;
  if (size > max_message_bytes || size % sizeof(capnp::word) != 0)
    return caf::sec::invalid_argument;
  if (size == 0) {
    x = Message<T>{};
  } else {
    auto words = kj::heapArray<capnp::word>(size / sizeof(capnp::word));
    if (auto err = source.apply_raw(size, words.begin())) return err;
    x = Message<T>{std::move(words)};
  }
  return source.end_sequence();
}

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, Message<T>& x) {
  auto size = static_cast<uint64_t>(x.size());
  return f(caf::meta::type_name("message"), size);
}

} // namespace kernelmill

// The order is the type ids, which both ends of a wire must agree on: append, never insert.
#define KERNELMILL_MESSAGE(T)                                                                      \
  CAF_ADD_TYPE_ID(kernelmill, (kernelmill::Message<kernelmill::wire::T>))
CAF_BEGIN_TYPE_ID_BLOCK(kernelmill, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(kernelmill, (kernelmill::envelope))
KERNELMILL_MESSAGE(ArtifactBatch)
KERNELMILL_MESSAGE(BuildRequest)
KERNELMILL_MESSAGE(BuildResult)
KERNELMILL_MESSAGE(CompletionRequest)
KERNELMILL_MESSAGE(CompletionResult)
KERNELMILL_MESSAGE(EpisodeHistory)
KERNELMILL_MESSAGE(EpisodeOutcome)
KERNELMILL_MESSAGE(EvaluateRequest)
KERNELMILL_MESSAGE(EvaluateResult)
KERNELMILL_MESSAGE(ProfileRequest)
KERNELMILL_MESSAGE(ProfileResult)
KERNELMILL_MESSAGE(ReadQuery)
KERNELMILL_MESSAGE(Record)
KERNELMILL_MESSAGE(RetrieveRequest)
KERNELMILL_MESSAGE(RetrieveResult)
KERNELMILL_MESSAGE(RunSummary)
KERNELMILL_MESSAGE(Snapshot)
KERNELMILL_MESSAGE(TurnFacts)
KERNELMILL_MESSAGE(Verdict)
KERNELMILL_MESSAGE(NodeOffer)
KERNELMILL_MESSAGE(Welcome)
KERNELMILL_MESSAGE(Parcel)
KERNELMILL_MESSAGE(ControlRequest)
KERNELMILL_MESSAGE(ControlReply)
KERNELMILL_MESSAGE(PolicyServer)
KERNELMILL_MESSAGE(SearchOpening)

CAF_ADD_ATOM(kernelmill, kernelmill::atom, build, "build")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, cancel, "cancel")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, drop, "drop")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, commit, "commit")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, complete, "complete")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, evaluate, "evaluate")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, finished, "finished")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, flush, "flush")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, judge, "judge")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, lease, "lease")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, observe, "observe")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, pause, "pause")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, proceed, "proceed")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, profile, "profile")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, query, "query")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, read, "read")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, start, "start")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, status, "status")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, tick, "tick")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, control, "control")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, drain, "drain")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, join, "join")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, retire, "retire")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, attach, "attach")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, detach, "detach")
CAF_ADD_ATOM(kernelmill, kernelmill::atom, weights, "weights")
CAF_END_TYPE_ID_BLOCK(kernelmill)
#undef KERNELMILL_MESSAGE

namespace kernelmill {

/// The STATUS actor interface.
using status_actor = caf::typed_actor<
    // Says what the actor is doing now.
    caf::replies_to<atom::status>::with<Message<wire::Snapshot>>>;

/// The POLICY CLIENT actor interface.
using policy_client_actor = status_actor::extend<
    // Completes a conversation; a fault comes back inside the result.
    caf::replies_to<atom::complete, envelope,
                    Message<wire::CompletionRequest>>::with<Message<wire::CompletionResult>>>;

/// The POLICY POOL actor interface: one policy client that stands before many servers.
using policy_pool_actor = policy_client_actor::extend<
    // Attaches a server; requests go to it from now on.
    caf::replies_to<atom::attach, Message<wire::PolicyServer>>::with<void>,
    // Gives a server no more requests; those that it has may take so many milliseconds more.
    caf::replies_to<atom::detach, std::string, uint32_t>::with<void>,
    // Says which version of the weights a server has from now on; without a name all of them.
    caf::replies_to<atom::weights, std::string, std::string>::with<void>,
    // INTERNAL: looks at the clock and at the servers' health.
    caf::reacts_to<atom::tick>>;

/// The RETRIEVER actor interface.
using retriever_actor = status_actor::extend<
    // Finds examples for a prompt; never one that solves the asking task.
    caf::replies_to<atom::query, envelope,
                    Message<wire::RetrieveRequest>>::with<Message<wire::RetrieveResult>>>;

/// The COMPILER actor interface.
using compiler_actor = status_actor::extend<
    // Builds a candidate in the sandbox, or serves it from the cache.
    caf::replies_to<atom::build, envelope,
                    Message<wire::BuildRequest>>::with<Message<wire::BuildResult>>>;

/// The GPU RUNNER actor interface.
using gpu_runner_actor = status_actor::extend<
    // Runs, checks and times a built candidate in its slot.
    caf::replies_to<atom::evaluate, envelope,
                    Message<wire::EvaluateRequest>>::with<Message<wire::EvaluateResult>>,
    // The caller no longer waits for this evaluation; ends its candidate.
    caf::reacts_to<atom::cancel, envelope>>;

/// The PROFILER actor interface.
using profiler_actor = status_actor::extend<
    // Counts what a correct candidate does with the machine.
    caf::replies_to<atom::profile, envelope,
                    Message<wire::ProfileRequest>>::with<Message<wire::ProfileResult>>,
    // The caller no longer waits for this profile; ends its candidate.
    caf::reacts_to<atom::cancel, envelope>>;

/// The CLUSTER actor interface: it answers for every worker that has joined.
using cluster_actor = status_actor::extend<
    // Queues a build and answers when a compiler has done it.
    caf::replies_to<atom::build, envelope,
                    Message<wire::BuildRequest>>::with<Message<wire::BuildResult>>,
    // Queues an evaluation and answers when a runner has done it.
    caf::replies_to<atom::evaluate, envelope,
                    Message<wire::EvaluateRequest>>::with<Message<wire::EvaluateResult>>,
    // Queues a profile and answers when a profiler has done it.
    caf::replies_to<atom::profile, envelope,
                    Message<wire::ProfileRequest>>::with<Message<wire::ProfileResult>>,
    // Offers a compiler that takes so many builds at once.
    caf::reacts_to<atom::lease, compiler_actor, uint32_t>,
    // Offers a runner that takes so many evaluations at once.
    caf::reacts_to<atom::lease, gpu_runner_actor, uint32_t>,
    // Offers a profiler that takes so many profiles at once.
    caf::reacts_to<atom::lease, profiler_actor, uint32_t>,
    // Says which layers the sandbox has (layer_bits()) where a worker works, before it is offered;
    // of one that nothing is said of, all stand.
    caf::reacts_to<atom::lease, caf::actor_addr, uint32_t>,
    // Gives a worker no more jobs; what it has it may finish.
    caf::reacts_to<atom::retire, caf::actor_addr>,
    // The sender no longer waits for the jobs of this envelope; ends their candidates.
    caf::reacts_to<atom::cancel, envelope>,
    // INTERNAL: looks for leases that have expired.
    caf::reacts_to<atom::tick>>;

/// The NODE GATE actor interface: all that a head asks of another node.
using node_gate_actor = status_actor::extend<
    // Builds; the library comes back in the parcel.
    caf::replies_to<atom::build, envelope, Message<wire::BuildRequest>,
                    Message<wire::Parcel>>::with<Message<wire::BuildResult>, Message<wire::Parcel>>,
    // Evaluates what the parcels of this or earlier jobs brought.
    caf::replies_to<atom::evaluate, envelope, Message<wire::EvaluateRequest>,
                    Message<wire::Parcel>>::with<Message<wire::EvaluateResult>>,
    // Profiles it.
    caf::replies_to<atom::profile, envelope, Message<wire::ProfileRequest>,
                    Message<wire::Parcel>>::with<Message<wire::ProfileResult>>,
    // The caller no longer waits for the evaluations and profiles of this envelope.
    caf::reacts_to<atom::cancel, envelope>,
    // The node has joined a head of this epoch; jobs of those before it are stale.
    caf::reacts_to<atom::join, uint64_t>,
    // Ends the node once it has answered what it has; the head gives it nothing more.
    caf::reacts_to<atom::drain>>;

/// The HEAD actor interface: what nodes and users' commands reach on the head's port.
using head_actor = status_actor::extend<
    // Takes up the servers and runs of an earlier head; answers when it has.
    caf::replies_to<atom::start>::with<atom::start>,
    // INTERNAL: it listens at this address.
    caf::reacts_to<atom::start, std::string>,
    // A node offers itself.
    caf::replies_to<atom::join, Message<wire::NodeOffer>,
                    node_gate_actor>::with<Message<wire::Welcome>>,
    // A node wants no more work and to leave when it has answered.
    caf::reacts_to<atom::drain, std::string>,
    // A user's command.
    caf::replies_to<atom::control,
                    Message<wire::ControlRequest>>::with<Message<wire::ControlReply>>>;

/// The GOVERNANCE actor interface.
using governance_actor = status_actor::extend<
    // Judges the facts of one turn.
    caf::replies_to<atom::judge, envelope, Message<wire::TurnFacts>>::with<Message<wire::Verdict>>>;

/// The LINEAGE actor interface.
using lineage_actor = status_actor::extend<
    // Makes a record durable together with the artifacts that it names. Answers true when the
    // record is new and false when it was there already; only after it is on disk.
    caf::replies_to<atom::commit, envelope, Message<wire::Record>,
                    Message<wire::ArtifactBatch>>::with<bool>,
    // Reads what is committed of one episode.
    caf::replies_to<atom::read, Message<wire::ReadQuery>>::with<Message<wire::EpisodeHistory>>>;

/// The SEARCH actor interface.
using search_actor = status_actor::extend<
    // Says where an episode of the search sets out from, once all generations before its own are
    // durable.
    caf::replies_to<atom::query, Message<wire::ReadQuery>>::with<Message<wire::SearchOpening>>,
    // Says whether the budget allows a generation, once all before it are durable.
    caf::replies_to<atom::proceed, uint32_t>::with<bool>>;

/// The EPISODE actor interface.
using episode_actor = status_actor::extend<
    // Ends the episode after the step in progress.
    caf::reacts_to<atom::cancel>,
    // Closes the episode after the step in progress: its group has enough without it.
    caf::reacts_to<atom::drop>,
    // Looks at the clock: an answer past its deadline is not waited for any longer.
    caf::reacts_to<atom::tick>,
    // INTERNAL: takes the next step.
    caf::reacts_to<atom::proceed>>;

/// The RUN actor interface.
using run_actor = status_actor::extend<
    // Starts the plan; answers once, when the run has ended.
    caf::replies_to<atom::start>::with<Message<wire::RunSummary>>,
    // An episode, the sender, has so many committed turns; false: as it found them in the store.
    caf::reacts_to<atom::commit, uint32_t, bool>,
    // An episode has ended and its record is durable.
    caf::reacts_to<atom::finished, Message<wire::EpisodeOutcome>>,
    // Says how far it is, without its episodes.
    caf::replies_to<atom::observe>::with<Message<wire::Snapshot>>,
    // Stops admitting episodes, or goes on.
    caf::reacts_to<atom::pause, bool>,
    // Ends the run; committed turns stay.
    caf::reacts_to<atom::cancel>,
    // INTERNAL: lets the live episodes look at the clock.
    caf::reacts_to<atom::tick>,
    // INTERNAL: admits the next episode.
    caf::reacts_to<atom::proceed>>;

/// The MONITOR actor interface.
using monitor_actor = status_actor::extend<
    // Includes an actor in what STATUS shows.
    caf::reacts_to<atom::observe, status_actor>>;

} // namespace kernelmill

CAF_BEGIN_TYPE_ID_BLOCK(kernelmill_handles, caf::id_block::kernelmill::end)
CAF_ADD_TYPE_ID(kernelmill_handles, (kernelmill::status_actor))
CAF_ADD_TYPE_ID(kernelmill_handles, (kernelmill::compiler_actor))
CAF_ADD_TYPE_ID(kernelmill_handles, (kernelmill::gpu_runner_actor))
CAF_ADD_TYPE_ID(kernelmill_handles, (kernelmill::profiler_actor))
CAF_ADD_TYPE_ID(kernelmill_handles, (kernelmill::node_gate_actor))
CAF_END_TYPE_ID_BLOCK(kernelmill_handles)
