#pragma once

// The RETRIEVER that answers from a loaded index. It takes up what waits in its feed before each
// query, so a kernel that was verified before a request is known to the leak guard by then.
//
// A fault of the embedder comes back inside the result, with no examples: a prompt without
// examples is worse than one with them, but still a prompt, and the caller decides.

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include <caf/fwd.hpp>

#include "messages/actors.hpp"
#include "retrieval/search/index.hpp"
#include "retrieval/search/kernel_feed.hpp"

namespace kernelmill {

/// What a retriever has done since it started.
struct retriever_counters {
  uint64_t queries = 0;
  uint64_t results = 0;
  uint64_t withheld = 0;
  uint64_t failures = 0; ///< queries and kernels that the embedder failed
  double seconds = 0;    ///< of all queries
  std::string last_fault;
};

struct indexed_retriever_state {
  std::shared_ptr<loaded_index> index;
  std::shared_ptr<kernel_feed> feed;
  retriever_counters counters;
  /// To the words of a request. The episodes of a group ask the same, and get the same until a
  /// kernel comes.
  std::unordered_map<std::string, Message<wire::RetrieveResult>> answers;
  double since = 0;
  static inline const char* name = "indexed-retriever";

  void take_up_feed();
  Message<wire::RetrieveResult> query(const Message<wire::RetrieveRequest>& request);
  Message<wire::RetrieveResult> answer_to(const Message<wire::RetrieveRequest>& request);
  Message<wire::Snapshot> snapshot() const;
};

/// The retriever is the only one that uses `index` from now on; `feed` may be null.
retriever_actor::behavior_type
indexed_retriever(retriever_actor::stateful_pointer<indexed_retriever_state> self,
                  std::shared_ptr<loaded_index> index, std::shared_ptr<kernel_feed> feed);

/// Spawns it with a thread of its own when its embedder waits for a server.
retriever_actor spawn_indexed_retriever(caf::actor_system& system,
                                        std::shared_ptr<loaded_index> index,
                                        std::shared_ptr<kernel_feed> feed = nullptr);

} // namespace kernelmill
