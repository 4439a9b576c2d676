#pragma once

// The RETRIEVER of a run without an index: it answers every query with nothing.

#include <cstdint>

#include "messages/actors.hpp"

namespace kernelmill {

struct no_retriever_state {
  uint64_t queries = 0;
  double since = 0;
  static inline const char* name = "no-retriever";
};

retriever_actor::behavior_type
no_retriever(retriever_actor::stateful_pointer<no_retriever_state> self);

} // namespace kernelmill
