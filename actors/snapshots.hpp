#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/message.hpp"
#include "messages/run.capnp.h"

namespace kernelmill {

/// What an actor answers to STATUS.
Message<wire::Snapshot>
snapshot_of(std::string_view actor, std::string_view id, std::string_view state,
            std::string_view detail,
            std::initializer_list<std::pair<const char*, uint64_t>> numbers);

/// The same of `head`, with `children` in place of its own.
Message<wire::Snapshot> with_children(const Message<wire::Snapshot>& head,
                                      const std::vector<Message<wire::Snapshot>>& children);

} // namespace kernelmill
