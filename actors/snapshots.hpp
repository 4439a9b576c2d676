#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/envelope.hpp"
#include "messages/message.hpp"
#include "messages/run.capnp.h"

namespace kernelmill {

/// What an actor answers to STATUS.
Message<wire::Snapshot>
snapshot_of(std::string_view actor, std::string_view id, std::string_view state,
            std::string_view detail,
            std::initializer_list<std::pair<const char*, uint64_t>> numbers);

/// The same with some numbers more.
Message<wire::Snapshot> with_numbers(const Message<wire::Snapshot>& x,
                                     std::initializer_list<std::pair<const char*, double>> more);

/// The same with two numbers more: "actor", which is the actor's number in its process and what the
/// CLUSTER names workers by, and "mailbox", the messages that wait for it.
Message<wire::Snapshot> with_mailbox(const Message<wire::Snapshot>& x, uint64_t actor,
                                     uint64_t mailbox);

/// For a handler of STATUS. CAF counts the mailbox for its owner alone, so an actor says it itself.
template <class Self>
Message<wire::Snapshot> signed_by(Self* self, const Message<wire::Snapshot>& x) {
  return with_mailbox(x, self->id(), self->mailbox().size());
}

/// Adds a job to a text that lists the jobs of a queue, in order: "1f3a:12 1f3a:13" are
/// run_number() and ordinal; of the run that stands there last only the ordinal is added. `run` is
/// that one.
void append_waiting(std::string& line, uint64_t& run, const envelope& where);

/// The same of `head`, with `children` in place of its own.
Message<wire::Snapshot> with_children(const Message<wire::Snapshot>& head,
                                      const std::vector<Message<wire::Snapshot>>& children);

} // namespace kernelmill
